import json

import pytest

from credro.data import AUGMENTATIONS, CORRUPTIONS, SOURCES
from credro.methods import METHODS
from credro.nets import NETS
from credro.training.recipe import PRESETS

TOPICS = {
    "methods": METHODS,
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


def test_methods_tell_rule_readout_reference_and_defaults(cli):
    rows = {row["name"]: row for row in json.loads(cli("list", "methods", "--json").out)}
    assert (rows["credro"]["training"], rows["credro"]["readout"]) == ("cvar", "box")
    assert rows["credro"]["options"]["delta_g"] == 0.5
    assert "Lakshminarayanan" in rows["de"]["reference"]


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
