"""A fingerprint stands for all that makes the samples: whatever is kept under it must not meet other samples."""

import hashlib
import os

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from credro.data import Data, as_data, conform, corrupt_data, load
from credro.data.readers import _files
from credro.data.readers.images import image_data, read_images
from tests.data.layouts import images, write_image

Y = torch.tensor([0, 1, 0])


@pytest.fixture
def folders(tmp_path):
    """Two folders of BMPs whose names and sizes are the same; their pixels are not."""
    for seed, name in enumerate(("one", "two")):
        for i, pixels in enumerate(images(3, 8, 8, seed=seed)):
            write_image(tmp_path / name / "set" / f"{i}.bmp", pixels)
    return [sorted((tmp_path / name / "set").iterdir()) for name in ("one", "two")]


def lazily(paths, **options):
    data = image_data("x", paths, Y, ("a", "b"), lazy=True, **options)
    assert not data.in_memory
    return data


def distinct(*sets):
    prints = [data.fingerprint() for data in sets]
    return len(set(prints)) == len(prints) and prints == [data.fingerprint() for data in sets]


def test_held_samples_keep_the_value_that_earlier_versions_wrote():
    x = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)
    y = torch.tensor([1, 0])
    oracle = hashlib.sha256(b"2 (3, 2, 2)" + y.numpy().tobytes() + x.numpy().tobytes()).hexdigest()[:12]
    assert Data("x", x, y, (3, 2, 2)).fingerprint() == oracle


def test_files_of_equal_names_and_sizes_are_told_apart(folders):
    one, two = map(lazily, folders)
    assert [p.name for p in folders[0]] == [p.name for p in folders[1]]
    assert [p.stat().st_size for p in folders[0]] == [p.stat().st_size for p in folders[1]]
    assert distinct(one, two)


def test_a_file_that_changes_changes_it_and_where_it_lies_does_not(folders, tmp_path):
    data = lazily(folders[0])
    before = data.fingerprint()
    moved = []
    for path in folders[0]:
        moved.append(tmp_path / "elsewhere" / f"renamed-{path.name}")
        moved[-1].parent.mkdir(exist_ok=True)
        moved[-1].write_bytes(path.read_bytes())
    assert lazily(moved).fingerprint() == before
    path, when = folders[0][1], folders[0][1].stat()
    path.write_bytes(folders[1][1].read_bytes())  # as large as it was
    os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns + 1))
    assert data.fingerprint() != before


def test_a_file_is_hashed_once(folders, monkeypatch):
    read = []
    real = open
    monkeypatch.setattr(_files, "open", lambda path, mode: read.append(path) or real(path, mode), raising=False)
    _files._digest.cache_clear()
    data = lazily(folders[0])
    assert data.fingerprint() == data.fingerprint() == data.subset([0, 1, 2]).fingerprint()
    assert sorted(read) == sorted(map(str, folders[0]))


def test_everything_that_is_done_to_files_counts(folders):
    plain = lazily(folders[0])
    small = lazily(folders[0], size=(4, 4))
    assert distinct(
        plain,
        small,
        lazily(folders[0], channels=1),
        conform(plain, (3, 4, 4)),  # of the same shape as small, by another way
        conform(plain, (1, 8, 8)),
        conform(lazily(folders[0], channels=1), (3, 8, 8)),
        corrupt_data(plain, "fog", 1),
        corrupt_data(plain, "fog", 2),
        corrupt_data(plain, "snow", 1),
        corrupt_data(plain, "fog", 1, seed=1),
        conform(corrupt_data(plain, "fog", 1), (3, 4, 4)),
        corrupt_data(conform(plain, (3, 4, 4)), "fog", 1),
    )


def test_parts_count_by_their_samples(folders):
    plain = lazily(folders[0])
    assert distinct(plain, *(plain.subset(part) for part in ([0, 1], [0, 2], [2, 0], [2])))
    assert plain.subset([0, 1, 2]).fingerprint() == plain.fingerprint()
    assert plain.subset([2, 1, 0]).subset([2]).fingerprint() == plain.subset([0]).fingerprint()
    foggy = corrupt_data(plain, "fog", 1)
    later, sooner = foggy.subset([1]), corrupt_data(plain.subset([1]), "fog", 1)  # another number, another fog
    assert not torch.equal(later.batch(torch.tensor([0])), sooner.batch(torch.tensor([0])))
    assert distinct(later, sooner)


class Wrapped:
    """What a user may put around a reader."""

    def __init__(self, read, shift):
        self.read, self.shift = read, shift

    def __call__(self, index):
        return self.read(index) + self.shift


def test_what_a_user_does_to_samples_counts(folders):
    plain = lazily(folders[0])
    assert plain.paths
    changed = [Data("x", Wrapped(plain.samples, shift), Y, plain.shape, paths=plain.paths) for shift in (0, 1)]
    assert distinct(plain, *changed)
    assert distinct(changed[0], conform(changed[0], (3, 4, 4)), corrupt_data(changed[0], "fog", 1))


class Own(Dataset):
    """A user's dataset."""

    def __init__(self, x, transform=lambda x: x):
        self.x, self.transform = x, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.transform(self.x[i]), i % 2


def test_every_sample_of_a_users_own_counts():
    x = torch.randn(3000, 4, generator=torch.Generator().manual_seed(0))
    data = as_data(Own(x))
    for i in (0, 1, 17, 1023, 1024, 2998, 2999):
        other = x.clone()
        other[i, 2] += 1
        assert as_data(Own(other)).fingerprint() != data.fingerprint()
    assert as_data(Own(x.clone())).fingerprint() == data.fingerprint()
    held = Data("held", x, data.labels, (4,))
    assert data.fingerprint() == held.fingerprint()  # the same samples, however they are kept


def test_samples_that_do_not_repeat_are_told_by_their_labels():
    x = torch.zeros(40, 4)
    noisy = as_data(Own(x, lambda x: x + torch.randn(4)))
    assert not noisy.repeats()
    assert noisy.fingerprint() == noisy.fingerprint()
    assert noisy.fingerprint() != as_data(Own(x)).fingerprint()
    assert noisy.relabel(1 - noisy.labels).fingerprint() != noisy.fingerprint()


def test_what_repeats(folders):
    holes = torch.full((4, 2), float("nan"))
    for data in (lazily(folders[0]), as_data(Own(holes)), Data("x", holes, Y, (2,)), as_data(Own(holes)).subset([])):
        assert data.repeats()
    assert not as_data(Own(holes, lambda x: torch.randn(2))).subset([3, 1]).repeats()


def test_readings_of_one_file_differ_by_their_options(tmp_path):
    for kind in ("cat", "dog"):
        write_image(tmp_path / kind / "0.png", images(1, 8, 8)[0])
    np.savez(tmp_path / "x.npz", x=np.array([[1.0, -9.0], [2.0, 3.0]]), y=[0, 1])
    assert distinct(load(tmp_path, lazy=True), load(tmp_path, lazy=True, size=4), load(tmp_path, lazy=True, channels=1))
    assert distinct(load(tmp_path / "x.npz"), load(tmp_path / "x.npz", missing=-9))
    data, _ = read_images([tmp_path / "cat" / "0.png"], (3, 8, 8))
    other, _ = read_images([tmp_path / "cat" / "0.png"], (3, 4, 4))
    assert distinct(data, other)


def test_of_any_dtype():
    for dtype in (torch.bfloat16, torch.bool, torch.int32, torch.float64):
        x = torch.tensor([[0, 1], [1, 1], [1, 0]]).to(dtype)
        assert distinct(Data("x", x, Y, (2,)), Data("x", x.flip(1), Y, (2,)))
