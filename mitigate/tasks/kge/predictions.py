"""Professions that embeddings predict, and their leakage of the attribute; and the paper's first, noisy measure: scores
of professions for one person minus those for another (section 3.1)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch

from mitigate.errors import MitigateError
from mitigate.load.graph import Graph
from mitigate.measure import kge as measuring
from mitigate.measure.kge import PROBES, agreement, rank_correlation
from mitigate.tasks.kge.question import Question, Triples
from mitigate.tasks.kge.training import open_embeddings
from models.kge import Embeddings

AT_ONCE = 512  # people
MOST_PROBED = 4_000  # people of both groups that probes are fitted and tested on
PERMUTATIONS = 200
FIGURES = ("parity", "parity_by_chance", "predictive_parity", "amplification", "accuracy")
LEAKS = tuple(f"leakage_{probe}{end}" for probe in PROBES for end in ("", "_by_chance"))
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


def predict_professions(triples: Triples, question: Question, names: Sequence[str], *, folder: Path) -> pl.DataFrame:
    """The profession that each model predicts first for each person of both groups, among those that the person's
    training triples do not have: model, person (its number), is_a, predicted (the row of the profession), and right
    (whether a validation or test triple has it; null for people without such a triple)."""
    people, is_a = question.grouped
    in_training, held_out = (_held(split, question, people) for split in (triples.train, triples.held_out))
    frames = []
    for name in names:
        scores = profession_scores(open_embeddings(folder, name), question, people)
        predicted = np.where(in_training, -np.inf, scores).argmax(1)
        right = pl.Series(held_out[np.arange(len(people)), predicted])
        columns = {"person": people, "is_a": is_a, "predicted": predicted, "right": right, "tested": held_out.any(1)}
        right_if_tested = pl.when("tested").then("right").alias("right")
        frames.append(pl.DataFrame(columns).with_columns(right_if_tested, model=pl.lit(name)))
    return pl.concat(frames).select("model", "person", "is_a", "predicted", "right")


def profession_scores(network: Embeddings, question: Question, people: np.ndarray) -> np.ndarray:
    """The score of each profession for each person, (people, professions): that of the best entity of its name."""
    found = np.full((len(people), question.professions.height), -np.inf)
    with torch.inference_mode():
        candidates = network.entities[torch.from_numpy(question.entities)]
        for start in range(0, len(people), AT_ONCE):
            heads = network.of(torch.from_numpy(people[start : start + AT_ONCE]))
            relations = network.relations[question.occupation].expand_as(heads)
            scores = network.interaction.tails(heads, relations, candidates).double().numpy()
            for column, place in enumerate(question.places):
                rows = found[start : start + AT_ONCE, place]
                np.maximum(rows, scores[:, column], out=rows)
    return found


def parity_figures(predictions: pl.DataFrame, question: Question, seed: int) -> pl.DataFrame:
    """A row for each model: model and FIGURES, all in percent or percentage points. accuracy: the share of right
    predictions for people with a held-out profession."""
    size = question.professions.height
    of_a, of_b = (question.professions[column].to_numpy() for column in ("of_a", "of_b"))
    rows = []
    for (name,), part in predictions.partition_by("model", as_dict=True, maintain_order=True).items():
        predicted, is_a = part["predicted"].to_numpy(), part["is_a"].to_numpy()
        tested = part.drop_nulls("right")
        is_right, of_group_a = tested["right"].to_numpy(), tested["is_a"].to_numpy()
        rows.append(
            {
                "model": name,
                "parity": measuring.parity_distance(predicted, is_a, size),
                "parity_by_chance": measuring.distance_by_chance(predicted, is_a, size, PERMUTATIONS, seed),
                "predictive_parity": measuring.predictive_parity(is_right, of_group_a),
                "amplification": measuring.amplification(predicted, is_a, of_a, of_b),
                "accuracy": 100 * float(is_right.mean()) if len(is_right) else None,
            }
        )
    return pl.DataFrame(rows, schema={"model": pl.String, **dict.fromkeys(FIGURES, pl.Float64)})


def measure_leakage(
    triples: Triples, question: Question, names: Sequence[str], seed: int, *, folder: Path
) -> pl.DataFrame:
    """A row for each model: model and LEAKS, areas under the ROC curve. People with the same rarest profession are in
    one fold; of many people MOST_PROBED are drawn."""
    people, is_a = question.grouped
    if len(people) > MOST_PROBED:
        drawn = np.sort(np.random.default_rng(seed).choice(len(people), MOST_PROBED, replace=False))
        people, is_a = people[drawn], is_a[drawn]
    groups = _rarest(_held(triples.all, question, people), question.professions["people"].to_numpy())
    rows = []
    for number, name in enumerate(names):
        network = open_embeddings(folder, name)
        vectors = network.of(torch.from_numpy(people)).detach().double().numpy()
        row: dict[str, Any] = {"model": name}
        for probe in PROBES:
            row[f"leakage_{probe}"] = measuring.leakage(vectors, is_a, groups, probe, seed)
            row[f"leakage_{probe}_by_chance"] = measuring.leakage_by_chance(vectors, is_a, groups, probe, seed + number)
        rows.append(row)
    return pl.DataFrame(rows, schema={"model": pl.String, **dict.fromkeys(LEAKS, pl.Float64)})


def _held(triples: np.ndarray, question: Question, people: np.ndarray) -> np.ndarray:
    """Professions that the people have in these triples, (people, professions) bool."""
    found = np.zeros((len(people), question.professions.height), dtype=bool)
    highest = int(max(people.max(), triples[:, [0, 2]].max(), question.entities.max())) + 1
    row, column = np.full(highest, -1), np.full(highest, -1)
    row[people], column[question.entities] = np.arange(len(people)), question.places
    of_job = triples[triples[:, 1] == question.occupation]
    rows, columns = row[of_job[:, 0]], column[of_job[:, 2]]
    both = (rows >= 0) & (columns >= 0)
    found[rows[both], columns[both]] = True
    return found


def _rarest(held: np.ndarray, people: np.ndarray) -> np.ndarray:
    """The profession of each person that the fewest people have, (n,); a person without one is a group alone."""
    rarest = np.where(held, people, np.iinfo(people.dtype).max).argmin(1)
    none = ~held.any(1)
    rarest[none] = held.shape[1] + np.arange(none.sum())
    return rarest


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
