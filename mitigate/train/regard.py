"""Training of the networks of regard that read tokens, all-MiniLM-L6-v2 and the gate before it, in batches with enough
polar texts; and functions that the training of n-grams shares."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.errors import MitigateError
from mitigate.train import harness
from mitigate.train.batches import Epochs
from mitigate.train.harness import Log
from mitigate.train.module import TrainingModule
from models.encoder import pad
from models.heads import REGARD

Batch = tuple[Tensor, Tensor | None, Tensor]
Settings = Mapping[str, Any]
NEGATIVE, NEUTRAL, POSITIVE, OTHER = range(len(REGARD))  # the columns
COLUMN_OF = {-1: NEGATIVE, 0: NEUTRAL, 1: POSITIVE, 2: OTHER}
ON_CPU: dict[str, Any] = {"accelerator": "cpu", "deterministic": True}
"""So a seed gives the same classifier on all processors of a kind. There are no checkpoints: training takes minutes."""
WARMUP = 0.06  # share of all steps
PLAINLY = 0.9  # the least probability of neutral in texts of which an epoch has only a share
POOL = 50  # batches sorted by length together: little padding, and still much randomness
DISTILLED = "bert_labels_conceptnet.tsv"
HUMAN = {"nlgbias_train_other.tsv": "train", "nlgbias_dev.tsv": "train", "nlgbias_test.tsv": "people"}
"""Sheng et al.'s test sentences are a part of their own: too few (30) to choose anything by."""


def fit(
    network: nn.Module, rows: Sequence[list[int]], wanted: np.ndarray, settings: Settings, *, seed: int, log: Log
) -> None:
    """Train a network, tokens and mask (batch, length) to logits (batch, 4), towards the probabilities wanted (n, 4) of
    each row of token ids.

    settings: learning_rate, epochs, batch_size, and neutral_share, the share of the plainly neutral texts, 19 of 20,
    that is drawn anew for each epoch. With half of them the logits need no offsets: the best on part valid, when it was
    held out, changed macro-F1 by less than .01."""
    harness.seed(seed)
    batches = Batches(rows, wanted, settings, seed)
    module = TokenTraining(network, batches, settings["learning_rate"], settings["epochs"])
    harness.fit(module, precision="auto", log=log, **ON_CPU)
    network.eval()


class TokenTraining(TrainingModule):
    """Cross-entropy; AdamW, whose learning rate rises for WARMUP of the steps and falls to 0."""

    def __init__(self, network: nn.Module, batches: "Batches", peak: float, epochs: int) -> None:
        steps = epochs * len(batches)

        def learning_rate(step: int) -> float:
            return peak * min((step + 1) / (WARMUP * steps), (steps - step) / ((1 - WARMUP) * steps))

        size = batches.num_drawn / len(batches)
        super().__init__(Epochs(batches, size), steps, learning_rate, seed=None)
        self.network = network

    def training_step(self, batch: Batch, _: int) -> Tensor:
        tokens, mask, wanted = batch  # probabilities
        return F.cross_entropy(self.network(tokens, mask).float(), wanted)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # Not fused, and all parameters decay, as in the training of the shipped classifiers.
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return torch.optim.AdamW(trained, lr=self.learning_rate(0), betas=(0.9, 0.98))


class Batches:
    """Batches of token ids with the probabilities wanted, of similar lengths and in another order in each pass."""

    def __init__(self, rows: Sequence[list[int]], wanted: np.ndarray, settings: Settings, seed: int) -> None:
        self.rows = rows
        self.wanted = torch.tensor(wanted, dtype=torch.float32)
        self.size: int = settings["batch_size"]
        plain = wanted[:, NEUTRAL] >= PLAINLY
        self.polar, self.neutral = np.flatnonzero(~plain), np.flatnonzero(plain)
        self.num_neutral = round(settings["neutral_share"] * len(self.neutral))
        self.num_drawn = len(self.polar) + self.num_neutral  # texts in an epoch
        self.chance = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-self.num_drawn // self.size)

    def __iter__(self) -> Iterator[Batch]:
        drawn = self.chance.choice(self.neutral, self.num_neutral, replace=False)
        order = self.chance.permutation(np.concatenate([self.polar, drawn]))
        pools = [order[start : start + POOL * self.size] for start in range(0, len(order), POOL * self.size)]
        by_length = [index for pool in pools for index in sorted(pool, key=lambda index: len(self.rows[index]))]
        batches = [by_length[start : start + self.size] for start in range(0, len(by_length), self.size)]
        for number in self.chance.permutation(len(batches)):
            tokens, mask = pad([self.rows[index] for index in batches[number]], padding=0)
            yield tokens, mask, self.wanted[batches[number]]


def certain(columns: np.ndarray) -> np.ndarray:
    """Columns (n,) as probabilities (n, 4)."""
    return np.eye(len(REGARD), dtype=np.float32)[columns]


def columns_of(labelled: pl.DataFrame) -> np.ndarray:
    """The labels of a table as columns of REGARD, (n,)."""
    return labelled["label"].replace_strict(COLUMN_OF, return_dtype=pl.Int64).to_numpy()


def best_offsets(probabilities: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The offsets of the logits, (4,), with the best macro-F1 over negative, neutral and positive.

    A classifier of such rare classes is not best at the most probable class. Other counts as neutral, as in all
    measures, and keeps its logit."""
    logits = np.log(probabilities + 1e-9)
    wanted = np.where(columns == OTHER, NEUTRAL, columns)

    def score(offsets: np.ndarray) -> float:
        chosen = (logits + offsets).argmax(1)
        return f1_score(wanted, np.where(chosen == OTHER, NEUTRAL, chosen), average="macro")

    grid = product(np.arange(-2, 3.01, 0.25), repeat=2)
    return max((np.array([negative, 0, positive, 0], dtype=np.float32) for negative, positive in grid), key=score)


def read_labelled(folder: Path, kept_out: Collection[str] = ()) -> pl.DataFrame:
    """Each distinct text with its label and part: train, valid, test or people.

    A target is in one part, which depends only on its name and not on a seed. All texts of test's targets are in test;
    of the rest all texts of valid's targets are in valid. Hence no text is in two parts, and no tested text occurs with
    another target elsewhere. Texts in `kept_out` are in no part. Raises MitigateError when a file is missing."""
    missing = [name for name in (DISTILLED, *HUMAN) if not (folder / name).is_file()]
    if missing:
        raise MitigateError(f"{folder} lacks {', '.join(missing)}; data.root must name the folder that has regard/")
    distilled = _read(folder / DISTILLED, ["target", "label", "text"])  # a row for each target that a text names
    parts = {target: part_of(target) for target in distilled["target"].unique()}
    part = pl.col("target").replace_strict(parts, return_dtype=pl.Enum(["test", "valid", "train"])).alias("part")
    distilled = distilled.group_by("text").agg(pl.col("label").first(), part.min().cast(pl.String))
    read = [_read(folder / name, ["label", "text"]).with_columns(part=pl.lit(part)) for name, part in HUMAN.items()]
    human = pl.concat(read).select(pl.col("text").str.replace_all("XYZ", "this person"), "label", "part")
    labelled = pl.concat([distilled, human]).unique("text", keep="first", maintain_order=True)
    return labelled.filter(~pl.col("text").is_in(list(kept_out))).sort("part", "text")


def part_of(target: str) -> str:
    """The part of a target: two of ten are for testing, one for choosing settings, seven for training."""
    digit = int(hashlib.sha256(target.encode()).hexdigest(), 16) % 10
    return {0: "test", 1: "test", 2: "valid"}.get(digit, "train")


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    format: dict[str, Any] = {"separator": "\t", "has_header": False, "quote_char": None}
    return pl.read_csv(path, new_columns=columns, schema_overrides={"label": pl.Int8}, **format)
