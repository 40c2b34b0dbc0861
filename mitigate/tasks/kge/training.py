"""Training of one model of a graph, or embeddings that another program trained, checked and kept like those of a
training; ranks on test triples, and changes of the scores of professions by equation 1."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.load.graph import Graph, TrainedEmbeddings, align
from mitigate.measure.kge import attribute_direction, change_of_scores, hits, mean_reciprocal_rank
from mitigate.probe.kge import nudge, weights
from mitigate.tasks.kge.question import Question, Triples
from mitigate.train import harness
from mitigate.train.kge import Penalty, Settings, fit
from models.kge import KINDS, DotProduct, Embeddings, filtered_ranks

HITS = (1, 3, 10)
EMBEDDINGS, CHECKPOINTS = "embeddings", "checkpoints"
CHECKED = 300  # test triples that interactions are compared on
CLEARLY = 1.2  # times the MRR of the given interaction: another that reaches it is the right one
ABOVE_CHANCE = 3.0  # times the MRR of random ranks, below which vectors do not fit the graph, ...
USABLE = 0.02  # ... nor below this MRR, where chance is far lower


def train_embeddings(
    triples: Triples,
    shape: Mapping[str, Any],
    settings: Settings,
    name: str,
    penalty: Penalty | None = None,
    *,
    folder: Path,
    **how: Any,
) -> dict[str, Any]:
    """Train one model, and write it to embeddings/{name}/ of the folder; returns the facts of train.kge.fit.

    shape: kind, dimension and deviation; penalty: added to the loss; how: fingerprint, accelerator and log, as
    train.kge.fit takes them. Checkpoints are left in checkpoints/{name}/, for a killed training to resume."""
    harness.seed(settings.seed)
    network = Embeddings(
        shape["kind"], triples.num_entities, triples.num_relations, shape["dimension"], shape["deviation"]
    )
    checkpoints = folder / CHECKPOINTS / name
    fitted = fit(network, triples.train, triples.valid, triples.all, settings, checkpoints, penalty=penalty, **how)
    with replacing_folder(folder / EMBEDDINGS / name) as part:
        network.cpu().eval().save(part)
    return {"seed": settings.seed, **fitted._asdict()}


def rank_test_triples(triples: Triples, names: Sequence[str], *, folder: Path) -> pl.DataFrame:
    """Summaries of the filtered ranks of the test triples by each model: model, mrr, mrr_heads, mrr_tails, and hits at
    1, 3 and 10 (0 to 1)."""
    every, test = torch.from_numpy(triples.all), torch.from_numpy(triples.test)
    rows = []
    for name in names:
        ranks = filtered_ranks(open_embeddings(folder, name), test, every, triples.num_entities)
        heads, tails = (rank.numpy() for rank in ranks)
        both = np.concatenate([heads, tails])
        row: dict[str, Any] = {"model": name, "mrr": mean_reciprocal_rank(both)}
        row |= {"mrr_heads": mean_reciprocal_rank(heads), "mrr_tails": mean_reciprocal_rank(tails)}
        rows.append(row | {f"hits_{k}": hits(both, k) for k in HITS})
    return pl.DataFrame(rows)


def change_scores(question: Question, names: Sequence[str], step: float, *, folder: Path) -> pl.DataFrame:
    """Equation 1 for each model: model, profession, and the change of its score with its deviation over people."""
    frames = []
    for name in names:
        mean, deviation = changes(open_embeddings(folder, name), question, step)
        columns = {"change": mean, "deviation": deviation}
        named = question.professions.select(pl.lit(name).alias("model"), "profession")
        frames.append(named.with_columns(pl.Series(column, values) for column, values in columns.items()))
    return pl.concat(frames)


def changes(network: Embeddings, question: Question, step: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation over people of the change of each profession's score, (professions,) each: in
    closed form for a dot product, where all people have the same change."""
    if not isinstance(network.interaction, DotProduct):
        found = nudge(network, question.query, step)
        return question.merged(found.mean), question.merged(found.deviation)
    direction = summed_direction(question, lambda relation, ends: weights(network, relation, ends))
    mean = question.merged(change_of_scores(weights(network, question.occupation, question.entities), direction, step))
    return mean, np.zeros_like(mean)


def summed_direction(question: Question, vectors_of: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
    """The difference between value a and value b in the vectors of their entities by a relation, (dimension,), summed
    over attributes."""
    found = []
    for relation, values, others in question.attributes:
        ends = np.concatenate([values, others])
        is_a = np.arange(len(ends)) < len(values)
        found.append(attribute_direction(vectors_of(relation, ends), is_a, ~is_a))
    return np.sum(found, axis=0)


def open_embeddings(folder: Path, name: str) -> Embeddings:
    """Open a model of a run folder."""
    return Embeddings.load(folder / EMBEDDINGS / name)


def network_of(found: TrainedEmbeddings, graph: Graph, kind: str) -> Embeddings:
    """The embeddings with the graph's numbers of entities and relations, scored by an interaction. Raises ValueError
    for one that needs an even dimension, or another number of vectors of relations."""
    entities, relations = align(found, graph)
    network = Embeddings(kind, len(entities), len(graph.relations), entities.shape[1])
    if len(relations) != len(network.relations):
        raise ValueError(f"{kind} needs {len(network.relations)} vectors of relations, not {len(relations)}")
    with torch.no_grad():
        network.entities.copy_(torch.from_numpy(entities))
        network.relations.copy_(torch.from_numpy(relations))
    return network.eval()


def check_interaction(found: TrainedEmbeddings, graph: Graph, triples: Triples) -> None:
    """Raise MitigateError if another interaction ranks test triples clearly better than the given one, or if the given
    one ranks them hardly better than chance: a bias of wrong scores means nothing."""
    chosen = np.random.default_rng(0).permutation(len(triples.test))[:CHECKED]
    test, every = torch.from_numpy(triples.test[chosen]), torch.from_numpy(triples.all)
    reached = {}
    for kind in KINDS:
        try:
            network = network_of(found, graph, kind)
            ranks = filtered_ranks(network, test, every, triples.num_entities)
        except (ValueError, FloatingPointError):  # an odd dimension, scores that overflow
            continue
        reached[kind] = mean_reciprocal_rank(np.concatenate([rank.numpy() for rank in ranks]))
    mine, best = reached.get(found.kind, 0.0), max(reached, key=lambda kind: reached[kind])
    chance = float(np.mean(1 / np.arange(1, triples.num_entities + 1)))
    least = max(ABOVE_CHANCE * chance, USABLE)
    facts = f"On {len(chosen)} test triples the MRR is {mine:.3f} with model.kind={found.kind}"
    if reached[best] > max(CLEARLY * mine, least):
        raise MitigateError(f"{facts}, and {reached[best]:.3f} with {best}; set model.kind={best}")
    if mine < least:
        raise MitigateError(
            f"{facts}, too close to chance ({chance:.4f}): the vectors do not fit data's triples by this interaction. "
            f"Check ids and their order, and model.kind, one of {', '.join(KINDS)}"
        )


def keep_embeddings(found: TrainedEmbeddings, graph: Graph, name: str, *, folder: Path) -> dict[str, Any]:
    """Write the embeddings to embeddings/{name}/ of the folder. Returns their facts."""
    network = network_of(found, graph, found.kind)
    with replacing_folder(folder / EMBEDDINGS / name) as part:
        network.save(part)
    return {**network.facts, "origin": found.origin}
