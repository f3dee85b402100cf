"""What a user wants to be told while members train: functions and objects that are called as it goes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from credro.training._loggers import MLflow, TensorBoard
from credro.training.loop import Progress
from credro.training.records import Epoch, RunConfig
from credro.training.run import History, Run

__all__ = ["Callback", "CallbackWarning", "MLflow", "MemberEpoch", "RunEnd", "RunStart", "TensorBoard"]

MOMENTS = ("on_start", "on_epoch", "on_end")


class CallbackWarning(UserWarning):
    """A callback raised an exception; training went on."""


@dataclass(frozen=True)
class RunStart:
    """Training begins, or goes on. epochs_done: over all members, from an earlier call."""

    run: Run
    config: RunConfig
    epochs_done: int


@dataclass(frozen=True)
class MemberEpoch:
    """A member, counted from 0, has trained an epoch. epochs: at most so many; done: it needs no more."""

    member: int
    record: Epoch
    epochs: int
    done: bool

    @property
    def numbers(self) -> dict[str, float]:
        """What there is to plot: loss, accuracy, lr, seconds, and the same of held-out data, by name."""
        plain = {k: v for k, v in self.record.to_json().items() if k not in ("epoch", "notes", "stopped")}
        return {name: float(value) for name, value in plain.items() if value is not None}


@dataclass(frozen=True)
class RunEnd:
    """Training is over. error: what ended it, if it is not complete."""

    run: Run
    error: BaseException | None = None


class Callback:
    """What a callback may have; any object with one of these methods is one, and so is a function of ``MemberEpoch``.

    All are called in the process that called ``fit``, whatever trains the members.
    """

    def on_start(self, start: RunStart) -> None:
        """Before the first epoch of this call. A run with nothing left to train tells nothing."""

    def on_epoch(self, epoch: MemberEpoch) -> None:
        """After each epoch of each member; of a run that goes on also those after its last checkpoint, once more."""

    def on_end(self, end: RunEnd) -> None:
        """When all is trained, and when training fails or is interrupted."""


def check_callbacks(given: Sequence[Any]) -> None:
    """Raise unless ``given`` is a list of functions and objects that can be called."""
    if not isinstance(given, list | tuple):
        raise TypeError(f"callbacks must be a list, got {type(given).__name__}: callbacks=[...]")
    for callback in given:
        if isinstance(callback, type) or not (callable(callback) or any(hasattr(callback, m) for m in MOMENTS)):
            raise TypeError(f"a callback must be a function, or an object with one of {', '.join(MOMENTS)}: {callback}")


class Told:
    """The callbacks of one call of ``fit``. What one raises becomes a ``CallbackWarning``; the others are told on."""

    def __init__(self, callbacks: Sequence[Any], run: Run) -> None:
        """callbacks: as ``check_callbacks`` wants them."""
        self.callbacks, self.run = callbacks, run

    def start(self, config: RunConfig, epochs_done: int) -> None:
        """Training begins."""
        self._tell("on_start", lambda: RunStart(self.run, config, epochs_done))

    def epoch(self, progress: Progress) -> None:
        """A member reports an epoch; its record is the one in the run's history, whoever trains it."""

        def event() -> MemberEpoch:
            entries = History(self.run.member(progress.member) / "history.jsonl").read()
            return MemberEpoch(progress.member, entries[progress.epoch - 1], progress.epochs, progress.done)

        self._tell("on_epoch", event)

    def end(self, error: BaseException | None) -> None:
        """Training is over."""
        self._tell("on_end", lambda: RunEnd(self.run, error))

    def _tell(self, moment: str, event: Callable[[], Any]) -> None:
        happened = None
        for callback in self.callbacks:
            told = getattr(callback, moment, None)
            if told is None and moment == "on_epoch" and callable(callback):
                told = callback
            if told is None:
                continue
            try:
                happened = happened or event()
                told(happened)
            except Exception as error:
                name = getattr(callback, "__qualname__", type(callback).__qualname__)
                warnings.warn(
                    f"callback {name} raised {type(error).__name__} {moment}: {error}", CallbackWarning, stacklevel=2
                )


@contextmanager
def telling(callbacks: Sequence[Any], run: Run, config: RunConfig, epochs_done: int) -> Iterator[Told]:
    """Around the training: tells its start, and its end however it comes."""
    told = Told(callbacks, run)
    told.start(config, epochs_done)
    try:
        yield told
    except BaseException as error:
        told.end(error)
        raise
    told.end(None)
