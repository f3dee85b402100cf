"""What makes one member: where it starts, the risk it minimises, its head, and when it stops. A plain dict of each."""

from credro.members.choice import Choice, choose, with_options
from credro.members.head import Gaussian, Head, Softmax, answers
from credro.members.interval import Interval
from credro.members.loss import LOSSES, PerSampleLoss, per_sample_loss
from credro.members.member import Member
from credro.members.risk import RISKS, CVaR, Mean, RandomSubset, Risk, cvar, deltas, kept
from credro.members.start import STARTS, Biased, Fresh, Start
from credro.members.stop import STOPS, End, RelativeLikelihood, Stop
from credro.members.variational import Variational

HEADS: dict[str, type[Head]] = {head.kind: head for head in (Softmax, Interval, Variational, Gaussian)}

__all__ = [
    "HEADS",
    "LOSSES",
    "RISKS",
    "STARTS",
    "STOPS",
    "Biased",
    "CVaR",
    "Choice",
    "End",
    "Fresh",
    "Gaussian",
    "Head",
    "Interval",
    "Mean",
    "Member",
    "PerSampleLoss",
    "RandomSubset",
    "RelativeLikelihood",
    "Risk",
    "Softmax",
    "Start",
    "Stop",
    "Variational",
    "answers",
    "choose",
    "cvar",
    "deltas",
    "kept",
    "per_sample_loss",
    "with_options",
]
