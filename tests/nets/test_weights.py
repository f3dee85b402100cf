import os
import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from credro.nets import load_weights, make, make_under_seed


def build(seed, classes=10, name="resnet8"):
    return make_under_seed(lambda: make(name, classes), seed)


def same(net, state):
    return {key for key, value in net.state_dict().items() if torch.equal(value, state[key])}


def trained(seed, **options):
    net = build(seed, **options)
    generator = torch.Generator().manual_seed(seed)
    net(torch.randn(4, 3, 32, 32, generator=generator))  # running statistics that are not the initial ones
    return net


WRAPS = {
    "plain": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3},
    "net": lambda state: {"net": state, "acc": 0.9},
    "model": lambda state: {"model": state, "optimizer": {"state": {}}},
    "parallel": lambda state: {"state_dict": {f"module.{key}": value for key, value in state.items()}},
    "compiled": lambda state: {f"_orig_mod.{key}": value for key, value in state.items()},
    "both": lambda state: {f"module._orig_mod.{key}": value for key, value in state.items()},
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_every_wrapping_gives_the_same_network(wrap, tmp_path):
    source, net = trained(1), build(2)
    torch.save(WRAPS[wrap](source.state_dict()), tmp_path / "w.pth")
    report = load_weights(net, tmp_path / "w.pth")
    assert same(net, source.state_dict()) == set(source.state_dict()) == set(report.loaded)
    assert (report.replaced, report.missing, report.skipped) == ((), (), ())
    x = torch.ones(1, 3, 32, 32)
    assert torch.equal(net.eval()(x), source.eval()(x))


def test_safetensors(tmp_path):
    source, net = trained(1), build(2)
    save_file(source.state_dict(), tmp_path / "w.safetensors")
    load_weights(net, str(tmp_path / "w.safetensors"))
    assert same(net, source.state_dict()) == set(source.state_dict())


@pytest.mark.parametrize(("name", "head"), [("cnn", "head"), ("resnet8", "linear"), ("wrn28-4", "fc")])
@pytest.mark.parametrize(("save", "end"), [(torch.save, "pth"), (save_file, "safetensors")])
def test_another_number_of_classes_keeps_the_fresh_head(name, head, save, end, tmp_path):
    source, net, fresh = build(1, 100, name), build(2, 10, name), build(2, 10, name)
    save(source.state_dict(), tmp_path / f"w.{end}")
    report = load_weights(net, tmp_path / f"w.{end}")
    last = {f"{head}.weight", f"{head}.bias"}
    assert set(report.replaced) == last
    assert set(report.loaded) == set(source.state_dict()) - last
    for key, value in net.state_dict().items():
        assert torch.equal(value, (fresh if key in last else source).state_dict()[key]), key
    assert str(report) == f"{len(report.loaded)} tensors loaded; replaced: {head}.weight, {head}.bias"


def test_the_head_of_another_s_network(tmp_path):
    source, net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 9)), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    torch.save(source.state_dict(), tmp_path / "w.pt")
    assert load_weights(net, tmp_path / "w.pt").replaced == ("1.weight", "1.bias")
    assert torch.equal(net[0].weight, source[0].weight)


def test_a_part_called_module_is_not_a_prefix(tmp_path):
    source, net = (nn.Sequential() for _ in range(2))
    for sequence in (source, net):
        sequence.add_module("module", nn.Linear(2, 2))
    torch.save(source.state_dict(), tmp_path / "w.pth")
    assert load_weights(net, tmp_path / "w.pth").loaded == ("module.weight", "module.bias")


def test_files_from_before_the_batch_counter(tmp_path):
    source, net = trained(1), build(2)
    old = {key: value for key, value in source.state_dict().items() if "num_batches" not in key}
    torch.save(old, tmp_path / "w.pth")
    assert set(load_weights(net, tmp_path / "w.pth").loaded) == set(old) <= same(net, source.state_dict())


def test_missing_and_surplus_keys(tmp_path):
    source, net = build(1).state_dict(), build(2)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    gone = source.pop("conv1.weight")
    source["stem.weight"] = gone
    torch.save(source, tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"missing from the file: conv1.weight; not in the network: stem.weight"):
        load_weights(net, tmp_path / "w.pth")
    assert same(net, before) == set(before)
    report = load_weights(net, tmp_path / "w.pth", strict=False)
    assert (report.missing, report.skipped) == (("conv1.weight",), ("stem.weight",))
    assert torch.equal(net.conv1.weight, before["conv1.weight"])
    assert torch.equal(net.layer1[0].conv1.weight, source["layer1.0.conv1.weight"])


@pytest.mark.parametrize("strict", [True, False])
def test_other_shapes_are_an_error_that_changes_nothing(strict, tmp_path):
    net = build(2)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    torch.save(make("resnet8", shape=(1, 28, 28)).state_dict(), tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"conv1.weight \(16, 1, 3, 3\), network \(16, 3, 3, 3\)"):
        load_weights(net, tmp_path / "w.pth", strict=strict)
    assert same(net, before) == set(before)


def test_a_file_for_quite_another_network(tmp_path):
    torch.save({"a": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"no weight in .* fits the network: the file has a$"):
        load_weights(build(1), tmp_path / "w.pth", strict=False)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["zip", "legacy", "pickle", "hidden"])
def test_a_hostile_file_runs_nothing(kind, tmp_path):
    evil, file = Evil(tmp_path / "ran"), tmp_path / "w.pth"
    if kind == "pickle":
        file.write_bytes(pickle.dumps(evil, protocol=2))
    elif kind == "hidden":
        torch.save({"state_dict": build(1).state_dict(), "epoch": evil}, file)
    else:
        torch.save(evil, file, _use_new_zipfile_serialization=kind == "zip")
    with pytest.raises(ValueError, match="is not a readable file of plain tensors and was not loaded"):
        load_weights(build(1), file)
    assert not (tmp_path / "ran").exists()
    if kind != "pickle":  # the same file does act when it is trusted: the test would notice
        torch.load(file, weights_only=False)
        assert (tmp_path / "ran").exists()


def test_broken_files_are_named(tmp_path):
    net = build(1)
    torch.save(net.state_dict(), tmp_path / "whole.pth")
    save_file(net.state_dict(), tmp_path / "whole.safetensors")
    for name in ("whole.pth", "whole.safetensors"):
        content = (tmp_path / name).read_bytes()
        for i, broken in enumerate((b"", b"hello world", content[: len(content) // 2])):
            file = tmp_path / f"{i}{name}"
            file.write_bytes(broken)
            with pytest.raises(ValueError, match=f"{file.name} is not a readable file"):
                load_weights(net, file)
    with pytest.raises(FileNotFoundError, match="no weights file at"):
        load_weights(net, tmp_path / "none.pth")
    torch.save([torch.zeros(1)], tmp_path / "list.pth")
    with pytest.raises(ValueError, match="must hold a state dict of tensors by key, got list"):
        load_weights(net, tmp_path / "list.pth")
    torch.save({"epoch": 3, "conv1.weight": torch.zeros(1)}, tmp_path / "odd.pth")
    with pytest.raises(ValueError, match=r"got also: epoch \(int\)"):
        load_weights(net, tmp_path / "odd.pth")
    torch.save({0: torch.zeros(1)}, tmp_path / "numbered.pth")
    with pytest.raises(ValueError, match=r"got also: 0 \(Tensor\)"):
        load_weights(net, tmp_path / "numbered.pth")
