"""The paper's first, noisy measure: scores of professions for one person minus those for another (section 3.1)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.graph.graph import Graph
from mitigate.measure.kge import agreement, rank_correlation
from mitigate.tasks.kge.graphs import Triples
from mitigate.tasks.kge.predictions import profession_scores
from mitigate.tasks.kge.question import Question
from mitigate.tasks.kge.training import open_embeddings
from models.kge.embeddings import Embeddings

DRAWN = 200  # pairs of two people
SHOWN = 5  # professions at each end of a pair
PAIRS = {
    "model": pl.String,
    "person_a": pl.String,  # null: the mean over pairs that are drawn
    "person_b": pl.String,
    "with_counts": pl.Float64,  # rank correlation of the differences with log count ratios
    "with_pairs": pl.Float64,  # and between two pairs that are drawn
    "most_a": pl.String,  # professions with the largest difference
    "most_b": pl.String,
}


class Pair(NamedTuple):
    """A person of value a and one of value b, as numbers and by name."""

    a: int
    b: int
    name_a: str
    name_b: str


def choose_pairs(graph: Graph, triples: Triples, question: Question, named: Sequence[str]) -> list[Pair]:
    """Choose the named pairs, or the two people with the most training triples of each group.

    Raises MitigateError for an odd number of names, and for a name that nobody of the group has."""
    groups = (question.group_a, question.group_b)
    if len(named) % 2:
        raise MitigateError(
            f"kge.people has {len(named)} people, expected pairs; list {question.names[0]} and {question.names[1]} in "
            "turn"
        )
    if named:
        people = [_person(graph, name, groups[place % 2], place) for place, name in enumerate(named)]
        chosen = list(zip(people[::2], people[1::2], strict=True))
    else:
        sizes = np.bincount(triples.train[:, [0, 2]].ravel(), minlength=triples.num_entities)
        best = [group[np.argsort(-sizes[group], kind="stable")][:2].tolist() for group in groups]
        chosen = list(zip(*best, strict=False))
    return [Pair(a, b, graph.entity_names[a], graph.entity_names[b]) for a, b in chosen]


def compare_pairs(
    question: Question, pairs: Sequence[Pair], names: Sequence[str], seed: int, *, folder: Path
) -> pl.DataFrame:
    """The rows of PAIRS for each model: one row for each pair, and one for DRAWN pairs drawn by the seed."""
    ratios = question.professions["log_ratio"].to_numpy()
    words = question.professions["profession"].to_list()
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.choice(group, DRAWN) for group in (question.group_a, question.group_b)], axis=1)
    rows: list[tuple[object, ...]] = []
    for name in names:
        network = open_embeddings(folder, name)
        chosen = np.array([(pair.a, pair.b) for pair in pairs], dtype=np.int64).reshape(-1, 2)
        for pair, found in zip(pairs, _differences(network, question, chosen), strict=True):
            order = [words[place] for place in np.argsort(-found, kind="stable")]
            ends = ", ".join(order[:SHOWN]), ", ".join(order[::-1][:SHOWN])
            rows.append((name, pair.name_a, pair.name_b, rank_correlation(found, ratios), None, *ends))
        found = _differences(network, question, drawn)
        each = [value for row in found if (value := rank_correlation(row, ratios)) is not None]
        mean = float(np.mean(each)) if each else None
        rows.append((name, None, None, mean, agreement(found), None, None))
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def _differences(network: Embeddings, question: Question, pairs: np.ndarray) -> np.ndarray:
    """The differences of scores between the people of pairs (n, 2), (n, professions)."""
    first, second = (profession_scores(network, question, pairs[:, end]) for end in (0, 1))
    return first - second


def _person(graph: Graph, name: str, group: np.ndarray, place: int) -> int:
    found = np.intersect1d(graph.entities_called(name), group)
    if not len(found):
        raise MitigateError(
            f"kge.people: {name}, in place {place + 1}, does not have value {'ab'[place % 2]} alone; list people of "
            "value a and of value b in turn"
        )
    return int(found[0])
