"""Trunks of timm: for real where it imports; the preprocessing that it notes, and the error where it does not."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

import credro
from credro.nets.timm import prepared_by_timm
from credro.nets.trunk import Preprocessing


class Noted(nn.Module):
    """As timm's networks: it notes how its images are prepared."""

    def __init__(self, **noted):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.pretrained_cfg = {"input_size": (3, 24, 20), "mean": (0.5,) * 3, "std": (0.25,) * 3, **noted}

    def forward(self, x):
        return self.conv(x)


def test_the_preprocessing_of_a_module_is_its_own():
    wanted = Preprocessing((24, 20), (0.5,) * 3, (0.25,) * 3, "bilinear")
    assert credro.on(Noted(interpolation="bilinear")).trunk.preprocessing == wanted
    assert prepared_by_timm(Noted()).interpolation == "bicubic"
    assert prepared_by_timm(nn.Linear(2, 2)) == Preprocessing()
    changed = credro.on(Noted(), size=(10, 10), interpolation="nearest").trunk.preprocessing
    assert (changed.size, changed.interpolation, changed.mean) == ((10, 10), "nearest", (0.5,) * 3)
    with pytest.raises(ValueError, match="interpolation must be one of bilinear, bicubic, nearest, got 'lanczos'"):
        credro.on(Noted(interpolation="lanczos"))


def test_where_timm_does_not_import_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"timm does not import here.*needs torchvision") as error:
        credro.on("timm:resnet18", weights="resnet18.pth")
    assert error.value.name == "timm"


def test_timm_itself(tmp_path):
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"timm does not import here: {error}")
    torch.manual_seed(0)
    net = timm.create_model("resnet10t", pretrained=False).eval()
    torch.save(net.state_dict(), tmp_path / "weights.pth")
    trunk = credro.on("timm:resnet10t", weights=tmp_path / "weights.pth").trunk
    x = torch.randint(0, 256, (2, 3, 40, 40), dtype=torch.uint8)
    config = timm.data.resolve_data_config({}, model=net)
    assert trunk.preprocessing.size == config["input_size"][1:]
    assert (trunk.preprocessing.mean, trunk.preprocessing.interpolation) == (config["mean"], config["interpolation"])
    with torch.no_grad():
        wanted = net.forward_head(net.forward_features(trunk.preprocessing(x)), pre_logits=True)
    assert torch.allclose(trunk.features(x), wanted, atol=1e-4)
    with pytest.raises(ValueError, match="weights of timm:resnet10t are needed"):
        credro.on("timm:resnet10t")
    with pytest.raises(ValueError, match="did you mean 'resnet10t'"):
        credro.on("timm:resnet10tt")
