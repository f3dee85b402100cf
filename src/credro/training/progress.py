"""Progress of long work: one bar over all members on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from credro.training.jupyter import Output, in_notebook
from credro.training.loop import Progress

EVERY = 5.0  # seconds between two plain lines
MODES = ("auto", "bar", "plain", "none")


class Display:
    """Shows what the members report. Use as a context; ``display(progress)`` is the report function."""

    def __init__(self, members: int, epochs: int, done: int = 0, mode: str = "auto") -> None:
        """done: epochs (over all members) that need no training any more."""
        if mode not in MODES:
            raise ValueError(f"progress must be one of {', '.join(MODES)}, got {mode!r}")
        if mode in ("auto", "bar") and in_notebook():
            mode = "notebook"
        elif mode == "auto":
            mode = "bar" if sys.stderr.isatty() else "plain"
        self.mode, self.members, self.total, self.count = mode, members, members * epochs, done
        self.trained = 0  # epochs seen here: neither those done before or elsewhere nor those that a member was spared
        self.latest: dict[int, Progress] = {}
        self.started = self.said = time.monotonic()
        self.bar: Any = None
        self.output = Output()
        self.lines: list[str] = []

    def __enter__(self) -> Display:
        """Open the bar."""
        if self.mode == "bar":
            try:
                from rich.progress import BarColumn, TextColumn
                from rich.progress import Progress as Bar
            except ImportError:  # the bar is an extra; plain lines say the same
                self.mode = "plain"
                return self
            from rich.console import Console

            columns = (
                "training",
                BarColumn(),
                TextColumn("{task.completed}/{task.total} epochs"),
                TextColumn("{task.fields[left]}"),  # rich's own would take epochs that a member is spared for speed
            )
            self.bar = Bar(*columns, TextColumn("{task.fields[members]}"), console=Console(stderr=True))
            self.bar.start()
            self.task = self.bar.add_task("training", total=self.total, completed=self.count, members="", left="")
        elif self.mode == "notebook" and self.count < self.total:
            self._show("starting")
        return self

    def say(self, text: str) -> None:
        """A line that is worth knowing before training starts."""
        self.lines.append(text)
        if self.mode == "notebook":
            self._show("starting", force=True)
        elif self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False)
        elif self.mode != "none":
            print(text, file=sys.stderr, flush=True)

    def __call__(self, progress: Progress) -> None:
        """A member has finished an epoch."""
        self.count += 1
        self.trained += 1
        if progress.done:
            self.count += progress.epochs - progress.epoch  # a member may stop early
        self.latest[progress.member] = progress
        now = time.monotonic()
        if self.bar is not None:
            left = f"{self._time_left()} left"
            self.bar.update(self.task, completed=self.count, members=self._members(), left=left)
        elif self.mode == "notebook":
            self._show(f"{self._time_left()} left")
        elif self.mode == "plain" and (progress.done or now - self.said >= EVERY):
            self.said = now
            print(self._line(progress), file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.stop()
        elif self.mode == "notebook" and (self.output.handle is not None or error is not None):
            taken = f"{time.monotonic() - self.started:.0f} s"
            self._show(f"in {taken}" if error is None else f"stopped after {taken}", force=True)

    def _show(self, text: str, *, force: bool = False) -> None:
        line = f"{self.count}/{self.total} epochs, {text}  {self._members()}".rstrip()
        self.output.show(self.count, self.total, line, self.lines, force=force)

    def _line(self, p: Progress) -> str:
        right = "" if p.accuracy is None else f", accuracy {p.accuracy:.1%}"
        return (
            f"member {p.member}: epoch {p.epoch}/{p.epochs}, loss {p.loss:.4f}{right}"
            f" | all members: {self.count}/{self.total} epochs, {self._time_left()} left"
        )

    def _members(self) -> str:
        recent = sorted(self.latest.values(), key=lambda p: p.member)[-4:]
        right = {p.member: "" if p.accuracy is None else f" {p.accuracy:.0%}" for p in recent}
        return "  ".join(f"#{p.member} {p.loss:.3f}{right[p.member]}" for p in recent)

    def _time_left(self) -> str:
        """At the speed of the epochs trained here."""
        seconds = (time.monotonic() - self.started) / max(1, self.trained) * (self.total - self.count)
        return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
