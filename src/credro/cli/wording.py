"""Messages in the words of the command line: one line, options in place of Python's arguments."""

from __future__ import annotations

import re

ARGUMENT = re.compile(
    r"\b(label|group|drop|keep|missing|categories|task|classes|x|y|layout|header|deep|size|on_error|split|seen|early_stop)="
    r"(\((?:'[^']*'(?:, |,)?)+\)|\(\w+, \w+\)|'[^']*'|[^\s,;:)]+)"
)
"""An argument of Python in a message, as ``missing='?'``: the option of that name takes the same."""

IN_OPTIONS = (
    (r"\blabel must be", "--label must be"),
    (r"root=\.\.\.", "--root DIR"),
    (r"give held_out$", "name a split with --held-out"),
    (
        r"shape must be \(channels, height, width\), got (\(\d+,\))",
        r"samples of shape \1 are no images: take --net mlp",
    ),
    (r"(at least \d+x\d+ pixels for this network, got .*\))", r"\1; take another --net, or --size for image files"),
    (r"is not a run: it has no config.json", "is not a run: name the folder that credro train --out has made"),
    (r"Take others$", "take others with --data, or train with --test 0.2, which keeps some aside"),
    (r"^\[Errno \d+\] ([^:]*): '(.*)'$", r"\2: \1"),
)
"""What a message says of Python's arguments, and what a user of the command line types."""


def one_line(text: str) -> str:
    """A message of several lines as one; of a traceback only what it ends with."""
    if "Traceback (most recent call last)" in text:
        head, _, trace = text.partition("Traceback (most recent call last)")
        text = head + trace.strip().splitlines()[-1]
    parts = [part.strip() for part in text.splitlines() if part.strip()]
    for pattern, typed in IN_OPTIONS:
        parts = [re.sub(pattern, typed, part) for part in parts]
    parts = [ARGUMENT.sub(_typed, part) for part in parts]
    return "".join(p + (" " if p.endswith((":", ",", ";")) else "; ") for p in parts[:-1]) + "".join(parts[-1:])


def _typed(argument: re.Match[str]) -> str:
    """``drop=('id', 'date')`` as ``--drop id,date``, ``header=False`` as ``--no-header``."""
    name, value = argument[1].replace("_", "-"), argument[2]
    if value in ("True", "False") or (name == "early-stop" and value == "0"):
        return f"--{'no-' * (value != 'True')}{name}"
    if value == "(height, width)":
        return f"--{name} HEIGHTxWIDTH"
    inside = ",".join(re.findall(r"'([^']*)'", value)) or value.strip("()").replace(" ", "")
    inside = inside.replace(",", "x") if name == "size" else inside
    plain = re.fullmatch(r"[\w.,/=|-]*\w", inside) is not None or inside == "..."
    return f"--{name} {inside if plain else repr(inside)}"
