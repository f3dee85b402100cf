"""People's own folders of images: what is read, what is said about it, what is refused with the path that was meant."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from credro.data import DataError, UnknownSplit, load
from credro.data.errors import BadFiles
from credro.data.readers import _files as files_module
from credro.data.spec import DataSpec
from tests.data.layouts import images, write_image


def fill(folder, count=2, h=10, w=12, seed=0, end=".png"):
    for i, pixels in enumerate(images(count, h, w, seed=seed)):
        write_image(folder / f"{i:03}{end}", pixels)


def fill_all(root, *names, **more):
    for i, name in enumerate(names):
        fill(root / name, seed=i, **more)


def break_file(path, content=b"this is no image"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def refused(path, *parts, error=DataError, **options):
    """The folder is refused, and the message has all these parts."""
    with pytest.raises(error) as caught:
        load(path, **options)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"
    return str(caught.value)


class TestWrongLevel:
    def test_one_folder_around_the_classes(self, tmp_path):
        photos = tmp_path / "photos"
        fill_all(photos, "images/cat", "images/dog")
        refused(photos, "holds one folder only, 'images'", f"did you mean {photos / 'images'}?", "dog/: 2 images")
        assert load(photos / "images").classes == ("cat", "dog")

    def test_two_folders_around_the_classes_or_splits(self, tmp_path):
        fill_all(tmp_path, "a/b/cat", "a/b/dog")
        refused(tmp_path, "one folder only, 'a'", f"did you mean {tmp_path / 'a/b'}?")
        fill_all(tmp_path / "x", "data/train/cat", "data/train/dog", "data/test/cat")
        refused(tmp_path / "x", f"did you mean {tmp_path / 'x/data'}?")
        fill_all(tmp_path / "y", "train/images/cat", "train/images/dog")
        refused(tmp_path / "y", "'train/images'", f"did you mean {tmp_path / 'y/train/images'}?")

    def test_the_folder_of_one_class(self, tmp_path):
        train = tmp_path / "train"
        fill_all(train, "cat", "dog")
        refused(train / "cat", "holds 2 images and no class folders", f"did you mean {train}?")
        fill(tmp_path / "alone")
        assert "did you mean" not in refused(tmp_path / "alone", "no class folders", "CLASS/image.png")

    def test_one_class(self, tmp_path):
        fill(tmp_path / "one/cat", 3)
        refused(tmp_path / "one", "holds one class only, 'cat' (3 images): two at least are needed")
        fill_all(tmp_path / "split", "train/cat", "test/cat", "test/dog")
        refused(tmp_path / "split", "train: holds one class only, 'cat'")
        assert load(tmp_path / "split", split="test").labels.tolist() == [0, 0, 1, 1]
        assert load(tmp_path / "one", classes=("ant", "cat")).labels.tolist() == [1, 1, 1]

    def test_folders_in_the_class_folders(self, tmp_path):
        fill_all(tmp_path, "2023/cat", "2023/dog", "2024/cat", "2024/dog")
        refused(
            tmp_path,
            "2023/: no images itself, 4 images below",
            "cat/: 2 images",
            f"if cat, dog are the classes, name a folder that holds them, such as {tmp_path / '2023'}",
            "if 2023, 2024 are the classes, deep=True",
        )
        assert load(tmp_path / "2023").classes == ("cat", "dog")

    def test_patients_in_the_class_folders(self, tmp_path):
        fill_all(tmp_path, "benign/p1", "benign/p2", "malignant/p3")
        said = refused(tmp_path, "if benign, malignant are the classes, deep=True reads all images below them")
        assert "such as" not in said
        data = load(tmp_path, deep=True)
        assert data.labels.tolist() == [0, 0, 0, 0, 1, 1]
        assert [p.parent.name for p in data.paths] == ["p1", "p1", "p2", "p2", "p3", "p3"]
        assert "6 images in folders below the classes read too" in data.notes
        assert data.spec.options["deep"] is True
        refused(tmp_path, "no images", deep=False)

    def test_images_beside_folders_in_a_class(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", "dog/more")
        refused(tmp_path, "dog/: 2 images, 2 images below", "deep=False reads only the images directly in them")
        assert len(load(tmp_path, deep=True)) == 6
        data = load(tmp_path, deep=False)
        assert len(data) == 4
        assert "2 images in folders below the classes left out" in data.notes

    def test_images_beside_the_class_folders(self, tmp_path):
        fill_all(tmp_path, "cat", "dog")
        fill(tmp_path, 3)
        assert "3 images beside the class folders left out" in load(tmp_path).notes
        fill(tmp_path, 5)
        refused(tmp_path, "holds 5 images itself, more than the 4 in its folders (cat, dog)")

    def test_no_images_at_all(self, tmp_path):
        (tmp_path / "a").mkdir()
        for name in ("x.dcm", "y.dcm"):
            (tmp_path / "a" / name).write_text("x")
        refused(tmp_path, "'a', holds no images", "found 2 .dcm")
        (tmp_path / "b").mkdir()
        refused(tmp_path, "its folders, a, b, hold no images")


class TestSplits:
    def test_the_note_says_which(self, tmp_path):
        photos = tmp_path / "photos"
        fill_all(photos, "train/cat", "train/dog", count=3)
        fill_all(photos, "Validation/cat", "Validation/dog", "test/cat")
        data = load(photos)
        assert data.notes[0] == "photos: split 'train' of train (6), val (4), test (2) samples"
        assert data.notes[1] == "2 classes: cat, dog"
        assert data.notes[2] == "classes in some splits only: dog (train, val)"
        assert data.spec == DataSpec(str(photos), "train", options={"size": [10, 12], "channels": 3})
        assert load(photos, split="validation").spec.split == "val"
        every = load(photos, split="all")
        assert every.notes[0] == "photos: all of train (6), val (4), test (2) samples"
        assert sorted(every.labels.tolist()) == [0] * 7 + [1] * 5
        refused(photos, "must be one of 'train', 'val', 'test', 'all', got 'extra'", error=UnknownSplit, split="extra")

    def test_val_for_test_is_said(self, tmp_path):
        fill_all(tmp_path / "p", "train/cat", "train/dog", "val/cat", "val/dog")
        data = load(tmp_path / "p", split="test")
        assert data.spec.split == "val"
        assert data.notes[0] == "p: split 'val' of train (4), val (4) samples"
        assert "there is no split 'test': 'val' was taken for it" in data.notes
        assert not any("'val' was taken" in note for note in load(tmp_path / "p", split="val").notes)

    def test_no_train_and_nothing_asked_for(self, tmp_path):
        fill_all(tmp_path, "test/cat", "test/dog", "val/cat")
        refused(tmp_path, "must be given, one of 'val', 'test', 'all'", "test (4)", error=UnknownSplit)
        assert len(load(tmp_path, split="test")) == 4

    def test_other_folders_beside_splits(self, tmp_path):
        fill_all(tmp_path, "train/cat", "train/dog", "test/cat", "birds")
        refused(tmp_path, "holds splits (test, train) and beside them other folders with images (birds)")
        shutil.rmtree(tmp_path / "birds")
        (tmp_path / "labels").mkdir()
        (tmp_path / "labels/x.xml").write_text("x")
        assert len(load(tmp_path)) == 4

    def test_splits_without_classes(self, tmp_path):
        fill_all(tmp_path, "train", "test")
        refused(tmp_path, "test, train: images, but no class folders in them")

    def test_an_unlabelled_test_folder(self, tmp_path):
        fill_all(tmp_path, "train/cat", "train/dog", "test")
        data = load(tmp_path)
        assert len(data) == 4
        assert "test: no class folders in it, so no split with labels; left out" in data.notes
        refused(tmp_path, "must be one of 'train', 'all', got 'test'", error=UnknownSplit, split="test")

    def test_a_class_called_train(self, tmp_path):
        fill_all(tmp_path, "bus", "car", "train")
        data = load(tmp_path)
        assert data.classes == ("bus", "car", "train")
        assert "train: taken for a class, since its images lie directly in it" in data.notes
        assert data.spec.split is None

    def test_two_words_for_one_split(self, tmp_path):
        fill_all(tmp_path, "train/a", "train/b", "val/a", "valid/a")
        refused(tmp_path, "two folders for the split 'val', val and valid")


class TestClasses:
    def test_unknown_classes_of_a_run(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", "eel", "fox", "Dog ")
        known = ("ant", "dog", "cat")
        refused(tmp_path, "not in classes: Dog , eel, fox", "unknown='ood'", classes=known)
        data = load(tmp_path, classes=known, unknown="ood")
        assert data.classes == known
        for path, label in zip(data.paths, data.labels.tolist(), strict=True):
            assert label == {"cat": 2, "dog": 1}.get(path.parent.name, -1)
        assert "6 samples of 3 classes that the run does not know: Dog , eel, fox" in data.notes
        assert "'Dog ' is unknown, but 'dog' is known" in data.notes
        with pytest.raises(ValueError, match="unknown must be one of error, ood, got 'drop'"):
            load(tmp_path, classes=known, unknown="drop")

    def test_only_unknown_classes(self, tmp_path):
        fill_all(tmp_path, "eel")
        assert load(tmp_path, classes=("a", "b"), unknown="ood").labels.tolist() == [-1, -1]

    def test_unknown_in_another_split_does_not_matter(self, tmp_path):
        fill_all(tmp_path, "train/cat", "train/dog", "test/cat", "test/eel")
        assert load(tmp_path, split="train", classes=("cat", "dog")).labels.tolist() == [0, 0, 1, 1]
        refused(tmp_path, "not in classes: eel", split="test", classes=("cat", "dog"))

    def test_names_that_differ_in_case_or_spaces(self, tmp_path):
        fill_all(tmp_path, "train/Cat", "train/dog", "test/cat", "test/dog")
        assert "'Cat' and 'cat' count as different classes: are they one?" in load(tmp_path).notes

    def test_empty_folders_are_no_classes(self, tmp_path):
        fill_all(tmp_path, "cat", "dog")
        (tmp_path / "eel").mkdir()
        data = load(tmp_path)
        assert data.classes == ("cat", "dog")
        assert "folders without images left out: eel" in data.notes

    def test_files_that_are_no_images(self, tmp_path):
        fill_all(tmp_path, "cat", "dog")
        for name in (".DS_Store", "Thumbs.db", "desktop.ini", "._000.png"):
            break_file(tmp_path / "cat" / name)
        fill(tmp_path / "__MACOSX" / "cat")
        assert not any("left out" in note for note in load(tmp_path).notes)
        for name in ("a.txt", "b.txt", "c.XML", "LICENSE"):
            break_file(tmp_path / "dog" / name)
        assert "4 files that are no images left out: 2 .txt, 1 without ending, 1 .xml" in load(tmp_path).notes

    def test_links_in_a_circle(self, tmp_path):
        fill_all(tmp_path, "cat", "dog")
        (tmp_path / "dog" / "round").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "self").symlink_to(tmp_path, target_is_directory=True)
        for deep in (None, True):
            data = load(tmp_path, deep=deep)
            assert len(data) == 4
            assert data.classes == ("cat", "dog")
            assert any("links to folders not followed: " in note for note in data.notes)

    def test_a_linked_class_is_read(self, tmp_path):
        fill_all(tmp_path / "set", "cat")
        fill(tmp_path / "elsewhere", 3)
        (tmp_path / "set" / "dog").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        assert load(tmp_path / "set").labels.tolist() == [0, 0, 1, 1, 1]


class TestBadFiles:
    def damaged(self, root, each=6):
        """Four bad files of different kinds among 2 * each + 1 ones, and the names of the bad ones."""
        fill_all(root, "cat", "dog", count=each, h=40, w=40, end=".jpg")
        break_file(root / "cat/002.jpg", b"")
        break_file(root / "cat/004.jpg")
        cut = root / "dog/001.jpg"
        cut.write_bytes(cut.read_bytes()[:-500])
        break_file(root / "dog/photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(50))
        return ["002.jpg", "004.jpg", "001.jpg", "photo.heic"]

    @pytest.mark.parametrize("lazy", [False, True])
    def test_all_are_listed_at_once(self, tmp_path, lazy):
        names = self.damaged(tmp_path)
        with pytest.raises(BadFiles) as caught:
            load(tmp_path, lazy=lazy)
        assert "4 of 13 files cannot be read" in str(caught.value)
        assert [file.path.name for file in caught.value.bad] == names
        for name, problem in zip(names, ("it is empty", "it is text", "truncated", "it is HEIC"), strict=True):
            assert any(name in line and problem in line for line in str(caught.value).splitlines())
        assert "on_error='skip' leaves them out" in str(caught.value)

    @pytest.mark.parametrize("lazy", [False, True])
    def test_skipped(self, tmp_path, lazy):
        names = self.damaged(tmp_path)
        data = load(tmp_path, lazy=lazy, on_error="skip")
        assert data.in_memory != lazy
        assert [file.path.name for file in data.bad] == names
        assert "4 files that cannot be read left out" in data.notes
        kept = [(p.parent.name, p.name) for p in data.paths]
        assert kept == [("cat", f"00{i}.jpg") for i in (0, 1, 3, 5)] + [("dog", f"00{i}.jpg") for i in (0, 2, 3, 4, 5)]
        assert data.labels.tolist() == [0] * 4 + [1] * 5
        expected = [np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) for path in data.paths]
        np.testing.assert_array_equal(data.batch(torch.arange(9)).numpy(), np.stack(expected))
        assert data.spec.options["on_error"] == "skip"

    def test_lazy_and_skipped_finds_what_the_tail_hides(self, tmp_path):
        """A file with its end but a broken middle passes the quick look, but not the whole one."""
        fill_all(tmp_path, "cat", "dog", count=3, h=40, w=40)
        path = tmp_path / "dog/001.png"
        raw = bytearray(path.read_bytes())
        at = raw.index(b"IDAT") + 200
        raw[at : at + 400] = bytes(400)
        path.write_bytes(raw)
        assert len(load(tmp_path, lazy=True)) == 6
        with pytest.raises(BadFiles, match=r"001\.png"):
            load(tmp_path, lazy=True).batch(torch.arange(6))
        assert [file.path for file in load(tmp_path, lazy=True, on_error="skip").bad] == [path]

    def test_many_are_counted(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", count=30)
        for i in range(25):
            break_file(tmp_path / "cat" / f"{i:03}.png")
        with pytest.raises(BadFiles) as caught:
            load(tmp_path)
        assert len(caught.value.bad) == 25
        assert str(caught.value).count("it is text") == 20
        assert "and 5 more" in str(caught.value)

    def test_more_than_half(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", count=4)
        for i in range(4):
            break_file(tmp_path / "cat" / f"{i:03}.png")
        data = load(tmp_path, on_error="skip")
        assert len(data) == 4
        assert "no image could be read of the classes cat" in data.notes
        break_file(tmp_path / "dog" / "000.png")
        refused(tmp_path, "5 of 8 files", "more than half of them", on_error="skip")

    def test_errors_travel_between_processes(self, tmp_path):
        import pickle

        self.damaged(tmp_path)
        with pytest.raises(BadFiles) as caught:
            load(tmp_path)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        assert again.bad == caught.value.bad


class TestImages:
    def test_photographs_of_every_orientation_are_one(self, tmp_path):
        """The same scene, held in eight ways: training sees one image, and so does prediction."""
        scene = np.asarray(Image.fromarray(images(1, 3, 4)[0]).resize((24, 16), Image.Resampling.BICUBIC))
        lying = {1: scene, 3: np.rot90(scene, 2), 6: np.rot90(scene, 1), 8: np.rot90(scene, -1)}
        for orientation, pixels in lying.items():
            exif = Image.Exif()
            exif[0x0112] = orientation
            for name in ("a", "b"):
                (tmp_path / name).mkdir(exist_ok=True)
                Image.fromarray(np.ascontiguousarray(pixels)).save(tmp_path / name / f"{orientation}.png", exif=exif)
        data = load(tmp_path)
        assert data.shape == (3, 16, 24)
        assert (data.samples == torch.from_numpy(scene.transpose(2, 0, 1).copy())).all()
        assert data.content().unique().numel() == 1

    def test_notes_on_what_was_converted(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", count=4)
        pixels = Image.fromarray(images(1, 10, 12)[0])
        pixels.convert("RGBA").save(tmp_path / "cat/a.png")
        pixels.convert("CMYK").save(tmp_path / "cat/b.jpg")
        pixels.convert("L").save(tmp_path / "cat/c.png")
        pixels.save(tmp_path / "dog/d.gif", save_all=True, append_images=[Image.new("RGB", (12, 10))])
        notes = load(tmp_path).notes
        for note in (
            "1 image with an alpha channel: transparent parts are put on white",
            "1 image in CMYK, converted to RGB without colour profile",
            "1 of 12 images are grey and read as colour",
            "1 image with several frames or pages: the first is taken",
        ):
            assert note in notes
        assert "11 images in colour, read as grey" in load(tmp_path, channels=1).notes

    def test_one_colour_image_among_many_makes_colour(self, tmp_path):
        """Not one of 16 that happen to be looked at: every one counts."""
        for name in ("a", "b"):
            for i in range(40):
                write_image(tmp_path / name / f"{i:03}.png", images(1, 5, 5, 1)[0])
        write_image(tmp_path / "b" / "017.png", images(1, 5, 5)[0])
        assert load(tmp_path).shape == (3, 5, 5)

    def test_large_images_of_one_size_stay_with_a_hint(self, tmp_path):
        fill_all(tmp_path, "cat", "dog", count=1, h=300, w=200)
        data = load(tmp_path)
        assert data.shape == (3, 300, 200)
        assert any("all images are 300x200 and stay so" in note for note in data.notes)

    def test_a_size_in_one_number(self, tmp_path):
        fill_all(tmp_path, "cat", "dog")
        data = load(tmp_path, size=7)
        assert data.shape == (3, 7, 7)
        assert data.spec.options["size"] == [7, 7]
        again = load(tmp_path, **DataSpec.from_json(data.spec.to_json()).options)
        assert torch.equal(again.samples, data.samples)
        for size in (0, True, (3, 4, 5), (2.5, 3)):
            with pytest.raises(ValueError, match=r"size must be \(height, width\)"):
                load(tmp_path, size=size)

    def test_header_and_pixels_are_read_once_each(self, tmp_path, monkeypatch):
        """No file is decoded twice when all are held in memory."""
        fill_all(tmp_path, "cat", "dog")
        decoded = []
        monkeypatch.setattr(
            files_module, "open_image", lambda p, f=files_module.open_image: (decoded.append(p), f(p))[1]
        )
        load(tmp_path)
        assert len(decoded) == 4
        load(tmp_path, lazy=True)
        assert len(decoded) == 4
