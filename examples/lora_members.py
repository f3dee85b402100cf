"""Members that share a pretrained transformer and have low-rank adapters (LoRA) of their own, by ``peft``.

``pip install transformers peft``, then ``python examples/lora_members.py``: a tiny ViT is made here and trained for a
moment on one task, so nothing is downloaded; then each member gets adapters and a head of its own for another task. For
a model of yours replace ``pretrained`` by ``AutoModel.from_pretrained(folder)``.

Each member holds a copy of the transformer, whose weights stay frozen: the adapters are few, the memory is that of M
models. Merged or not, M members cost M passes at prediction; heads on one frozen trunk (``credro.on``) cost one.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import credro

CLASSES, SIZE, MEMBERS, EPOCHS = 3, 16, 3, 30


def need(name: str) -> Any:
    """The library, or a message that says what to install."""
    try:
        return __import__(name)
    except ImportError:
        raise SystemExit("this example needs Hugging Face's libraries: pip install transformers peft") from None


class LoraMember(nn.Module):
    """A frozen transformer with adapters in its attention, and a head on its first token."""

    head_name = "head"

    def __init__(self, model: nn.Module, classes: int) -> None:
        super().__init__()
        peft = need("peft")
        settings = peft.LoraConfig(r=4, lora_alpha=8, target_modules=attention(model))
        self.model = peft.get_peft_model(copy.deepcopy(model), settings)  # freezes all but the adapters
        self.head = nn.Linear(int(self.model.config.hidden_size), classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images (B, C, H, W) to logits (B, classes)."""
        logits: Tensor = self.head(self.model(pixel_values=x).last_hidden_state[:, 0])
        return logits


def attention(model: nn.Module) -> list[str]:
    """The last parts of the names of what makes queries and values, which differ between versions of the library."""
    ends = {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    return sorted(ends & {"query", "value", "q_proj", "v_proj"})


def images(count: int, seed: int, turned: bool = False) -> tuple[Tensor, Tensor]:
    """Noise with a bright bar in one of three places; turned: upright bars, the task that comes later."""
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % CLASSES
    x = torch.randn(count, 3, SIZE, SIZE, generator=draw)
    for i, k in enumerate(y.tolist()):
        x[i, :, 5 * k : 5 * k + 4] += 1.5
    return (x.transpose(2, 3).contiguous() if turned else x), y


def pretrained() -> nn.Module:
    """A tiny ViT that has learnt to tell bars apart by their height."""
    transformers = need("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model: nn.Module = transformers.ViTModel(transformers.ViTConfig(**small, image_size=SIZE, patch_size=4))
    head, (x, y) = nn.Linear(32, CLASSES), images(300, 0)
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=2e-3)
    for _ in range(10):
        for part in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            cross_entropy(head(model(pixel_values=x[part]).last_hidden_state[:, 0]), y[part]).backward()
            optimizer.step()
    return model.eval()


def main() -> credro.Ensemble:
    model = pretrained()
    recipe = credro.Recipe(epochs=EPOCHS, batch_size=32, optimizer="adamw", lr=1e-2, weight_decay=0.01)
    ens = credro.fit(
        partial(LoraMember, model, CLASSES),
        images(300, 1, turned=True),
        members=MEMBERS,
        recipe=recipe,
        executor="sequential",
        progress="none",
    )
    trained = sum(p.numel() for p in ens.nets[0].parameters() if p.requires_grad)
    print(f"each member trained {trained:,} of {sum(p.numel() for p in ens.nets[0].parameters()):,} weights")
    x, y = images(200, 2, turned=True)
    pred = ens.predict(x)
    strange = ens.predict(images(200, 3)[0])  # bars that lie: not what the members were adapted to
    right = (pred.label == y).double().mean()
    print(f"{right:.0%} right; mean EU {pred.epistemic.mean():.3f}, of lying bars {strange.epistemic.mean():.3f}")
    return ens


if __name__ == "__main__":
    main()
