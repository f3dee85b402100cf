"""Samples for a trained run: read as it was trained on, so that shapes, columns and classes agree."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from credro.assess import conform_to
from credro.cli.options import Misuse, one_of
from credro.data import Data, DataError, corrupt_data, limit, load
from credro.data.readers import READERS
from credro.data.readers.folders import folder, split_folders
from credro.data.readers.images import SUFFIXES, ImageFiles
from credro.data.readers.like import npz_like, table_like
from credro.data.spec import Column, DataSpec
from credro.ensemble import Ensemble
from credro.training.checkpoint import read_json

TABLES = (".csv", ".tsv", ".parquet")
UNSAID = ("test", "val", None)
"""Splits to look for when none is named: None is the whole of what has no splits."""


def facts(ensemble: Ensemble) -> dict[str, Any]:
    """What ``credro train`` noted about the data of a run."""
    noted: dict[str, Any] = {} if ensemble.run is None else ensemble.run.config().get("facts", {})
    return noted


def read_id(
    ensemble: Ensemble,
    name: str | None = None,
    split: str | None = None,
    root: Path | None = None,
    *,
    first: int | None = None,
    label: str | None = None,
    unseen: bool = False,
) -> Data:
    """Labelled samples of the classes a run knows; without a name, of the set it was trained on.

    Samples that the run was trained on are refused where they must be ``unseen``, and noted otherwise.
    """
    noted = facts(ensemble)
    chosen = name or noted.get("data")
    if not chosen:
        raise ValueError("the run does not say what it was trained on: name a set with --data")
    path = Path(chosen)
    if chosen not in READERS and path.suffix.lower() in TABLES:
        data, split = _table(ensemble, _existing(path), split, label, labelled=True)
    else:
        options: dict[str, Any] = {} if chosen in READERS else {"classes": ensemble.classes}
        data, split = some_split(chosen, split, root, {**options, **_size(chosen, ensemble)})
    seen = _seen(ensemble, chosen, split, data)
    if seen == "trained" and (rest := _rest(ensemble, data)) is not None:
        warnings.warn(f"{chosen}: these are the {len(rest):,} samples that the run has not seen", stacklevel=2)
        data = rest
    elif seen:
        if unseen:
            raise ValueError(f"{chosen}: the run was {seen} on these samples: it would promise too much; take others")
        warnings.warn(f"{chosen}: the run was {seen} on these samples, and the figures flatter it", stacklevel=2)
    if data.classes and chosen in READERS and len(data.classes) != len(ensemble.classes):
        raise ValueError(f"{chosen!r} has {len(data.classes)} classes, the run {len(ensemble.classes)}: it is not ID")
    if data.classes and set(data.classes).isdisjoint(ensemble.classes):
        there, known = (", ".join(names[:3]) for names in (data.classes, ensemble.classes))
        warnings.warn(f"{chosen}: its classes ({there}, ...) are not the run's ({known}, ...): is it ID?", stacklevel=2)
    return conform_to(_first(data, first), ensemble.inputs.shape)


def read_ood(
    ensemble: Ensemble, name: str, known: Data, root: Path | None = None, *, first: int | None = None
) -> tuple[str, Data]:
    """A stranger and what to call it: a set, any file or folder, or ``corrupt:NAME:SEVERITY`` of the ID samples."""
    if name.startswith("corrupt:"):
        kind, _, severity = name.removeprefix("corrupt:").partition(":")
        if not severity.isdigit():
            raise ValueError(f"--ood corrupt:NAME:SEVERITY needs a severity from 1 to 5, got {name!r}")
        return f"{kind}:{severity}", corrupt_data(known, kind, int(severity))
    if name in READERS:
        data, _ = some_split(name, None, root, _size(name, ensemble))
    else:
        parts = split_folders(Path(name)) if Path(name).is_dir() else {}
        place = next((str(parts[s]) for s in ("test", "val") if s in parts), name)
        data = read_unlabelled(ensemble, [place], None, root)[0]
    return name if name in READERS else Path(name).stem, conform_to(_first(data, first), ensemble.inputs.shape)


def read_unlabelled(
    ensemble: Ensemble, inputs: Sequence[str], split: str | None = None, root: Path | None = None, label: str = ""
) -> list[Data]:
    """Samples to predict: image files and folders together as one ``Data``, every array, table and named set by itself.

    Labels, where there are any, are not read; ``paths`` are set where a sample is a file.
    """
    images: list[Path] = []
    sets: list[Data] = []
    for name in inputs:
        path = Path(name)
        if name in READERS:
            sets.append(some_split(name, split, root, _size(name, ensemble))[0])
        elif _existing(path).is_dir():
            parts = split_folders(path) if split else {}
            images += _images_below(parts[one_of("--split", str(split), parts)] if split else path)
        elif path.suffix.lower() in SUFFIXES:
            images.append(path)
        elif path.suffix.lower() in TABLES:
            sets.append(_table(ensemble, path, split, label, labelled=False)[0])
        elif path.suffix.lower() == ".npz":
            sets.append(_array(ensemble, path, split))
        else:
            raise ValueError(f"{path} must be a folder, an image, .npz, .csv, .tsv, .parquet or the name of a set")
    if images:
        shape = ensemble.inputs.shape
        if len(shape) != 3 or shape[0] not in (1, 3):
            raise ValueError(f"{images[0]} is an image, but the run takes samples of shape {shape}")
        read = ImageFiles(tuple(images), (shape[0], shape[1], shape[2]), resize=True)
        sets.insert(0, Data("images", read, _no_labels(len(images)), shape, paths=read.paths))
    return [conform_to(data, ensemble.inputs.shape) for data in sets]


def _existing(path: Path) -> Path:
    if not path.exists():
        near = get_close_matches(str(path), READERS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise FileNotFoundError(f"{path} was not found: it is no file, no folder and no name of a set{hint}")
    return path


def _no_labels(count: int) -> Tensor:
    return torch.zeros(count, dtype=torch.long)


def _first(data: Data, first: int | None) -> Data:
    return data if first is None or first >= len(data) else data.subset(limit(len(data), first, 0))


def _size(name: str, ensemble: Ensemble) -> dict[str, Any]:
    """For sets of image files: resize when reading, to what the run takes."""
    read = READERS.get(name, folder if Path(name).is_dir() else None)
    resizes = read is not None and "size" in inspect.signature(read).parameters and len(ensemble.inputs.shape) == 3
    return {"size": ensemble.inputs.shape[1:]} if resizes else {}


def some_split(name: str, split: str | None, root: Path | None, options: dict[str, Any]) -> tuple[Data, str | None]:
    """The split asked for, else test, else val, else all of what has no splits; and which it was."""
    if split is not None:
        return load(name, split=split, root=root, **options), split
    for choice in UNSAID[:-1]:
        try:
            return load(name, split=choice, root=root, **options), choice
        except (ValueError, FileNotFoundError) as error:
            if not str(error).startswith("split "):  # a broken or missing set, not one without this split
                raise
    return load(name, root=root, **options), None


def _seen(ensemble: Ensemble, name: str, split: str | None, data: Data) -> str | None:
    """How the run used these very samples, or the split that it took its own from; None if it did not."""
    if ensemble.run is None:
        return None
    config, fingerprint = ensemble.run.config(), data.fingerprint()
    calibration = ensemble.run.folder / "calibration.json"
    if calibration.exists() and read_json(calibration)["held_out"]["fingerprint"] == fingerprint:
        return "calibrated"
    noted = config.get("facts", {})
    same_set = name == noted.get("data") or Path(name).resolve() == Path(noted.get("data") or "?").resolve()
    splits = {split or "train", noted.get("split") or "train"}
    if config["data"]["fingerprint"] == fingerprint or (same_set and (len(splits) == 1 or "all" in splits)):
        return "trained"
    return None


def _rest(ensemble: Ensemble, data: Data) -> Data | None:
    """Of the set that a run took the first part of, what it used neither for training nor for calibration."""
    assert ensemble.run is not None
    config = ensemble.run.config()
    used = config["facts"].get("limit") if config.get("facts") else None
    if used is None:
        return None
    order = limit(len(data), len(data), config["recipe"]["seed"])
    if data.subset(order[:used]).fingerprint() != config["data"]["fingerprint"]:
        return None
    calibration = ensemble.run.folder / "calibration.json"
    if calibration.exists():
        used += read_json(calibration)["held_out"]["samples"]
    return data.subset(order[used:]) if used < len(data) else None


def _images_below(path: Path) -> list[Path]:
    found = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and not p.name.startswith("."))
    if not found:
        raise DataError(path, f"holds no images (looked for {' '.join(SUFFIXES)})")
    return found


def _spec(ensemble: Ensemble) -> DataSpec:
    """How the run's data was read; of a run of version 0.1 as far as it noted it."""
    noted = facts(ensemble)
    kept = None if ensemble.run is None else ensemble.run.config()["data"].get("spec")
    if kept is not None:
        return DataSpec.from_json(kept)
    found: dict[str, list[str] | None] = {}
    for feature in noted.get("columns") or []:
        name, sign, value = feature.partition("=")
        values = found.setdefault(name, [] if sign else None)
        if values is not None:
            values.append(value)
    columns = tuple(Column(n, None if v is None else tuple(v), other=False) for n, v in found.items())
    return DataSpec(noted.get("data") or "", noted.get("split"), noted.get("label"), columns)


def _array(ensemble: Ensemble, path: Path, split: str | None) -> Data:
    return npz_like(path, _spec(ensemble), classes=ensemble.classes, split=split, labelled=False)


def _table(
    ensemble: Ensemble, path: Path, split: str | None, label: str | None, *, labelled: bool
) -> tuple[Data, str | None]:
    """The features that the run was trained on, in its order; other columns are left alone."""
    data = table_like(
        path, _spec(ensemble), classes=ensemble.classes, split=split, label=label or None, labelled=labelled
    )
    return data, None if data.spec is None else data.spec.split


def npy(path: Path) -> Any:
    """One plain array from a ``.npy`` file."""
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: not a plain .npy array ({error})") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} must be a .npy array, got an archive")
    return array


def named_arrays(pairs: Sequence[str]) -> dict[str, Any]:
    """``["letters=letters.npy"]`` as arrays by name."""
    found = {}
    for pair in pairs:
        name, sign, path = pair.partition("=")
        if not sign or not name:
            raise Misuse(f"--ood-probs takes NAME=FILE.npy, got {pair!r}")
        found[name] = npy(Path(path))
    return found


def read_strangers(
    ensemble: Ensemble, names: Sequence[str], known: Data, root: Path | None, *, first: int | None
) -> dict[str, Data]:
    """Every OOD set that was named, by a short title where that says which."""
    found: dict[str, Data] = {}
    for given in dict.fromkeys(names):
        title, stranger = read_ood(ensemble, given, known, root, first=first)
        found[given if title in found else title] = stranger
    return found
