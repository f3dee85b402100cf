"""Single images against numpy: orientation, transparency, inks, depths, and what is wrong with broken files."""

import contextlib
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from credro.data import DataError
from credro.data.readers._decode import eight_bits, open_image, read_header, to_array
from credro.data.readers.images import ImageFiles, pil_data, read_images
from tests.data.layouts import chw, images

UPRIGHT = {  # how a viewer must turn the stored pixels, by the EXIF standard's row and column of the visual top left
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, -1),
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: np.rot90(x, 1),
}


def tagged(path, stored, orientation):
    """A file whose pixels lie as ``stored`` and whose tag says how to turn them."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(stored)
    if path.suffix == ".tif":
        image.save(path, tiffinfo={274: orientation})
    elif path.suffix == ".webp":
        image.save(path, exif=exif, lossless=True)
    elif path.suffix == ".jpg":
        image.save(path, exif=exif, quality=100, subsampling=0)
    else:
        image.save(path, exif=exif)
    return path


def smooth(h=16, w=24):
    return np.asarray(Image.fromarray(images(1, 3, 4)[0]).resize((w, h), Image.Resampling.BICUBIC))


def array(image):
    return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("end", [".png", ".tif", ".webp", ".jpg"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_all_eight_orientations(tmp_path, orientation, end):
    stored = smooth()
    path = tagged(tmp_path / f"a{end}", stored, orientation)
    expected = UPRIGHT[orientation](stored)
    far = 12 if end == ".jpg" else 0  # JPEG loses a little
    assert np.abs(array(open_image(path)) - expected).max() <= far
    header = read_header(path)
    assert (header.height, header.width) == expected.shape[:2]
    data, bad = read_images([path], (3, *expected.shape[:2]))
    assert bad == ()
    assert np.abs(data.samples.numpy().astype(int) - chw(expected[None])).max() <= far


def test_orientation_seven_is_the_other_transpose():
    """The table above against another way to say it: 5 and 7 are transposes over the two diagonals."""
    x = np.arange(6).reshape(2, 3)
    assert UPRIGHT[5](x).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert UPRIGHT[7](x).tolist() == [[5, 2], [4, 1], [3, 0]]
    assert UPRIGHT[6](x).tolist() == [[3, 0], [4, 1], [5, 2]]


def test_orientation_behind_the_pixels_of_a_png(tmp_path):
    """eXIf may stand after the pixels, where the header does not tell; what is decoded is upright all the same."""
    stored = smooth()
    raw = tagged(tmp_path / "a.png", stored, 6).read_bytes()
    at = raw.index(b"eXIf") - 4
    length = struct.unpack(">I", raw[at : at + 4])[0] + 12
    end = raw.index(b"IEND") - 4
    path = tmp_path / "b.png"
    path.write_bytes(raw[:at] + raw[at + length : end] + raw[at : at + length] + raw[end:])
    np.testing.assert_array_equal(array(open_image(path)), UPRIGHT[6](stored))


def test_a_broken_tag_is_none(tmp_path):
    stored = smooth()
    for i, junk in enumerate((b"Exif\0\0junk", b"Exif\0\0II*\0\xff\xff\xff\x7f", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")):
        path = tmp_path / f"{i}.jpg"
        Image.fromarray(stored).save(path, exif=junk, quality=100, subsampling=0)
        assert np.abs(array(open_image(path)) - stored).max() <= 12
        assert read_header(path).height == 16
    for value in (0, 9, 77):  # no orientation of the standard
        assert np.abs(array(open_image(tagged(tmp_path / "c.jpg", stored, value))) - stored).max() <= 12


def composite(rgb, alpha):
    a = alpha[..., None] / 255
    return rgb * a + 255 * (1 - a)


def test_transparent_parts_are_white(tmp_path):
    rgb, alpha = images(1, 9, 7)[0], images(1, 9, 7, 1, seed=1)[0]
    alpha[0], alpha[1] = 0, 255
    Image.fromarray(np.dstack([rgb, alpha])).save(tmp_path / "rgba.png")
    found = array(eight_bits(open_image(tmp_path / "rgba.png"), 3))
    assert np.abs(found - composite(rgb, alpha)).max() <= 1
    assert (found[0] == 255).all()
    np.testing.assert_array_equal(found[1], rgb[1])
    grey = rgb[..., 0]
    Image.fromarray(np.dstack([grey, alpha])).save(tmp_path / "la.png")
    assert open_image(tmp_path / "la.png").mode == "LA"
    found = np.asarray(eight_bits(open_image(tmp_path / "la.png"), 1)).astype(int)
    assert np.abs(found - composite(grey[..., None], alpha)[..., 0]).max() <= 1
    assert read_header(tmp_path / "la.png").alpha
    assert not read_header(tmp_path / "la.png").colour


def test_opaque_alpha_changes_nothing(tmp_path):
    rgb = images(1, 9, 7)[0]
    Image.fromarray(np.dstack([rgb, np.full((9, 7), 255, np.uint8)])).save(tmp_path / "a.png")
    np.testing.assert_array_equal(array(eight_bits(open_image(tmp_path / "a.png"), 3)), rgb)


def test_palettes(tmp_path):
    index = images(1, 9, 7, 1)[0] % 4
    palette = np.array([[200, 0, 0], [0, 90, 0], [7, 8, 9], [250, 250, 1]], np.uint8)
    image = Image.frombytes("P", (7, 9), index.tobytes())
    image.putpalette(palette.tobytes())
    image.save(tmp_path / "plain.png")
    image.save(tmp_path / "one.gif", transparency=2)
    image.save(tmp_path / "many.png", transparency=bytes([255, 128, 0, 255]))
    np.testing.assert_array_equal(array(eight_bits(open_image(tmp_path / "plain.png"), 3)), palette[index])
    alpha = np.array([255, 255, 0, 255], np.uint8)[index]
    found = array(eight_bits(open_image(tmp_path / "one.gif"), 3))
    np.testing.assert_array_equal(found, composite(palette[index], alpha))
    alpha = np.array([255, 128, 0, 255], np.uint8)[index]
    found = array(eight_bits(open_image(tmp_path / "many.png"), 3))
    assert np.abs(found - composite(palette[index], alpha)).max() <= 1


def test_a_transparent_colour(tmp_path):
    rgb = images(1, 5, 5)[0] // 2
    rgb[2, 3] = (1, 2, 3)
    Image.fromarray(rgb).save(tmp_path / "a.png", transparency=(1, 2, 3))
    found = array(eight_bits(open_image(tmp_path / "a.png"), 3))
    expected = np.where((rgb == (1, 2, 3)).all(2)[..., None], 255, rgb)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("end", ["tif", "jpg"])
def test_four_inks(tmp_path, end):
    inks = np.asarray(Image.fromarray(images(1, 2, 3, 4)[0], "CMYK").resize((24, 16), Image.Resampling.BICUBIC))
    Image.frombytes("CMYK", (24, 16), inks.tobytes()).save(tmp_path / f"a.{end}", quality=100, subsampling=0)
    assert read_header(tmp_path / f"a.{end}").cmyk
    found = array(eight_bits(open_image(tmp_path / f"a.{end}"), 3))
    cmy, k = inks[..., :3].astype(float), inks[..., 3:].astype(float)
    expected = (255 - cmy) * (255 - k) / 255
    assert np.abs(found - expected).max() <= (1 if end == "tif" else 25)
    assert np.abs(found - expected).mean() < (0.6 if end == "tif" else 4)


def test_one_bit(tmp_path):
    bits = images(1, 9, 11, 1)[0] > 99
    Image.fromarray(bits).save(tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(eight_bits(open_image(tmp_path / "a.png"), 1)), bits * 255)


def test_sixteen_bits_of_grey_and_floats_are_refused(tmp_path):
    deep = images(1, 4, 4, 1)[0].astype(np.uint16) * 7
    Image.fromarray(deep).save(tmp_path / "a.png")
    Image.fromarray(deep).save(tmp_path / "a.tif")
    Image.fromarray(deep.astype(np.int32)).save(tmp_path / "b.tif")
    Image.fromarray(deep.astype(np.float32)).save(tmp_path / "c.tif")
    for file, bits in (("a.png", "16|32"), ("a.tif", "16"), ("b.tif", "32"), ("c.tif", "32")):
        for read in (open_image, read_header):
            with pytest.raises(
                DataError, match=rf"{file}: has ({bits}) bits a pixel .* convert it to 8 bits a channel"
            ):
                read(tmp_path / file)
    with pytest.raises(DataError, match="image 1: has 16 bits"):
        pil_data([Image.new("L", (4, 4)), Image.fromarray(deep)], (1, 4, 4))


def test_sixteen_bits_of_colour_keep_the_upper_eight(tmp_path):
    """Written by hand: Pillow cannot."""
    deep = np.random.default_rng(0).integers(0, 65536, (5, 6, 3), dtype=np.uint16)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", 6, 5, 16, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    np.testing.assert_array_equal(array(open_image(tmp_path / "a.png")), deep >> 8)
    assert read_header(tmp_path / "a.png").deep


@pytest.mark.parametrize("end", ["gif", "tif", "webp", "png"])
def test_the_first_of_many(tmp_path, end):
    shades = [Image.new("RGB", (8, 8), (shade, shade, shade)) for shade in (40, 200, 90)]
    shades[0].save(tmp_path / f"a.{end}", save_all=True, append_images=shades[1:])
    assert np.abs(array(open_image(tmp_path / f"a.{end}")) - 40).max() <= 2
    assert read_header(tmp_path / f"a.{end}").first
    shades[0].save(tmp_path / f"b.{end}")
    assert not read_header(tmp_path / f"b.{end}").first


BROKEN = {
    "empty.jpg": (b"", "it is empty"),
    "text.jpg": (b"hello, I am a note\nwith two lines\n", "it is text"),
    "page.png": (b"<!DOCTYPE html><html><body>404</body></html>", "it is a web page"),
    "lfs.png": (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "it is a pointer of Git LFS"),
    "photo.jpg": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(50), "it is HEIC, which is not read: save it as JPEG"),
    "zeros.jpg": (bytes(500), "it holds only zeros"),
    "start.jpg": (b"\xff\xd8\xff\xe0", "cut off"),
    "junk.bmp": (bytes(range(256)), "not one that is read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_named(tmp_path, name):
    content, problem = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    for read in (open_image, read_header):
        with pytest.raises(DataError, match=problem) as caught:
            read(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("end", ["jpg", "png", "bmp", "gif", "tif", "webp", "ppm"])
def test_a_file_cut_anywhere_is_noticed(tmp_path, end):
    whole = tmp_path / f"whole.{end}"
    Image.fromarray(smooth(60, 80)).save(whole)
    raw = whole.read_bytes()
    for part in (0.02, 0.3, 0.6, 0.9):
        cut = tmp_path / f"cut.{end}"
        cut.write_bytes(raw[: int(len(raw) * part)])
        with pytest.raises(DataError, match="not a complete image"):
            open_image(cut)
        with contextlib.suppress(DataError):
            assert not read_header(cut).whole
    if end in ("jpg", "png"):
        assert read_header(whole).whole


def test_missing_and_closed(tmp_path):
    with pytest.raises(DataError, match="is missing"):
        open_image(tmp_path / "nowhere.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(DataError, match="cannot be opened"):
        open_image(tmp_path / "folder.png")


MODES = ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB"]


@pytest.mark.parametrize("shape", [(3, 16, 24), (1, 16, 24), (3, 8, 9), (1, 40, 33)])
def test_a_path_and_pillows_image_give_the_same(tmp_path, shape):
    paths = [
        tagged(tmp_path / f"{n}{end}", smooth(), n) for n in range(1, 9) for end in (".jpg", ".png", ".tif", ".webp")
    ]
    for mode, end in (("LA", "png"), ("1", "png"), ("P", "gif"), ("RGBA", "png"), ("CMYK", "jpg"), ("LAB", "tif")):
        path = tmp_path / f"{mode}.{end}"
        Image.fromarray(smooth()).convert("RGB").convert(mode).save(path)
        paths.append(path)
    from_files, bad = read_images(paths, shape)
    opened = [Image.open(path) for path in paths]
    assert torch.equal(from_files.samples, pil_data(opened, shape).samples)
    assert torch.equal(from_files.samples, pil_data(opened, shape).samples)  # once more: nothing was turned in place
    assert torch.equal(from_files.samples, ImageFiles(tuple(paths), shape, resize=True)(torch.arange(len(paths))))
    assert from_files.paths == tuple(paths)
    assert from_files.shape == shape
    assert from_files.labels.tolist() == [-1] * len(paths)
    assert bad == ()


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_in_memory(mode):
    image = Image.fromarray(smooth()).convert("RGB").convert(mode)
    for channels in (1, 3):
        x = to_array(image, (channels, 16, 24))
        assert x.shape == (channels, 16, 24)
        if mode in ("RGB", "RGBA"):
            expected = Image.fromarray(smooth()).convert("L" if channels == 1 else "RGB")
            np.testing.assert_array_equal(x, chw(np.asarray(expected)[None])[0])


def test_not_pillows_image(tmp_path):
    with pytest.raises(TypeError, match="images must be images of Pillow, but number 1 is a ndarray"):
        pil_data([Image.new("L", (3, 3)), np.ones((3, 3))], (1, 3, 3))
    (tmp_path / "a.jpg").write_bytes(_cut_jpeg(tmp_path))
    with pytest.raises(DataError, match="image 0: not a complete image"):
        pil_data([Image.open(tmp_path / "a.jpg")], (3, 4, 4))
    with pytest.raises(ValueError, match=r"images have the shape \(1 or 3, height, width\).* \(13,\)"):
        read_images([tmp_path / "a.jpg"], (13,))


def _cut_jpeg(folder):
    Image.fromarray(smooth(60, 80)).save(folder / "whole.jpg")
    return (folder / "whole.jpg").read_bytes()[:-400]


def test_reading_for_prediction_skips_or_lists(tmp_path):
    good = [tagged(tmp_path / f"{n}.png", smooth(), n) for n in (1, 6)]
    (tmp_path / "bad.jpg").write_bytes(_cut_jpeg(tmp_path))
    (tmp_path / "text.jpg").write_text("hello")
    mixed = [good[0], tmp_path / "bad.jpg", str(tmp_path / "text.jpg"), good[1], tmp_path / "nowhere.png"]
    with pytest.raises(DataError, match="3 of 5 files cannot be read") as caught:
        read_images(mixed, (3, 8, 8))
    for name in (
        "bad.jpg: not a complete image",
        "text.jpg: not a complete image (it is text)",
        "nowhere.png: is missing",
    ):
        assert name in str(caught.value)
    assert "on_error='skip'" in str(caught.value)
    data, bad = read_images(mixed, (3, 8, 8), on_error="skip")
    assert data.paths == tuple(good)
    assert [file.path.name for file in bad] == ["bad.jpg", "text.jpg", "nowhere.png"]
    assert torch.equal(data.samples, read_images(good, (3, 8, 8))[0].samples)
    none, bad = read_images(mixed[1:3], (3, 8, 8), on_error="skip")
    assert (len(none), len(bad), none.samples.shape) == (0, 2, (0, 3, 8, 8))
    assert len(read_images([], (3, 8, 8))[0]) == 0
    with pytest.raises(ValueError, match="on_error must be one of stop, skip, got 'ignore'"):
        read_images(good, (3, 8, 8), on_error="ignore")
