"""The report's single samples and its confusions: which are shown, and that they are what they say."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.metrics import confusion_matrix

import credro
from credro.data.base import Data
from credro.data.spec import Column, DataSpec
from credro.report.page._numbers import ends, in_turn
from credro.report.page._samples import as_image, encoded, picture, values
from credro.report.page.write import write_report
from tests.report.test_page import Parsed, ensemble, images, written

# Single samples.


def test_pictures_are_the_very_pixels(tmp_path):
    def decoded(uri: str) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition("base64,")[2]))))

    draw = torch.Generator().manual_seed(0)
    colour = torch.randint(256, (3, 9, 7), generator=draw).to(torch.uint8)

    def png(pixels: torch.Tensor) -> tuple[str, int, int]:
        return encoded(as_image(pixels))

    uri, width, height = png(colour)
    assert (width, height) == (7, 9)
    assert (decoded(uri) == colour.permute(1, 2, 0).numpy()).all()
    assert (decoded(png(colour[:1])[0]) == colour[0].numpy()).all()
    assert png(torch.zeros(1, 300, 150, dtype=torch.uint8))[1:] == (96, 192)  # twice what the page shows
    stretched = decoded(png(torch.tensor([[[-1.0, 0.0, 1.0]]]))[0])
    assert stretched.tolist() == [[0, 128, 255]]


def test_a_row_names_its_values():
    data = Data(
        "t", torch.zeros(1, 4), torch.zeros(1, dtype=torch.long), (4,), columns=("size", "hue=red", "hue=blue", "n")
    )
    assert values(data, torch.tensor([1.25, 0.0, 1.0, 3.0])) == [("size", "1.25"), ("hue", "blue"), ("n", "3")]


def test_pictures_of_the_gallery_belong_to_their_samples(tmp_path):
    probs, labels = ensemble(80)
    data = images(labels, 4)
    found = [a for t, a in Parsed(written(tmp_path, probs, data, each=4)).elements if t == "img"]
    assert len(found) == 12
    for attributes in found:
        n = int(re.match(r"Sample (\d+), an image of class class (\d)", attributes["alt"])[1])
        assert attributes["src"] == encoded(as_image(data.samples[n]))[0]


def test_ten_thousand_samples_stay_small(tmp_path):
    probs, labels = ensemble(10_000, 10, 5)
    data = Data(
        "large",
        torch.randint(256, (10_000, 3, 32, 32), generator=torch.Generator().manual_seed(0)).to(torch.uint8),
        torch.from_numpy(labels),
        (3, 32, 32),
        tuple(f"class {k}" for k in range(10)),
    )
    path = write_report(tmp_path / "r.html", probs, data, ood={"far": probs[:, :5000]}, method="de")
    assert path.stat().st_size < 0.5 * 2**20


# Which samples, which classes.


def test_the_most_certain_come_from_several_classes(tmp_path):
    """One class is much easier than the others: by EU alone it would fill the group."""
    probs, labels = ensemble(300, 5)
    easy = labels == 2
    probs[:, easy] = 0.995 * np.eye(5)[2] + 0.001
    eu, said = np.asarray(credro.epistemic(credro.Box.of(probs))), probs.mean(0).argmax(1)
    assert (said[np.argsort(eu)[:6]] == 2).all()
    text = written(tmp_path, probs, labels).split("<h3>Most certain</h3>")[1].split("<h3>")[0]
    shown = [int(n) for n in re.findall(r"Sample (\d+) ·", text)]
    assert len(shown) == 6
    assert set(said[shown].tolist()) == set(range(5))
    for n in shown[:5]:
        assert eu[n] == eu[said == said[n]].min()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.randoms())
def test_taking_turns(kinds, random):
    order = list(range(len(kinds)))
    random.shuffle(order)
    found = in_turn(np.array(order), np.array(kinds)).tolist()
    rest, wanted = list(order), []
    while rest:  # a round: the first that is left of each kind, in their order
        turn = [i for at, i in enumerate(rest) if kinds[i] not in [kinds[j] for j in rest[:at]]]
        wanted += turn
        rest = [i for i in rest if i not in turn]
    assert found == wanted


def test_ood_samples_are_in_the_gallery(tmp_path):
    data = images(np.arange(80) % 4, 4)
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4)) for _ in range(3)]
    far = torch.randint(256, (30, 3, 8, 8), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    ens = credro.Ensemble.of(nets, data)
    text = written(tmp_path, ens, data, ood={"far": far}, each=6)
    part = text.split("<h3>OOD: far</h3>")[1].split("</section>")[0]
    eu = np.asarray(ens.predict(far).epistemic)
    shown = [int(n) for n in re.findall(r"Sample (\d+) ·", part)]
    order = np.argsort(eu).tolist()
    assert shown == [*order[:3], *order[::-1][:3]]
    pictures = [a for t, a in Parsed(part).elements if t == "img"]
    assert [a["alt"] for a in pictures] == [f"Sample {n}, an image of the OOD set far" for n in shown]
    assert [a["src"] for a in pictures] == [encoded(as_image(far[n]))[0] for n in shown]
    assert part.count('class="verdict ood">OOD</span>') == 6
    assert "truly" not in part


@pytest.mark.parametrize(("count", "each", "sizes"), [(1, 3, (1, 0)), (2, 3, (1, 1)), (5, 3, (3, 2)), (50, 3, (3, 3))])
def test_the_two_ends_do_not_meet(count, each, sizes):
    eu = np.random.default_rng(0).random(count)
    low, high = ends(eu, each)
    assert (len(low), len(high)) == sizes
    assert len({*low, *high}) == len(low) + len(high)
    assert low == sorted(range(count), key=lambda i: eu[i])[: len(low)]
    assert high == sorted(range(count), key=lambda i: -eu[i])[: len(high)]


@pytest.mark.parametrize("classes", [2, 7, 20])
def test_the_confusion_matrix_agrees_with_scikit_learn(tmp_path, classes):
    probs, labels = ensemble(400, classes)
    labels[labels == 1] = 0  # a class without samples has a row as well
    parsed = Parsed(written(tmp_path, probs, labels))
    caption = "Confusion matrix: true classes in rows, the classes they were taken for in columns"
    head, *rows = parsed.tables[caption]
    assert head == ["True class", *map(str, range(classes)), "Accuracy %", "Mean EU", "Samples"]
    said, eu = probs.mean(0).argmax(1), np.asarray(credro.epistemic(credro.Box.of(probs)))
    eu = np.ptp(probs[..., 1], axis=0) if classes == 2 else eu  # of two classes EU is the interval's width
    counts = confusion_matrix(labels, said, labels=range(classes))
    for k, (name, *cells) in enumerate(rows):
        *cells, accuracy, mean_eu, samples = cells
        total = counts[k].sum()
        assert (name, samples) == (str(k), str(total))
        for cell, count in zip(cells, counts[k], strict=True):
            part = 100 * count / total if count else 0
            wanted = "0" if not count else f"{count}< 1 %" if part < 0.5 else f"{count}{part:.0f} %"
            assert cell == wanted
        if total:
            assert float(accuracy) == pytest.approx(100 * counts[k, k] / total, abs=0.06)
            assert float(mean_eu) == pytest.approx(eu[labels == k].mean(), abs=6e-4)
        else:
            assert (accuracy, mean_eu) == ("–", "–")


def test_of_many_classes_the_confused_pairs_are_listed(tmp_path):
    probs, labels = ensemble(3000, 30)
    rows = Parsed(written(tmp_path, probs, labels)).records("Classes that are confused most often")
    counts = confusion_matrix(labels, probs.mean(0).argmax(1), labels=range(30))
    np.fill_diagonal(counts, 0)
    assert len(rows) == 20
    assert [int(row["Samples"]) for row in rows] == sorted(counts.flatten().tolist(), reverse=True)[:20]
    for row in rows:
        i, j = int(row["True class"]), int(row["Taken for"])
        assert int(row["Samples"]) == counts[i, j]
        assert float(row["Of the class %"]) == pytest.approx(100 * counts[i, j] / (labels == i).sum(), abs=0.06)


def test_bars_tell_methods_apart(tmp_path):
    probs, labels = ensemble(300)
    far, _ = ensemble(150, seed=5)
    text = written(tmp_path, probs, labels, ood={"far": far})
    part = text.split('id="methods"')[1]
    found = re.findall(r'<figure class="compared"><figcaption>(.*?)</figcaption>(.*?)</figure>', part)
    assert [title for title, _ in found] == ["Area under accuracy-rejection, by EU", "AUROC of far, by EU"]
    rows = Parsed(text).records("Results of every method")
    for (_, part), column in zip(found, ("AR area", "AUROC far %"), strict=True):
        values = [float(v) for v in re.findall(r'class="range">([\d.]+)', part)]
        scale = 100 if column == "AR area" else 1
        assert values == pytest.approx([scale * float(row[column]) for row in rows], abs=0.0101)
        widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="10.0" class="interval"', part)]
        assert widths == pytest.approx([10 * v for v in values], abs=0.11)


def photographs(folder: Path, count: int, orientation: int | None = None) -> Data:
    """Files of 320 x 240 pixels, read at 16 x 16; a few files stand for many."""
    draw, files = np.random.default_rng(0), []
    for i in range(min(count, 12)):
        ramp = np.linspace(0, 200, 320)[None, :, None] + np.linspace(0, 40, 240)[:, None, None]
        pixels = (ramp + draw.normal(0, 12, (240, 320, 3))).clip(0, 255).astype(np.uint8)
        tag = Image.Exif()
        if orientation is not None:
            tag[0x0112] = orientation
        files.append(folder / f"photo {i}.jpg")
        Image.fromarray(pixels).save(files[-1], quality=95, exif=tag)
    paths = tuple(files[i % len(files)] for i in range(count))
    small = torch.zeros(count, 3, 16, 16, dtype=torch.uint8)
    return Data("photos", small, torch.arange(count) % 4, (3, 16, 16), tuple("abcd"), paths=paths)


@pytest.mark.parametrize("orientation", [None, 3, 6])
def test_pictures_come_from_the_files_sharp_and_upright(tmp_path, orientation):
    data = photographs(tmp_path, 3, orientation)
    uri, width, height = picture(data, 1)
    assert uri.startswith("data:image/jpeg;base64,")
    assert sorted((width, height)) == [144, 192]
    assert (width > height) == (orientation != 6)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition("base64,")[2]))).convert("L"), float)
    assert shown.shape == (height, width)
    with Image.open(data.paths[1]) as image:
        turn = {None: 0, 3: 180, 6: 270}[orientation]
        wanted = np.asarray(
            image.convert("L").rotate(turn, expand=True).resize((width, height), Image.Resampling.BOX), float
        )
    assert abs(shown - wanted).mean() < 4


def test_a_file_that_is_gone_is_shown_as_it_is_stored(tmp_path):
    data = photographs(tmp_path, 2)
    data.paths[1].unlink()
    data.samples[1] = torch.randint(256, (3, 16, 16), generator=torch.Generator().manual_seed(0))
    uri, width, height = picture(data, 1)
    assert (width, height) == (192, 192)
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition("base64,")[2]))))
    assert (shown[6::12, 6::12] == data.samples[1].permute(1, 2, 0).numpy()).all()  # pixel by pixel, twelve times


def test_a_page_of_photographs_stays_small(tmp_path):
    data = photographs(tmp_path, 2000)
    torch.manual_seed(0)
    nets = [torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 4)) for _ in range(3)]
    path = write_report(tmp_path / "r.html", nets, data, ood={name: data.subset(range(500)) for name in "xyz"})
    assert path.read_text().count("data:image/jpeg") == 18 + 3 * 6
    assert path.stat().st_size < 3 * 10**6


def test_a_row_of_a_reader_names_its_categories():
    columns = (Column("size"), Column("a=b"), Column("hue", ("red", "blue")), Column("kind", ("x",), other=False))
    spec = DataSpec("t.csv", columns=columns)
    names = tuple(f for c in columns for f in c.features)
    data = Data("t", torch.zeros(1, 6), torch.zeros(1, dtype=torch.long), (6,), columns=names, spec=spec)
    shown = values(data, torch.tensor([1.25, 1.0, 0.0, 1.0, 0.0, 1.0]))
    assert shown == [("size", "1.25"), ("a=b", "1"), ("hue", "blue"), ("kind", "x")]
    assert values(data, torch.tensor([2.0, 0.0, 0.0, 0.0, 1.0, 0.0])) == [
        ("size", "2"),
        ("a=b", "0"),
        ("hue", "(other)"),
        ("kind", "–"),
    ]
