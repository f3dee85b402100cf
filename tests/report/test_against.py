"""What is against a report stands at its top, in red: for every case a page that has it, and one that has not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

import credro
from credro._templates import _environment
from credro.data.base import BadFile, Data
from credro.report.page._objections import Objection, of_classes, of_members, of_size, wilson
from credro.report.page.write import write_report
from credro.training.seen import seen_path
from tests.report.test_page import Parsed, ensemble, written

NAMES = ("ant", "bee", "cat")


def rows(count: int, seed: int = 0, classes: tuple[str, ...] = NAMES) -> Data:
    """A class is where the largest of the values is: a network learns it in a few steps."""
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    return Data("rows", x, x.argmax(1), (3,), classes)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that fits its 240 samples."""
    return credro.fit(
        "mlp",
        rows(240),
        members=2,
        recipe=credro.Recipe(epochs=60, lr=0.1),
        out=tmp_path_factory.mktemp("run") / "run",
        executor="sequential",
        progress="none",
    )


class Said:
    """The texts of a page's banner, by their role."""

    def __init__(self, text: str) -> None:
        self.page = text
        found = re.findall(r'<div class="against (\w+)" role="(\w+)"><p>.*?</p><ul>(.*?)</ul></div>', text)
        assert all((kind, role) in (("grave", "alert"), ("mild", "note")) for kind, role, _ in found)
        parts = {
            kind: [" ".join(Parsed(li).text) for li in re.findall("<li>.*?</li>", part)] for kind, _, part in found
        }
        self.red, self.amber = parts.get("grave", []), parts.get("mild", [])


def said(path: Path, *arguments, **options) -> Said:
    return Said(written(path, *arguments, **options))


def test_nothing_is_against_a_sound_report(run, tmp_path):
    found = said(tmp_path, run, rows(200, 1), ood={"far": 9 + torch.rand(40, 3)})
    assert (found.red, found.amber) == ([], [])
    assert 'role="alert"' not in found.page


def test_a_report_on_training_data(run, tmp_path):
    """By whatever route the samples come."""
    data = rows(240)
    for route in (data, (data.samples, data.labels), (data.samples.double().numpy(), data.labels.numpy())):
        found = said(tmp_path, run, route)
        assert found.red == ["All 240 samples were trained on: every figure on this page flatters the run."]
        assert "240 samples of" in found.page


def test_the_banner_is_in_the_summary_before_any_figure(run, tmp_path):
    page = said(tmp_path, run, rows(240)).page
    assert page.index('id="summary"') < page.index('role="alert"') < page.index("Accuracy")
    assert page.index('role="alert"') < page.index("<script>")  # markup: it needs no script


def test_samples_that_were_trained_on_are_left_out_or_kept(run, tmp_path):
    old, new = rows(240), rows(100, 1)
    mixed = Data(
        "mixed", torch.cat([new.samples, old.samples[:60]]), torch.cat([new.labels, old.labels[:60]]), (3,), NAMES
    )
    found = said(tmp_path, run, mixed)
    assert found.red == ["60 of 160 samples were trained on. They are left out: the figures are of the other 100."]
    alone = said(tmp_path, run, replace(new, name="mixed"))
    assert "100 samples of mixed" in found.page
    assert Parsed(found.page).tables == Parsed(alone.page).tables  # as if the others had never been there
    kept = said(tmp_path, run, mixed, seen="keep")
    assert "They are counted all the same" in kept.red[0]
    assert "160 samples of mixed" in kept.page
    with pytest.raises(ValueError, match="seen must be drop or keep, got 'some'"):
        write_report(tmp_path / "r.html", run, mixed, seen="some")


def test_calibration_samples_count_too(run, tmp_path):
    other = credro.load(run.save(tmp_path / "copy"))
    aside = rows(50, 2)
    other.calibrate(aside)
    found = said(tmp_path, other, aside)
    assert found.red == ["All 50 samples were calibrated on: every figure on this page flatters the run."]
    both = Data(
        "b", torch.cat([aside.samples, rows(240).samples]), torch.cat([aside.labels, rows(240).labels]), (3,), NAMES
    )
    [text] = said(tmp_path, other, both).red
    assert "All 290 samples were used to make it (240 trained on and 50 calibrated on)" in text


def test_networks_from_elsewhere_know_what_they_were_calibrated_on(run, tmp_path):
    ens, aside = credro.Ensemble.of(run.nets, rows(20, 3)), rows(50, 2)
    ens.calibrate(aside)
    found = said(tmp_path, ens, rows(90, 2))  # of which the first 50 are the same
    shared = int(torch.isin(rows(90, 2).content(), aside.content()).sum())
    assert shared > 0
    assert found.red[0].startswith(f"{shared} of 90 samples were calibrated on. They are left out")
    assert "cannot be checked" in found.amber[0]


def test_what_cannot_be_checked_is_said_in_amber(run, tmp_path):
    other = credro.load(run.save(tmp_path / "copy"))
    seen_path(other.run).unlink()  # as a run of version 0.1
    found = said(tmp_path, other, rows(240))
    assert found.red == []
    assert len(found.amber) == 1
    assert "Whether it was trained on these samples cannot be checked (the run has kept no record" in found.amber[0]
    elsewhere = said(tmp_path, list(run.nets), rows(240))
    assert "(the networks were not trained by credro)" in elsewhere.amber[0]
    probs, labels = ensemble(100, 3)
    own = said(tmp_path, probs, labels)
    assert own.red == []
    assert own.amber[0].startswith("Probabilities were given, and no run: whether it was trained on these samples")


def test_sets_that_overlap(run, tmp_path):
    test = rows(200, 1)
    far = torch.cat([9 + torch.rand(40, 3), test.samples[:7].double()])
    found = said(tmp_path, run, test, ood={"far": far, "good": 9 + torch.rand(40, 3)})
    assert found.red == [
        "7 of 47 samples of the OOD set far are in the ID set too, by content: its scores compare samples with "
        "themselves."
    ]
    trained = said(tmp_path, run, test, ood={"far": torch.cat([far[:40], rows(240).samples[:9]])})
    assert trained.red == ["9 of 49 samples of the OOD set far were used to make the run: they are not OOD."]


def test_members_that_do_not_fit(tmp_path):
    with pytest.warns(UserWarning, match="have not fitted"):
        weak = credro.fit(
            "mlp", rows(240), members=2, recipe=credro.Recipe(epochs=1), executor="sequential", progress="none"
        )
    found = said(tmp_path, weak, rows(200, 1))
    assert found.red
    assert found.red == list(weak.warnings)


def test_one_class_only(run, tmp_path):
    bees = rows(300, 1)
    bees = bees.subset((bees.labels == 1).nonzero()[:, 0])
    found = said(tmp_path, run, bees)
    assert found.red == [f"All {len(bees)} samples are of one class, bee: the figures say nothing about the 2 others."]
    alone = said(tmp_path, np.ones((2, 50, 1)), np.zeros(50, int))
    assert "The model knows one class only, 0: it can give no other answer." in alone.red
    probs, labels = ensemble(60, 3)
    stuck = said(tmp_path, probs * [1, 0, 0] + np.array([0.9, 0.05, 0.05]) * (1 - probs[..., :1]), labels)
    assert "The answer is 0 for every one of the 60 samples." in stuck.red


def test_classes_without_samples_are_named():
    labels, names = np.array([0, 1] * 20), tuple("abcdefghij")
    assert of_classes(labels, labels, names) == [
        Objection("No sample is of 8 of the 10 classes: c, d, e, f, g and 3 more.", grave=False)
    ]
    assert of_classes(labels, labels, ("a", "b")) == []


def test_copies_and_a_lonely_member(tmp_path):
    probs, labels = ensemble(100, 3, 4)
    assert said(tmp_path, probs, labels).red == []
    assert "All 4 members say the same of every sample" in said(tmp_path, probs[:1].repeat(4, 0), labels).red[0]
    assert "Of the 4 members only 3 differ" in said(tmp_path, probs[[0, 1, 2, 0]], labels).red[0]
    assert "There is one member only" in said(tmp_path, probs[:1], labels).red[0]
    assert not of_members(probs[:1], np.ones(3))[0].grave  # a method whose single network gives intervals


@pytest.mark.parametrize("right", [0, 1, 13, 28, 29])
def test_a_very_small_test_set(tmp_path, right):
    interval = binomtest(right, 29).proportion_ci(method="wilson")
    assert wilson(right, 29) == pytest.approx((interval.low, interval.high), abs=1e-6)
    [only] = of_size(right, 29)
    assert only.grave
    assert only.text.replace("\u00a0", " ") == (
        f"There are only 29 samples: the true accuracy may be anywhere from {100 * interval.low:.0f} % to "
        f"{100 * interval.high:.0f} %."
    )
    assert of_size(30, 30) == []
    probs, labels = ensemble(29, 3)
    assert "There are only 29 samples" in said(tmp_path, probs, labels).red[0]


def test_files_that_could_not_be_read_are_counted(run, tmp_path):
    bad = tuple(BadFile(Path(f"{i}.jpg"), "not a complete image") for i in range(3))
    assert said(tmp_path, run, replace(rows(200, 1), bad=bad)).amber == ["3 files were left out: unreadable."]


def test_names_in_the_banner_are_text():
    banner = _environment().get_template("report/page/templates/parts.html.j2").module.banner
    found = banner([Objection("<script>alert(1)</script>")])
    assert "<script>" not in str(found)
    assert "&lt;script&gt;" in str(found)
    assert banner([]) == ""


# Classes by name.


def test_classes_go_by_name_and_not_by_number(run, tmp_path):
    test = rows(200, 1)
    order = torch.tensor([2, 0, 1])
    turned = replace(test, labels=order[test.labels], classes=("bee", "cat", "ant"))
    pages = [said(tmp_path, run, data) for data in (test, turned)]
    assert Parsed(pages[0].page).tables == Parsed(pages[1].page).tables
    assert pages[1].amber == []


def test_other_names_are_compared_by_number_and_said(run, tmp_path):
    with pytest.warns(UserWarning, match="compared by number"):
        found = said(tmp_path, run, replace(rows(200, 1), classes=("x", "y", "z")))
    assert found.amber == [
        "The classes of rows (x, y, z) are not called as the model's (ant, bee, cat): they are compared by number."
    ]


@pytest.mark.parametrize("count", [3, 5, 40])
def test_samples_of_unknown_classes_are_left_out_and_shown(run, tmp_path, count):
    test, far = rows(200, 1), 9 + torch.rand(count, 3)
    x, y = torch.cat([test.samples, far]), torch.cat([test.labels, torch.full((count,), 3)])
    named = said(tmp_path, run, Data("rows", x, y, (3,), (*NAMES, "owl")))
    pair = said(tmp_path, run, (x, torch.where(y == 3, -1, y)))
    without = Parsed(said(tmp_path, run, test).page)
    shown = " and shown as the OOD set unknown classes" if count >= 5 else ""
    assert named.amber == [
        f"{count} samples are of classes that the model does not know (owl): left out of {200 + count}{shown}."
    ]
    assert pair.amber == [named.amber[0].replace(" (owl)", "")]
    for found in (named, pair):
        assert found.red == []
        parsed = Parsed(found.page)
        assert parsed.records("Every member of the run") == without.records("Every member of the run")
        assert ("against unknown classes" in found.page) == (count >= 5)
        assert found.page.count('class="verdict ood"') == (0 if count < 5 else min(count, 6))


def test_labels_outside_the_columns_of_probabilities(tmp_path):
    probs, labels = ensemble(120, 3)
    labels = np.concatenate([labels[:100], np.full(10, -1), np.full(10, 7)])
    found = said(tmp_path, probs, labels)
    assert found.amber[1] == (
        "20 samples are of classes that the model does not know: left out of 120 and shown as the OOD set unknown "
        "classes."
    )
    members = Parsed(found.page).records("Every member of the run")
    right = [100 * (p[:100].argmax(1) == labels[:100]).mean() for p in probs]
    assert [float(row["Accuracy %"]) for row in members] == pytest.approx(right, abs=0.006)
    with pytest.raises(ValueError, match="an OOD set cannot be called 'unknown classes'"):
        write_report(tmp_path / "r.html", probs, labels, ood={"unknown classes": probs})
    with pytest.raises(ValueError, match="labels must be class numbers from 0 to 2, got none that is"):
        write_report(tmp_path / "r.html", probs, np.full(120, 5))


def test_data_of_other_classes_alone_is_refused(run, tmp_path):
    with pytest.raises(
        ValueError, match=r"none of its samples is of a class that the ensemble knows \(ant, bee, cat\)"
    ):
        write_report(tmp_path / "r.html", run, replace(rows(50, 1), classes=("x", "y", "z", "w")))
    assert not (tmp_path / "r.html").exists()
