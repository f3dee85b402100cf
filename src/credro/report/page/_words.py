"""The report in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from credro._templates import percent
from credro.evaluation import Evaluation, MethodResult
from credro.methods import METHODS, label
from credro.metrics import auroc
from credro.report.page._numbers import STEPS, Booleans, Floats, Rejection
from credro.training.records import RunConfig

GRADES = ((0.95, "very well"), (0.85, "well"), (0.7, "moderately well"), (0.55, "poorly"), (0.45, "hardly at all"))
TARGETS = (0.95, 0.99)


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else list(parts))


def grade(value: float) -> str | None:
    """How well an AUROC tells two kinds apart, in words; None where it points the wrong way."""
    return next((word for least, word in GRADES if value >= least), None)


def trained(config: RunConfig | None, evaluation: Evaluation, result: MethodResult) -> str:
    """What was trained on what, and how it is read here."""
    several = evaluation.members != 1
    members = f"{evaluation.members} network{'s' if several else ''}"
    read = f"read as {label(result.method)}{_in_words(result.method)}"
    if config is None:
        return f"The probabilities of {members} are {read}."
    network, data = config.network, config.data
    if network.given:
        return f"{members} ({network.own}) that were trained elsewhere are {read}."
    by = str(config.method["name"])
    how = f" by {label(by)}" if by != result.method else ""
    kind = network.name or "a network of the user's own"
    text = f"{members} ({kind}) {'were' if several else 'was'} trained{how} on "
    text += (
        f"{data.samples:,} samples of {data.name} for {config.recipe.epochs} epochs, and {'are' if several else 'is'}"
    )
    at = ""
    if any(other.calibrated for other in evaluation.results):
        at = f", {'each at' if result.calibrated else 'without'} its own temperature fitted on held-out samples"
    return f"{text} {read}{at}."


def _in_words(method: str) -> str:
    """`` (deep ensemble)``: a method's title, where that says more than its label."""
    title = METHODS[method].title if method in METHODS else label(method)
    if title.lower() == label(method).lower():
        return ""
    rest = title.split()[0][1:]  # of "Deep", and not of "CreDRO's", the first letter can be small
    return f" ({title[:1].lower() + title[1:] if rest == rest.lower() else title})"


def accurate(evaluation: Evaluation, result: MethodResult, confidence: float) -> str:
    """How often it is right, and whether its confidence is honest."""
    low, _, high = result.members
    alone = f"its members alone in {percent(low)}" + (f" to {percent(high)}" if high > low else "")
    off = confidence - result.accuracy
    tone = (
        "matches that" if abs(off) < 0.01 else f"is too {'high' if off > 0 else 'low'} by {100 * abs(off):.1f} points"
    )
    return (
        f"Of {evaluation.samples:,} samples of {evaluation.data} it gets {percent(result.accuracy, 2)} right, {alone}. "
        f"Its mean confidence, {percent(confidence)}, {tone} (expected calibration error {percent(result.ece)})."
    )


def doubtful(correct: Booleans, eu: Floats, measured_in: str) -> str:
    """What EU says about mistakes."""
    unit = " nats" if measured_in == "nats" else ""
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


def far(result: MethodResult) -> list[str]:
    """What EU says about the OOD sets: those it finds, then those on which it misleads."""
    found: list[str] = []
    misled: list[str] = []
    for name, scores in result.ood.items():
        told, facts = grade(scores.auroc), f"AUROC {percent(scores.auroc)}, mean EU {scores.mean_ood:.3g}"
        (misled if told is None else found).append(f"{name} {told or ''}".strip() + f" ({facts})")
    said = []
    if found:
        mean = next(iter(result.ood.values())).mean_id
        said.append(f"It tells OOD from ID samples, whose mean EU is {mean:.3g}: {listed(found)}.")
    if misled:
        said.append(f"Samples of {listed(misled)} get less EU than ID samples: it misleads there.")
    return said


def rivalled(evaluation: Evaluation, result: MethodResult) -> list[str]:
    """Which method finds OOD samples best with the same members, if it is another one by a point or more."""
    if not evaluation.ood:
        return []
    best = max(evaluation.results, key=lambda other: other.mean_auroc)
    if best.mean_auroc < result.mean_auroc + 0.01:
        return []
    plain = " without calibration" if result.calibrated and not best.calibrated else ""
    return [
        f"Read as {label(best.method)}{plain}, the same members find OOD samples better: mean AUROC "
        f"{percent(best.mean_auroc)} against {percent(result.mean_auroc)}."
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


def best_score(aurocs: Mapping[str, float]) -> str:
    """Which score finds errors best here, and which is for which question. aurocs: of errors, by the score's name."""
    aim = "EU is for unfamiliar inputs, which OOD sets measure; total uncertainty and 1 − max p are for errors."
    if any(np.isnan(value) for value in aurocs.values()):
        return f"All answers are right, or all are wrong: no score can tell them apart. {aim}"
    top = max(aurocs.values())
    best = [name for name, value in aurocs.items() if value >= top - 1e-9]
    return f"Errors are found best by {listed(best)} here (AUROC {percent(top)}). {aim}"
