"""Training of embeddings of a knowledge graph (models.kge), which stops where they rank validation triples best."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.train import harness
from mitigate.train.batches import Batches
from mitigate.train.checkpoints import Checkpoints
from mitigate.train.harness import Log, seed
from mitigate.train.module import TrainingModule
from mitigate.train.settings import EmbeddingTraining as Settings
from models.kge import Cells, Embeddings, filtered_ranks, matches

__all__ = ["Fitted", "Settings", "fit", "seed", "validation_mrr"]
UNLIKELY = -1e30  # a score of what does not count; finite, so that gradients are
COUNTS = ("found", "epoch", "stale", "steps")  # of StopAtBest: after the last step, only checkpoints have them


class Fitted(NamedTuple):
    """The result of a training. The weights of the best evaluation are in the trained network."""

    steps: int
    epochs: int  # at whose end the weights were best
    seconds: float  # of training and its evaluations, interruptions not counted
    examples_per_second: float  # triples, or queries with loss="all"
    loss: float  # mean of the last steps
    valid_mrr: float  # filtered, of the weights that are kept


Penalty = Callable[[Embeddings], Tensor]
"""A loss of the vectors alone, which is added to that of each batch."""


class KgeTraining(TrainingModule, ABC):
    """Adagrad with a learning rate that falls linearly to 0 at the end of the last epoch."""

    batches: Batches
    penalty: Penalty | None = None

    def __init__(self, network: Embeddings, examples: int, settings: Settings) -> None:
        batches = Batches(np.zeros(examples), min(settings.batch_size, examples), settings.seed)
        steps = -(-settings.max_epochs * examples // batches.size)
        super().__init__(batches, steps, lambda step: settings.learning_rate * (1 - step / steps), seed=settings.seed)
        self.network = network
        self.settings = settings

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The loss of a batch, with the penalty if there is one."""
        loss = self.ranking_loss(batch)
        return loss if self.penalty is None else loss + self.penalty(self.network)

    @abstractmethod
    def ranking_loss(self, batch: np.ndarray) -> Tensor:
        """The loss of a batch of examples."""

    def regulariser(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor | float:
        """The N3 regulariser (Lacroix et al. 2018) of true triples: the cubed moduli of all vectors, summed."""
        network, weight = self.network, self.settings.n3
        if not weight:
            return 0.0
        vectors = torch.cat([network.of(torch.cat([heads, tails])), network.of_relations(relations)])
        return weight * network.moduli(vectors).pow(3).sum()

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Leave gradients unclipped: Adagrad divides by their size."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # PyTorch has a fused Adagrad for CPUs only.
        return torch.optim.Adagrad(self.parameters(), lr=self.settings.learning_rate, fused=self.device.type == "cpu")


class StopAtBest(lightning.Callback):
    """A callback that ranks the validation triples every few epochs, keeps the best weights, and ends the training
    after several evaluations without improvement. Its counts are part of checkpoints."""

    def __init__(self, module: KgeTraining, valid: np.ndarray, known: np.ndarray, best: Path, log: Log | None) -> None:
        self.module = module
        self.valid, self.known = valid, known
        self.best = best
        self.write_log = log
        self.found = -1.0  # MRR
        self.epoch = 0
        self.stale = 0  # evaluations since
        self.steps = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self.steps = trainer.global_step
        trainer.should_stop = self.stale >= self.module.settings.patience

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.steps = step = trainer.global_step
        batches = self.module.batches
        epoch = step * batches.size // len(batches.lengths)
        due = batches.ends_epoch(step - 1) and epoch % self.module.settings.evaluate_every == 0
        if not due and step < self.module.steps:
            return
        mrr = validation_mrr(self.module.network, self.valid, self.known)
        if self.write_log:
            self.write_log({"valid_mrr": mrr, "epoch": epoch}, step)
        if mrr > self.found:
            self.found, self.epoch, self.stale = mrr, epoch, 0
            weights = trainer.strategy.lightning_module_state_dict()
            trainer.strategy.checkpoint_io.save_checkpoint(weights, self.best)
        else:
            self.stale += 1
        trainer.should_stop = self.stale >= self.module.settings.patience

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COUNTS}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name in COUNTS:
            setattr(self, name, state_dict[name])


def fit(
    network: Embeddings,
    train: np.ndarray,
    valid: np.ndarray,
    known: np.ndarray,
    settings: Settings,
    folder: Path,
    *,
    fingerprint: str,
    log: Log | None = None,
    penalty: Penalty | None = None,
    **trainer: Any,
) -> Fitted:
    """Train the network in place, resuming from the newest intact checkpoint of the same training in folder.

    Triples are (n, 3) int64: head, relation, tail. known: all true ones, test triples too, which are only left out of
    the candidates among which validation triples are ranked. fingerprint: identifies the training; any change of its
    result must change it. trainer: arguments of Lightning's trainer: accelerator.

    Raises MitigateError when there is nothing to train or to validate on, when training diverges, and when the
    checkpoint is of another training."""
    if not len(train) or not len(valid):
        raise MitigateError(
            f"{len(train):,} training and {len(valid):,} validation triples; embeddings need both: validation triples "
            "decide when training stops"
        )
    module = (OneVsAll if settings.loss == "all" else SharedNegatives)(network, train, settings)
    module.penalty = penalty
    checkpoints = Checkpoints(folder, fingerprint)
    watch = StopAtBest(module, valid, known, checkpoints.best, log)
    counts = harness.fit(
        module,
        precision=settings.precision,
        checkpoints=checkpoints,
        checkpoint_every=settings.checkpoint_every,
        callbacks=[watch],
        log=log,
        **trainer,
    )
    state = checkpoints.best_weights()
    network.load_state_dict({name: state[f"network.{name}"] for name in network.state_dict()})
    losses = [float(loss) for loss in counts.losses]
    return Fitted(
        watch.steps, watch.epoch, counts.seconds, counts.rate(watch.steps), float(np.mean(losses)), watch.found
    )


def validation_mrr(network: Embeddings, triples: np.ndarray, known: np.ndarray) -> float:
    """The filtered mean reciprocal rank over heads and tails.

    Raises MitigateError for scores that are not finite."""
    device = network.entities.device
    try:
        ranks = filtered_ranks(
            network, torch.from_numpy(triples).to(device), torch.from_numpy(known).to(device), len(network.entities)
        )
    except FloatingPointError as error:
        raise MitigateError("kge: training diverged, scores are not finite numbers; lower the learning rate") from error
    return float(torch.cat(ranks).reciprocal().mean())


class SharedNegatives(KgeTraining):
    """Training with negatives that a chunk of a batch shares: entities drawn once replace the tails, then the heads.

    A drawn entity that is a triple's own does not count for that triple. One that makes another true triple does, as in
    PyTorch-BigGraph."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        super().__init__(network, len(triples), settings)
        self.triples = torch.from_numpy(triples)  # (n, 3) head, relation, tail
        self.occurring = self.triples[:, [0, 2]].flatten()  # entities as often as they occur

    def ranking_loss(self, batch: np.ndarray) -> Tensor:
        """The mean over triples and both places."""
        triples = self.triples[torch.from_numpy(batch)].to(self.device)
        chunks = triples.split(self.settings.chunk_size)
        sums = []
        for chunk in chunks:  # the mean over both places, summed over triples
            negatives, (heads, _, tails) = self.draw().to(self.device), chunk.T.contiguous()
            by_tail, by_head = self.network.beside(chunk, negatives)
            both = _choice(*by_tail, matches(tails, negatives)) + _choice(*by_head, matches(heads, negatives))
            sums.append(both / 2)
        return (torch.stack(sums).sum() + self.regulariser(*triples.T)) / len(triples)

    def draw(self) -> Tensor:
        """Entities, (negatives,): a share of them as often as they occur in training, the others uniformly."""
        by_frequency = round(self.settings.by_frequency * self.settings.negatives)
        often = self.occurring[torch.randint(len(self.occurring), (by_frequency,))]
        evenly = torch.randint(len(self.network.entities), (self.settings.negatives - by_frequency,))
        return torch.cat([often, evenly])


class OneVsAll(KgeTraining):
    """Training in which a query, an entity with a relation, is scored with all entities once, whatever its number of
    answers. Every triple makes two queries: for its tail, and for its head."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        heads, relations, tails = triples.T
        for_head = np.concatenate([np.zeros(len(triples)), np.ones(len(triples))]).astype(np.int64)
        pairs = np.stack([for_head, np.tile(relations, 2), np.concatenate([heads, tails])], axis=1)
        queries, query = np.unique(pairs, axis=0, return_inverse=True)
        super().__init__(network, len(queries), settings)
        order = np.argsort(query.ravel(), kind="stable")
        self.queries = torch.from_numpy(queries)  # (queries, 3) for the head or not, relation, entity
        self.answers = torch.from_numpy(np.concatenate([tails, heads])[order])
        self.count = np.bincount(query.ravel())  # answers of each query
        self.start = np.cumsum(self.count) - self.count
        self.answers_a_batch = len(self.answers) / len(queries) * self.batches.size

    def ranking_loss(self, batch: np.ndarray) -> Tensor:
        """The sum over answers, divided by their mean number in a batch so that every answer counts the same."""
        for_head = self.queries[batch, 0].numpy() == 1
        loss = self._part(batch[~for_head], for_head=False) + self._part(batch[for_head], for_head=True)
        return loss / self.answers_a_batch

    def _part(self, batch: np.ndarray, for_head: bool) -> Tensor:
        """The sum over the answers of queries that are all for the head, or all for the tail."""
        count = self.count[batch]
        rows = np.repeat(np.arange(len(batch)), count)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(self.start[batch], count)
        row = torch.from_numpy(rows).to(self.device)
        answers = self.answers[torch.from_numpy(places)].to(self.device)
        _, relations, entities = self.queries[torch.from_numpy(batch)].to(self.device).T
        network = self.network
        scores = network.heads(relations, entities) if for_head else network.tails(entities, relations)
        scores = scores.float()  # (queries, entities)
        loss = scores.logsumexp(1)[row].sum() - scores[row, answers].sum()
        swapped = for_head and not network.reciprocal
        heads, tails = (answers, entities[row]) if swapped else (entities[row], answers)
        own = network.reversed(relations) if for_head else relations
        return loss + self.regulariser(heads, own[row], tails)


def _choice(true: Tensor, others: Tensor, same: Cells) -> Tensor:
    """The sum of - log softmax of the true score (n,) among it and the others (n, negatives), without the same ones."""
    true, others = true.float(), others.float().index_put(same, others.new_tensor(UNLIKELY, dtype=torch.float32))
    return (torch.logaddexp(true, others.logsumexp(1)) - true).sum()
