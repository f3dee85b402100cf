from __future__ import annotations

import pytest
import torch
from torch import nn

from credro.data import Data
from credro.nets.trunk import Trunk
from credro.training.features import cache_folder, with_features


class Counting(nn.Module):
    """Features are the channels' means; counts the samples that go through."""

    def __init__(self):
        super().__init__()
        self.seen = 0

    def forward(self, x):
        self.seen += len(x)
        return x.mean((-2, -1))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))


def images(count=150, seed=0):
    x = torch.randint(0, 256, (count, 3, 6, 6), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    return Data("images", x, torch.arange(count) % 3, (3, 6, 6), ("a", "b", "c"))


def test_features_are_those_of_the_trunk_in_order_and_computed_once():
    data, module = images(), Counting()
    found = with_features(Trunk(module), data)
    assert torch.allclose(found.samples, data.samples.float().mean((-2, -1)) / 255, atol=1e-6)
    assert (found.shape, module.seen) == ((3,), 150)
    again = with_features(Trunk(module), data)
    assert module.seen == 150, "kept on disk"
    assert torch.equal(again.samples, found.samples)
    assert with_features(Trunk(module), found) is found
    with_features(Trunk(module), images(seed=1))
    assert module.seen == 300, "other samples"


def test_they_know_what_they_were_computed_from():
    data = images()
    found = with_features(Trunk(Counting()), data)
    assert torch.equal(found.content(), data.content())
    part = found.subset([5, 3])
    assert torch.equal(part.content(), data.subset([5, 3]).content())
    assert found.fingerprint() == with_features(Trunk(Counting()), data, cache=False).fingerprint()
    assert found.fingerprint() != data.fingerprint()
    assert part.fingerprint() != found.fingerprint()
    other = Trunk(Counting(), pool="mean")
    assert with_features(other, data).fingerprint() != found.fingerprint()
    with pytest.raises(ValueError, match="holds features of another trunk"):
        with_features(other, found)


@pytest.mark.parametrize("damage", [lambda raw: raw[:-7], lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]), lambda raw: b""])
def test_a_damaged_file_is_said_and_made_anew(damage):
    data, module = images(), Counting()
    found = with_features(Trunk(module), data)
    (path,) = cache_folder().iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="damaged and are computed anew"):
        again = with_features(Trunk(module), data)
    assert module.seen == 300
    assert torch.equal(again.samples, found.samples)


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be kept"):
        assert len(with_features(Trunk(Counting()), images())) == 150


def test_samples_that_do_not_repeat_are_not_kept():
    module = Counting()

    def read(index):
        return torch.rand(len(index), 3, 6, 6)

    data = Data("random", read, torch.arange(40) % 2, (3, 6, 6), ("a", "b"))
    with_features(Trunk(module), data)
    assert not cache_folder().exists()


def test_features_that_are_no_numbers_are_named():
    class Broken(nn.Module):
        def forward(self, x):
            out = x.mean((-2, -1))
            out[x.flatten(1).sum(1) == 0] = torch.nan
            return out

    data = images()
    data.samples[70] = 0
    with pytest.raises(ValueError, match="NaN or infinite for sample 70 of 'images'"):
        with_features(Trunk(Broken()), data)
