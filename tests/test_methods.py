import pytest

from credro.methods import METHODS, make, options, reading
from credro.objectives import ERM, CVaR, RandomSubset
from credro.readouts import BoxReadOut, HullReadOut, MeanReadOut, NearestHullReadOut

TABLE = {  # methods and their two halves, as in the paper
    "de": (ERM, MeanReadOut),
    "crewra": (ERM, BoxReadOut),
    "creens": (ERM, NearestHullReadOut),
    "en-dro": (CVaR, MeanReadOut),
    "credro": (CVaR, BoxReadOut),
    "credro-hull": (CVaR, HullReadOut),
    "creram": (RandomSubset, BoxReadOut),
}


@pytest.mark.parametrize("name", list(TABLE))
def test_a_method_is_a_rule_and_a_readout(name):
    method = make(name)
    assert (type(method.rule), type(method.readout)) == TABLE[name]
    assert method.name == name
    assert METHODS[name].title
    assert METHODS[name].reference


def test_options_reach_the_half_they_belong_to():
    method = make("credro", delta_g=0.7, measure="gap", remainder=True)
    assert method.rule == CVaR(delta_g=0.7, remainder=True)
    assert method.readout == BoxReadOut(measure="gap")
    assert make("creens", alpha=0.8).readout == NearestHullReadOut(alpha=0.8)
    assert options("credro") == {"delta_g": 0.5, "spacing": "uniform", "remainder": False, "measure": "auto"}
    assert options("de") == {}


def test_unknown_names_and_options_say_what_there_is():
    with pytest.raises(ValueError, match=r"method must be one of de, .*got 'creddro' \(did you mean 'credro'\?\)"):
        make("creddro")
    with pytest.raises(ValueError, match=r"'credro' has no option 'alpha'; its options and defaults: delta_g=0\.5"):
        make("credro", alpha=0.1)
    with pytest.raises(ValueError, match="'de' has no option 'delta_g'; its options and defaults: none"):
        make("de", delta_g=0.7)
    with pytest.raises(ValueError, match="delta_g must lie in"):
        make("credro", delta_g=7)


def test_methods_of_one_rule_share_their_networks():
    assert {"de", "crewra", "creens"} <= set(reading(ERM()))
    assert {"en-dro", "credro", "credro-hull"} <= set(reading(CVaR(delta_g=0.7)))
    assert reading(RandomSubset()) == ["creram"]
    assert make("en-dro").rule == make("credro").rule
    assert make("en-dro").rule != make("credro", delta_g=0.7).rule


def test_config_is_enough_to_make_it_again():
    config = make("credro", delta_g=0.7).config()
    assert config["name"] == "credro"
    assert config["rule"] == {"rule": "cvar", "delta_g": 0.7, "spacing": "uniform", "remainder": False}
    assert config["readout"] == {"readout": "box", "measure": "auto"}
