import os
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from credro.data import DataError, DataNotFound, UnknownSplit, load
from credro.data.readers import images as images_module
from tests.data.layouts import chw, images, write_image


def write_classes(root, classes=("cat", "dog"), each=3, h=10, w=12, c=3, end=".png", seed=0):
    """root/CLASS/i.png; returns the pixels in the order in which they should come out."""
    x = images(len(classes) * each, h, w, c, seed)
    for i, pixels in enumerate(x):
        write_image(root / classes[i // each] / f"{i % each:03}{end}", pixels)
    return x


def test_whole_folder(tmp_path):
    x = write_classes(tmp_path)
    data = load(tmp_path)
    assert data.in_memory
    assert data.samples.dtype == torch.uint8
    assert data.shape == (3, 10, 12)
    np.testing.assert_array_equal(data.samples.numpy(), chw(x))
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.classes == ("cat", "dog")
    assert [path.name for path in data.paths[:2]] == ["000.png", "001.png"]


def test_lazy_reads_the_same(tmp_path):
    x = write_classes(tmp_path, each=9)
    data = load(tmp_path, lazy=True)
    assert not data.in_memory
    index = torch.tensor([17, 0, 3, 3, 8, 9, 10, 11, 12])
    np.testing.assert_array_equal(data.batch(index).numpy(), chw(x)[index])
    np.testing.assert_array_equal(data.batch(index[:2]).numpy(), chw(x)[[17, 0]])
    assert data.batch(index[:0]).shape == (0, 3, 10, 12)
    some = data.subset([5, 12])
    np.testing.assert_array_equal(some.batch(torch.tensor([1])).numpy(), chw(x)[[12]])
    assert some.labels.tolist() == [0, 1]
    assert len(some.paths) == 2


def test_large_sets_are_lazy(tmp_path, monkeypatch):
    write_classes(tmp_path)
    monkeypatch.setattr(images_module, "IN_MEMORY", 6 * 360)
    assert load(tmp_path).in_memory
    monkeypatch.setattr(images_module, "IN_MEMORY", 6 * 360 - 1)
    assert not load(tmp_path).in_memory
    assert load(tmp_path, lazy=False).in_memory


def test_splits_share_their_classes(tmp_path):
    write_classes(tmp_path / "train", ("a", "b", "c"))
    write_classes(tmp_path / "Validation", ("b", "d"), each=2)
    train = load(tmp_path)
    assert train.classes == ("a", "b", "c", "d")
    assert train.labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    val = load(tmp_path, split="val")
    assert val.classes == train.classes
    assert val.labels.tolist() == [1, 1, 3, 3]
    assert load(tmp_path, split="test").labels.tolist() == val.labels.tolist()
    with pytest.raises(ValueError, match="must be one of 'train', 'val', 'all', got 'extra'"):
        load(tmp_path, split="extra")
    write_classes(tmp_path / "test", ("a",), each=1)
    assert len(load(tmp_path, split="test")) == 1


def test_split_asked_of_a_plain_folder(tmp_path):
    write_classes(tmp_path)
    with pytest.raises(UnknownSplit, match=r"^split 'test' of .*no folder 'test', only classes") as caught:
        load(tmp_path, split="test")
    assert (caught.value.source, caught.value.split, caught.value.allowed) == (str(tmp_path), "test", ())
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_class_order_can_be_given(tmp_path):
    write_classes(tmp_path)
    data = load(tmp_path, classes=("dog", "cat", "eel"))
    assert data.classes == ("dog", "cat", "eel")
    assert [data.classes[y] for y in data.labels.tolist()] == [path.parent.name for path in data.paths]
    with pytest.raises(DataError, match="not in classes: dog"):
        load(tmp_path, classes=("cat",))


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("size", [(5, 6), (32, 20)])
def test_resized_as_pillow_does(tmp_path, lazy, size):
    x = write_classes(tmp_path)
    write_image(tmp_path / "eel/0.png", images(1, 40, 7)[0])
    data = load(tmp_path, size=size, lazy=lazy)
    assert data.shape == (3, *size)
    expected = [np.asarray(Image.fromarray(p).resize(size[::-1], Image.Resampling.BILINEAR)) for p in x]
    np.testing.assert_array_equal(data.batch(torch.arange(6)).numpy(), chw(np.stack(expected)))


def test_unequal_sizes_are_brought_to_one(tmp_path):
    x = write_classes(tmp_path, h=100, w=120)
    write_image(tmp_path / "dog/odd.png", images(1, 8, 9)[0])
    for lazy in (False, True):
        data = load(tmp_path, lazy=lazy)
        assert data.shape == (3, 96, 96)
        expected = [np.asarray(Image.fromarray(p).resize((96, 96), Image.Resampling.BILINEAR)) for p in x]
        np.testing.assert_array_equal(data.batch(torch.arange(6)).numpy(), chw(np.stack(expected)))
        assert any(
            "images of 2 sizes, height x width 100x120 (6), 8x9 (1), are resized to 96x96" in n for n in data.notes
        )
    assert not any("resized" in note for note in load(tmp_path, size=(10, 10)).notes)


@pytest.mark.parametrize(
    ("h", "w", "side"), [(20, 300, 32), (32, 33, 32), (63, 90, 32), (64, 64, 64), (3000, 127, 96), (400, 300, 128)]
)
def test_which_size(tmp_path, h, w, side):
    """The largest of 32, 64, 96, 128 that half of the images have on both sides."""
    write_classes(tmp_path, each=1, h=h, w=w, c=1, end=".pgm")
    write_image(tmp_path / "cat/small.png", images(1, 5, 5, 1)[0])
    write_image(tmp_path / "cat/large.png", images(1, 500, 500, 1)[0])
    assert load(tmp_path).shape == (1, side, side)


def test_files_on_trust_are_refused_where_they_differ(tmp_path):
    write_classes(tmp_path)
    odd = write_image(tmp_path / "dog/odd.png", images(1, 8, 9)[0])
    with pytest.raises(DataError, match=r"is 8x9, others are 10x12: pass size=") as caught:
        load(tmp_path, check=False)
    assert str(odd) in str(caught.value)
    with pytest.raises(DataError, match="others are 10x12"):
        load(tmp_path, check=False, lazy=True).batch(torch.tensor([6]))


def test_grey_and_colour(tmp_path):
    x = write_classes(tmp_path / "grey", c=1)
    assert load(tmp_path / "grey").shape == (1, 10, 12)
    colour = load(tmp_path / "grey", channels=3)
    np.testing.assert_array_equal(colour.samples.numpy(), np.repeat(x[:, None], 3, 1))
    y = write_classes(tmp_path / "colour")
    grey = load(tmp_path / "colour", channels=1)
    expected = np.stack([np.asarray(Image.fromarray(p).convert("L")) for p in y])
    np.testing.assert_array_equal(grey.samples[:, 0].numpy(), expected)


def test_one_grey_image_does_not_make_a_set_grey(tmp_path):
    write_classes(tmp_path)
    write_image(tmp_path / "cat/000.png", images(1, 10, 12, 1)[0])
    assert load(tmp_path).shape == (3, 10, 12)


def test_other_formats_and_strays(tmp_path):
    for end in (".jpg", ".bmp", ".PPM", ".webp", ".tif"):
        write_image(tmp_path / "a" / f"x{end}", images(1, 10, 12)[0])
    write_image(tmp_path / "b" / "y.jpeg", images(1, 10, 12)[0])
    (tmp_path / "a" / "notes.txt").write_text("hello")
    (tmp_path / "a" / ".hidden.png").write_text("hello")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "readme.md").write_text("hello")
    data = load(tmp_path)
    assert len(data) == 6
    assert data.classes == ("a", "b")
    assert data.notes[-1] == "1 file that is no image left out: 1 .txt"


def test_broken_images(tmp_path):
    write_classes(tmp_path)
    path = tmp_path / "dog/001.png"
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"this is no image"):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="not a complete image") as caught:
            load(tmp_path)
        assert str(path) in str(caught.value)
        with pytest.raises(DataError, match="not a complete image"):
            load(tmp_path, lazy=True)
    path.write_bytes(whole)
    data = load(tmp_path, lazy=True)
    path.write_bytes(whole[:-200])
    with pytest.raises(DataError, match="not a complete image"):
        data.batch(torch.tensor([4]))
    os.unlink(path)
    with pytest.raises(DataError, match="is missing"):
        data.batch(torch.tensor([4]))


def test_sixteen_bits_are_refused_not_clipped(tmp_path):
    write_classes(tmp_path)
    Image.fromarray(np.full((4, 4), 40000, np.uint16)).save(tmp_path / "dog/x.png")
    with pytest.raises(DataError, match="convert it to 8 bits"):
        load(tmp_path)


def test_empty_folders(tmp_path):
    with pytest.raises(DataError, match="holds no class folders"):
        load(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match=r"only folder, 'cat', holds no images \(looked for \.png"):
        load(tmp_path)


def test_wrong_options(tmp_path):
    write_classes(tmp_path)
    for options, message in (
        ({"size": (0, 3)}, r"size must be \(height, width\)"),
        ({"size": (3,)}, r"size must be \(height, width\)"),
        ({"channels": 2}, "channels must be 1, 3 or None, got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            load(tmp_path, **options)


@pytest.mark.parametrize("name", ["places365", "imagenet"])
def test_named_folders(tmp_path, name):
    folder = {"places365": "places365_small", "imagenet": "imagenet"}[name]
    with pytest.raises(DataNotFound, match=rf"{folder}/val/CLASS"):
        load(name, split="val", root=tmp_path)
    write_classes(tmp_path / folder / "val", ("n01", "n02"), c=1)
    data = load(name, split="val", root=tmp_path)
    assert data.name == name
    assert data.shape == (3, 10, 12)
    assert data.classes == ("n01", "n02")
    assert len(load(name, split="test", root=tmp_path, size=(4, 4), channels=1)) == 6
    with pytest.raises(DataNotFound, match=f"{folder}/train"):
        load(name, root=tmp_path)
