"""The scores by which samples are put in doubt, by name: one place says what is thresholded and compared.

- "epistemic": what more data would settle. For unfamiliar inputs.
- "total": what is uncertain for any reason. For errors.
- "confidence": 1 - max p of the mean, as of any single network. For errors, and the yardstick for the other two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from credro.prediction import Prediction

SCORES = {"epistemic": "eu", "total": "tu", "confidence": "1 - max p"}
"""Each score and how it is called where room is short."""


def score_of(prediction: Prediction, score: str) -> Tensor:
    """The score (N,) of every sample; larger is more in doubt."""
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, got {score!r}")
    values = 1 - prediction.mean.amax(-1) if score == "confidence" else getattr(prediction, score)
    found: Tensor = values.detach()
    return found
