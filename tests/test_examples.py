"""The examples do what they say.

``plain_pytorch.py`` runs as it stands, for fewer epochs. Transformers and Lightning are no dependencies: of their
examples the classes run here, on stand-ins that have of the real ones what the classes use. Not run is their ``main``,
that is the libraries' own trainers, their arguments and seeds.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

FOLDER = Path(__file__).parent.parent / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def worst_half(logits: torch.Tensor, labels: torch.Tensor) -> float:
    """Mean of the larger half of the losses, by sorting plain numbers."""
    pairs = zip(logits.detach(), labels, strict=True)
    losses = sorted((float(cross_entropy(z[None], y[None])) for z, y in pairs), reverse=True)
    return sum(losses[: len(losses) // 2]) / (len(losses) // 2)


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(10, 4, generator=draw), torch.randint(0, 3, (10,), generator=draw)


def test_plain_pytorch_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = example("plain_pytorch")
    monkeypatch.setattr(module, "EPOCHS", 4)
    with torch.random.fork_rng():
        probs = module.main()
    assert probs.shape == (5, 500, 10)
    assert torch.allclose(probs.sum(-1), torch.ones(5, 500))
    assert not torch.equal(probs[0], probs[1])
    said = capsys.readouterr().out
    assert "fit on the training set" in said
    assert "right; mean EU" in said


class StandInTrainer:
    """Of ``transformers.Trainer``: it keeps the model, and asks the model whether it takes further arguments."""

    def __init__(self, model: Any = None, args: Any = None, train_dataset: Any = None) -> None:
        self.model, self.args, self.train_dataset = model, args, train_dataset
        self.model_accepts_loss_kwargs = True


class StandInModel(nn.Module):
    """As a sequence classifier of transformers: called with keywords, gives a mapping with logits."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, features: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.linear(features)}


def test_trainer_of_transformers_minimises_the_worst_half(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = batch
    model = StandInModel().train()
    trainer = example("huggingface_trainer").cvar_trainer(StandInTrainer)(model=model, delta=0.5)
    assert trainer.model is model
    assert not trainer.model_accepts_loss_kwargs
    loss, outputs = trainer.compute_loss(
        model, {"features": x, "labels": y}, return_outputs=True, num_items_in_batch=10
    )
    assert loss.item() == pytest.approx(worst_half(outputs["logits"], y), rel=1e-5)
    loss.backward()
    assert model.linear.weight.grad is not None
    plain = trainer.compute_loss(model.eval(), {"features": x, "labels": y})
    assert plain.item() == pytest.approx(cross_entropy(outputs["logits"], y).item(), rel=1e-5)


def test_arguments_are_those_the_real_trainer_passes() -> None:
    """transformers 4.46 to 5.22: ``compute_loss(model, inputs, return_outputs=False, num_items_in_batch=None)``."""
    trainer = example("huggingface_trainer").cvar_trainer(StandInTrainer)
    parameters = inspect.signature(trainer.compute_loss).parameters
    assert list(parameters) == ["self", "model", "inputs", "return_outputs", "num_items_in_batch"]
    assert parameters["return_outputs"].default is False
    assert parameters["num_items_in_batch"].default is None


def test_made_up_sentences_have_the_class_of_most_of_their_words() -> None:
    items = example("huggingface_trainer").sentences(50, seed=0)
    for item in items:
        counts = [sum(10 * k <= token < 10 * (k + 1) for token in item["input_ids"].tolist()) for k in range(3)]
        assert counts[int(item["labels"])] == max(counts)


def test_module_of_lightning_minimises_the_worst_half(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, y = batch
    member = example("lightning_module").member_module(nn.Module)(nn.Linear(4, 3), delta=0.5, lr=0.1)
    loss = member.training_step((x, y), 0)
    assert loss.item() == pytest.approx(worst_half(member(x), y), rel=1e-5)
    (group,) = member.configure_optimizers().param_groups
    assert group["lr"] == 0.1
    assert {id(p) for p in group["params"]} == {id(p) for p in member.parameters()}
    assert torch.allclose(member.predict_step((x, y), 0).sum(1), torch.ones(10))


@pytest.mark.parametrize(
    ("name", "library", "hint"),
    [
        ("huggingface_trainer", "transformers", "pip install 'transformers[torch]'"),
        ("lightning_module", "lightning", "pip install lightning"),
    ],
)
def test_a_missing_library_is_named(name: str, library: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # importing it fails, wherever it is installed
    with pytest.raises(SystemExit) as stop:
        example(name).main()
    assert hint in str(stop.value)


def test_loading_an_example_imports_no_optional_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("transformers", "lightning"):
        monkeypatch.setitem(sys.modules, library, None)
    for name in ("huggingface_trainer", "lightning_module"):
        assert callable(example(name).main)


def test_members_with_adapters_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="needs credro[transformers]")
    pytest.importorskip("peft", reason="needs peft")
    module = example("lora_members")
    with torch.random.fork_rng():
        ens = module.main()
        start = module.pretrained().state_dict()
    said = capsys.readouterr().out
    assert "weights" in said
    one, other = (dict(net.named_parameters()) for net in ens.nets[:2])
    for name, p in one.items():
        if p.requires_grad:
            assert not torch.equal(p, other[name]), "each member has its own"
            assert "lora_" in name or name.startswith("head.")
    kept = {n.removeprefix("model.base_model.model.").replace(".base_layer", ""): p for n, p in one.items()}
    frozen = [name for name in kept if name in start]
    assert len(frozen) == len(start), "all of the transformer's weights"
    assert all(torch.equal(kept[name], start[name]) for name in frozen), "as they were"
    x, y = module.images(200, 2, turned=True)
    assert float((ens.predict(x).label == y).double().mean()) > 0.8
