"""CreDRO with Hugging Face's Trainer: a subclass whose ``compute_loss`` is ``credro.cvar``.

``pip install 'transformers[torch]'``, then ``python examples/huggingface_trainer.py``: it trains three tiny BERTs from
scratch on made-up sentences, so nothing is downloaded; a minute or two on one core. For a model of yours replace
``tiny_bert`` by ``AutoModelForSequenceClassification.from_pretrained(...)``. Members then start alike but for the new
head: give each its own seed and look at whether they differ enough.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

import credro

CLASSES, WORDS, LENGTH = 3, 30, 8


def need_transformers() -> Any:
    """The library, or a message that says what to install."""
    try:
        import transformers
    except ImportError:
        raise SystemExit("this example needs Hugging Face's library: pip install 'transformers[torch]'") from None
    return transformers


def cvar_trainer(trainer: type[Any]) -> type[Any]:
    """``transformers.Trainer``, or any subclass of it, with CreDRO's loss; it takes one more argument, ``delta``."""

    class CVaRTrainer(trainer):
        """Minimises the mean of the worst ``delta`` of each batch."""

        # The loss is that of one batch. Transformers 5 asks this, older versions ask model_accepts_loss_kwargs.
        loss_is_scaled_for_ga = False

        def __init__(self, *args: Any, delta: float, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.delta = delta
            self.model_accepts_loss_kwargs = False

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels = inputs["labels"]
            outputs = model(**{name: value for name, value in inputs.items() if name != "labels"})
            losses = cross_entropy(outputs["logits"], labels, reduction="none")
            loss = credro.cvar(losses, self.delta) if model.training else losses.mean()
            return (loss, outputs) if return_outputs else loss

    return CVaRTrainer


def sentences(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Made-up token sequences; the class is that third of the vocabulary which most words are from."""
    draw = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, WORDS, (count, LENGTH), generator=draw)
    labels = torch.nn.functional.one_hot(tokens * CLASSES // WORDS, CLASSES).sum(1).argmax(1)
    return [{"input_ids": t, "labels": y} for t, y in zip(tokens, labels, strict=True)]


def tiny_bert(transformers: Any) -> Any:
    """A new network at every call."""
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=LENGTH, num_labels=CLASSES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertForSequenceClassification(config)


def main(folder: str = "runs/huggingface", members: int = 3, epochs: int = 60) -> torch.Tensor:
    """Train, read; gives the members' probabilities (M, N, C) of 300 new sentences."""
    transformers = need_transformers()
    train, test = sentences(600, 0), sentences(300, 1)
    make = cvar_trainer(transformers.Trainer)
    probs = []
    for seed, delta in enumerate(credro.deltas(members=members, delta_g=0.5)):
        transformers.set_seed(seed)  # before the network is built: every member its own start
        args = transformers.TrainingArguments(
            f"{folder}/{seed}", num_train_epochs=epochs, per_device_train_batch_size=32, learning_rate=3e-3, seed=seed,
            save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no",
        )  # fmt: skip
        trainer = make(model=tiny_bert(transformers), args=args, train_dataset=train, delta=delta)
        trainer.train()
        fit = torch.as_tensor(trainer.predict(train).predictions).argmax(1) == torch.stack([i["labels"] for i in train])
        print(f"delta {delta:.3g}: {fit.float().mean():.1%} of the training set right (below 98 %: train longer)")
        probs.append(torch.as_tensor(trainer.predict(test).predictions).softmax(1))
    stacked = torch.stack(probs)
    eu = credro.epistemic(credro.Box.of(stacked))
    right = stacked.mean(0).argmax(1) == torch.stack([item["labels"] for item in test])
    known, unknown = eu[right].mean(), eu[~right].mean()
    print(f"{right.float().mean():.1%} right; mean EU {known:.3f} where right, {unknown:.3f} where wrong")
    return stacked


if __name__ == "__main__":
    main()
