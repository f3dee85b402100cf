"""The report in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from credro.assess import Assessment, Line
from credro.evaluation import auroc
from credro.methods import METHODS
from credro.report.page.numbers import STEPS, Booleans, Floats, Rejection
from credro.report.style import NAMES

GRADES = ((0.95, "very well"), (0.85, "well"), (0.7, "moderately well"), (0.55, "poorly"), (0.45, "hardly at all"))
SPACE = "\u00a0"
TARGETS = (0.95, 0.99)


def percent(fraction: float, digits: int = 1) -> str:
    """``0.1234`` as ``12.3 %``, which no line break tears apart."""
    return f"{100 * fraction:.{digits}f}{SPACE}%"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else list(parts))


def grade(value: float) -> str | None:
    """How well an AUROC tells two kinds apart, in words; None where it points the wrong way."""
    return next((word for least, word in GRADES if value >= least), None)


def method_name(method: str) -> str:
    """As people write it."""
    return NAMES.get(method, method)


def trained(config: dict[str, Any] | None, assessment: Assessment, line: Line) -> str:
    """What was trained on what, and how it is read here."""
    several = assessment.members != 1
    members = f"{assessment.members} network{'s' if several else ''}"
    title = METHODS[line.method].title if line.method in METHODS else line.method
    title = title if title.startswith("CreDRO") else title[:1].lower() + title[1:]
    read = f"read as {method_name(line.method)}"
    read += f" ({title})" if title.lower() != method_name(line.method).lower() else ""
    if config is None:
        return f"The probabilities of {members} are {read}."
    if config["network"].get("given"):
        return f"{members} ({config['network']['own']}) that were trained elsewhere are {read}."
    network = config["network"].get("name") or "a network of its owner's"
    data, epochs = config["data"], config["recipe"]["epochs"]
    rule = config["method"]["name"]
    how = f" by {method_name(rule)}" if rule != line.method else ""
    text = f"{members} ({network}) {'were' if several else 'was'} trained{how} on {data['samples']:,} samples of "
    at = ""
    if any(other.calibrated for other in assessment.lines):
        at = f", {'each at' if line.calibrated else 'without'} its own temperature fitted on held-out samples"
    return f"{text}{data['name']} for {epochs} epochs, and {'are' if several else 'is'} {read}{at}."


def accurate(assessment: Assessment, line: Line, confidence: float) -> str:
    """How often it is right, and whether its confidence is honest."""
    low, _, high = line.members
    alone = f"its members alone in {percent(low)}" + (f" to {percent(high)}" if high > low else "")
    off = confidence - line.accuracy
    tone = (
        "matches that" if abs(off) < 0.01 else f"is too {'high' if off > 0 else 'low'} by {100 * abs(off):.1f} points"
    )
    return (
        f"Of {assessment.samples:,} samples of {assessment.data} it gets {percent(line.accuracy, 2)} right, {alone}. "
        f"Its mean confidence, {percent(confidence)}, {tone} (expected calibration error {percent(line.ece)})."
    )


def doubtful(correct: Booleans, eu: Floats, unit: str) -> str:
    """What EU says about mistakes. unit: follows a number."""
    if correct.all() or not correct.any():
        return f"Epistemic uncertainty (EU) is {eu.mean():.3g}{unit} on average."
    value = float(auroc(eu[correct], eu[~correct]))
    means = (
        f"{eu[correct].mean():.3g}{unit} on average where it is right and {eu[~correct].mean():.3g} where it is wrong"
    )
    text = f"Epistemic uncertainty (EU) is {means}"
    told = grade(value)
    if told is None:
        return f"{text}: mistakes have less of it than right answers (AUROC {percent(value)}), so it misleads here."
    return f"{text}: it tells mistakes from right answers {told} (AUROC {percent(value)})."


def strange(line: Line) -> list[str]:
    """What EU says about the OOD sets: those it finds, then those on which it misleads."""
    found: list[str] = []
    misled: list[str] = []
    for name, scores in line.ood.items():
        told, facts = grade(scores.auroc), f"AUROC {percent(scores.auroc)}, mean EU {scores.mean_ood:.3g}"
        (misled if told is None else found).append(f"{name} {told or ''}".strip() + f" ({facts})")
    said = []
    if found:
        mean = next(iter(line.ood.values())).mean_id
        said.append(f"It tells OOD from ID samples, whose mean EU is {mean:.3g}: {listed(found)}.")
    if misled:
        said.append(f"Samples of {listed(misled)} get less EU than ID samples: it misleads there.")
    return said


def rivalled(assessment: Assessment, line: Line) -> list[str]:
    """Which reading of the same members finds OOD samples best, if it is another one by a point or more."""
    if not assessment.ood:
        return []
    best = max(assessment.lines, key=lambda other: other.mean_auroc)
    if best.mean_auroc < line.mean_auroc + 0.01:
        return []
    plain = " without calibration" if line.calibrated and not best.calibrated else ""
    return [
        f"Read as {method_name(best.method)}{plain}, the same members find OOD samples better: mean AUROC "
        f"{percent(best.mean_auroc)} against {percent(line.mean_auroc)}."
    ]


def rejecting(found: Rejection) -> str:
    """At which rejection rate the accuracy reaches the targets."""
    said = []
    for target in TARGETS:
        step, goal = found.reaches(target), percent(target, 0)
        if step is None:
            said.append(f"no rejection rate reaches {goal}")
        elif step == 0:
            said.append(f"at least {goal} are right without rejecting any")
        else:
            said.append(
                f"{goal} of the answers are right when the most uncertain {percent(step / STEPS)} are rejected, "
                f"which leaves {int(found.kept[step]):,} samples"
            )
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}."


def slips(correct: Booleans, eu: Floats) -> list[str]:
    """How many of the most certain tenth are wrong; nothing of very few samples."""
    certain = eu <= np.quantile(eu, 0.1, method="lower")
    wrong, count = int((~correct & certain).sum()), int(certain.sum())
    if count < 10:
        return []
    return [f"Of the {count:,} samples with the least EU, {wrong:,} {'is' if wrong == 1 else 'are'} wrong."]
