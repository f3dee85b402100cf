import json
import shutil
import warnings

import numpy as np
import pandas
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import credro
from credro.data import Data, load
from credro.training.run import RunError
from tests.training.common import assert_bitwise, blobs, digits, small_net, trained, weights

X, Y = blobs(70)
HELD = load("digits").subset(range(300, 420))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small trained run on digits; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("run")
    trained("mlp", digits(150), folder, members=3, recipe=credro.Recipe(epochs=8, batch_size=32, lr=0.1))
    return folder


@pytest.fixture
def ensemble(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    return credro.load(tmp_path / "run", device="cpu")


class Pairs(Dataset):
    """Somebody's dataset."""

    def __init__(self, x=X, y=Y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


class Unlabelled(Pairs):
    def __getitem__(self, i):
        return self.x[i]


class Stream(IterableDataset):
    def __iter__(self):
        yield from X


def calls(ensemble):
    """How often each member's network is called from now on."""
    count = [0]
    for net in ensemble.nets:
        net.register_forward_hook(lambda *_: count.__setitem__(0, count[0] + 1))
    return count


def test_predictions_are_the_networks_own(ensemble):
    prediction = ensemble.predict(HELD)
    x = HELD.samples.float() / 255
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (ensemble.inputs.mean, ensemble.inputs.std))
    with torch.no_grad():
        expected = torch.stack([net((x - mean) / std).softmax(-1) for net in ensemble.nets])
    torch.testing.assert_close(prediction.probs, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(prediction.mean, expected.double().mean(0), rtol=1e-4, atol=1e-6)
    gap = credro.epistemic(credro.Box.of(expected))
    torch.testing.assert_close(prediction.epistemic, gap, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [1, 7, 119, 1000])
def test_chunks_give_the_same_as_the_whole(ensemble, size):
    whole = ensemble.scores(HELD, cache=False, batch_size=120)
    torch.testing.assert_close(ensemble.scores(HELD, cache=False, batch_size=size), whole, rtol=1e-5, atol=1e-5)


def test_networks_see_one_batch_at_a_time(ensemble):
    seen = []
    for net in ensemble.nets:
        net.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    ensemble.predict(HELD, batch_size=50, cache=False)
    assert seen == [50] * 3 + [50] * 3 + [20] * 3


def test_a_second_prediction_is_read_from_the_run(ensemble):
    first, count = ensemble.predict(HELD), calls(ensemble)
    again = ensemble.predict(HELD)
    assert count[0] == 0
    assert torch.equal(first.probs, again.probs)
    other = credro.load(ensemble.run.folder, device="cpu")  # and by another process, or under another read-out
    count = calls(other)
    assert torch.equal(other.read_as("en-dro").predict(HELD).probs, first.probs)
    assert count[0] == 0
    ensemble.predict(HELD.subset(range(50)))
    assert len(list((ensemble.run.folder / "predictions").iterdir())) == 2
    count = calls(ensemble)
    ensemble.predict(HELD, cache=False)
    assert count[0] == 3


def test_the_cache_is_not_stale_when_weights_or_samples_change(ensemble):
    first = ensemble.predict(HELD)
    with torch.no_grad():
        ensemble.nets[0].head.weight.mul_(2)
    assert not torch.equal(ensemble.predict(HELD).probs, first.probs)
    changed = HELD.samples.clone()
    changed[5] = 255 - changed[5]
    other = Data("digits", changed, HELD.labels, HELD.shape, HELD.classes)
    again = ensemble.predict(other)
    assert not torch.equal(again.probs[:, 5], ensemble.predict(HELD).probs[:, 5])
    torch.testing.assert_close(again.probs[:, 6:], ensemble.predict(HELD).probs[:, 6:])


def test_all_kinds_of_samples_give_one_prediction():
    ensemble = trained(small_net, (X, Y))
    expected = ensemble.predict(X).probs
    kinds = {
        "array": X.numpy(),
        "array of doubles": X.double().numpy(),
        "view": X.flip(0).numpy()[::-1],
        "frame": pandas.DataFrame(X.numpy()),
        "lists": X.tolist(),
        "list of arrays": list(X.numpy()),
        "list of tensors": list(X),
        "list of pairs": list(zip(X, Y.tolist(), strict=True)),
        "list of lists": [[x, int(y)] for x, y in zip(X, Y, strict=True)],
        "pair": (X, Y),
        "data": credro.data.as_data((X, Y)),
        "tensors": TensorDataset(X, Y),
        "samples only": TensorDataset(X),
        "dataset": Pairs(),
        "unlabelled": Unlabelled(),
        "loader": DataLoader(Pairs(), batch_size=9),
        "stream": Stream(),
        "stream loader": DataLoader(Stream(), batch_size=9),
    }
    for name, x in kinds.items():
        torch.testing.assert_close(ensemble.predict(x, batch_size=16).probs, expected, msg=name)


def test_bytes_and_their_fractions_are_one_image(ensemble):
    images = HELD.samples
    torch.testing.assert_close(
        ensemble.predict(images).probs, ensemble.predict(images.numpy() / 255.0).probs, rtol=1e-3, atol=1e-5
    )
    torch.testing.assert_close(ensemble.predict(DataLoader(HELD, 30)).probs, ensemble.predict(images).probs)


@pytest.mark.parametrize("kind", ["pair", "numpy", "frame", "lists", "tensors", "dataset", "loader", "lazy"])
def test_all_kinds_of_training_sets_give_one_ensemble(tmp_path, kind):
    sets = {
        "pair": (X, Y),
        "numpy": (X.double().numpy(), Y.numpy().astype(np.int32)),
        "frame": (pandas.DataFrame(X.numpy()), pandas.Series(Y.numpy())),
        "lists": (X.tolist(), Y.tolist()),
        "tensors": (list(X), list(Y)),
        "dataset": Pairs(),
        "loader": DataLoader(Pairs(), batch_size=3, shuffle=True),  # order and batch size are the recipe's
        "lazy": Data("lazy", lambda i: X[i], Y, (6,), prepared=True),
    }
    trained(small_net, (X, Y), tmp_path / "reference")
    trained(small_net, sets[kind], tmp_path / kind)
    assert_bitwise(weights(tmp_path / "reference"), weights(tmp_path / kind))


def test_what_cannot_be_predicted_is_said(ensemble):
    with pytest.raises(ValueError, match=r"samples must have shape \(1, 8, 8\), got \(8, 8\)"):
        ensemble.predict(np.zeros((4, 8, 8)))
    with pytest.raises(ValueError, match="x is empty"):
        ensemble.predict(np.zeros((0, 1, 8, 8)))
    with pytest.raises(ValueError, match=r"x is one sample, of shape \(1, 8, 8\): give a batch of them, x\[None\]"):
        ensemble.predict(np.zeros((1, 8, 8)))
    holes = np.zeros((4, 1, 8, 8))
    holes[2, 0, 3, 3] = np.nan
    with pytest.raises(ValueError, match="x is NaN or infinite in sample 2 of a batch of 4"):
        ensemble.predict(holes)
    with pytest.raises(TypeError, match="without random access can be predicted on, but not trained on"):
        trained(small_net, Stream())


def test_save_and_load_again(ensemble, tmp_path):
    first = ensemble.predict(HELD)
    ensemble.calibrate(HELD)
    saved = ensemble.save(tmp_path / "copy")
    assert not (saved / "predictions").exists()
    again = credro.load(saved, device="cpu")
    assert repr(again) == "Ensemble(credro, 3 members, 10 classes, calibrated)"
    assert again.temperatures == ensemble.temperatures
    again.uncalibrate()
    assert torch.equal(again.predict(HELD).probs, first.probs)
    with pytest.raises(FileExistsError, match="is not empty"):
        ensemble.save(tmp_path / "copy")


def test_a_run_is_read_by_every_method_of_its_rule(ensemble):
    for name in ("en-dro", "credro-hull", "credro"):
        other = credro.load(ensemble.run.folder, method=name, device="cpu")
        assert torch.equal(other.predict(HELD).probs, ensemble.predict(HELD).probs)
        torch.testing.assert_close(other.predict(HELD).epistemic, ensemble.read_as(name).predict(HELD).epistemic)
    for name in ("de", credro.methods.make("credro", delta_g=0.7)):
        with pytest.raises(ValueError, match="These read it: en-dro, credro, credro-hull"):
            credro.load(ensemble.run.folder, method=name, device="cpu")
        with pytest.raises(ValueError, match="needs members trained by"):
            ensemble.read_as(name)


def test_options_of_the_rule_travel_with_the_run(tmp_path):
    trained("mlp", digits(40), tmp_path, method=credro.methods.make("credro", delta_g=0.7, measure="gap"))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["method"]["rule"]["delta_g"] == 0.7
    assert credro.load(tmp_path).method == credro.methods.make("credro", delta_g=0.7, measure="gap")
    assert credro.load(tmp_path, method="en-dro").rule.delta_g == 0.7


def test_an_unfinished_run_is_not_loaded(ensemble):
    (ensemble.run.member(1) / "done.json").unlink()
    with pytest.raises(RunError, match=r"is not finished: members \[1\] are not trained"):
        credro.load(ensemble.run.folder)
    with pytest.raises(RunError, match=r"is not a run: it has no config\.json"):
        credro.load(ensemble.run.folder / "nowhere")


def test_ones_own_network_is_asked_for(tmp_path):
    expected = trained(small_net, (X, Y), tmp_path).predict(X).probs
    with pytest.raises(
        ValueError, match=r"small_net \(4 tensors: 0.weight \(16, 6\), .*\): give make_net, the function that"
    ):
        credro.load(tmp_path)
    torch.testing.assert_close(credro.load(tmp_path, make_net=small_net, device="cpu").predict(X).probs, expected)
    with pytest.raises(ValueError, match=r"(?s)make_net builds another network than .*small_net .*Missing key"):
        credro.load(tmp_path, make_net=lambda: nn.Linear(6, 4))


def test_ones_own_method_is_asked_for(tmp_path):
    from credro.methods import Method
    from credro.readouts import MeanReadOut
    from tests.training.test_loop import Doubled

    method = Method("mine", Doubled(), MeanReadOut())
    trained("mlp", digits(40), tmp_path, method=method)
    with pytest.raises(ValueError, match=r"method 'mine' \(rule 'doubled'.*give it as method="):
        credro.load(tmp_path)
    assert len(credro.load(tmp_path, method=method)) == 2


def test_calibration_is_scipys_stored_applied_and_reported(ensemble):
    from scipy.optimize import minimize_scalar

    logits = ensemble.scores(HELD).double()
    found = ensemble.calibrate(HELD)
    for member, temperature in enumerate(found):

        def nll(t, member=member):
            return float(nn.functional.cross_entropy(logits[member] / t, HELD.labels))

        best = minimize_scalar(nll, bounds=(0.02, 50), method="bounded", options={"xatol": 1e-8})
        assert temperature == pytest.approx(best.x, rel=1e-3)
        assert nll(temperature) <= nll(1.0) + 1e-12
    scaled = torch.stack([(s / t).softmax(-1) for s, t in zip(logits, found, strict=True)])
    torch.testing.assert_close(ensemble.predict(HELD).probs.double(), scaled, rtol=1e-4, atol=1e-6)
    again = credro.load(ensemble.run.folder, device="cpu")
    assert again.temperatures == found
    assert again.calibrated
    assert again.read_as("en-dro").temperatures == found
    stored = json.loads((ensemble.run.folder / "calibration.json").read_text())
    assert stored["held_out"] == {"name": HELD.name, "samples": 120, "fingerprint": HELD.fingerprint()}
    ensemble.uncalibrate()
    assert not credro.load(ensemble.run.folder, device="cpu").calibrated


def test_calibration_through_fit_and_what_it_refuses(tmp_path, ensemble):
    fitted = trained("mlp", digits(60), tmp_path, calibrate=HELD)
    assert fitted.calibrated
    assert fitted.warnings == [w for w in fitted.warnings if "runs with delta" not in w]
    with pytest.raises(ValueError, match="calibration needs class labels"):
        ensemble.calibrate((HELD.samples, torch.rand(120)))
    with pytest.raises(ValueError, match="label 10 of sample"):
        ensemble.calibrate((HELD.samples, HELD.labels + 1))


def test_without_a_folder_the_run_lives_as_long_as_the_ensemble():
    ensemble = trained("mlp", digits(40))
    folder = ensemble.run.folder
    other = ensemble.read_as("en-dro")
    assert folder.exists()
    del ensemble
    other.predict(HELD)
    assert folder.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        del other
    assert not folder.exists()


def test_nothing_in_a_run_is_a_pickle(run):
    kinds = {p.suffix for p in run.rglob("*") if p.is_file()} | {p.name for p in run.rglob("lock")}
    assert kinds <= {".json", ".jsonl", ".safetensors", "", "lock"}
    assert all(p.read_bytes()[:1] != b"\x80" for p in run.rglob("*") if p.is_file())


NUMBERS = credro.Recipe(epochs=30, batch_size=16, lr=0.01, optimiser="adamw", loss="gaussian_nll")


@pytest.mark.parametrize("executor", ["sequential", "stacked"])
def test_numbers_are_learnt_loaded_and_read(tmp_path, executor):
    y = 40 * X[:, 0] + 1000
    ensemble = trained("mlp", (X, y), tmp_path, recipe=NUMBERS, executor=executor)
    prediction = ensemble.predict_numbers(X)
    assert float((prediction.mean - y).square().mean()) < 0.1 * float(y.var())
    again = credro.load(tmp_path, device="cpu")
    torch.testing.assert_close(again.predict_numbers(X).total, prediction.total)
    with torch.no_grad():
        outputs = torch.stack([net(X) for net in again.nets]).double()
    torch.testing.assert_close(prediction.means, outputs[..., 0], rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(prediction.aleatoric, outputs[..., 1].exp().amin(0), rtol=1e-4, atol=1e-6)
    point = again.read_as("en-dro").predict_numbers(X)
    assert point.set is None
    torch.testing.assert_close(point.epistemic, outputs[..., 0].var(0, correction=0), rtol=1e-3, atol=1e-3)
    entries = [json.loads(line) for line in (tmp_path / "members/00/history.jsonl").read_text().splitlines()]
    assert all(e["accuracy"] is None for e in entries)


def test_numbers_are_calibrated_by_their_variances(tmp_path):
    y = 40 * X[:, 0] + 1000
    ensemble = trained("mlp", (X, y), tmp_path, recipe=NUMBERS)
    before = ensemble.predict_numbers(X)
    factors = ensemble.calibrate((X, y + 30 * torch.randn(70, generator=torch.Generator().manual_seed(0))))
    after = credro.load(tmp_path, device="cpu").predict_numbers(X)
    torch.testing.assert_close(after.means, before.means)
    expected = before.stds.square() * torch.tensor(factors).double()[:, None]
    torch.testing.assert_close(after.stds.square(), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="calibration needs numbers, one per sample"):
        ensemble.calibrate((X, Y))


def test_numbers_and_classes_are_told_apart(tmp_path, ensemble):
    with pytest.raises(ValueError, match="tell 10 classes apart: use predict"):
        ensemble.predict_numbers(HELD)
    other = trained(
        lambda: nn.Linear(6, 3), (X, X[:, 0]), tmp_path / "own", recipe=credro.Recipe(epochs=1), loss=absolute
    )
    with pytest.raises(ValueError, match="predict numbers, not classes: use predict_numbers"):
        other.predict(X)
    with pytest.raises(ValueError, match=r"must give mean and log variance, \(M, N, 2\) in all, got \(2, 70, 3\)"):
        other.predict_numbers(X)


def absolute(output, target):
    return (output[:, 0] - target).abs()
