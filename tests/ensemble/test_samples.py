"""Whatever the samples come in, what is said of them is the same."""

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import credro
from credro.data import Data, load
from tests.training.common import assert_bitwise, blobs, small_net, trained, weights

X, Y = blobs(70)
HELD = load("digits").subset(range(300, 420))


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
