import numpy as np
import pandas as pd
import pytest
from PIL import Image

from credro.cli.app import run
from credro.data import load

SGD = ["--set", "optimizer=sgd", "--set", "weight_decay=0.0005", "--set", "warmup=0"]
"""Said in full: what these tests expect must not change with the defaults."""


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with trained runs and samples in every form."""
    here = tmp_path_factory.mktemp("cli")
    common = ["--net", "mlp", "--members", "2", "--executor", "sequential", "--threads", "1"]
    digits = [*common, "--data", "digits", "--epochs", "2", "--lr", "0.05", "--batch-size", "128", *SGD]
    assert run(["train", *digits, "--calibrate", "100", "--out", str(here / "credro")]) == 0
    assert run(["train", *digits, "--method", "de", "--out", str(here / "de")]) == 0

    test = load("digits", split="test")
    np.savez(here / "new.npz", x=test.samples[:5, 0].numpy())
    np.savez(here / "held.npz", x=test.samples[5:, 0].numpy(), y=test.labels[5:].numpy())
    for i in range(4):
        path = here / "images" / "deep" / ("even" if i % 2 == 0 else "odd") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(test.samples[i, 0].numpy()).save(path)
    Image.fromarray(test.samples[4, 0].numpy()).resize((30, 20)).convert("RGB").save(here / "images" / "large.jpg")

    draw = np.random.default_rng(0)
    size, colour = draw.normal(size=240), draw.choice(["red", "blue", "green"], 240)
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(240)], "size": size, "colour": colour})
    frame["outcome"] = np.where(size + (colour == "red") > 0.3, "sick", "well")
    frame.to_csv(here / "table.csv", index=False)
    frame[["colour", "outcome", "size"]].tail(8).to_csv(here / "labelled.csv", index=False)
    frame[["colour", "size"]].tail(8).to_csv(here / "unlabelled.csv", index=False)
    frame[["colour", "outcome"]].to_csv(here / "lacking.csv", index=False)
    table = ["--data", str(here / "table.csv"), "--label", "outcome", "--drop", "id", "--limit", "200"]
    assert run(["train", *common, *table, "--epochs", "30", "--out", str(here / "table")]) == 0
    return here
