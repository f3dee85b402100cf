"""How members' outputs become a prediction: one small file each, and a plain dict of them."""

from __future__ import annotations

from credro.readouts.averaged_box import AveragedBoxReadOut
from credro.readouts.base import Prediction, ReadOut
from credro.readouts.box import BoxReadOut
from credro.readouts.columns import prediction_columns
from credro.readouts.gaussian import GaussianPrediction
from credro.readouts.hull import HullReadOut
from credro.readouts.mean import MeanReadOut
from credro.readouts.nearest_hull import NearestHullReadOut

READOUTS: dict[str, type[ReadOut]] = {
    readout.name: readout for readout in (MeanReadOut, BoxReadOut, HullReadOut, NearestHullReadOut, AveragedBoxReadOut)
}

__all__ = [
    "READOUTS",
    "AveragedBoxReadOut",
    "BoxReadOut",
    "GaussianPrediction",
    "HullReadOut",
    "MeanReadOut",
    "NearestHullReadOut",
    "Prediction",
    "ReadOut",
    "prediction_columns",
]
