"""Anybody's samples as ``Data``: pairs of arrays, torch datasets and loaders, with their labels as classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    TensorDataset,
    default_collate,
)

from credro._names import ArgumentError
from credro.data.base import Data
from credro.data.classes import Classes, class_names, list_classes, number_labels, rename_labels
from credro.data.datasets import LABEL_KEYS, Labelled, labels_of, part_of, reader_of
from credro.data.fields import Fields, as_fields, is_several, listed, varying
from credro.data.texts import Texts, as_strings


def as_data(source: Any, name: str = "own", classes: Classes | None = None, *, strict: bool = True) -> Data:
    """Anybody's ``Dataset``, ``DataLoader`` or ``(x, y)`` pair as ``Data``; ``Data`` itself passes through.

    Samples come out as the dataset gives them. Labels are taken from the dataset's ``targets`` or ``labels`` where the
    items agree with them, or read in one pass; their distinct values are the classes, in order, unless the dataset
    names its ``classes`` (its labels then count these from 0) or ``classes`` is given: their names, or how many.
    A loader contributes its dataset, the part of it that a ``SubsetRandomSampler`` takes, its collate function and,
    where no recipe says otherwise, its batch size; what else it does is not used, and said.
    strict: a label that is none of ``classes`` is an error, and not ``UNKNOWN``.
    """
    if isinstance(source, Data):
        if classes is None and (source.classes or not _counts_classes(source.labels)):
            return source
        named = None if classes is None else class_names(classes)
        if source.classes and named is not None:
            return replace(source, classes=named)
        labels, names = _labelled(source.labels, named, strict)
        return replace(source, labels=labels, classes=names)
    if isinstance(source, DataLoader):
        return _from_loader(source, name, classes, strict)
    if isinstance(source, tuple) and len(source) == 2 and _has_fields(source[0]):
        held, y = as_fields(source[0]), _label_values(source[1])
        labels, names = _labelled(y, classes, strict)
        return _checked(_with_fields(Data(name, held, labels, (), names, prepared=True, fields=held.described())))
    if isinstance(source, tuple) and len(source) == 2:
        if (strings := as_strings(source[0])) is not None:
            return _text_pair(strings, source[1], name, classes, strict)
        x, y = as_tensor(source[0], "x"), _label_values(source[1])
        labels, names = _labelled(y, classes, strict)
        return _checked(Data(name, x, labels, tuple(x.shape[1:]), names, prepared=x.dtype != torch.uint8))
    return _from_dataset(source, default_collate, name, classes, strict)


def text_data(strings: Sequence[str], name: str = "texts") -> Data:
    """Texts to predict, whatever they are: labels are 0, and mean nothing."""
    found = as_strings(strings)
    if found is None:
        given = "none" if isinstance(strings, list | tuple) and not strings else type(strings).__name__
        raise ArgumentError("strings", f"strings must be a list of str, got {given}")
    return Data(name, Texts(found), torch.zeros(len(found), dtype=torch.long), ())


def _text_pair(strings: tuple[str, ...], y: Any, name: str, classes: Classes | None, strict: bool) -> Data:
    labels, names = _labelled(_label_values(y), classes, strict)
    if len(labels) != len(strings):
        lengths = f"{len(strings)} samples and {len(labels)} labels"
        raise ArgumentError("y", f"x and y must have the same length, got {lengths}")
    return Data(name, Texts(strings), labels, (), names)


def as_data_of(source: Any, classes: Sequence[str], name: str = "own", *, strict: bool = False) -> Data:
    """The same for samples that are to be compared with known ``classes``: labelled by the numbers of these.

    Where the source names its classes, by name; else by value (``number_labels``). Samples of another class get the
    label ``UNKNOWN``, and a note counts them; or are refused, if ``strict``. classes: none where targets are numbers.
    """
    if not classes:
        return as_data(source, name)
    if getattr(_dataset(source), "classes", None):
        data = as_data(source, name)
        if data.classes and data.classes != tuple(classes) and _counts_classes(data.labels):
            data = _renamed(data, tuple(classes), strict)
    else:
        data = as_data(source, name, classes, strict=strict)
    if _counts_classes(data.labels) and (strange := int((data.labels < 0).sum())):
        data = replace(data, notes=(*data.notes, f"{strange:,} samples are of classes that are not known"))
    return data


def _renamed(data: Data, classes: tuple[str, ...], strict: bool) -> Data:
    """``data`` in the numbers of ``classes``, by name; by number where none of the names is the same."""
    labels = rename_labels(data.labels, data.classes, classes)
    if not bool((labels >= 0).any()) and len(data.classes) == len(classes):
        there, known = (", ".join(names[:3]) for names in (data.classes, classes))
        others = f"its classes ({there}, ...) are not those that are known ({known}, ...)"
        warnings.warn(f"{data.name}: {others}; they are compared by number", stacklevel=4)
        return data
    if strict and len(bad := (labels < 0).nonzero()):
        _refuse(data.classes[int(data.labels[bad[0]])], bad, classes)
    return replace(data, labels=labels, classes=classes)


def _refuse(value: Any, bad: Tensor, classes: tuple[str, ...]) -> NoReturn:
    which = f"label {value!r} of sample {int(bad[0])}"
    raise ArgumentError("y", f"{which} is not one of the {list_classes(classes)} ({len(bad)} such labels in all)")


def _dataset(source: Any) -> Any:
    return source.dataset if isinstance(source, DataLoader) else source


def _counts_classes(labels: Tensor) -> bool:
    """Whether labels are class numbers, and neither values nor distributions."""
    return labels.ndim == 1 and not labels.is_floating_point()


def _labelled(y: Tensor | list[str], classes: Classes | None, strict: bool) -> tuple[Tensor, tuple[str, ...]]:
    """Labels as ``Data`` keeps them, and the names of the classes."""
    if isinstance(y, Tensor):
        if y.is_floating_point() or (y.ndim == 2 and y.shape[1] > 1):  # numbers, or a distribution over the classes
            return y.float(), () if classes is None else class_names(classes)
        y = y[:, 0] if y.ndim == 2 else y  # a column of class numbers
        if y.ndim != 1:
            raise ArgumentError("y", f"y must have one label per sample, got shape {tuple(y.shape)}")
    labels, names = number_labels(y, classes)
    if strict and len(bad := (labels < 0).nonzero()):
        first = y[int(bad[0])]
        _refuse(first.item() if isinstance(first, Tensor) else first, bad, names)
    return labels, names


def _from_loader(loader: DataLoader[Any], name: str, classes: Classes | None, strict: bool) -> Data:
    """The samples that a loader draws from; what of it is not used is said."""
    part, dataset = part_of(loader), loader.dataset
    if isinstance(dataset, Data) or (isinstance(dataset, TensorDataset) and len(dataset.tensors) == 2):
        whole = as_data(dataset if isinstance(dataset, Data) else tuple(dataset.tensors), name, classes, strict=strict)
    else:
        whole = _from_dataset(dataset, loader.collate_fn, name, classes, strict)
    unused = ["drop_last=True (the last, smaller batch of an epoch is trained on as well)"] * loader.drop_last
    unused += [f"num_workers={loader.num_workers} (samples are read by threads)"] * (loader.num_workers > 0)
    notes = (f"of the DataLoader, not used: {'; '.join(unused)}",) if unused else ()
    whole = replace(whole, batch_size=loader.batch_size, notes=(*whole.notes, *notes))
    return whole if part is None else whole.subset(part)


def _from_dataset(
    source: Any, collate: Callable[[list[Any]], Any], name: str, classes: Classes | None, strict: bool
) -> Data:
    if isinstance(source, TensorDataset) and len(source.tensors) == 2:
        return as_data(tuple(source.tensors), name, classes, strict=strict)
    if isinstance(source, IterableDataset) or not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
        raise TypeError(
            f"data must be a credro Data, a torch Dataset with a length, a DataLoader over one, or a pair (x, y); "
            f"got {type(source).__name__}: a stream without random access can be predicted on, but not trained on, "
            f"since its order could not be restored after an interruption"
        )
    if len(source) == 0:
        raise ArgumentError("data", f"data is empty: {type(source).__name__} has length 0")
    first = source[0]
    if isinstance(first, Mapping):
        keys = [key for key in LABEL_KEYS if key in first]
        if len(keys) != 1:
            raise ArgumentError(
                "data",
                f"items that are dicts must hold their label as one of {', '.join(LABEL_KEYS)}; item 0 has "
                f"{', '.join(map(str, first))}: give pairs (dict, label)",
            )
        source = Labelled(source, keys[0])
        first = source[0]
    if not isinstance(first, tuple | list) or len(first) != 2:
        raise TypeError(
            f"data must give pairs (sample, label); item 0 of {type(source).__name__} is a {type(first).__name__}"
        )
    own_names, y = getattr(source, "classes", ()), labels_of(source)
    if isinstance(first[0], str):
        strings = as_strings([source[i][0] for i in range(len(source))])
        assert strings is not None
        named = classes if classes is not None else tuple(map(str, own_names)) or None
        return _text_pair(strings, y, name, named, strict)
    read = reader_of(source, collate)
    own = tuple(map(str, own_names))
    if own and isinstance(y, Tensor) and _counts_classes(y):  # its labels count its own names
        labels, names = y.long(), own if classes is None else class_names(classes)
    else:
        labels, names = _labelled(y, classes, strict)
    one = read(torch.tensor([0]))
    if isinstance(one, Tensor):
        return Data(name, read, labels, tuple(one.shape[1:]), names, prepared=True)
    each = (read(torch.tensor([i])) for i in range(len(source) if read.alone else 1))
    fields = varying(x.described() for x in each if isinstance(x, Fields))
    return _with_fields(Data(name, read, labels, (), names, prepared=True, fields=fields))


def _has_fields(x: Any) -> bool:
    """Whether the x of a pair is several tensors: a dict, or a tuple; a list is of samples."""
    return isinstance(x, Mapping | Fields) or (isinstance(x, tuple) and is_several(x))


def _with_fields(data: Data) -> Data:
    """The same with a word on how its fields are understood."""
    called = "by name" if data.fields[0].name else "in order"
    said = f"samples of several tensors go into the network {called} and as they are: {listed(data.fields)}"
    return replace(data, notes=(*data.notes, said))


def as_tensor(values: Any, name: str) -> Tensor:
    """Numbers as a tensor: an array, a data frame or column of one, lists, a list of tensors. name: for messages."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, list | tuple) and values and isinstance(values[0], Tensor):
        return torch.stack(list(values))
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got {array.dtype}")
    return torch.as_tensor(np.require(array, requirements=["C", "W"]))


def _label_values(y: Any) -> Tensor | list[str]:
    """The labels of a pair: numbers as a tensor, names as a list."""
    if isinstance(y, Tensor) or (isinstance(y, list | tuple) and y and isinstance(y[0], Tensor)):
        return as_tensor(y, "y")
    array = np.asarray(y)
    if array.dtype.kind in "OSU" and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind not in "OSU" or array.ndim != 1:
        return as_tensor(y, "y")
    for row, value in enumerate(array.tolist()):
        if not isinstance(value, str):
            raise TypeError(f"y must hold numbers or names, all of one kind; that of sample {row} is {value!r}")
    return list(map(str, array.tolist()))


def _checked(data: Data) -> Data:
    if isinstance(data.samples, Tensor | Fields) and len(data.samples) != len(data.labels):
        lengths = f"{len(data.samples)} samples and {len(data.labels)} labels"
        raise ArgumentError("y", f"x and y must have the same length, got {lengths}")
    return data
