"""The paper's numbers, as the library quotes them, against the paper's own source."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from credro._records import RecordError
from credro.experiments._paper import Asked, PaperTable, paper_value

REPO = Path(__file__).resolve().parents[2]
VALUES = REPO / "src/credro/experiments/paper_values.json"
PAPER = REPO.parent / "shared/paper/credro.tex"

METHODS = {"de", "crewra", "creens", "en-dro", "credro", "credro-hull", "creram", "crerl", "crede", "crebnn"}
SETS = {"svhn", "places365", "cifar100", "fmnist", "imagenet", "cifar10"}
PERCENT, FRACTION = (0.0, 100.0), (0.0, 1.0)
MEASURES = {
    "auroc": PERCENT,
    "fpr95": PERCENT,
    "accuracy": FRACTION,
    "ece": FRACTION,
    "member_accuracy": FRACTION,
    "gap": FRACTION,
    "pil": FRACTION,
    "mean_eu": (0.0, 3.33),  # log2(10): the largest entropy of ten classes in any usual base
    "training_seconds": (0.0, float("inf")),
    "inference_seconds": (0.0, float("inf")),
    "uq_seconds": (0.0, float("inf")),
}
EXPERIMENTS = {"main", "members", "complexity", "sizes", "delta", "spacing", "sets", "noise", "tightness"}
REQUIRED = {"method", "members", "measure", "set", "mean", "std"}
OPTIONAL = {"options", "member", "run", "noise", "delta_g", "spacing", "ratio_to_hull", "note"}
RESULT = {"mean", "std", "ratio_to_hull", "note"}  # the other keys say which cell it is

Row = dict[str, Any]
BOOK: dict[str, Any] = json.loads(VALUES.read_text())
ROWS = [(name, row) for name, table in BOOK.items() for row in table["rows"]]


def identity(row: Row) -> str:
    return json.dumps({k: v for k, v in row.items() if k not in RESULT}, sort_keys=True)


# --- the file by itself ------------------------------------------------------------------------------------------


def test_experiments() -> None:
    assert set(BOOK) == EXPERIMENTS
    for name, table in BOOK.items():
        assert set(table) == {"source", "unit", "rows"}, name
        units = {part.split(":")[0].strip() for part in table["unit"].split(",")}
        assert units == {row["measure"] for row in table["rows"]}, f"{name}: one unit for each measure"


def test_rows_use_known_names_and_ranges() -> None:
    for name, row in ROWS:
        assert set(row) >= REQUIRED, (name, row)
        assert set(row) <= REQUIRED | OPTIONAL, (name, row)
        assert row["method"] in METHODS, (name, row)
        assert row["set"] in SETS, (name, row)
        low, high = MEASURES[row["measure"]]
        assert low <= row["mean"] <= high, (name, row)
        assert row["std"] is None or row["std"] >= 0, (name, row)
        assert row["members"] in (5, 10, 15, 20), (name, row)
        assert row.get("member") is None or 0 <= row["member"] < row["members"], (name, row)
        assert row.get("noise", 0.1) in (0.1, 0.2), (name, row)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_no_cell_twice(name: str) -> None:
    cells = [identity(row) for row in BOOK[name]["rows"]]
    assert len(cells) == len(set(cells))


def test_a_cell_under_two_experiments_has_one_value() -> None:
    """delta_G 0.5 and uniform spacing are the paper's setting wherever it names none."""
    seen: dict[str, tuple[str, tuple[float, float | None]]] = {}
    shared = 0
    for name, row in ROWS:
        setting = {**row, "delta_g": row.get("delta_g", 0.5), "spacing": row.get("spacing", "uniform")}
        value = row["mean"], row["std"]
        first, before = seen.setdefault(identity(setting), (name, value))
        shared += first != name
        assert before == value or "note" in row, f"{first} and {name} disagree on {identity(setting)}"
    assert shared > 0


# --- the file against the paper ----------------------------------------------------------------------------------

METHOD_LABELS = ["DE", "EN-DRO", "CreDRO", "CreWra", "CreDE", "CreBNN", "CreRAM", "CreRL", "CreEns"]
LABELS = {
    "SVHN": {"set": "svhn"},
    "Places": {"set": "places365"},
    "CIFAR100": {"set": "cifar100"},
    "FMNIST": {"set": "fmnist"},
    "ImageNet": {"set": "imagenet"},
    "K_B": {"method": "credro"},
    "K_C": {"method": "credro-hull"},
    "CreRL_1.0": {"method": "crerl", "options": {"alpha": 1.0}},
    "CreEns_0.0": {"method": "creens", "options": {"alpha": 0.0}},
    "Test Accuracy": {"measure": "accuracy"},
    "ECE": {"measure": "ece"},
    "Training Time": {"measure": "training_seconds"},
    "Inference Time": {"measure": "inference_seconds"},
    "UQ Runtime": {"measure": "uq_seconds"},
    "Averaged UQ Runtime": {"measure": "uq_seconds"},
    "Uniform interpolation": {"spacing": "uniform"},
    "Exponential-like interpolation": {"spacing": "exponential"},
    "Logarithmic-like interpolation": {"spacing": "logarithmic"},
    "Average": {"member": None},
    **{f"PIL (Run {i})": {"measure": "pil", "run": i - 1} for i in (1, 2, 3)},
    **{name: {"method": name.lower()} for name in METHOD_LABELS},
}


def plain(tex: str) -> str:
    """The text of a table cell as a reader sees it: ``97.4 ± 0.1``, ``CreRL_1.0``, ``M=5``."""
    tex = re.sub(r"\\textcolor\{\w+\}|\\multirow\{-2\}\{\*\}|\\multicolumn\{\d\}\{c\}|\\(top|mid|bottom)rule", "", tex)
    tex = tex.replace(r"\pm", "±").replace(r"\delta", "delta")
    tex = re.sub(r"\\[a-z]+(?=\W)|[\\!{}$#]", "", tex)
    return re.sub(r"\s+", " ", tex).strip()


def grid(label: str) -> list[list[str]]:
    """The plain cells of the tabular that carries this label, its head first; empty lines left out."""
    table = PAPER.read_text(encoding="utf-8").split(rf"\label{{{label}}}")[1].split(r"\end{tabular}")[0]
    lines = [[plain(cell) for cell in line.split("&")] for line in table.split(r"\toprule")[1].split(r"\\")]
    return [line for line in lines if any(line)]


def meaning(text: str, head: str) -> Row:
    """The keys that a label stands for; ``head`` is the title over a bare number."""
    if text in LABELS:
        return LABELS[text]
    if text.isdigit():
        return {"member": int(text) - 1} if head == "Member Index" else {"members": int(text)}
    if found := re.fullmatch(r"(?:Ensemble Number )?M=(\d+)", text):
        return {"members": int(found[1])}
    if found := re.fullmatch(r"delta_G=(0\.\d)", text):
        return {"delta_g": float(found[1])}
    if found := re.fullmatch(r"Label noise level in CIFAR10 training data (\d+)%", text):
        return {"noise": int(found[1]) / 100}
    raise AssertionError(f"what does {text!r} stand for?")


Cell = tuple[Row, str, "str | None"]  # which cell it is, its mean and standard deviation as printed


def printed(label: str, setting: Row) -> list[Cell]:
    """The cells of a table of the paper in reading order; ``setting`` is what its caption or text says of all."""
    head, *lines = grid(label)
    block: Row = {}  # a title across the table holds for the lines below it
    table: list[list[Cell]] = []
    for line in lines:
        numbers = [re.fullmatch(r"(\d+\.\d+)(?: ?_?± ?(\d+\.\d+))?", cell) for cell in line]
        names = [cell for cell, number in zip(line, numbers, strict=True) if cell and not number]
        keys = {key: value for name in names for key, value in meaning(name, head[0]).items()}
        if not any(numbers):
            block = keys
            continue
        columns = [(title, n) for title, n in zip(head, numbers, strict=True) if n and not title.startswith("Ratio")]
        table.append([({**setting, **block, **keys, **meaning(title, "")}, n[1], n[2]) for title, n in columns])
    for box, hull in zip(table[::2], table[1::2], strict=False):  # M stands once for two lines, on either of them
        for (one, *_), (other, *_) in zip(box, hull, strict=True):
            members = one.get("members", other.get("members"))
            one["members"] = members
            other.setdefault("members", members)
    return [cell for line in table for cell in line]


def quoted(experiment: str, label: str, measures: set[str]) -> list[Cell]:
    """The same from the file, with the digits that stand in it (``0.930``, not ``0.93``)."""
    digits = json.loads(VALUES.read_text(), parse_float=str)[experiment]["rows"]
    return [
        ({key: value for key, value in row.items() if key not in RESULT}, text["mean"], text["std"])
        for row, text in zip(BOOK[experiment]["rows"], digits, strict=True)
        if row["measure"] in measures
        and (row["method"] != "credro-hull" or label != "Tab: AblationEnsembleSize")  # from the table of sets
    ]


OOD = {"measure": "auroc"}
MEMBER = {"measure": "member_accuracy", "set": "cifar10"}
TABLES: list[tuple[str, str, Row]] = [
    ("main", "Tab: MainComparison", {**OOD, "members": 20}),
    ("main", "Tab: ECEACC", {"members": 20, "set": "cifar10"}),
    ("members", "Tab: MemberAccuracy", {**MEMBER, "members": 20}),
    ("complexity", "Tab: Complexity", {"members": 5, "set": "cifar10"}),
    ("sizes", "Tab: AblationEnsembleSize", OOD),
    ("delta", "Tab: DeltaComparison", {**OOD, "method": "credro", "members": 5}),
    ("spacing", "Tab: InterpolationResult", {**OOD, "method": "credro", "members": 5, "delta_g": 0.5}),
    ("sets", "Tab: AblationCredalSets", OOD),
    ("sets", "tab:FPR@95", {"measure": "fpr95"}),
    ("sets", "tab: MeanEU", {"measure": "mean_eu", "set": "cifar10"}),
    ("sets", "tab: EUGap", {"measure": "gap"}),
    ("noise", "Tab: NoiseComparison", {**OOD, "members": 5}),
    ("noise", "Tab: AccLabelNoise", {**MEMBER, "members": 5}),
    ("tightness", "Tab: CIFAR10PIL", {"members": 5, "set": "cifar10"}),
]
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="needs the paper's source in ../shared/paper")


@needs_paper
@pytest.mark.parametrize(("experiment", "label", "setting"), TABLES, ids=[label for _, label, _ in TABLES])
def test_every_cell_as_printed(experiment: str, label: str, setting: Row) -> None:
    cells = printed(label, setting)
    assert cells
    assert label in BOOK[experiment]["source"]
    assert quoted(experiment, label, {keys["measure"] for keys, _, _ in cells}) == cells


@needs_paper
def test_ratio_column() -> None:
    rows = json.loads(VALUES.read_text(), parse_float=str)["sets"]["rows"]
    assert [r["ratio_to_hull"] for r in rows if "ratio_to_hull" in r] == [line[-1] for line in grid("tab: MeanEU")[1:]]


@needs_paper
def test_no_table_is_left_out() -> None:
    labels = {label.strip() for label in re.findall(r"\\label\{([Tt]ab:[^}]*)\}", PAPER.read_text(encoding="utf-8"))}
    no_results = {"Tab: DatasetInfo", "Tab: top-delta-selection", "Tab: complexityAnalysis"}
    assert labels == {label for _, label, _ in TABLES} | no_results


def test_sizes_hold_the_hull_of_sets() -> None:
    """The table of sets is the second one by ensemble size: all its hull scores stand under ``sizes`` too."""
    sizes, sets = ({identity(r) for r in BOOK[name]["rows"] if r["measure"] == "auroc"} for name in ("sizes", "sets"))
    assert sets < sizes


# --- as the library reads it -------------------------------------------------------------------------------------


def test_a_wrong_value_is_named() -> None:
    """Values are checked when they are read: an error says which row and which field."""
    rows = BOOK["main"]["rows"]
    assert len(PaperTable.from_json(BOOK["main"], VALUES, "main").rows) == len(rows)
    for key, value, field in (("mean", "97.4", "main.rows[1].mean"), ("measured", 1, "main.rows[1].measured")):
        broken = {**BOOK["main"], "rows": [rows[0], {**rows[1], key: value}]}
        with pytest.raises(RecordError) as error:
            PaperTable.from_json(broken, VALUES, "main")
        assert error.value.field == field


def test_values_are_found_by_what_they_are_of() -> None:
    """By hand from the paper: Tab: MainComparison, Tab: DeltaComparison and the three runs of Tab: CIFAR10PIL."""
    assert paper_value("main", "credro", Asked("auroc", "svhn")) == 97.4
    by_level = [row["mean"] for row in BOOK["delta"]["rows"] if (row["delta_g"], row["set"]) == (0.7, "svhn")]
    assert [paper_value("delta", "credro", Asked("auroc", "svhn"), options={"delta_g": 0.7})] == by_level
    assert paper_value("delta", "credro", Asked("auroc", "svhn")) is None  # one for each delta_G
    lengths = [r["mean"] for r in BOOK["tightness"]["rows"] if (r["method"], r["measure"]) == ("credro", "pil")]
    assert len(lengths) == 3
    assert paper_value("tightness", "credro", Asked("pil")) == pytest.approx(sum(lengths) / 3)
    assert paper_value("nothing", "credro", Asked("auroc")) is None
