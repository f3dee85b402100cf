"""A prediction as columns: what a data frame and the command line's CSV have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from credro.data.errors import need
from credro.prediction.classes import Prediction
from credro.prediction.gaussian import GaussianPrediction

if TYPE_CHECKING:
    import pandas

LEVEL = 0.9
"""Probability of the interval that stands beside a predicted number."""


def prediction_columns(prediction: Prediction | GaussianPrediction, all: bool = True) -> dict[str, list[Any]]:
    """Columns of N entries each, by name, in the order of a table.

    Of classes: sample, label, probability, lower, upper (of the label), eu, au, tu and possible (a list of the classes
    that remain); with ``all`` also ``p:NAME``, ``lower:NAME`` and ``upper:NAME`` of every class. Of numbers: sample,
    mean, std, lower, upper (an interval with at least 90 % of the probability), eu, au, tu; with ``all`` also
    ``mean:I`` and ``std:I`` of every member. Where two classes have one name, their numbers are added.
    """
    columns: dict[str, list[Any]] = {"sample": list(prediction.samples) or list(range(len(prediction)))}
    if isinstance(prediction, GaussianPrediction):
        return columns | _of_numbers(prediction, all)
    return columns | _of_classes(prediction, all)


def distinct(classes: tuple[str, ...], count: int) -> list[str]:
    """Names of ``count`` classes of which no two are equal: numbers where there are none."""
    names = list(map(str, classes or range(count)))
    return names if len(set(names)) == len(names) else [f"{name}#{k}" for k, name in enumerate(names)]


def frame(prediction: Prediction | GaussianPrediction, columns: str) -> pandas.DataFrame:
    """``prediction_columns`` as a data frame whose index is the samples' names."""
    if columns not in ("all", "short"):
        raise ValueError(f"columns must be 'all' or 'short', got {columns!r}")
    pd = need("pandas")
    found = prediction_columns(prediction, columns == "all")
    table: pandas.DataFrame = pd.DataFrame(found, index=pd.Index(found.pop("sample"), name="sample"))
    return table


def _of_classes(prediction: Prediction, all: bool) -> dict[str, list[Any]]:
    mean, lower, upper = (array(t) for t in (prediction.mean, prediction.lower, prediction.upper))
    names, label = distinct(prediction.classes, mean.shape[-1]), array(prediction.label)
    at = (np.arange(len(label)), label)
    columns: dict[str, list[Any]] = {
        "label": [names[k] for k in label.tolist()],
        "probability": mean[at].tolist(),
        "lower": lower[at].tolist(),
        "upper": upper[at].tolist(),
        **_uncertainties(prediction),
        "possible": [[names[k] for k in row.nonzero()[0]] for row in array(prediction.possible)],
    }
    if all:
        for k, name in enumerate(names):
            for kind, values in (("p", mean), ("lower", lower), ("upper", upper)):
                columns[f"{kind}:{name}"] = values[:, k].tolist()
    return columns


def _of_numbers(prediction: GaussianPrediction, all: bool) -> dict[str, list[Any]]:
    lower, upper = prediction.interval(LEVEL)
    given = {"mean": prediction.mean, "std": prediction.std, "lower": lower, "upper": upper}
    columns = {name: array(values).tolist() for name, values in given.items()} | _uncertainties(prediction)
    if all:
        for i in range(len(prediction.means)):
            columns[f"mean:{i}"] = array(prediction.means[i]).tolist()
            columns[f"std:{i}"] = array(prediction.stds[i]).tolist()
    return columns


def _uncertainties(prediction: Prediction | GaussianPrediction) -> dict[str, list[float]]:
    kinds = {"eu": prediction.epistemic, "au": prediction.aleatoric, "tu": prediction.total}
    return {name: array(values).tolist() for name, values in kinds.items()}


def array(values: Tensor) -> npt.NDArray[Any]:
    """A tensor on any device as an array."""
    found: npt.NDArray[Any] = values.detach().cpu().numpy()
    return found
