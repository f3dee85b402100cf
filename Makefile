# Every target sets up what it needs, and nothing where that is up to date: `make demo` what the demo needs, all others
# everything. No path is absolute: the folder may have spaces in its name, need be no git checkout, and nobody need be root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date
DEMO := $(VENV)/.demo-up-to-date
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS ?= 2

.PHONY: setup demo browser test test-slow test-lowest lint format bench docs dist licences clean

setup: $(STAMP)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "credro needs Python 3.10 or later, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "setting up $(VENV) with everything (2.4 GB with torch: two minutes the first time)"
	@$(INSTALL) -e '.[dev]' 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@ $(DEMO)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	@echo "setting up $(VENV) for the demo (1.1 GB with torch: half a minute the first time)"
	@$(INSTALL) -e '.[demo]' 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

demo: $(DEMO)
	@$(BIN)/python -m credro demo

# Chromium for the tests of the report: where it cannot be installed they are skipped, or fail if they are required.
browser: $(STAMP)
	@PYTHON=$(BIN)/python bash scripts/install_chromium.sh || [ "$(CREDRO_REQUIRE_BROWSER)" != 1 ]

test: $(STAMP) browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -rs

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

# The oldest versions that pyproject.toml allows (core, cli, data, figures, sklearn), in an environment of their own.
LOWEST := $(VENV)-lowest

test-lowest: $(STAMP)
	$(BIN)/python scripts/lowest.py > $(VENV)/lowest.txt
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet -c $(VENV)/lowest.txt -e '.[cli,data,figures,sklearn]' pytest pytest-xdist hypothesis mpmath
	$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist loadfile -rs tests/cli tests/credal tests/data tests/ensemble tests/own_data tests/prediction tests/report tests/test_sklearn.py

# Wheel and sdist, and the wheel alone in a fresh environment.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python scripts/check_dist.py dist

licences: $(STAMP)
	$(BIN)/python scripts/licences.py > docs/licences.md

lint: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: $(STAMP)
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

DOCS := $(VENV)/.docs-up-to-date

$(DOCS): $(STAMP)
	@$(INSTALL) -e '.[docs]' 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest -m '' tests/test_site.py
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
