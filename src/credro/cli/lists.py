"""``credro list``."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import fields
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import typer

from credro.cli.options import Root, one_of

Rows = list[dict[str, Any]]


def list_(
    what: Annotated[str, typer.Argument(metavar="WHAT", hidden=True)],
    as_json: Annotated[bool, typer.Option("--json", help="For a program to read.")] = False,
    root: Root = None,
) -> None:
    """List methods, nets, data and the like.

    WHAT is methods, choices, nets, data, recipes, augmentations, corruptions or experiments.

    \b
    Examples:
      credro list methods
      credro list data --json
    """
    topics = {
        "methods": methods,
        "choices": choices,
        "nets": nets,
        "data": lambda: data(root),
        "recipes": recipes,
        "augmentations": augmentations,
        "corruptions": corruptions,
        "experiments": experiments,
    }
    rows = topics[one_of("WHAT", what, topics)]()
    typer.echo(json.dumps(rows, indent=2) if as_json else _text(what, rows))


def methods() -> Rows:
    """Every method: its five choices, their options with defaults, and who published it."""
    from credro.methods import CHOICES, METHODS, options

    return [
        {
            "name": name,
            "label": entry.label,
            "title": entry.title,
            **{what: getattr(entry.method, what).kind for what in CHOICES},
            "options": options(name),
            "reference": entry.reference,
        }
        for name, entry in METHODS.items()
    ]


def choices() -> Rows:
    """Every start, risk, head, stop and read-out that a method can be made of, as ``--set`` takes it."""
    from credro.methods import CHOICES

    return [
        {"name": f"{what}={kind}", "about": _first_line(choice), "options": choice().options()}
        for what, (kinds, _) in CHOICES.items()
        for kind, choice in kinds.items()
    ]


def nets() -> Rows:
    """Every network: usual input, and parameters for ten classes at that input (mlp: 28x28 grey images)."""
    import torch

    from credro.nets import NETS, make, usual_shape

    rows = []
    for name in NETS:
        shape = usual_shape(name)
        with torch.device("meta"):  # counted, not allocated
            net = make(name, classes=10, shape=shape or (1, 28, 28))
        count = sum(p.numel() for p in net.parameters())
        rows.append({"name": name, "input": None if shape is None else list(shape), "parameters": count})
    return rows


def data(root: Path | None = None) -> Rows:
    """Every named set: what it is, where it is looked for, whether it is there, and its publisher's page."""
    from credro.data import SOURCES, data_root
    from credro.data.readers import PUBLISHED

    base = data_root(root)
    rows = []
    for name, source in SOURCES.items():
        places = [] if source.embedded else list(map(str, PUBLISHED[name].candidates(base)))
        how = "embedded" if source.embedded else "fetch" if source.files else "by hand"
        here = source.embedded or any(Path(place).exists() for place in places)
        rows.append(
            {"name": name, "about": source.about, "get": how, "here": here, "looked_for": places, "page": source.page}
        )
    return rows


def recipes() -> Rows:
    """Every recipe by name: what it sets apart from the default, and the default itself in full."""
    from credro.training.recipe import PRESETS, Recipe

    default = Recipe()

    def changed(recipe: Recipe) -> dict[str, Any]:
        return {f.name: v for f in fields(Recipe) if (v := getattr(recipe, f.name)) != getattr(default, f.name)}

    named = [{"name": name, "sets": changed(recipe)} for name, recipe in PRESETS.items()]
    return [{"name": "(default)", "sets": default.to_json()}, *named]


def augmentations() -> Rows:
    """Every augmentation, with the first line of what it says of itself."""
    from credro.data import AUGMENTATIONS

    return [{"name": k, "about": "no change" if k == "none" else _first_line(f)} for k, f in AUGMENTATIONS.items()]


def corruptions() -> Rows:
    """Every corruption, with the first line of what it says of itself. Severities are 1 to 5."""
    from credro.data import CORRUPTIONS

    return [{"name": name, "about": _first_line(f), "severities": [1, 2, 3, 4, 5]} for name, f in CORRUPTIONS.items()]


def experiments() -> Rows:
    """Every experiment of the paper, and the methods and variants it has."""
    from credro.experiments import EXPERIMENTS

    return [
        {
            "name": e.name,
            "title": e.title,
            "methods": list(e.compared),
            "variants": [v.label for v in e.variants if v.label],
        }
        for e in EXPERIMENTS.values()
    ]


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0].replace("``", "")


def _text(what: str, rows: Rows) -> str:
    from credro._text import text_table

    if what == "nets":
        cells = [
            [r["name"], "x".join(map(str, r["input"])) if r["input"] else "any", f"{r['parameters']:,}"] for r in rows
        ]
        table = text_table(cells, ["net", "usual input", "parameters (10 classes)"], widest=40)
        return f"{table}\n\n{WHEN}"
    return _blocks({r["name"]: LINES[what](r) for r in rows})


def _method(row: dict[str, Any]) -> list[str]:
    from credro.methods import CHOICES

    chosen = ", ".join(f"{what} {row[what]}" for what in CHOICES)
    return [f"{row['title']} ({row['reference']})", chosen, _settable(row["options"])]


def _settable(options: dict[str, Any]) -> str:
    return f"--set {_pairs(options)}" if options else "no options"


def _set(row: dict[str, Any]) -> list[str]:
    state = {"embedded": "", "fetch": f"credro data get {row['name']}", "by hand": "by hand"}[row["get"]]
    found = "comes along" if row["get"] == "embedded" else "here" if row["here"] else f"not here: {state}"
    return [row["about"], found, *[f"looked for: {place}" for place in row["looked_for"][:1]], row["page"]]


def _pairs(options: dict[str, Any]) -> str:
    """As ``--set`` takes them."""
    return " ".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in options.items())


WHEN = """What to take when (docs/networks.md has accuracy, AUROC and minutes):
  from scratch   a table: table; many images, or of a kind that no backbone knows: cnn, resnet8, resnet18
  frozen trunk   few images: --trunk efficientnet-lite0 --head mlp, or a folder, an ONNX file or a module of your own"""


LINES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "methods": _method,
    "choices": lambda row: [row["about"], _settable(row["options"])],
    "data": _set,
    "recipes": lambda row: [_pairs(row["sets"])],
    "augmentations": lambda row: [row["about"]],
    "corruptions": lambda row: [row["about"]],
    "experiments": lambda row: [
        row["title"],
        ", ".join(row["methods"]),
        *([", ".join(row["variants"])] if row["variants"] else []),
    ],
}


def _blocks(entries: dict[str, list[str]]) -> str:
    """Names to the left, what is said of each beside it, wrapped to the terminal."""
    margin = max(map(len, entries)) + 2
    width = max(shutil.get_terminal_size().columns, margin + 40)
    lines = []
    for name, texts in entries.items():
        wrapped = [
            part
            for text in texts
            for part in textwrap.wrap(text, width - margin, break_long_words=False, break_on_hyphens=False)
        ]
        lines += [f"{head:<{margin}}{part}" for head, part in zip_longest([name], wrapped, fillvalue="")]
    return "\n".join(lines)
