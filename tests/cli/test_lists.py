import json

import pytest

from credro.data import AUGMENTATIONS, CORRUPTIONS, SOURCES
from credro.methods import CHOICES, METHODS
from credro.nets import NETS
from credro.training.recipe import PRESETS

TOPICS = {
    "methods": METHODS,
    "choices": [f"{what}={kind}" for what, (kinds, _) in CHOICES.items() for kind in kinds],
    "nets": NETS,
    "data": SOURCES,
    "recipes": ["(default)", *PRESETS],
    "augmentations": AUGMENTATIONS,
    "corruptions": CORRUPTIONS,
}


@pytest.mark.parametrize("what", TOPICS)
def test_text_and_json_name_everything(cli, what):
    rows = json.loads(cli("list", what, "--json").out)
    assert [row["name"] for row in rows] == list(TOPICS[what])
    text = "\n" + cli("list", what).out
    for name in TOPICS[what]:
        assert f"\n{name} " in text


def test_methods_tell_their_choices_reference_and_defaults(cli):
    rows = {row["name"]: row for row in json.loads(cli("list", "methods", "--json").out)}
    table = {
        "de": ("fresh", "mean", "softmax", "end", "mean"),
        "credro": ("fresh", "cvar", "softmax", "end", "box"),
        "crerl": ("biased", "mean", "softmax", "relative_likelihood", "box"),
        "crede": ("fresh", "cvar", "interval", "end", "averaged_box"),
    }
    for name, kinds in table.items():
        assert tuple(rows[name][what] for what in ("start", "risk", "head", "stop", "readout")) == kinds
    assert rows["credro"]["options"]["delta_g"] == 0.5
    assert rows["crerl"]["options"]["bias"] == 100
    assert "Lakshminarayanan" in rows["de"]["reference"]
    text = " ".join(cli("list", "methods").out.split())
    assert "start biased, risk mean, head softmax, stop relative_likelihood, readout box" in text
    assert "--set delta_g=0.5 spacing=uniform" in text


def test_every_choice_that_is_listed_can_be_set(cli):
    rows = json.loads(cli("list", "choices", "--json").out)
    assert {"start=biased", "risk=cvar", "head=interval", "stop=end", "readout=hull"} <= {row["name"] for row in rows}
    for row in rows:
        what, _, kind = row["name"].partition("=")
        chosen = CHOICES[what][0][kind](**row["options"])  # the options with their defaults are all there are
        assert chosen == CHOICES[what][0][kind]()


def test_nets_have_their_published_sizes(cli):
    rows = {row["name"]: row for row in json.loads(cli("list", "nets", "--json").out)}
    assert rows["resnet18"]["parameters"] == 11_173_962
    assert rows["resnet18"]["input"] == [3, 32, 32]


def test_data_tells_where_it_is_looked_for_and_whether_it_is_there(cli, tmp_path):
    (tmp_path / "SVHN").mkdir()
    (tmp_path / "SVHN" / "test_32x32.mat").touch()
    rows = {row["name"]: row for row in json.loads(cli("list", "data", "--json", "--root", tmp_path).out)}
    assert rows["svhn"]["here"]
    assert str(tmp_path / "SVHN" / "test_32x32.mat") in rows["svhn"]["looked_for"]
    assert not rows["places365"]["here"]
    assert str(tmp_path / "places365_small" / "val") in rows["places365"]["looked_for"]
    assert rows["digits"]["get"] == "embedded"
    assert rows["cifar10"]["page"] == SOURCES["cifar10"].page
