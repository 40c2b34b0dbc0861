"""Training of embeddings of a knowledge graph (models.kge) in a plain loop: Adagrad with a learning rate that falls
linearly to 0 at the end of the last epoch, and early stopping by the MRR of validation triples."""

import math
import time
from collections import deque
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.models.kge import Embeddings, filtered_ranks
from mitigate.progress import progress
from mitigate.train.harness import LOG_EVERY, Batches, Checkpoints, Log
from mitigate.train.settings import EmbeddingTraining as Settings

MASKED = -1e30  # a score that does not count; finite, so that gradients are finite
Penalty = Callable[[Embeddings], Tensor]
"""A loss of the vectors alone, which is added to that of each batch."""


class Fitted(NamedTuple):
    """The result of a training. The weights of the best evaluation are in the trained network."""

    steps: int
    epochs: int  # at whose end the weights were best
    seconds: float  # of training and its evaluations, interruptions not counted
    loss: float  # mean of the last steps
    valid_mrr: float  # filtered, of the weights that are kept


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
    device: str = "cpu",
) -> Fitted:
    """Train the network in place, resuming from the newest intact checkpoint of the same training in folder.

    Triples are (n, 3) int64: head, relation, tail. known: all true ones, test triples too, which are only left out of
    the candidates among which validation triples are ranked. fingerprint: identifies the training; any change of its
    result must change it.

    Raises MitigateError without training or validation triples, when training diverges, and for a checkpoint of another
    training."""
    if not len(train) or not len(valid):
        raise MitigateError(
            f"{len(train):,} training and {len(valid):,} validation triples; embeddings need both: validation triples "
            "decide when training stops"
        )
    network.to(device).train()
    objective = (OneVsAll if settings.loss == "all" else SharedNegatives)(network, train, settings)
    size = min(settings.batch_size, objective.num_examples)
    batches = Batches(np.zeros(objective.num_examples), size, settings.seed)
    steps = math.ceil(settings.max_epochs * objective.num_examples / size)
    # PyTorch has a fused Adagrad for CPUs only.
    optimizer = torch.optim.Adagrad(network.parameters(), lr=settings.learning_rate, fused=device == "cpu")
    checkpoints = Checkpoints(folder, fingerprint)
    best_weights = deepcopy(network.state_dict())
    best_mrr, best_epoch, stale, step, seconds = -1.0, 0, 0, 0, 0.0  # stale: evaluations since the best one
    losses: deque[float] = deque(maxlen=LOG_EVERY)
    if newest := checkpoints.newest():
        state = checkpoints.load_checkpoint(newest)
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        best_weights, losses = state["best_weights"], deque(state["losses"], LOG_EVERY)
        best_mrr, best_epoch, stale, step, seconds = state["counts"]
    since = saved = time.monotonic()
    with progress("train", steps, "steps", done=step) as advance:
        for batch in batches.start_at(step, steps) if stale < settings.patience else ():
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - step / steps)
            # Random numbers of each step's own: a training that resumes repeats none and skips none.
            torch.manual_seed(int(np.random.SeedSequence([settings.seed, step, 0]).generate_state(1)[0]))
            loss = objective.loss(batch) if penalty is None else objective.loss(batch) + penalty(network)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
            step += 1
            advance(1)
            now = time.monotonic()
            seconds, since = seconds + now - since, now
            if log and (step % LOG_EVERY == 0 or step == steps):
                log({"loss": float(np.mean(losses)), "examples_per_second": step * size / seconds}, step)
            epoch = step * size // objective.num_examples
            if (batches.ends_epoch(step - 1) and epoch % settings.evaluate_every == 0) or step == steps:
                mrr = validation_mrr(network, valid, known)
                stale += 1
                if mrr > best_mrr:
                    best_mrr, best_epoch, stale = mrr, epoch, 0
                    best_weights = deepcopy(network.state_dict())
                if log:
                    log({"valid_mrr": mrr, "epoch": epoch}, step)
            if stale >= settings.patience or step == steps or now - saved >= settings.checkpoint_every:
                state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
                counts = {"losses": list(losses), "counts": (best_mrr, best_epoch, stale, step, seconds)}
                checkpoints.save_checkpoint({**state, **counts, "best_weights": best_weights}, checkpoints.last)
                saved = now
            if stale >= settings.patience:
                break
    network.load_state_dict(best_weights)
    network.eval()
    return Fitted(step, best_epoch, seconds, float(np.mean(losses)), best_mrr)


def validation_mrr(network: Embeddings, triples: np.ndarray, known: np.ndarray) -> float:
    """The filtered mean reciprocal rank over heads and tails.

    Raises MitigateError for scores that are not finite."""
    device = network.entities.device
    ranked, true = torch.from_numpy(triples).to(device), torch.from_numpy(known).to(device)
    try:
        ranks = filtered_ranks(network, ranked, true, len(network.entities))
    except FloatingPointError as error:
        raise MitigateError("kge: training diverged, scores are not finite numbers; lower the learning rate") from error
    return float(torch.cat(ranks).reciprocal().mean())


def regulariser(network: Embeddings, weight: float, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
    """The N3 regulariser (Lacroix et al. 2018) of true triples: the cubed moduli of all vectors, summed."""
    if not weight:
        return torch.zeros((), device=network.entities.device)
    vectors = torch.cat([network.entity_vectors(torch.cat([heads, tails])), network.relation_vectors(relations)])
    cubed: Tensor = network.moduli(vectors).pow(3)
    return weight * cubed.sum()


class SharedNegatives:
    """A loss whose negatives are shared by a batch: the same drawn entities replace the tails, then the heads.

    A drawn entity that is a triple's true one does not count for that triple. One that makes another true triple does,
    as in PyTorch-BigGraph (Lerer et al. 2019)."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        self.network, self.settings, self.num_examples = network, settings, len(triples)
        self.triples = torch.from_numpy(triples)  # (n, 3) head, relation, tail
        self.occurring = self.triples[:, [0, 2]].flatten()  # entities as often as they occur

    def loss(self, batch: np.ndarray) -> Tensor:
        """The mean over triples and both places of - log softmax of the true score among it and the negatives."""
        device = self.network.entities.device
        triples, negatives = self.triples[torch.from_numpy(batch)].to(device), self.draw().to(device)
        heads, relations, tails = triples.T.contiguous()
        true, by_tail, by_head = self.network.score_with_candidates(triples, negatives)
        total = regulariser(self.network, self.settings.n3, heads, relations, tails)
        for scores, targets in ((by_tail, tails), (by_head, heads)):  # (n, negatives), (n,)
            others = scores.masked_fill(negatives == targets[:, None], MASKED).logsumexp(1)
            total = total + (torch.logaddexp(true, others) - true).sum() / 2
        return total / len(triples)

    def draw(self) -> Tensor:
        """Entities, (negatives,): a share of them as often as they occur in training, the others uniformly."""
        by_frequency = round(self.settings.by_frequency * self.settings.negatives)
        often = self.occurring[torch.randint(len(self.occurring), (by_frequency,))]
        evenly = torch.randint(len(self.network.entities), (self.settings.negatives - by_frequency,))
        return torch.cat([often, evenly])


class OneVsAll:
    """A loss in which a query, an entity with a relation, is scored with all entities once, whatever its number of
    answers. Every triple makes two queries: for its tail, and for its head."""

    def __init__(self, network: Embeddings, triples: np.ndarray, settings: Settings) -> None:
        heads, relations, tails = triples.T
        for_head = np.repeat([0, 1], len(triples))
        pairs = np.stack([for_head, np.tile(relations, 2), np.concatenate([heads, tails])], axis=1)
        queries, query = np.unique(pairs, axis=0, return_inverse=True)
        self.network, self.settings, self.num_examples = network, settings, len(queries)
        order = np.argsort(query.ravel(), kind="stable")
        self.queries = torch.from_numpy(queries)  # (queries, 3): 1 for a head and 0 for a tail, relation, entity
        self.answers = torch.from_numpy(np.concatenate([tails, heads])[order])  # (2 n,), those of one query together
        self.counts = np.bincount(query.ravel())  # (queries,) answers of each
        self.starts = np.cumsum(self.counts) - self.counts  # (queries,) places of the first ones
        self.answers_per_batch = len(self.answers) / len(queries) * min(settings.batch_size, len(queries))

    def loss(self, batch: np.ndarray) -> Tensor:
        """The sum over answers, divided by their mean number in a batch so that every answer counts the same."""
        network, device, total = self.network, self.network.entities.device, torch.zeros(())
        for_head = self.queries[batch, 0].numpy() == 1
        for is_head, part in ((False, batch[~for_head]), (True, batch[for_head])):
            counts = self.counts[part]
            rows = np.repeat(np.arange(len(part)), counts)  # (answers,) the query of each answer
            places = np.arange(len(rows)) + np.repeat(self.starts[part] - np.cumsum(counts) + counts, counts)
            row, answers = torch.from_numpy(rows).to(device), self.answers[torch.from_numpy(places)].to(device)
            _, relations, entities = self.queries[torch.from_numpy(part)].to(device).T
            scores = network.score_heads(relations, entities) if is_head else network.score_tails(entities, relations)
            total = total + scores.logsumexp(1)[row].sum() - scores[row, answers].sum()  # scores: (queries, entities)
            heads, tails = (answers, entities[row]) if is_head else (entities[row], answers)
            total = total + regulariser(network, self.settings.n3, heads, relations[row], tails)
        return total / self.answers_per_batch
