"""Training of the networks of models.plausibility: true triples against the same with another head, relation or tail, a
third each, as in the labelled triples of Li et al. (2016).

Two further terms make the logits depend on this head and tail, and not only on how common each is. Echo: a phrase is
not head and tail at once. Contrast: the true tail scores above the others of the batch for this head, and so does the
true head.

Other heads and tails are those of all other triples in the batch, so that a phrase is encoded once and used in many
wrong triples, as often as it occurs in training. Other relations are all relations, weighted by their shares in
training. A training triple never counts as wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from mitigate.stages import SURROUNDING
from mitigate.train import harness
from mitigate.train.batches import Batches
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import LOG_EVERY, Log
from mitigate.train.module import TrainingModule, adamw, linear
from models.plausibility import Bilinear


@dataclass(frozen=True)
class Settings:
    """Settings of a training."""

    epochs: int
    batch_size: int
    learning_rate: float  # reached after the warmup, then falling linearly to 0
    weight_decay: float = 0.01  # of matrices
    warmup: float = 0.06  # of all steps
    echo: float = 0.2  # weight of triples whose tail is their head
    contrast: float = 0.3  # weight of the choice among all tails, and all heads, of a batch
    precision: str = "auto"  # bf16-mixed where the processor computes in it, else 32-true
    seed: int = 1
    checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)  # seconds


class Known:
    """The true triples (head, relation, tail) as numbers of phrases and of a network's relations."""

    def __init__(self, triples: pl.DataFrame, relations: Sequence[str]) -> None:
        self.phrases = sorted({*triples["head"], *triples["tail"]})
        number = {phrase: i for i, phrase in enumerate(self.phrases)}
        column = {relation: i for i, relation in enumerate(relations)}
        self.heads = np.array([number[head] for head in triples["head"]])  # (n,)
        self.relations = np.array([column[relation] for relation in triples["relation"]])
        self.tails = np.array([number[tail] for tail in triples["tail"]])
        self.share = np.bincount(self.relations, minlength=len(column)) / len(self.relations)  # (relations,)
        self._keys = np.unique(self._key(self.heads, self.relations, self.tails))

    def holds(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """Return whether each triple is known to be true, bool, with the broadcast shape of the three."""
        keys = self._key(heads, relations, tails)
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._keys[places] == keys

    def _key(self, heads: np.ndarray, relations: np.ndarray, tails: np.ndarray) -> np.ndarray:
        return (heads * len(self.share) + relations) * len(self.phrases) + tails


class PlausibilityTraining(TrainingModule):
    """The loss of a batch, and the optimizer."""

    def __init__(self, network: Bilinear, known: Known, settings: Settings) -> None:
        # All lengths are 0: in batches sorted by length, all wrong answers would be as long as the right one.
        batches = Batches(np.zeros(len(known.heads)), settings.batch_size, settings.seed)
        steps = math.ceil(settings.epochs * len(known.heads) / settings.batch_size)
        learning_rate = linear(settings.learning_rate, settings.warmup, steps)
        super().__init__(batches, steps, learning_rate, seed=settings.seed)
        self.network = network
        self.known = known
        self.settings = settings
        self.pieces = network.phrases.encode(known.phrases)

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The mean over the batch of -log p(true) - (sum over head, relation, tail of log(1 - p(other))) / 3, and the
        two further terms by their weights."""
        known = self.known
        heads, relations, tails = known.heads[batch], known.relations[batch], known.tails[batch]
        read, places = np.unique(np.concatenate([heads, tails]), return_inverse=True)
        # Rows of a tensor are taken together: autocast to bf16 stacks no rows in half precision.
        pieces = self.pieces
        chosen = pieces[torch.tensor(read)] if isinstance(pieces, Tensor) else [pieces[phrase] for phrase in read]
        vectors = self.network.vectors(chosen)
        first, second = vectors[torch.tensor(places)].chunk(2)  # (batch, width) each
        matrices = self.network.matrices
        own = matrices[torch.tensor(relations)]  # (batch, width, width)
        from_head, to_tail = torch.einsum("ni,nij->nj", first, own), torch.einsum("nij,nj->ni", own, second)
        by_tail = (from_head @ second.T).float()  # (batch, batch): row's head, column's tail
        by_head = (to_tail @ first.T).float()  # row's tail, column's head
        by_relation = torch.einsum("ni,rij,nj->nr", first, matrices, second).float()
        other_tails = ~known.holds(heads[:, None], relations[:, None], tails)
        other_heads = ~known.holds(heads, relations[:, None], tails[:, None])
        other_relations = ~known.holds(heads[:, None], np.arange(len(matrices)), tails[:, None]) * known.share
        others = (by_tail, other_tails), (by_head, other_heads), (by_relation, other_relations)
        wrong = sum(mean_by(softplus(logits), weights) for logits, weights in others)
        loss = softplus(-by_tail.diagonal()) + wrong / 3
        if self.settings.contrast:
            loss = loss + self.settings.contrast * (choice(by_tail, other_tails) + choice(by_head, other_heads)) / 2
        if self.settings.echo:
            twice = ((from_head * first).sum(1), heads), ((to_tail * second).sum(1), tails)
            echoes = sum(
                softplus(logits.float()) * torch.tensor(~known.holds(phrases, relations, phrases))
                for logits, phrases in twice
            )
            loss = loss + self.settings.echo * echoes / 2
        return loss.mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return adamw(self.parameters(), self.settings.learning_rate, self.settings.weight_decay, betas=(0.9, 0.98))


def choice(logits: Tensor, others: np.ndarray) -> Tensor:
    """The loss -log softmax of each row's own column among it and the others, (n,). logits: (n, n), a row's own on the
    diagonal; others: the mask of columns that are known to be wrong, bool."""
    among = torch.tensor(others) | torch.eye(len(logits), dtype=torch.bool)
    return cross_entropy(logits.masked_fill(~among, -torch.inf), torch.arange(len(logits)), reduction="none")


def mean_by(values: Tensor, weights: np.ndarray) -> Tensor:
    """The weighted mean of each row, (n,); 0 for a row without weight."""
    scaled = weights / np.maximum(weights.sum(1, keepdims=True), 1e-12)
    return (values * torch.tensor(scaled).to(values)).sum(1)


def fit(
    network: Bilinear, known: Known, settings: Settings, folder: Path, *, fingerprint: str, log: Log | None = None
) -> dict[str, float]:
    """Train the network in place, resuming from the newest intact checkpoint of the same training in folder. Returns
    steps, seconds (of training, without interruptions), triples_per_second and loss (the mean of the steps since the
    last multiple of LOG_EVERY before the end).

    fingerprint: identifies the training; any change of its result must change it. Raises MitigateError when the
    checkpoint is of another one."""
    module = PlausibilityTraining(network, known, settings)
    counts = harness.fit(
        module,
        precision=settings.precision,
        checkpoints=Checkpoints(folder, fingerprint),
        checkpoint_every=settings.checkpoint_every,
        log=log,
        accelerator="cpu",
    )
    losses = [float(loss) for loss in counts.losses][-(module.steps % LOG_EVERY or LOG_EVERY) :]
    pace = {"seconds": counts.seconds, "triples_per_second": counts.rate(module.steps)}
    return {"steps": module.steps, **pace, "loss": sum(losses) / len(losses)}
