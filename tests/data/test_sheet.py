import numpy as np
import pytest
import torch
from PIL import Image

from credro.data import Data, DataError, corrupt_data, load
from credro.data.sheet import GAP, HIGH, MARGIN, WIDEST, contact_sheet, thumbnail
from tests.data.layouts import chw, images, write_image


def test_images_stand_upright_in_their_class():
    x = images(6, 4, 5)
    data = Data("x", torch.from_numpy(chw(x).copy()), torch.tensor([1, 0, 1, 0, 1, 1]), (3, 4, 5), ("a", "b"))
    sheet = np.asarray(contact_sheet(data, each=3, scale=2))
    for row, chosen in enumerate(([1, 3], [0, 2, 4])):
        for column, i in enumerate(chosen):
            top, left = row * (4 * 2 + GAP) + GAP, MARGIN + column * (5 * 2 + GAP)
            np.testing.assert_array_equal(sheet[top : top + 8 : 2, left : left + 10 : 2], x[i])
    assert (sheet[GAP : GAP + 8, MARGIN + 2 * 12 : MARGIN + 2 * 12 + 10] == 255).all()  # class a has two only


def test_grey_and_many_classes():
    x = torch.zeros(30, 1, 8, 8, dtype=torch.uint8)
    data = Data("x", x, torch.arange(30), (1, 8, 8))
    assert contact_sheet(data, classes=5).height == 5 * (8 * 5 + GAP) + GAP


def test_tables_have_no_sheet():
    with pytest.raises(ValueError, match="needs images"):
        contact_sheet(Data("x", torch.ones(3, 4), torch.zeros(3), (4,)))


def photographs(root, end=".png", h=90, w=140):
    """Two classes of two photographs that lie on their side, and the arrays as they stand upright."""
    upright = []
    for i in range(4):
        small = Image.fromarray(images(1, 4, 5, seed=i)[0])
        stood = small.resize((w, h), Image.Resampling.BICUBIC)
        path = root / "ab"[i // 2] / f"{i}{end}"
        path.parent.mkdir(parents=True, exist_ok=True)
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned clockwise
        stood.transpose(Image.Transpose.ROTATE_90).save(path, exif=exif, **({"quality": 95} if end == ".jpg" else {}))
        upright.append(stood)
    return upright


@pytest.mark.parametrize("lazy", [False, True])
def test_a_thumbnail_is_sharp_and_upright(tmp_path, lazy):
    upright = photographs(tmp_path)
    data = load(tmp_path, size=8, lazy=lazy)
    for i, image in enumerate(upright):
        expected = np.asarray(image.resize((62, 40), Image.Resampling.LANCZOS))
        np.testing.assert_array_equal(np.asarray(thumbnail(data, i, 40)), expected)
    coarse = np.asarray(thumbnail(data, 0, 40, stored=True))
    assert coarse.shape == (40, 40, 3)
    np.testing.assert_array_equal(coarse[::5, ::5], data.batch(torch.tensor([0]))[0].permute(1, 2, 0))
    np.testing.assert_array_equal(np.asarray(thumbnail(data, -1, 40)), np.asarray(thumbnail(data, 3, 40)))
    with pytest.raises(IndexError):
        thumbnail(data, 4, 40)


def test_a_thumbnail_of_a_large_jpeg(tmp_path):
    """Decoded at a fraction of its size, and still what the whole would give."""
    upright = photographs(tmp_path, ".jpg", 1200, 1600)
    data = load(tmp_path, size=8)
    found = np.asarray(thumbnail(data, 2, 96)).astype(int)
    expected = np.asarray(upright[2].resize((128, 96), Image.Resampling.LANCZOS))
    assert found.shape == expected.shape
    assert np.abs(found - expected).mean() < 2


def test_a_thumbnail_where_the_file_is_gone(tmp_path):
    photographs(tmp_path)
    held, lazy = load(tmp_path, size=8), load(tmp_path, size=8, lazy=True)
    held.paths[1].unlink()
    np.testing.assert_array_equal(np.asarray(thumbnail(held, 1, 16)), np.asarray(thumbnail(held, 1, 16, stored=True)))
    with pytest.raises(DataError, match="is missing"):
        thumbnail(lazy, 1, 16)


def test_thumbnails_without_files():
    x = images(2, 6, 7)
    data = Data("x", torch.from_numpy(chw(x).copy()), torch.tensor([0, 1]), (3, 6, 7))
    found = np.asarray(thumbnail(data, 1, 18))
    np.testing.assert_array_equal(found, np.kron(x[1], np.ones((3, 3, 1), np.uint8)))
    floats = Data("x", torch.from_numpy(chw(x) / np.float32(255)), torch.tensor([0, 1]), (3, 6, 7))
    np.testing.assert_array_equal(np.asarray(thumbnail(floats, 1, 18)), found)
    grey = Data("x", torch.from_numpy(x[:, None, :, :, 0].copy()), torch.tensor([0, 1]), (1, 6, 7))
    np.testing.assert_array_equal(np.asarray(thumbnail(grey, 0, 6)), np.repeat(x[0, :, :, :1], 3, 2))
    with pytest.raises(ValueError, match="height must be at least 1, got 0"):
        thumbnail(data, 0, 0)
    with pytest.raises(ValueError, match="needs images"):
        thumbnail(Data("t", torch.ones(3, 4), torch.zeros(3), (4,)), 0, 9)


def test_a_corrupted_image_is_not_shown_from_its_file(tmp_path):
    photographs(tmp_path)
    data = load(tmp_path, size=32)
    foggy = corrupt_data(data, "fog", 5)
    shown = np.asarray(thumbnail(foggy, 0, 32))
    np.testing.assert_array_equal(shown, foggy.samples[0].permute(1, 2, 0))


def test_a_sheet_shows_what_training_sees(tmp_path):
    photographs(tmp_path)
    data = load(tmp_path, size=(48, 64))
    sheet = np.asarray(contact_sheet(data, each=2))
    for i in range(4):
        top, left = (i // 2) * (48 + GAP) + GAP, MARGIN + (i % 2) * (64 + GAP)
        np.testing.assert_array_equal(sheet[top : top + 48, left : left + 64], data.samples[i].permute(1, 2, 0))


def test_large_images_are_made_smaller(tmp_path):
    for name in ("a", "b"):
        write_image(tmp_path / name / "0.png", images(1, 300, 150)[0])
    assert contact_sheet(load(tmp_path), each=3).size == (MARGIN + 3 * (HIGH // 2 + GAP), 2 * (HIGH + GAP) + GAP)


def test_names_have_room():
    x = torch.zeros(3, 1, 28, 28, dtype=torch.uint8)
    long = "invasive ductal carcinoma"
    data = Data("x", x, torch.tensor([0, 1, -1]), (1, 28, 28), (long, "é猫" + "w" * 300))
    sheet = contact_sheet(data, each=1)
    margin = sheet.width - 56 - GAP
    assert MARGIN < margin <= WIDEST
    text = np.asarray(sheet)[:, :margin]
    assert (text[:, -4:] == 255).all()  # nothing runs into the images
    ink = (text < 128).any(2)
    rows = [ink[GAP + n * 58 : (n + 1) * 58].any(0).nonzero()[0] for n in range(3)]
    from PIL import ImageFont

    assert abs(rows[0].max() - (4 + ImageFont.load_default(13).getlength(long))) < 6  # the whole name
    assert rows[1].max() > 280  # as much as there is room for
    assert rows[2].max() < 110  # no class: neither the last one's name nor an error
