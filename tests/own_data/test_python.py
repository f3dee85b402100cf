"""People's own arrays through Python: classes by their own names, whole numbers, missing values, used samples."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import credro
from credro.data import Data
from credro.training.seen import SeenSamples

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
SIDE = (X[:, 0] > 0).astype(int)
RECIPE = credro.Recipe(epochs=30, batch_size=32, lr=0.05)


def fitted(data, net="mlp", **options):
    options = {"members": 2, "recipe": RECIPE, "progress": "none", "executor": "sequential", **options}
    return credro.fit(net, data, **options)


@pytest.mark.parametrize(
    ("y", "classes"),
    [(SIDE + 1, ("1", "2")), (SIDE * 2 + 2, ("2", "4")), (np.where(SIDE, "yes", "no"), ("no", "yes"))],
)
def test_labels_are_classes_by_their_own_names(y, classes):
    ens = fitted((X, y))
    assert ens.classes == classes
    pred = ens.predict(X)
    assert pred.mean.shape == (120, 2)  # and no class that nobody has
    named = [ens.classes[i] for i in pred.label.tolist()]
    assert np.mean(np.array(named) == y.astype(str)) > 0.9


def test_calibration_and_evaluation_number_classes_as_training_did():
    ens = fitted((X, SIDE + 1))
    second = X[SIDE == 1]
    known, _ = ens.unseen((second + 1e-3, np.full(len(second), 2)))  # the second class alone
    assert known.labels.tolist() == [1] * len(second)
    assert credro.load(ens.run.folder).classes == ("1", "2")


def test_classes_that_do_not_occur_are_said_by_the_user():
    ens = fitted((X, SIDE), classes=5)
    assert ens.classes == ("0", "1", "2", "3", "4")
    assert ens.predict(X).mean.shape == (120, 5)


class Tokens(nn.Module):
    """Fails on floats, as any embedding does."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(50, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.out(self.embed(x).mean(1))


@pytest.mark.parametrize("kind", ["pair", "dataset"])
def test_whole_numbers_stay_whole(tmp_path, kind):
    tokens = torch.from_numpy(RNG.integers(0, 50, size=(80, 6)))
    y = (tokens[:, 0] > 25).long()
    data = (tokens, y) if kind == "pair" else DataLoader(TensorDataset(tokens, y), batch_size=16)
    ens = fitted(data, Tokens, out=tmp_path / "run")
    assert ens.inputs.whole
    again = credro.load(tmp_path / "run", make_net=Tokens)
    torch.testing.assert_close(again.predict(tokens).probs, ens.predict(tokens).probs)
    with torch.inference_mode():
        by_hand = torch.stack([net(tokens).softmax(-1) for net in ens.nets])
    torch.testing.assert_close(ens.predict(tokens).probs, by_hand)


def test_whole_numbers_for_a_network_of_floats():
    counts = RNG.integers(0, 20, size=(60, 3))
    ens = fitted((counts, (counts[:, 0] > 9).astype(int)))
    assert not ens.inputs.whole
    assert ens.predict(counts).mean.shape == (60, 2)


def test_a_table_with_missing_values_trains_saves_loads_and_predicts(tmp_path):
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.1] = np.nan
    holes[:, 0] = X[:, 0]
    data = Data("heart", torch.from_numpy(holes), torch.from_numpy(SIDE), (4,), ("a", "b"))
    fitted(data, out=tmp_path / "run")
    ens = credro.load(tmp_path / "run")
    filled = np.where(np.isnan(holes), np.nanmean(holes, 0), holes).astype(np.float32)
    torch.testing.assert_close(ens.predict(holes).probs, ens.predict(filled).probs, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="x is infinite in sample 3"):
        ens.predict(np.where(np.arange(120)[:, None] == 3, np.inf, X))


def test_samples_that_were_used_are_found_by_content(tmp_path):
    pixels = torch.from_numpy(RNG.integers(0, 256, size=(90, 1, 8, 8), dtype=np.uint8))
    y = torch.arange(90) % 3
    ens = fitted((pixels[:40], y[:40]), "cnn", held_out=(pixels[40:50], y[40:50]), out=tmp_path / "run")
    ens.calibrate((pixels[50:60], y[50:60]))
    ens = credro.load(tmp_path / "run")

    class Own(Dataset):
        """Another route: floats, in another order, under another type."""

        def __len__(self):
            return 90

        def __getitem__(self, i):
            return pixels[89 - i].float() / 255, int(y[89 - i])

    for route in ((pixels, y), ((pixels.double() / 255).numpy(), y.numpy()), Own()):
        fresh, found = ens.unseen(route)
        assert (found.trained, found.watched, found.calibrated) == (40, 10, 10)
        assert len(fresh) == 30
        assert torch.isin(fresh.content(), credro.data.as_data((pixels[60:], y[60:])).content()).all()
    with pytest.raises(SeenSamples, match="5 of 5 samples were trained on"):
        ens.unseen((pixels[:5], y[:5]))
    ens.uncalibrate()
    assert ens.unseen((pixels, y))[1].calibrated == 0
    saved = credro.load(ens.save(tmp_path / "copy"))
    assert saved.unseen((pixels, y))[1].trained == 40


def test_samples_that_are_random_cannot_be_told(tmp_path):
    class Augmented(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            return torch.from_numpy(X[i]) + 0.1 * torch.randn(4), int(SIDE[i])

    ens = fitted(Augmented(), out=tmp_path / "run")
    data, found = ens.unseen((X, SIDE))
    assert not found.known
    assert len(data) == 120
    assert "cannot be told" in str(found)


def test_a_subset_by_hand_keeps_the_whole_sets_classes():
    whole = credro.data.as_data((X, SIDE + 1))
    part = whole.subset(torch.from_numpy(np.flatnonzero(SIDE == 1)))
    assert part.classes == ("1", "2")
    assert replace(part, classes=()).classes == ()
