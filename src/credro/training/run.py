"""A run on disk: its configuration, its members' folders, and the lock that keeps a second process out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from credro._records import RecordError
from credro.training._version1 import upgraded_config, upgraded_member
from credro.training.files import read_json, remove_parts, write_bytes, write_json
from credro.training.records import FORMAT, Calibration, Epoch, MemberRecord, RunConfig


class RunError(RuntimeError):
    """A run folder cannot be used as asked; the message says why and what to do."""


class NotARun(RunError):  # noqa: N818 - read as a sentence
    """There is no run in the folder."""


class Run:
    """Paths and records of one run folder (docs/design.md has its layout)."""

    def __init__(self, folder: str | Path) -> None:
        """Nothing is created or read yet."""
        self.folder = Path(folder)

    @property
    def config_path(self) -> Path:
        """The configuration's file."""
        return self.folder / "config.json"

    def member(self, i: int) -> Path:
        """Folder of member ``i``."""
        return self.folder / "members" / f"{i:02d}"

    def weights(self, i: int) -> Path:
        """Final weights of member ``i``."""
        return self.member(i) / "weights.safetensors"

    def state(self, i: int) -> Path:
        """Checkpoint of member ``i`` while it is trained."""
        return self.member(i) / "train_state.safetensors"

    @property
    def stack_state(self) -> Path:
        """Checkpoint of all members while they are trained at once."""
        return self.folder / "members" / "stacked_state.safetensors"

    @property
    def calibration_path(self) -> Path:
        """Its temperatures, if there are any."""
        return self.folder / "calibration.json"

    def record_path(self, i: int) -> Path:
        """What makes member ``i`` done: written last."""
        return self.member(i) / "done.json"

    def is_done(self, i: int) -> bool:
        """Whether member ``i`` is trained."""
        return self.record_path(i).exists()

    def record(self, i: int) -> MemberRecord:
        """What was noted when member ``i`` was done."""
        path = self.record_path(i)
        plain = read_json(path)
        found = MemberRecord.from_json(upgraded_member(plain) if isinstance(plain, dict) else plain, path)
        if found.member != i:
            raise RecordError(path, "member", f"must be {i}, as its folder says, got {found.member}")
        return found

    def records(self) -> list[MemberRecord]:
        """Of all members, which must be done."""
        return [self.record(i) for i in range(self.config().members)]

    def missing(self) -> list[int]:
        """Members that are not trained yet."""
        return [i for i in range(self.config().members) if not self.is_done(i)]

    def calibration(self) -> Calibration | None:
        """The temperatures that were fitted, one per member."""
        if not self.calibration_path.exists():
            return None
        found = Calibration.from_json(read_json(self.calibration_path), self.calibration_path)
        if (given := len(found.temperatures)) != (members := self.config().members):
            raise RecordError(self.calibration_path, "temperatures", f"must be {members}, one per member, got {given}")
        return found

    def version(self) -> int:
        """Of the configuration's format; 1 is version 0.1's."""
        return int(self._plain().get("format", 0))

    def _plain(self) -> dict[str, Any]:
        if not self.config_path.exists():
            raise NotARun(f"{self.folder} is not a run: it has no config.json")
        plain = read_json(self.config_path)
        if not isinstance(plain, dict) or plain.get("format") not in (1, FORMAT):
            raise RecordError(self.config_path, "format", f"must be {FORMAT}: this is no run, or a later version's")
        return plain

    def config(self) -> RunConfig:
        """The configuration of an existing run; one of version 0.1 as this version would have written it."""
        plain = self._plain()
        if plain["format"] == 1:
            plain = upgraded_config(plain, self.config_path)
        return RunConfig.from_json(plain, self.config_path)

    def start(self, config: RunConfig) -> None:
        """Record ``config``, or check that the run in this folder was started with the same one. Under its lock."""
        remove_parts(self.folder)
        if not self.config_path.exists():
            write_json(self.config_path, config.to_json())
            return
        self.check_begun()
        differences = list(_differences(self.config().to_json(), json.loads(json.dumps(config.to_json()))))
        if differences:
            raise RunError(
                f"{self.folder} holds a run with another configuration; choose another folder or remove it. "
                f"It differs in:\n  " + "\n  ".join(differences)
            )

    def check_begun(self) -> None:
        """Raise where version 0.1 has begun the run and not finished it."""
        if self.version() == 1 and self.missing():
            raise RunError(
                f"{self.folder} was begun by version 0.1, which trained otherwise, and is not finished: train it "
                f"again, in another folder or with credro train --force"
            )

    @contextmanager
    def lock(self, name: str = "lock", wait: float = 0.0) -> Iterator[None]:
        """Hold the run (or one member of it) for this process; the system lets go when the process ends, however."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is a file, not a folder to keep a run in")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        owner = path.with_name(path.name + ".owner")
        lock = FileLock(path)
        try:
            lock.acquire(timeout=wait, poll_interval=0.1)
        except Timeout:
            held_by = owner.read_text() if owner.exists() else "unknown"
            raise RunError(
                f"{self.folder} is in use by another process ({held_by}); wait for it to end or stop it"
            ) from None
        try:
            owner.write_text(f"process {os.getpid()}")
            yield
        finally:
            lock.release()


class History:
    """A member's record, one JSON line an epoch."""

    def __init__(self, path: Path) -> None:
        """Nothing is created or read yet."""
        self.path = path

    def read(self) -> list[Epoch]:
        """All complete lines; a line cut off by a kill does not count."""
        if not self.path.exists():
            return []
        entries = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            try:
                plain = json.loads(line)
            except json.JSONDecodeError:
                break
            entries.append(Epoch.from_json(plain, self.path, f"line {number}"))
        return entries

    def keep(self, epochs: int) -> list[Epoch]:
        """Drop what was written after the checkpoint that training goes on from."""
        entries = self.read()[:epochs]
        write_bytes(self.path, "".join(json.dumps(e.to_json()) + "\n" for e in entries).encode())
        return entries

    def append(self, entry: Epoch) -> None:
        """Add an epoch."""
        with open(self.path, "a") as file:
            file.write(json.dumps(entry.to_json()) + "\n")


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Every leaf in which two configurations differ. What merely records the machine, or the way to the data, is none.

    The data itself is compared by its fingerprint.
    """
    if path in ("versions", "data.spec", "trunk.address"):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield f"{path}: {old!r} there, {new!r} now"
