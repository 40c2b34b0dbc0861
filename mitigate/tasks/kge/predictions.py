"""Professions that embeddings predict, and their leakage of the attribute: figures of one model after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from mitigate.measure import kge as measuring
from mitigate.measure.kge import PROBES
from mitigate.tasks.kge.graphs import Triples
from mitigate.tasks.kge.question import Question
from mitigate.tasks.kge.training import open_embeddings
from models.kge.embeddings import Embeddings

AT_ONCE = 512  # people
MOST_PROBED = 4_000  # people of both groups that probes are fitted and tested on
PERMUTATIONS = 200
FIGURES = ("parity", "parity_by_chance", "predictive_parity", "amplification", "accuracy")
LEAKS = tuple(f"leakage_{probe}{end}" for probe in PROBES for end in ("", "_by_chance"))


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
