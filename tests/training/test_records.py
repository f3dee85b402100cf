"""What a run keeps of itself is typed: back and forth, and whatever is wrong with a file is said with its name."""

import copy
import json
import random
import shutil
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch

import credro
from credro._names import ArgumentError
from credro._records import RecordError
from credro.data.spec import DataSpec
from credro.methods import make
from credro.nets import NETS
from credro.nets.small import MLP
from credro.training.feed import Inputs
from credro.training.files import digest_of, read_facts, read_tensors, write_tensors
from credro.training.recipe import Recipe
from credro.training.records import (
    Calibration,
    DataRecord,
    Epoch,
    Execution,
    Fit,
    HeldOut,
    Lowest,
    MemberRecord,
    Network,
    RunConfig,
)
from credro.training.run import History, RunError
from tests.training.common import blobs, small_net, trained

X, Y = blobs(60)
CONFIG = RunConfig(
    method=make("credro", delta_g=0.7).config(),
    members=2,
    recipe=Recipe(milestones=(3, 5)),
    network=Network("mlp", target=(1.0, 2.0)),
    classes=("a", "b"),
    inputs=Inputs((1, 4), (0.5,), (0.25,), True),
    data=DataRecord("mine", 60, "abc", DataSpec("digits", options={"size": 8})),
    held_out="def",
    loss="cross_entropy",
    execution=Execution("stacked", 2),
    facts={"any": ["thing", {"at": 1.5}]},
    versions={"torch": "2"},
)
FIT = Fit(0.25, 0.5, 0.75, 0.875)
MEMBER = MemberRecord(1, 7, 2.5, FIT, Fit(1.0), 5, True, Lowest(4, 0.5), {"delta": 0.5}, "digest", "other")
RECORDS = [
    CONFIG,
    RunConfig(**{**vars(CONFIG), "network": Network(own="my.net", state={"weight": (2, 3), "bias": ()}, given=True)}),
    MEMBER,
    MemberRecord(0),
    Epoch(3, 0.5, None, 0.1, 1.5, 0.25, 0.75, 0.125, {"reached": True}, True),
    Calibration((1.5, 0.5), HeldOut("aside", 20, "ghi")),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_json_and_back(record):
    plain = json.loads(json.dumps(record.to_json()))
    again = type(record).from_json(plain)
    assert again == record
    assert again.to_json() == record.to_json()


def test_a_member_says_its_delta():
    assert (MEMBER.delta, MemberRecord(0).delta) == (0.5, None)
    assert "train" not in MemberRecord(0).to_json()  # what is not known is left out


@pytest.mark.parametrize(
    ("record", "change", "field", "problem"),
    [
        (CONFIG, {"members": "2"}, "members", "must be a whole number, got '2'"),
        (CONFIG, {"members": True}, "members", "must be a whole number, got True"),
        (CONFIG, {"members": 0}, "", "members must be 1 to 100,000, got 0"),
        (CONFIG, {"members": 10**9}, "", "members must be 1 to 100,000, got 1000000000"),
        (CONFIG, {"format": 3}, "", "has format 3, this version reads 2"),
        (CONFIG, {"classes": "ab"}, "classes", "must be a list, got 'ab'"),
        (CONFIG, {"classes": ["a", 1]}, "classes[1]", "must be a text, got 1"),
        (CONFIG, {"inputs": {"shape": [1.5]}}, "inputs.shape[0]", "must be a whole number, got 1.5"),
        (CONFIG, {"inputs": {}}, "inputs.shape", "is missing"),
        (CONFIG, {"inputs": {"shape": [2], "mean": [1.0]}}, "inputs", "mean and std must have one entry per channel"),
        (
            CONFIG,
            {"inputs": {"shape": [1], "mean": [1.0], "std": [0.0]}},
            "",
            "inputs.mean must be finite, and inputs.st",
        ),
        (CONFIG, {"inputs": {"shape": [1], "mean": [float("inf")], "std": [1.0]}}, "", "inputs.mean must be finite"),
        (MEMBER, {"traits": {"delta": "half"}}, "", "traits.delta must be a number, got 'half'"),
        (CONFIG, {"network": {}}, "network", "must have either a name or own"),
        (CONFIG, {"network": {"own": "n", "state": {"w": [1, "2"]}}}, "network.state.w[1]", "must be a whole number"),
        (CONFIG, {"network": {"name": "mlp", "target": [1.0]}}, "network.target", "must have 2 entries, got 1"),
        (CONFIG, {"method": {"name": "x"}}, "", "method.start is missing or no object with a kind"),
        (CONFIG, {"strange": 1}, "strange", "is no field that this version knows"),
        (MEMBER, {"train": {"loss": "low"}}, "train.loss", "must be a number, got 'low'"),
        (MEMBER, {"stopped_early": 1}, "stopped_early", "must be true or false, got 1"),
        (RECORDS[-1], {"temperatures": [1.0, 0.0]}, "", "temperatures[1] must be positive and finite, got 0.0"),
        (RECORDS[-1], {"temperatures": [float("nan")]}, "", "temperatures[0] must be positive and finite, got nan"),
        (RECORDS[-1], {"held_out": None}, "held_out", "must be an object, got None"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field(record, change, field, problem):
    plain = {**json.loads(json.dumps(record.to_json())), **change}
    with pytest.raises(RecordError) as error:
        type(record).from_json(plain, "some/file.json")
    assert (error.value.file, error.value.field) == ("some/file.json", field)
    assert error.value.problem.startswith(problem)
    assert str(error.value) == f"some/file.json: {field + ' ' if field else ''}{error.value.problem}"


def test_a_recipe_that_is_wrong_names_the_field_that_it_is_about():
    plain = {**CONFIG.to_json(), "recipe": {**CONFIG.recipe.to_json(), "lr": -1.0}}
    with pytest.raises(RecordError, match=r"^config\.json: recipe lr must be positive and finite, got -1\.0$"):
        RunConfig.from_json(plain, "config.json")


def test_tensors_and_facts_are_written_with_a_checksum_and_one_digest(tmp_path):
    tensors = {"a": torch.randn(3, 2), "b": torch.tensor(2), "c": torch.zeros(0), "d": torch.ones(2).bool()}
    tensors["e"] = torch.randn(4).bfloat16()
    digests = {write_tensors(tmp_path / f"{i}", tensors, {"epoch": 3, "failed": {}}) for i in range(30)}
    assert digests == {digest_of(tmp_path / "0")}  # equal content is one digest: runs are compared by it
    found, facts = read_tensors(tmp_path / "0")
    assert facts == read_facts(tmp_path / "0") == {"epoch": 3, "failed": {}}
    assert all(torch.equal(found[k], tensors[k]) and found[k].dtype == tensors[k].dtype for k in tensors)
    content = (tmp_path / "0").read_bytes()
    for at in (-1, -5, content.index(b'\\"epoch\\": 3') + 11):  # the last number, one before it, a fact
        spoilt = bytearray(content)
        spoilt[at] ^= 1
        (tmp_path / "0").write_bytes(spoilt)
        with pytest.raises(RecordError, match="is damaged: its content does not have the checksum") as error:
            read_tensors(tmp_path / "0")
        assert error.value.file == str(tmp_path / "0")


@pytest.fixture(scope="module", params=["new", "version 0.1"])
def whole(request, tmp_path_factory):
    """A small run with everything that a run may have."""
    NETS["tiny"] = partial(MLP, hidden=(6,))
    folder = tmp_path_factory.mktemp("whole") / "run"
    if request.param == "new":
        recipe = Recipe(epochs=3, batch_size=16, lr=0.05, early_stop=2)
        data, held_out = (X[:40], Y[:40]), (X[40:50], Y[40:50])
        trained("tiny", data, folder, recipe=recipe, held_out=held_out, calibrate=(X[50:], Y[50:]))
    else:
        shutil.copytree(Path(__file__).parent / "version1" / "calibrated", folder)
    yield folder
    del NETS["tiny"]


def look(folder):
    """All that reads the files of a run."""
    ensemble = credro.load(folder, device="cpu")
    _ = ensemble.records, ensemble.warnings, ensemble.config, ensemble.spec, ensemble.readers
    ensemble._repr_html_()
    x, y = blobs(10, ensemble.inputs.shape[0], seed=1)
    ensemble.unseen((x, y))
    ensemble.predict(x)


def outcome(folder):
    """What comes of reading: None, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            look(folder)
    except Exception as error:
        return error
    return None


STRANGE = [None, True, -1, 0, 3, 10**9, 1.5, float("nan"), float("inf"), "", "text", [], [1, 2], ["a"], {}, {"a": 1}]


def places(value, way=()):
    """The way to everything inside a JSON value."""
    yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield from places(part, (*way, key))


def change(plain, draw):
    """One part of a JSON value exchanged, removed, renamed or put twice."""
    plain = copy.deepcopy(plain)
    way = draw.choice(list(places(plain)))
    if not way:
        return draw.choice(STRANGE)
    holder = plain
    for key in way[:-1]:
        holder = holder[key]
    what = draw.choice(["exchange", "exchange", "remove", "rename", "nest"])
    if what == "exchange":
        holder[way[-1]] = draw.choice(STRANGE)
    elif what == "remove":
        del holder[way[-1]]
    elif what == "nest":
        holder[way[-1]] = [holder[way[-1]]]
    elif isinstance(holder, dict):
        holder[f"{way[-1]}x"] = holder.pop(way[-1])
    else:
        holder.append(draw.choice(STRANGE))
    return plain


def spoil(content, draw):
    """Bytes cut off, changed, put in or doubled."""
    at = draw.randrange(len(content))
    noise = bytes(draw.randrange(256) for _ in range(draw.choice([1, 8, 200])))
    before, after = content[:at], content[at + 1 :]
    return draw.choice([before, before + noise + after, before + noise, noise, b"", b"{}"])


def respell(content, draw):
    """A safetensors file with another header: its JSON is changed, the rest stays."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(change(json.loads(content[8 : 8 + size]), draw)).encode()
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def mutated(path, draw):
    content = path.read_bytes()
    if draw.random() < 0.3:
        return spoil(content, draw)
    if path.suffix == ".safetensors":
        return respell(content, draw)
    if path.suffix == ".json":
        return json.dumps(change(json.loads(content), draw)).encode()
    lines = content.splitlines()
    at = draw.randrange(len(lines))
    lines[at] = json.dumps(change(json.loads(lines[at]), draw)).encode()
    return b"\n".join(lines)


FILES = [
    "config.json",
    "config.json",
    "calibration.json",
    "seen.safetensors",
    "members/00/done.json",
    "members/01/weights.safetensors",
]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_whose_files_were_changed_is_read_or_refused_by_name(whole, tmp_path, seed):
    """Never a bare JSONDecodeError, KeyError, TypeError or SafetensorError, of which nobody knows whence it comes."""
    draw, refused = random.Random(seed), 0
    folder = shutil.copytree(whole, tmp_path / "run")
    for _ in range(80):
        name = draw.choice(FILES)
        content = mutated(whole / name, draw)
        (folder / name).write_bytes(content)
        error, known = outcome(folder), f"{name}: {content[:3000]!r}"
        if isinstance(error, ArgumentError):  # what may be a choice or a network of the user's own, and is asked for
            assert (name, error.argument) in [("config.json", "method"), ("config.json", "make_net")], known
        elif error is not None:
            assert isinstance(error, RecordError | RunError), f"{type(error).__name__}: {error}\n{known}"
            assert str(folder) in str(error), known
        refused += error is not None
        (folder / name).write_bytes((whole / name).read_bytes())
        shutil.rmtree(folder / "predictions", ignore_errors=True)
    assert refused > 40
    assert outcome(folder) is None


@pytest.mark.parametrize("seed", range(2))
def test_a_history_that_was_changed_is_read_or_refused_by_name(whole, tmp_path, seed):
    path, draw = whole / "members/01/history.jsonl", random.Random(seed)
    history, refused = History(tmp_path / "history.jsonl"), 0
    for _ in range(60):
        history.path.write_bytes(mutated(path, draw))
        try:
            assert all(isinstance(epoch, Epoch) for epoch in history.read())
        except RecordError as error:
            refused += (error.file, error.field[:5]) == (str(history.path), "line ")
    assert refused > 15


@pytest.mark.parametrize("name", FILES[2:])
def test_a_file_that_is_gone_is_named_where_it_is_needed(whole, tmp_path, name):
    folder = shutil.copytree(whole, tmp_path / "run")
    (folder / name).unlink()
    error = outcome(folder)
    if name in ("calibration.json", "seen.safetensors"):
        assert error is None
    else:
        assert isinstance(error, RecordError | RunError)
        assert str(folder) in str(error)


def test_the_test_input_of_ones_own_networks_is_checked_too(tmp_path):
    folder = credro.Ensemble.of([small_net(), small_net()], (X, Y)).save(tmp_path / "run")
    write_tensors(folder / "probe.safetensors", {"x": X})
    with pytest.raises(RecordError, match=r"probe\.safetensors: must hold x and scores"):
        credro.load(folder, make_net=small_net)


def test_a_configuration_of_a_network_without_end_takes_no_memory(whole, tmp_path):
    """As it says 2 * 10**9 features: the weights are too few for it, and no more is built."""
    folder = shutil.copytree(whole, tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    config["inputs"]["shape"] = [2 * 10**9]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RecordError, match=r"weights\.safetensors: does not hold a member of this run, 'tiny'"):
        credro.load(folder)
