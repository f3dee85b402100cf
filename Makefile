# Every target sets up what it needs; `make setup` does nothing when it is up to date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.up-to-date
JOBS ?= 2

.PHONY: setup demo browser test test-slow lint format bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "credro needs Python 3.10 or later, this is " + sys.version.split()[0])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (torch is about 200 MB: a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

demo: $(STAMP)
	@$(BIN)/credro demo

# Chromium for the tests of the report: where it cannot be installed they are skipped, or fail if they are required.
browser: $(STAMP)
	@PYTHON=$(BIN)/python scripts/install_chromium.sh || [ "$(CREDRO_REQUIRE_BROWSER)" != 1 ]

test: $(STAMP) browser
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -rs

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

DOCS := $(VENV)/.docs-up-to-date

$(DOCS): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]' 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest -m '' tests/test_site.py
	@echo "open site/index.html"

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
