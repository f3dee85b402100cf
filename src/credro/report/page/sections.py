"""The sections of the report, one function each: a title, a word on how to read it, the content."""

from __future__ import annotations

from collections.abc import Sequence

from credro.assess import BINS
from credro.evaluation import reliability
from credro.report.page import words
from credro.report.page.charts import density_chart, rejection_chart, reliability_chart
from credro.report.page.confusion import confused
from credro.report.page.doubt import doubt
from credro.report.page.findings import Findings, Section
from credro.report.page.markup import Html, el, join
from credro.report.page.numbers import STEPS, ends, shapes
from credro.report.page.objections import banner
from credro.report.page.samples import Group, gallery
from credro.report.page.simplex import simplex
from credro.report.page.tables import classes, members, readings
from credro.report.page.words import percent

MEANINGS = {
    "Most certain": "The least epistemic uncertainty, from every predicted class in turn.",
    "Least certain": "The most epistemic uncertainty: the first to be rejected.",
    "Confidently wrong": "Wrong, and yet with little epistemic uncertainty: rejection finds these last.",
}


def sections(found: Findings) -> list[Section]:
    """All that apply."""
    made = [summary(found), uncertainty(found), doubt(found), abstention(found), calibration(found), samples(found)]
    if len(found.samples.classes) == 3:
        made.append(credal_sets(found))
    made += [confused(found), classes(found), readings(found), members(found)]
    return made


def summary(found: Findings) -> Section:
    """Figures, sentences, warnings."""
    a, line, correct, eu = found.assessment, found.line, found.correct, found.eu
    confidence = float(found.samples.mean.max(1).mean())
    figures = [("Accuracy", percent(line.accuracy, 2), ""), ("Calibration error", percent(line.ece, 2), "")]
    step = found.rejection.reaches(0.95)
    figures.append((f"Rejected for {percent(0.95, 0)} right", "–" if step is None else percent(step / STEPS), ""))
    if a.ood:
        title = "OOD samples found (AUROC)" if len(a.ood) == 1 else f"AUROC, mean of {len(a.ood)} sets"
        figures.append((title, percent(line.mean_auroc, 2), ""))
    unit = " nats" if found.unit == "nats" else ""
    said = [
        [words.trained(found.story.config, a, line), words.accurate(a, line, confidence)],
        [words.doubtful(correct, eu, unit), *words.strange(line), *words.rivalled(a, line)],
        [words.rejecting(found.rejection), *words.slips(correct, eu)],
    ]
    content = [banner(found.objections), numbers(figures), *(el("p", " ".join(part)) for part in said)]
    if not a.ood:
        content.append(
            el("p", "No OOD set was given: what EU does with unfamiliar samples is not known.", class_="quiet")
        )
    return Section("summary", "Summary", "Summary", "What was measured, in words.", join(content))


def uncertainty(found: Findings) -> Section:
    """Densities of EU."""
    name, line = found.assessment.data, found.line
    inside = name if name not in found.ood else f"{name} (ID)"
    legend = [(inside, f"ID, mean {found.eu.mean():.3g}")]
    legend += [(n, f"mean {s.mean_ood:.3g}, AUROC {percent(s.auroc)}") for n, s in line.ood.items()]
    axis = f"epistemic uncertainty ({found.unit})"
    intro = "How much the members disagree. OOD samples should lie to the right of ID samples."
    drawn = shapes(inside, found.eu, found.ood)
    content = density_chart(drawn, legend, axis)
    more = "The upright line is the threshold chosen under Abstaining."
    return Section(
        "uncertainty", "Epistemic uncertainty", "Uncertainty", f"{intro} {more}", content, {"top": drawn.ticks[-1]}
    )


def abstention(found: Findings) -> Section:
    """The accuracy-rejection curve and its slider."""
    r = found.rejection
    goals = {f"{percent(target, 0)} right": r.reaches(target) for target in words.TARGETS}
    start = next((step for step in goals.values() if step and step <= STEPS // 2), STEPS // 10)
    shown = [("Accuracy", "accuracy", "accuracy-count"), ("Answered", "kept", "kept-count")]
    shown += [("Abstain above EU", "limit", "")]
    shown += [(f"Rejected of {name}", f"ood-{i}", "") for i, name in enumerate(r.ood)]
    slider = el(
        "div",
        el("label", "Fraction rejected", for_="rate", class_="unseen"),
        el("input", type="range", id="rate", min=0, max=STEPS, step=1, value=start),
        class_="slider",
    )
    exact = el(
        "div",
        el("label", "Per cent rejected", for_="rate-number"),
        el(
            "input",
            type="number",
            id="rate-number",
            min=0,
            max=100,
            step=100 / STEPS,
            value=f"{100 * start / STEPS:.1f}",
        ),
        *(
            el("button", text, type="button", class_="goal", data_step=step)
            for text, step in goals.items()
            if step is not None
        ),
        class_="chooser",
    )
    outputs = [(title, el("output", "–", id=key, for_="rate", aria_live="off"), below) for title, key, below in shown]
    chart, data = rejection_chart(r)
    note = (
        "Samples that tie are rejected together, so more may go than was asked for. The numbers describe these "
        "samples; credro predict --max-error finds a threshold that is proven for new ones."
    )
    intro = "Answer where EU is small, pass the rest to somebody else. Move the slider to see what that buys."
    kept = {"kept": r.kept.tolist(), "right": r.right.tolist(), "limits": r.limits}
    kept |= {"ood": [v.tolist() for v in r.ood.values()], "sizes": [len(v) for v in found.ood.values()]}
    content = join([chart, slider, exact, numbers(outputs), el("p", note, class_="note"), data])
    return Section("abstaining", "Abstaining", "Abstaining", intro, content, kept)


def calibration(found: Findings) -> Section:
    """The reliability diagram."""
    made = reliability(found.samples.mean, found.samples.labels, BINS)
    intro = "Of the answers given with confidence 0.8, are 80 % right? Bars below the diagonal: too sure of itself."
    return Section("calibration", "Calibration", "Calibration", intro, reliability_chart(made))


def samples(found: Findings) -> Section:
    """The gallery: ID samples by how certain they are, and of every OOD set those that EU misses and finds."""
    intro = "The bar is the interval of a class's probability, the mark in it the mean. Orange is the true class."
    if found.prediction.set is None:
        intro += " This method has no credal set: the bars span the members."
    groups = [Group(title, MEANINGS[title], found.samples, chosen) for title, chosen in found.groups.items()]
    half = max(1, found.each // 2)
    for name, far in found.far.items():
        low, high = ends(far.eu, half)
        groups.append(Group(f"OOD: {name}", "The least EU of this set: taken for ID samples.", far, low))
        groups.append(Group("", "The most EU of it: the first to be rejected.", far, high))
    return Section("samples", "Samples", "Samples", intro, gallery(groups))


def credal_sets(found: Findings) -> Section:
    """The simplex of three classes."""
    content, data = simplex(found.samples, found.groups)
    intro = (
        "Every point of the triangle is a distribution over the three classes, its corners are certainty. The area is "
        "the credal set of the chosen sample, the rings its members, the cross their mean; dots are other samples."
    )
    return Section("credal-sets", "Credal sets", "Credal sets", intro, content, {"simplex": data})


def numbers(figures: Sequence[tuple[str, object, str]]) -> Html:
    """A few figures in large type: what, how much, and the id of a line below that the script fills, if any."""
    return el(
        "dl",
        *(
            el("div", el("dt", title), el("dd", value), el("dd", id=below, class_="quiet") if below else None)
            for title, value, below in figures
        ),
        class_="figures",
    )
