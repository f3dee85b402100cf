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
from credro.data.readers.arrays import as_samples, read_arrays, take_split
from credro.data.readers.folders import folder, split_folders
from credro.data.readers.images import SUFFIXES, ImageFiles
from credro.data.readers.labels import check_missing, read_labels
from credro.data.readers.tables import LABELS, encode, read_frame
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
        data, split = _table(ensemble, _existing(path), split, label or noted.get("label"), labelled=True)
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
            sets.append(_table(ensemble, path, split, label or facts(ensemble).get("label"), labelled=False)[0])
        elif path.suffix.lower() == ".npz":
            sets.append(_array(path, split))
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


def _array(path: Path, split: str | None) -> Data:
    arrays = read_arrays(path)
    if "x" not in arrays:
        raise DataError(path, f"has no array 'x'; it has {', '.join(arrays)}")
    samples = as_samples(path, arrays["x"], None)
    data = Data(path.stem, samples, _no_labels(len(samples)), tuple(samples.shape[1:]))
    return take_split(path, data, split, arrays.get("split"))


def _table(
    ensemble: Ensemble, path: Path, split: str | None, label: str | None, *, labelled: bool
) -> tuple[Data, str | None]:
    """The features that the run was trained on, in its order; other columns are left alone."""
    frame = read_frame(path)
    if len(frame) == 0:
        raise DataError(path, "holds no rows")
    if label is None:
        label = next((c for name in LABELS for c in frame.columns if c.lower() == name), None)
    wanted = facts(ensemble).get("columns") or [c for c in frame.columns if c not in (label, "split")]
    features: dict[str, Any] = {}
    for column in dict.fromkeys(_source(path, name, list(frame.columns)) for name in wanted):
        values = [n[len(column) + 1 :] for n in wanted if n not in frame.columns and n.startswith(f"{column}=")]
        names, parts = encode(path, frame[column], values or None, "error")
        features |= dict(zip(names, parts, strict=True))
    order = list(features) if facts(ensemble).get("columns") is None else wanted
    samples = torch.stack([torch.from_numpy(features[name]) for name in order], dim=1)
    check_missing(path, samples, order, "error")
    labels = _no_labels(len(frame))
    if labelled:
        if label is None or label not in frame.columns:
            raise ValueError(f"--label must be a column of {path}, one of {', '.join(frame.columns)}; got {label!r}")
        labels, _ = read_labels(path, frame[label].to_numpy(), len(frame), ensemble.classes, "classify")
    data = Data(path.stem, samples, labels, (len(order),), ensemble.classes, columns=tuple(order))
    marks = frame["split"].to_numpy() if "split" in frame else None
    if split is None and marks is not None and labelled:
        split = next((s for s in UNSAID if s in set(marks.tolist())), None)
    return take_split(path, data, split, marks), split


def _source(path: Path, feature: str, columns: list[str]) -> str:
    """The column that a feature is made of: itself, or of ``colour=red`` the column ``colour``."""
    if feature in columns:
        return feature
    found = next((c for c in columns if feature.startswith(f"{c}=")), None)
    if found is None:
        raise DataError(path, f"has no column {feature.partition('=')[0]!r}, which the run was trained on")
    return found


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
