"""What an ensemble says about samples: of classes, of real numbers; as a table, a plot, and in a notebook."""

from credro.prediction.classes import Prediction
from credro.prediction.columns import prediction_columns
from credro.prediction.gaussian import GaussianPrediction

__all__ = ["GaussianPrediction", "Prediction", "prediction_columns"]
