from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

import credro
from credro.data.base import Data
from credro.prediction import Prediction
from credro.readouts import ReadOut
from credro.report.page._numbers import STEPS, between, class_rows, picks, rejection, shapes, ticks
from credro.report.page.write import PALETTE, write_report

NASTY = "<script>alert('x')</script>"
QUOTED = '"><img src=x onerror=alert(1)>&amp;'


class Parsed(HTMLParser):
    """Elements with their attributes, the rows of every table by its caption, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text: list[str] = []
        self._caption: str | None = None
        self._rows: list[list[str]] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "caption":
            self._caption, self._rows = "", []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            self._rows[-1].append("")

    def handle_endtag(self, tag):
        self._inside = "" if tag in ("script", "style", "caption") else self._inside
        if tag == "table" and self._caption is not None:
            self.tables[self._caption], self._caption = self._rows, None
            self._rows = []

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            return
        data = data.replace("\u00a0", " ")  # before per cent, against line breaks
        self.text.append(data)
        if self._inside == "caption":
            self._caption = (self._caption or "") + data
        elif self._rows and self._rows[-1]:
            self._rows[-1][-1] += data

    def records(self, caption: str) -> list[dict[str, str]]:
        head, *rows = self.tables[caption]
        return [dict(zip(head, row, strict=True)) for row in rows]


def ensemble(n: int = 200, classes: int = 4, members: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are right more often than not, and labels."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, n)
    scores = draw.normal(size=(members, n, classes)) + 3 * np.eye(classes)[labels] + draw.normal(size=(n, classes))
    odds = np.exp(scores)
    return odds / odds.sum(-1, keepdims=True), labels


def images(labels: np.ndarray, classes: int, names: tuple[str, ...] = ()) -> Data:
    pixels = torch.randint(256, (len(labels), 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Data(
        "toys", pixels, torch.from_numpy(labels), (3, 8, 8), names or tuple(f"class {k}" for k in range(classes))
    )


def written(path: Path, *arguments, **options) -> str:
    return write_report(path / "report.html", *arguments, **options).read_text("utf-8")


# The numbers.


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=1, max_size=40), st.integers(0, STEPS))
def test_a_step_rejects_at_least_its_fraction_and_all_ties(samples, step):
    correct, eu = np.array([c for c, _ in samples]), np.array([e / 7 for _, e in samples])
    far = np.linspace(0, 1, 13)
    found = rejection(correct, eu, {"far": far})
    asked = -int(-Fraction(step * len(eu), STEPS) // 1)
    kept = eu < sorted(eu, reverse=True)[asked - 1] if asked else np.ones(len(eu), bool)
    assert found.kept[step] == kept.sum()
    assert found.right[step] == (correct & kept).sum()
    limit = found.limits[step]
    if 0 < kept.sum() < len(eu):
        assert ((eu > limit) == ~kept).all()  # what `credro predict --abstain-above` would reject
        assert found.ood["far"][step] == (far > limit).sum()
    else:
        assert limit is None
        assert found.ood["far"][step] == (0 if kept.any() else 13)


def test_the_steps_lie_on_the_curve_of_the_library():
    probs, labels = ensemble(777)
    correct, eu = probs.mean(0).argmax(1) == labels, np.asarray(credro.epistemic(credro.Box.of(probs)))
    found, curve = rejection(correct, eu, {}), credro.accuracy_rejection(correct, eu)
    for kept, right in zip(found.kept, found.right, strict=True):
        if kept:
            assert right / kept == curve.accuracy[777 - kept]
    step = found.reaches(0.9)
    assert found.right[step] >= 0.9 * found.kept[step]
    assert all(found.right[i] < 0.9 * found.kept[i] for i in range(step))


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(0.0312, 0.0347, 0.032), (0.0, 1e-9, 0.0), (0.19, 0.3, 0.2), (1.5, 1.50001, 1.5), (7, 9, 7)],
)
def test_a_threshold_is_as_short_as_can_be(low, high, wanted):
    assert between(low, high) == wanted


@given(st.floats(0, 3), st.floats(0, 3))
def test_a_threshold_is_where_it_belongs(a, b):
    low, high = sorted((a, b))
    if low < high:
        assert low <= between(low, high) < high


@given(st.floats(-10, 10), st.floats(1e-6, 20), st.integers(2, 8))
def test_ticks_are_even_and_cover(low, span, most):
    found = ticks(low, low + span, most)
    assert 2 <= len(found) <= most + 2
    assert found[0] <= low + 1e-6 * span
    assert found[-1] >= low + span - 1e-6 * span
    assert np.diff(found) == pytest.approx(found[1] - found[0])


def test_densities_have_mass_one_and_the_spike_is_cut():
    draw = np.random.default_rng(0)
    found = shapes("id", draw.exponential(0.01, 2000), {"far": 0.5 + 0.1 * draw.normal(size=2000)})
    assert np.trapezoid(found.lines["far"], found.grid) == pytest.approx(1, abs=0.02)
    assert found.cut == ["id"]


def test_classes_and_picks_by_brute_force():
    probs, labels = ensemble(90, 3)
    width, eu = np.ptp(probs, axis=0), np.asarray(credro.epistemic(credro.Box.of(probs)))
    correct, confidence = probs.mean(0).argmax(1) == labels, probs.mean(0).max(1)
    for k, row in enumerate(class_rows("abc", labels, correct, eu, width)):
        mine = [i for i in range(90) if labels[i] == k]
        assert (row.name, row.samples) == ("abc"[k], len(mine))
        assert row.accuracy == pytest.approx(np.mean([correct[i] for i in mine]))
        assert row.width[2] == pytest.approx(np.median([width[i, k] for i in mine]))
    said = probs.mean(0).argmax(1)
    found = picks(eu, confidence, said, correct, 5)
    by_eu = sorted(range(90), key=lambda i: eu[i])
    first = [next(i for i in by_eu if said[i] == k) for k in range(3)]
    second = [[i for i in by_eu if said[i] == k][1] for k in range(3)]
    assert found["Most certain"] == [*sorted(first, key=eu.__getitem__), *sorted(second, key=eu.__getitem__)][:5]
    assert found["Least certain"] == by_eu[::-1][:5]
    assert found["Confidently wrong"] == [i for i in by_eu if not correct[i]][:5]


def test_a_list_of_modules_is_reported_as_its_probabilities(tmp_path):
    torch.manual_seed(0)
    nets, x, y = [torch.nn.Linear(4, 3) for _ in range(3)], torch.randn(50, 4), torch.randint(0, 3, (50,))
    far = 3 * torch.randn(20, 4)
    with torch.no_grad():
        probs, outside = (torch.stack([net(part).softmax(-1) for net in nets]) for part in (x, far))
    by_nets, by_probs = (
        json.loads(re.search(r'id="data">(.*?)</script>', written(tmp_path, *source))[1])
        for source in ((nets, (x, y)), (probs, y))
    )
    assert by_nets["kept"] == by_probs["kept"]
    assert by_nets["right"] == by_probs["right"]
    text = written(tmp_path, nets, (x, y), ood={"far": far}, name="mine")
    assert "50 samples of own, against far" in text
    auroc = roc_auc_score(np.arange(70) >= 50, credro.epistemic(credro.Box.of(torch.cat([probs, outside], 1))))
    assert f"AUROC {100 * auroc:.1f}" in text.replace("\u00a0", " ")


def test_a_classifier_that_never_errs_has_an_axis_too(tmp_path):
    labels = np.arange(60) % 3
    text = written(tmp_path, np.stack([0.1 + 0.7 * np.eye(3)[labels]] * 2), labels)
    assert ">99 %</" in text
    assert text.count("<span>100 %</span>") == 2  # one for each axis
    assert "At least 95\u00a0% are right without rejecting any" in text


# The markup.


def test_names_from_users_cannot_break_out(tmp_path):
    probs, labels = ensemble(60, 3)
    data = images(labels, 3, (NASTY, QUOTED, "plain"))
    text = written(tmp_path, probs, data, ood={NASTY: probs[:, :20], QUOTED: probs}, name=NASTY)
    parsed = Parsed(text)
    assert [a for t, a in parsed.elements if t == "script"] == [{"type": "application/json", "id": "data"}, {}]
    assert all((a.get("src") or "").startswith("data:image/png;base64,") for t, a in parsed.elements if t == "img")
    assert not [name for _, a in parsed.elements for name in a if name.startswith("on")]
    assert NASTY in "".join(parsed.text)  # it is shown, as text
    assert QUOTED in "".join(parsed.text)
    assert text.count("</script>") == 2


def test_the_page_needs_nothing_else_and_runs_only_its_own_script(tmp_path):
    probs, labels = ensemble()
    text = written(tmp_path, probs, images(labels, 4))
    parsed = Parsed(text)
    for tag, attributes in parsed.elements:
        for key in ("src", "href", "action", "data", "srcset"):
            target = attributes.get(key)
            assert target is None or target.startswith(("data:", "#")), (tag, target)
        assert "style" not in attributes
    assert "url(" not in text
    assert "@import" not in text
    policy = next(a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "unsafe" not in policy
    for kind, begin, end in (("style", "<style>", "</style>"), ("script", "<script>", "</script>")):
        body = text.split(begin)[1].split(end)[0]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read(theme):
    """Contrast as WCAG 2 defines it: 4.5 for text, 3 for lines."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    def contrast(a: str, b: str) -> float:
        high, low = sorted((light(PALETTE[a][theme]), light(PALETTE[b][theme])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for ground in ("page", "raised"):
        for text in ("ink", "quiet", "bad"):
            assert contrast(text, ground) >= 4.5, (text, ground)
        for drawn in ("accent", "truth", "inside", "ood0", "ood1"):
            assert contrast(drawn, ground) >= 3, (drawn, ground)
    for text in ("alarm", "caution"):  # what is against the figures, on its own ground
        assert contrast(text, f"{text}-ground") >= 4.5
        assert contrast(text, "page") >= 4.5

    def mixed(tone: str, part: float) -> str:
        pairs = zip(*(bytes.fromhex(PALETTE[key][theme][1:]) for key in (tone, "page")), strict=True)
        return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in pairs)

    for tone, part in (("accent", 0.5), ("bad", 0.45)):  # the strongest cells of the confusion matrix
        high, low = sorted((light(PALETTE["ink"][theme]), light(mixed(tone, part))), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5


# What it says.


def test_the_results_agree_with_scikit_learn(tmp_path):
    probs, labels = ensemble(300)
    far, _ = ensemble(150, seed=5)
    parsed = Parsed(written(tmp_path, probs, labels, ood={"far": far}))
    rows = {row["Method"]: row for row in parsed.records("Results of every method")}
    assert list(rows) == ["DE", "CreWra", "CreEns"]
    mean = probs.mean(0)
    for row in rows.values():
        assert float(row["Accuracy %"]) == pytest.approx(100 * accuracy_score(labels, mean.argmax(1)), abs=0.006)
        assert float(row["NLL"]) == pytest.approx(log_loss(labels, mean), abs=6e-5)
        one_hot = np.eye(4)[labels]
        assert float(row["Brier"]) == pytest.approx(((mean - one_hot) ** 2).sum(1).mean(), abs=6e-5)
    eu = np.concatenate([credro.epistemic(credro.Box.of(p)) for p in (probs, far)])
    wanted = 100 * roc_auc_score(np.arange(450) >= 300, eu)
    assert float(rows["CreWra"]["AUROC far %"]) == pytest.approx(wanted, abs=0.006)
    members = parsed.records("Every member of the run")
    assert [float(row["Accuracy %"]) for row in members] == pytest.approx(
        [100 * accuracy_score(labels, p.argmax(1)) for p in probs], abs=0.006
    )
    assert f"AUROC {wanted:.1f} %" in "".join(parsed.text)


def test_the_summary_in_words(tmp_path):
    probs, labels = ensemble(1000)
    text = " ".join(Parsed(written(tmp_path, probs, labels, name="mine")).text)
    right = (probs.mean(0).argmax(1) == labels).mean()
    assert f"Of 1,000 samples of mine it gets {100 * right:.2f} % right" in text
    assert "The probabilities of 3 networks are read as CreWra (credal wrapper)." in text
    assert "No OOD set was given" in text
    eu = np.asarray(credro.epistemic(credro.Box.of(probs)))
    ordered = (probs.mean(0).argmax(1) == labels)[np.argsort(eu)]
    fraction = np.cumsum(ordered) / np.arange(1, 1001)
    kept = max(k for k in range(1, 1001) if fraction[k - 1] >= 0.95)
    assert f"95 % of the answers are right when the most uncertain {(1000 - kept) / 10:.1f} % are rejected" in text


def test_a_trained_run_brings_its_story(tmp_path):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(120, 3, generator=draw)
    data = Data("rows", x, (x[:, 0] > 0).long(), (3,), ("no", "yes"), columns=("size", "colour=red", "age"))
    run = credro.fit(
        "mlp",
        data,
        members=2,
        recipe=credro.Recipe(epochs=2),
        out=tmp_path / "run",
        executor="sequential",
        progress="none",
    )
    run.calibrate(data)
    parsed = Parsed(written(tmp_path, run, data, ood={"far": data.relabel(data.labels)}, method="en-dro", each=3))
    text = " ".join(parsed.text)
    assert "2 networks (mlp) were trained by CreDRO on 120 samples of rows for 2 epochs" in text
    assert "each at its own temperature" in text
    assert "2 of 2 members have not fitted the training data" in text
    assert [row["Delta"] for row in parsed.records("Every member of the run")] == ["0.500", "1.000"]
    results = parsed.records("Results of every method")
    [shown] = [r for r in results if r["Method"] == "EN-DRO" and r["As"] == "calibrated"]
    assert f"Accuracy {shown['Accuracy %']} %" in re.sub(r"\s+", " ", text)
    assert "without its own temperature" in written(tmp_path, run, data, plain=True)
    assert [(r["Method"], r["As"]) for r in results][-3:] == [
        ("EN-DRO", "calibrated"),
        ("CreDRO", "calibrated"),
        ("CreDRO (hull)", "calibrated"),
    ]
    assert sum(a.get("class") == "marked" for tag, a in parsed.elements if tag == "tr") == 1
    assert "epistemic uncertainty (nats)" in text
    numbers = {f"{value:.4g}" for value in x[:, 0].tolist()}
    sizes = [t for before, t in pairwise(parsed.text) if before == "size"]
    assert len(sizes) == 11  # three groups of three, and of the OOD set the least and the most uncertain
    assert set(sizes) <= numbers
    assert "120 samples of own" in written(tmp_path, run, (x, data.labels))
    with pytest.raises(TypeError, match="data must give pairs"):
        write_report(tmp_path / "r.html", run, data.labels)


def test_a_method_of_ones_own_has_a_row_too(tmp_path):
    @dataclass(frozen=True)
    class Halves(ReadOut):
        """The mean of the first half of the members."""

        kind: ClassVar[str] = "halves"

        def __call__(self, outputs):
            return Prediction(outputs, outputs[: len(outputs) // 2].double().mean(0), None)

    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    data = Data("rows", x, (x[:, 0] > 0).long(), (2,), ("no", "yes"))
    method = credro.Method(readout=Halves(), name="mine")
    recipe = credro.Recipe(epochs=1)
    run = credro.fit("mlp", data, method=method, members=4, recipe=recipe, executor="sequential", progress="none")
    parsed = Parsed(written(tmp_path, run, data))
    assert [row["Method"] for row in parsed.records("Results of every method")] == ["mine", "DE", "CreWra", "CreEns"]


def test_a_better_method_is_named(tmp_path):
    draw = np.random.default_rng(0)
    probs, labels = ensemble(100)
    far = draw.dirichlet(np.ones(4), (3, 50))
    rows = {}
    for method in ("de", "crewra", "creens"):
        parsed = Parsed(written(tmp_path, probs, labels, ood={"far": far}, method=method))
        text = " ".join(parsed.text)
        rows = {r["Method"]: float(r["AUROC far %"]) for r in parsed.records("Results of every method")}
        mine = rows[{"de": "DE", "crewra": "CreWra", "creens": "CreEns"}[method]]
        best = max(rows, key=rows.get)
        assert (f"Read as {best}, the same members find OOD samples better" in text) == (rows[best] - mine >= 1)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("method", ["de", "crewra", "creens"])
def test_every_method_of_any_number_of_classes(tmp_path, classes, method):
    probs, labels = ensemble(40, classes)
    text = written(tmp_path, probs, labels, method=method)
    assert ('id="choice"' in text) == (classes == 3)
    assert ("interval width)" in text) == (classes == 2 and method == "crewra")
    drawn = json.loads(text.split('id="data">')[1].split("</script>")[0])
    if classes == 3:
        assert all(bool(sample["set"]) == (method != "de") for sample in drawn["simplex"])


def test_of_many_classes_the_widest_come_first(tmp_path):
    probs, labels = ensemble(400, 40)
    parsed = Parsed(written(tmp_path, probs, labels))
    widest = parsed.records("Interval widths of the classes")
    every = parsed.records("Interval widths of all classes")
    assert (len(widest), len(every)) == (30, len(set(labels.tolist())))
    medians = {str(k): np.median(np.ptp(probs, axis=0)[labels == k, k]) for k in set(labels.tolist())}
    assert [row["Class"] for row in every] == sorted(medians, key=medians.get, reverse=True)
    assert widest == every[:30]


@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        (np.full((1, 1, 3), 1 / 3), np.array([0])),
        (np.full((2, 12, 2), 0.5), np.arange(12) % 2),
        (np.eye(3)[np.arange(30) % 3][None].repeat(2, 0), np.arange(30) % 3),
        (np.eye(3)[np.arange(30) % 3][None].repeat(2, 0), (np.arange(30) + 1) % 3),
    ],
    ids=["one sample", "all tie", "all right", "all wrong"],
)
def test_odd_cases_have_a_page_too(tmp_path, probs, labels):
    text = written(tmp_path, probs, labels, ood={"far": probs})
    assert "NaN" not in text
    assert "nan" not in " ".join(Parsed(text).text)


def test_the_same_again_is_the_same_file(tmp_path):
    probs, labels = ensemble(50)
    assert written(tmp_path / "a", probs, labels) == written(tmp_path / "b", probs, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"each": 0}, "each must be at least 1, got 0"),
        ({"method": "credro"}, "method must be one of de, crewra, creens, got 'credro'"),
        ({"ood": {"far": np.ones((2, 3))}}, "far must have shape"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, options, message):
    probs, labels = ensemble(20)
    with pytest.raises(ValueError, match=re.escape(message)):
        write_report(tmp_path / "r.html", probs, labels, **options)
    assert not list(tmp_path.iterdir())


def test_error_detection_agrees_with_scikit_learn(tmp_path):
    probs, labels = ensemble(503)
    parsed = Parsed(written(tmp_path, probs, labels))
    rows = {row["Score"]: row for row in parsed.records("How well each score finds errors")}
    box, mean = credro.Box.of(probs), probs.mean(0)
    scores = {
        "EU": np.asarray(credro.epistemic(box)),
        "Total uncertainty": np.asarray(credro.total(box)),
        "1 − max p": 1 - mean.max(1),
    }
    assert list(rows) == list(scores)
    wrong = mean.argmax(1) != labels
    for name, score in scores.items():
        assert float(rows[name]["AUROC of errors %"]) == pytest.approx(100 * roc_auc_score(wrong, score), abs=0.006)
        surest = np.argsort(score, kind="stable")[:453]  # the smallest number that is at least 90 %
        assert float(rows[name]["Right of the surest 90 %"]) == pytest.approx(100 * (~wrong)[surest].mean(), abs=0.006)
        curve = credro.accuracy_rejection(~wrong, score)
        assert float(rows[name]["AR area %"]) == pytest.approx(100 * curve.area, abs=0.006)
    best = max(scores, key=lambda name: roc_auc_score(wrong, scores[name]))
    assert f"Errors are found best by {best} here" in "".join(parsed.text)


def test_without_errors_no_score_is_called_the_best(tmp_path):
    labels = np.arange(60) % 3
    parsed = Parsed(written(tmp_path, np.stack([0.1 + 0.7 * np.eye(3)[labels], 0.2 + 0.4 * np.eye(3)[labels]]), labels))
    assert "All answers are right, or all are wrong: no score can tell them apart." in "".join(parsed.text)
    assert {row["AUROC of errors %"] for row in parsed.records("How well each score finds errors")} == {"–"}
