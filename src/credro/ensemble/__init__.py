"""A trained ensemble: fit, load, predict, calibrate, save."""

from credro.ensemble._ensemble import Ensemble
from credro.ensemble._fit import fit
from credro.ensemble._load import load
from credro.ensemble._samples import Samples

__all__ = ["Ensemble", "Samples", "fit", "load"]
