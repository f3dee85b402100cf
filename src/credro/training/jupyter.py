"""Progress in a Jupyter notebook: one output below the cell that changes in place, without widgets or extensions."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from credro._templates import render

EVERY = 0.25  # seconds between two changes: each is a message to the browser


def in_notebook() -> bool:
    """Whether this process is a Jupyter kernel: in a terminal IPython has no kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Output:
    """One output of the running cell. ``show`` changes it, at most a few times a second unless it must."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self.handle: Any = None
        self.shown = -EVERY

    def show(self, done: int, total: int, text: str, lines: Sequence[str] = (), *, force: bool = False) -> None:
        """A bar of ``done`` parts out of ``total``, a line of text, and further lines."""
        now = time.monotonic()
        if self.handle is not None and not force and now - self.shown < EVERY:
            return
        self.shown = now
        bundle = {"text/plain": "\n".join([text, *lines]), "text/html": bar(done, total, text, lines)}
        if self.handle is None:
            from IPython.display import display

            self.handle = display(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)


def bar(done: int, total: int, text: str, lines: Sequence[str] = ()) -> str:
    """HTML of a bar that takes the browser's own colours, light or dark."""
    return render("training/jupyter.html.j2", done=done, total=max(1, total), text=text, lines=lines)
