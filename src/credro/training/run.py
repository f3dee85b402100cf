"""A run on disk: its configuration, its members' folders, and the lock that keeps a second process out."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from credro.training.checkpoint import read_json, write_bytes, write_json
from credro.training.recipe import complete

FORMAT = 1


class RunError(RuntimeError):
    """A run folder cannot be used as asked; the message says why and what to do."""


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

    def done(self, i: int) -> dict[str, Any] | None:
        """What was recorded when member ``i`` finished, or None."""
        path = self.member(i) / "done.json"
        return read_json(path) if path.exists() else None

    def config(self) -> dict[str, Any]:
        """The configuration of an existing run."""
        if not self.config_path.exists():
            raise RunError(f"{self.folder} is not a run: it has no config.json")
        config: dict[str, Any] = read_json(self.config_path)
        if config.get("format") != FORMAT:
            raise RunError(f"{self.config_path} has format {config.get('format')!r}, this version reads {FORMAT}")
        if "recipe" in config:  # an older version knew fewer fields
            config["recipe"] = complete(config["recipe"])
        return config

    def start(self, config: dict[str, Any]) -> None:
        """Record ``config``, or check that the run in this folder was started with the same one."""
        config = json.loads(json.dumps({"format": FORMAT, **config}))
        if self.config_path.exists():
            differences = list(_differences(self.config(), config))
            if differences:
                raise RunError(
                    f"{self.folder} holds a run with another configuration; choose another folder or remove it. "
                    f"It differs in:\n  " + "\n  ".join(differences)
                )
        else:
            write_json(self.config_path, config)

    @contextmanager
    def lock(self, name: str = "lock", wait: float = 0.0) -> Iterator[None]:
        """Hold the run (or one member of it) for this process; the system lets go when the process ends, however."""
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is a file, not a folder to keep a run in")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a+") as file:
            until = time.monotonic() + wait
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() < until:
                        time.sleep(0.1)
                        continue
                    file.seek(0)
                    raise RunError(
                        f"{self.folder} is in use by another process ({file.read().strip() or 'unknown'}); "
                        f"wait for it to end or stop it"
                    ) from None
            file.truncate(0)
            file.write(f"process {os.getpid()}")
            file.flush()
            yield


class History:
    """A member's record, one JSON line an epoch."""

    def __init__(self, path: Path) -> None:
        """Nothing is created or read yet."""
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """All complete lines; a line cut off by a kill does not count."""
        if not self.path.exists():
            return []
        entries = []
        for line in self.path.read_text().splitlines():
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:
                break
        return entries

    def keep(self, epochs: int) -> list[dict[str, Any]]:
        """Drop what was written after the checkpoint that training goes on from."""
        entries = self.read()[:epochs]
        write_bytes(self.path, "".join(json.dumps(e) + "\n" for e in entries).encode())
        return entries

    def append(self, entry: dict[str, Any]) -> None:
        """Add an epoch."""
        with open(self.path, "a") as file:
            file.write(json.dumps(entry) + "\n")


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Every leaf in which two configurations differ. What merely records the machine, or the way to the data, is none.

    The data itself is compared by its fingerprint.
    """
    if path in ("versions", "data.spec"):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield f"{path}: {old!r} there, {new!r} now"
