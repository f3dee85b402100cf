import json

import pytest

from credro._records import RecordError
from credro.data import load
from credro.data.spec import Column, DataSpec, given
from tests.data.layouts import images, write_image

SPEC = DataSpec(
    "t.csv", "train", "y", (Column("a"), Column("c", ("u", "v"), other=False)), {"drop": ["id"], "missing": -9}, 3
)


def through_json(spec):
    return DataSpec.from_json(json.loads(json.dumps(spec.to_json())))


def test_a_spec_survives_json():
    assert through_json(SPEC) == SPEC
    assert through_json(DataSpec("digits")) == DataSpec("digits")


def test_what_version_0_1_wrote_is_read():
    """Neither ``other`` of a column nor ``width`` were in its first files."""
    old = {"source": "t.csv", "split": None, "label": "y", "columns": [{"name": "c", "values": ["u"]}], "options": {}}
    assert DataSpec.from_json(old) == DataSpec("t.csv", None, "y", (Column("c", ("u",)),))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": 3}, "data.spec.source"),
        ({"columns": {}}, "data.spec.columns"),
        ({"columns": [{"values": None}]}, "data.spec.columns[0].name"),
        ({"columns": [{"name": "c", "values": [1]}]}, "data.spec.columns[0].values[0]"),
        ({"options": []}, "data.spec.options"),
        ({"width": "3"}, "data.spec.width"),
        ({"more": 1}, "data.spec.more"),
    ],
)
def test_an_error_names_file_and_field(change, field):
    with pytest.raises(RecordError) as caught:
        DataSpec.from_json(SPEC.to_json() | change, "run/config.json", "data.spec")
    assert (caught.value.file, caught.value.field) == ("run/config.json", field)


def test_options_are_kept_in_plain_values():
    kept = given(drop=("a",), keep=(), size=None, deep=False, classes=range(2), categories={"c": (1, "x")}, missing=-9)
    assert kept == {"drop": ["a"], "deep": False, "classes": [0, 1], "categories": {"c": ["1", "x"]}, "missing": -9}
    assert json.loads(json.dumps(kept)) == kept


def test_a_run_keeps_every_option_of_a_folder(tmp_path):
    for i, kind in enumerate(("cat", "dog", "cow")):
        write_image(tmp_path / kind / f"{i}.png", images(1, 9, 9, seed=i)[0])
    options = {"classes": ["dog", "cat"], "unknown": "ood", "deep": True, "on_error": "skip", "lazy": True}
    data = load(tmp_path, size=4, channels=1, name="mine", check=False, **options)
    assert data.spec.options == {"size": [4, 4], "channels": 1, "name": "mine", "check": False, **options}
    again = load(tmp_path, **through_json(data.spec).options)
    assert (again.fingerprint(), again.spec, again.name) == (data.fingerprint(), data.spec, "mine")
    assert load(tmp_path).spec.options == {"size": [9, 9], "channels": 3}


def test_named_sets_keep_their_options_and_the_split_that_was_taken(tmp_path):
    for part in ("train", "val"):
        for i, kind in enumerate(("cat", "dog")):
            write_image(tmp_path / "imagenet" / part / kind / f"{i}.png", images(1, 9, 9, seed=i)[0])
    spec = load("imagenet", root=tmp_path, size=(4, 4)).spec
    assert (spec.source, spec.split, spec.options) == ("imagenet", "train", {"size": [4, 4], "channels": 3})
    assert load("imagenet", root=tmp_path, split=spec.split, **spec.options).spec == spec
    assert load("digits").spec == DataSpec("digits", "train")
    assert load("digits", split="all").spec.split == "all"
