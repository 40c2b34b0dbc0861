"""Losses of embeddings of a knowledge graph: a true triple has to score above others with another head or tail, by
softmax cross-entropy. Either 1,000 others that the triples of a chunk share, as PyTorch-BigGraph does (Lerer
et al. 2019), or all entities (1-vs-all, Lacroix et al. 2018)."""

import numpy as np
import torch
from torch import Tensor

from mitigate.train.batches import Batches
from mitigate.train.kge_settings import Settings
from mitigate.train.module import TrainingModule
from models.kge.embeddings import Embeddings
from models.kge.normaliser import Cells, matches, normalise


class KgeTraining(TrainingModule):
    """Adagrad with a learning rate that falls in a line to 0 at the end of the last epoch."""

    batches: Batches

    def __init__(self, network: Embeddings, examples: int, settings: Settings) -> None:
        batches = Batches(np.zeros(examples), min(settings.batch_size, examples), settings.seed)
        steps = -(-settings.max_epochs * examples // batches.size)
        super().__init__(batches, steps, lambda step: settings.learning_rate * (1 - step / steps), seed=settings.seed)
        self.network = network
        self.settings = settings

    def cubes(self, entities: Tensor, relations: Tensor) -> Tensor:
        """The N3 regulariser (Lacroix et al. 2018): the sum over all these vectors of their cubed moduli."""
        vectors = torch.cat([self.network.of(entities), self.network.of_relations(relations)])
        return self.network.interaction.moduli(vectors).pow(3).sum()

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Gradients are not clipped: Adagrad divides by their size."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # PyTorch has a fused Adagrad for CPUs only.
        return torch.optim.Adagrad(self.parameters(), lr=self.settings.learning_rate, fused=self.device.type == "cpu")


class SharedNegatives(KgeTraining):
    """Each chunk of a batch draws entities once, and puts them in the place of the tails, then of the heads.

    A drawn entity that is a triple's own does not count for that triple. One that makes another true triple does, as in
    PyTorch-BigGraph."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        super().__init__(network, len(triples), settings)
        self.triples = torch.from_numpy(triples)  # (n, 3) head, relation, tail
        self.occurring = self.triples[:, [0, 2]].flatten()  # entities as often as they occur

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The mean over triples and both places."""
        triples = self.triples[torch.from_numpy(batch)].to(self.device)
        chunks = triples.split(self.settings.chunk_size)
        loss = torch.stack([self._chunk(chunk, self.draw().to(self.device)) for chunk in chunks]).sum() / len(triples)
        if self.settings.n3:
            loss = loss + self.settings.n3 * self.cubes(triples[:, [0, 2]].flatten(), triples[:, 1]) / len(triples)
        return loss

    def draw(self) -> Tensor:
        """Entities, (negatives,): a share of them as often as they occur in training, the others uniformly."""
        by_frequency = round(self.settings.by_frequency * self.settings.negatives)
        often = self.occurring[torch.randint(len(self.occurring), (by_frequency,))]
        evenly = torch.randint(len(self.network.entities), (self.settings.negatives - by_frequency,))
        return torch.cat([often, evenly])

    def _chunk(self, triples: Tensor, negatives: Tensor) -> Tensor:
        """The sum over triples of the mean over both places."""
        by_tail, by_head = self.network.beside(triples, negatives)
        heads, _, tails = triples.T.contiguous()
        return (_choice(*by_tail, matches(tails, negatives)) + _choice(*by_head, matches(heads, negatives))) / 2


class OneVsAll(KgeTraining):
    """A query, an entity with a relation, is scored with all entities once, whatever number of answers it has. Every
    triple makes two queries: for its tail, and for its head."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        heads, relations, tails = triples.T
        asked = np.concatenate([np.zeros(len(triples)), np.ones(len(triples))]).astype(np.int64)  # 1: for the head
        pairs = np.stack([asked, np.tile(relations, 2), np.concatenate([heads, tails])], axis=1)
        queries, query = np.unique(pairs, axis=0, return_inverse=True)
        super().__init__(network, len(queries), settings)
        order = np.argsort(query.ravel(), kind="stable")
        self.queries = torch.from_numpy(queries)  # (queries, 3) for the head or not, relation, entity
        self.answers = torch.from_numpy(np.concatenate([tails, heads])[order])
        self.count = np.bincount(query.ravel())  # answers of each query
        self.start = np.cumsum(self.count) - self.count
        self.answers_a_batch = len(self.answers) / len(queries) * self.batches.size

    def training_step(self, batch: np.ndarray, batch_idx: int) -> Tensor:
        """The sum over answers, divided by their mean number in a batch so that every answer counts the same."""
        for_head = self.queries[batch, 0].numpy() == 1
        loss = self._part(batch[~for_head], for_head=False) + self._part(batch[for_head], for_head=True)
        return loss / self.answers_a_batch

    def _part(self, batch: np.ndarray, for_head: bool) -> Tensor:
        """The sum over the answers of queries that all ask for the head, or for the tail."""
        count = self.count[batch]
        rows = np.repeat(np.arange(len(batch)), count)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(self.start[batch], count)
        row = torch.from_numpy(rows).to(self.device)
        answers = self.answers[torch.from_numpy(places)].to(self.device)
        _, relations, entities = self.queries[torch.from_numpy(batch)].to(self.device).T
        network = self.network
        scores = network.heads(relations, entities) if for_head else network.tails(entities, relations)
        normalisers, true = normalise(scores.float(), picked=(row, answers))  # scores: (queries, entities)
        loss = normalisers[row].sum() - true.sum()
        if self.settings.n3:
            own = network.reversed(relations) if for_head else relations
            loss = loss + self.settings.n3 * self.cubes(torch.cat([entities[row], answers]), own[row])
        return loss


def _choice(true: Tensor, others: Tensor, same: Cells) -> Tensor:
    """The sum of - log softmax of the true score (n,) among it and the others (n, negatives), without the same ones."""
    true = true.float()
    return (torch.logaddexp(true, normalise(others.float(), left_out=same)[0]) - true).sum()
