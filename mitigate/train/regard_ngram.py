"""Training of the weights of n-grams, from the labels and from another classifier's probabilities for unlabelled texts:
a linear model has no weight for a word that it has not seen."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn

from mitigate.train import harness
from mitigate.train.batches import Epochs
from mitigate.train.harness import Log
from mitigate.train.module import TrainingModule
from mitigate.train.regard import ON_CPU, Settings, best_offsets, certain, columns_of
from models.heads import REGARD
from models.ngram import NgramClassifier, ngrams, per_text

Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def fit_ngram(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Settings, *, seed: int, log: Log | None = None
) -> NgramClassifier:
    """Train on the texts (text, label, part) of part train and on the taught ones (text, probabilities); set offsets by
    part valid. settings: buckets, batch_size, learning_rate, epochs, and decay, the weight of the sum of squares."""
    harness.seed(seed)
    learnt, valid = (labelled.filter(part=part) for part in ("train", "valid"))
    texts = [*learnt["text"], *taught["text"]]
    wanted = np.concatenate([certain(columns_of(learnt)), taught["probabilities"].to_numpy()])
    batches = NgramBatches(texts, wanted, settings["buckets"], settings["batch_size"], seed)
    module = NgramTraining(batches, wanted.mean(0), settings)
    harness.fit(module, precision="32-true", log=log, **ON_CPU)
    weight = module.weight.weight.detach().numpy() * batches.rarity[:, None]
    classifier = NgramClassifier(weight, module.bias.detach().numpy())
    offsets = best_offsets(classifier.probabilities(valid["text"].to_list()), columns_of(valid))
    return NgramClassifier(classifier.weight, classifier.bias + offsets)


class NgramTraining(TrainingModule):
    """Cross-entropy with probabilities; Adam, whose learning rate falls to 0."""

    def __init__(self, batches: "NgramBatches", prior: np.ndarray, settings: Settings) -> None:
        peak, steps = settings["learning_rate"], settings["epochs"] * len(batches)
        shape = settings["buckets"], len(REGARD)
        size = len(batches.lengths) / len(batches)
        super().__init__(Epochs(batches, size), steps, lambda step: peak * (1 - step / steps), seed=None)
        self.weight = nn.EmbeddingBag(*shape, mode="sum", _weight=torch.zeros(shape))
        self.bias = nn.Parameter(torch.tensor(np.log(prior + 1e-6), dtype=torch.float32))
        self.decay = settings["decay"]

    def training_step(self, batch: Batch, _: int) -> Tensor:
        buckets, starts, shares, wanted = batch
        logits = self.weight(buckets, starts, per_sample_weights=shares) + self.bias
        return -(wanted * logits.log_softmax(-1)).sum(-1).mean() + self.decay * self.weight.weight.square().sum()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate(0))


class NgramBatches:
    """The n-grams of all texts, hashed once, in another order of the texts each time they are gone through.

    An n-gram counts by its rarity, 1 for one of e^2 texts, so that rare ones learn faster; at the end it is part of the
    weights."""

    def __init__(self, texts: Sequence[str], wanted: np.ndarray, buckets: int, size: int, seed: int) -> None:
        owners, found = ngrams(texts, buckets)
        self.buckets = found[np.argsort(owners, kind="stable")].astype(np.int32)
        self.lengths = np.bincount(owners, minlength=len(texts))
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.shares = per_text(owners, len(texts))
        frequency = np.bincount(found, minlength=buckets)
        self.rarity = ((1 + np.log((1 + len(texts)) / (1 + frequency))) / 3).astype(np.float32)
        self.wanted = torch.tensor(wanted)
        self.size = size
        self.chance = np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        order = self.chance.permutation(len(self.lengths))
        for start in range(0, len(order), self.size):
            chosen = order[start : start + self.size]
            lengths, starts = self.lengths[chosen], self.starts[chosen]
            together = np.concatenate([self.buckets[a:b] for a, b in zip(starts, starts + lengths, strict=True)])
            yield (
                torch.tensor(together),
                torch.tensor(np.cumsum(lengths) - lengths),
                torch.tensor(np.repeat(self.shares[chosen], lengths) * self.rarity[together]),
                self.wanted[chosen],
            )
