"""The demo: the embedded benchmark, every set predicted once, numbers that the networks themselves confirm."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import credro
from credro.data import corrupt_data, load
from credro.ensemble import Ensemble
from credro.experiments.demo import demo


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small one, and how often members ran over which set."""
    out, said, runs = tmp_path_factory.mktemp("demo"), [], Counter()
    scores = Ensemble.scores

    def counted(self, x, **options):
        runs[self.run.folder.name, x.fingerprint()] += 1
        return scores(self, x, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ensemble, "scores", counted)
        evaluations = demo(out, members=2, samples=200, epochs=1, progress="none", say=said.append)
    return out, said, runs, evaluations


def test_nothing_is_predicted_twice(done):
    _, _, runs, _ = done
    assert len(runs) == 2 * 5  # two runs; test images, letters, digits, noise and blur
    assert set(runs.values()) == {1}


def test_files_and_table(done):
    out, said, _, evaluations = done
    files = {"report.html", "densities.png", "accuracy_rejection.png", "gallery.png", "results.json", "de", "credro"}
    assert {p.name for p in out.iterdir()} == files
    kept = json.loads((out / "results.json").read_text())
    assert [[r["method"] for r in run["results"]] for run in kept] == [["de", "crewra"], ["en-dro", "credro"]]
    assert list(kept[0]["ood"]) == ["letters", "digits", "noise", "blur"]
    (table,) = [text for text in said if "AUROC" in text]
    assert all(f"{100 * r.mean_auroc:.2f}" in table for e in evaluations for r in e.results)


def test_numbers_are_those_of_the_networks(done):
    """EU of a deep ensemble by hand, on test images that are corrupted here, and scikit-learn's AUROC."""
    out, _, _, evaluations = done
    test = load("fashion-mini", split="test")
    sets = {
        "letters": load("fashion-mini-letters", split="test"),
        "blur": corrupt_data(test, "defocus_blur", 5, seed=0),
    }
    ens = credro.load(out / "de")

    def eu(data):
        with torch.no_grad():
            x = ens.inputs(data.batch(torch.arange(len(data))))
            p = torch.stack([net(x).softmax(-1) for net in ens.nets]).double().numpy()
        mean = p.mean(0)
        return -(mean * np.log(mean)).sum(-1) + (p * np.log(p)).sum(-1).mean(0)

    inside = eu(test)
    for name, data in sets.items():
        both = np.r_[inside, eu(data)]
        truth = np.arange(len(both)) >= len(inside)
        assert evaluations[0]["de"].ood[name].auroc == pytest.approx(roc_auc_score(truth, both), abs=1e-5)
