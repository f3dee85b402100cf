"""All ten methods, end to end: trained, interrupted, resumed to the same weights, and read into valid sets."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import credro
from credro.data import Data
from credro.methods import METHODS
from credro.training import progress

pytestmark = pytest.mark.filterwarnings("ignore::credro.training.train.FitWarning")
TEN = ("de", "crewra", "creens", "en-dro", "credro", "credro-hull", "creram", "crerl", "crede", "crebnn")
MEAN_INSIDE = set(TEN) - {"de", "en-dro", "creens"}  # no set, or a hull of some members only
RECIPE = credro.Recipe(epochs=2, batch_size=64, lr=0.05)


def test_the_table_has_ten_lines() -> None:
    assert tuple(METHODS) == TEN


@pytest.fixture(scope="module")
def digits() -> tuple[Data, Data]:
    train, test = (credro.data.load("digits", split=s) for s in ("train", "test"))
    return train.subset(range(400)), test.subset(range(100))


@pytest.fixture(scope="module")
def fashion() -> tuple[Data, Data]:
    train, test = (credro.data.load("fashion-mini", split=s) for s in ("train", "test"))
    return train.subset(range(200)), test.subset(range(60))


def method(name: str) -> credro.methods.Method:
    return credro.methods.make(name, **({"samples": 3} if name == "crebnn" else {}))


def train(name: str, net: str, data: Data, out: Path) -> credro.Ensemble:
    return credro.fit(
        net, data, method=method(name), members=3, recipe=RECIPE, out=out, executor="sequential", threads=1,
        progress="none", checkpoint_seconds=0,
    )  # fmt: skip


def check(name: str, ens: credro.Ensemble, test: Data) -> None:
    pred = ens.predict(test)
    assert pred.probs.shape == (3, len(test), 10)
    assert torch.allclose(pred.probs.double().sum(-1), torch.ones(3, len(test), dtype=torch.float64), atol=1e-4)
    assert torch.allclose(pred.mean.sum(-1), torch.ones(len(test), dtype=torch.float64), atol=1e-6)
    assert (pred.lower <= pred.upper).all()
    assert (pred.epistemic >= 0).all()
    assert (pred.total + 1e-9 >= pred.aleatoric).all()
    if name in MEAN_INSIDE:
        assert pred.set.contains(pred.mean, tol=1e-6).all()
    assert torch.equal(ens.predict(test, cache=False).epistemic, pred.epistemic), "two predictions of one input agree"


@pytest.mark.parametrize("name", TEN)
def test_digits_interrupted_and_resumed(
    name: str, digits: tuple[Data, Data], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, test = digits
    whole = train(name, "mlp", data, tmp_path / "whole")
    check(name, whole, test)
    calls = 0
    plain = progress.Display.__call__

    def cut(self: progress.Display, event: object) -> None:
        nonlocal calls
        calls += 1
        if calls in (1, 3):  # after the first epoch of member 0, and again in a later member
            raise KeyboardInterrupt
        plain(self, event)

    monkeypatch.setattr(progress.Display, "__call__", cut)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(name, "mlp", data, tmp_path / "cut")
    resumed = train(name, "mlp", data, tmp_path / "cut")
    for a, b in zip(whole.nets, resumed.nets, strict=True):
        for key, value in a.state_dict().items():
            assert torch.equal(value, b.state_dict()[key]), f"{name}: {key} differs after resuming"


@pytest.mark.parametrize("name", TEN)
def test_fashion_mini(name: str, fashion: tuple[Data, Data], tmp_path: Path) -> None:
    data, test = fashion
    check(name, train(name, "cnn", data, tmp_path), test)


@pytest.mark.parametrize("name", TEN)
def test_identical_members_disagree_about_nothing(name: str, digits: tuple[Data, Data], tmp_path: Path) -> None:
    data, test = digits
    ens = train(name, "mlp", data, tmp_path)
    scores = ens.scores(test)[:1].expand(4, *[-1] * (ens.scores(test).ndim - 1))
    pred = ens.method.readout(ens.method.head.probs(scores))
    if name == "crede":  # its members are intervals themselves: averaging equal ones changes nothing
        assert torch.allclose(pred.lower, ens.method.head.probs(scores[0])[:, 0], atol=1e-9)
    else:
        assert float(pred.epistemic.max()) < 1e-7


def test_crerl_records_how_each_member_stopped(digits: tuple[Data, Data], tmp_path: Path) -> None:
    ens = credro.fit(
        "mlp", digits[0], method=credro.methods.make("crerl", alpha=0.05), members=4,
        recipe=credro.Recipe(epochs=40, batch_size=64, lr=0.05), out=tmp_path, executor="sequential", threads=1,
        progress="none",
    )  # fmt: skip
    reference, *others = ens.records
    assert (reference.epochs, reference.traits) == (40, {})
    for record in others:
        # The records against the definition, from the trained networks themselves.
        with torch.no_grad():
            x = ens.inputs(digits[0].samples)
            ll = [
                float(-torch.nn.functional.cross_entropy(ens.nets[i](x), digits[0].labels)) for i in (0, record.member)
            ]
        assert record.traits["relative_likelihood"] == pytest.approx(float(torch.tensor(ll[1] - ll[0]).exp()), rel=1e-3)
        assert record.traits["reached"] == (record.traits["relative_likelihood"] >= record.traits["threshold"])
        assert record.traits["reached"] or record.epochs == 40
    assert any(r.epochs < 40 for r in others), "some member stops before the end"


def test_crerl_alpha_zero_keeps_the_biased_starts(digits: tuple[Data, Data], tmp_path: Path) -> None:
    ens = credro.fit(
        "mlp", digits[0], method=credro.methods.make("crerl", alpha=0.0), members=3, recipe=RECIPE, out=tmp_path,
        executor="sequential", threads=1, progress="none",
    )  # fmt: skip
    pred = ens.predict(digits[1])
    assert (pred.probs[1].argmax(-1) == 0).all()
    assert (pred.probs[2].argmax(-1) == 1).all()
