"""Embeddings that another program trained, checked and kept in a run folder like those of a training."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from mitigate.errors import MitigateError
from mitigate.load.graph.graph import Graph
from mitigate.load.graph.trained_embeddings import TrainedEmbeddings, align
from mitigate.measure.kge import mean_reciprocal_rank
from mitigate.runs.files import replacing_folder
from mitigate.tasks.kge.graphs import Triples
from mitigate.tasks.kge.training import EMBEDDINGS
from models.kge.embeddings import KINDS, Embeddings
from models.kge.ranking import filtered_ranks

CHECKED = 300  # test triples that interactions are compared on
CLEARLY = 1.2  # times the MRR of the given interaction: another that reaches it is the right one
ABOVE_CHANCE = 3.0  # times the MRR of random ranks, below which vectors do not fit the graph, ...
USABLE = 0.02  # ... nor below this MRR, where chance is far lower


def network_of(found: TrainedEmbeddings, graph: Graph, kind: str) -> Embeddings:
    """The embeddings with the graph's numbers of entities and relations, scored by an interaction. Raises ValueError
    for one that needs an even dimension."""
    entities, relations = align(found, graph)
    network = Embeddings(kind, len(entities), len(graph.relations), entities.shape[1], reciprocal=found.reciprocal)
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
