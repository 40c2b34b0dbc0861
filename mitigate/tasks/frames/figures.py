"""Quality of predicted frames: the paper's Tables 4, 5 and 7, with baselines and intervals."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.measure.base import bounds
from mitigate.measure.frames import FIGURES, classification, text_figures, text_scores
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed
from mitigate.package_data import frame_of
from mitigate.tasks.frames.predictions import truth_of
from mitigate.words.frames import CHOICES, PARENTS, TEXTS

MODEL, FOLDS = "model", "model, five folds"
CONSTRAINED = ", constrained"
TEXT_FIGURES = ("bleu2", "rouge_l", "corpus_bleu2")
GIVEN = ", given a group"
"""Ending of systems whose texts do not depend on the model's classifications."""


def classification_table(
    posts: pl.DataFrame, predicted: Mapping[str, pl.DataFrame], baselines: pl.DataFrame, intervals: Bootstrap
) -> pl.DataFrame:
    """A row for each classification and system: variable, system, posts, positive (percent), and F1, precision and
    recall of the positive class in percent with _low and _high (None without posts to measure on, or where the system
    could not learn it).

    predicted: by system, tables of forms.SCHEMA with `key`. Below a negative parent, truth and prediction are
    negative."""
    test = posts.filter(pl.col("split") == "test")
    systems: dict[str, pl.DataFrame] = {}
    for name, table in predicted.items():
        systems[name] = table.select("key", *CHOICES)
        systems[name + CONSTRAINED] = table.select("key", *(pl.col(f"constrained_{one}").alias(one) for one in CHOICES))
    systems |= {str(name): part for (name,), part in baselines.group_by("system", maintain_order=True)}
    rows = []
    for variable in CHOICES:
        true = test.with_columns(truth=truth_of(test, variable)).drop_nulls("truth").select("key", "truth")
        for system, table in systems.items():
            joined = true.join(_decided(table, variable), on="key", maintain_order="left")
            row: dict[str, Any] = {"variable": variable, "system": system, "posts": joined.height, "positive": None}
            row |= dict.fromkeys(key for name in FIGURES for key in (name, *bounds(name)))
            if joined.height:
                truth = joined["truth"].to_numpy().astype(bool)
                row |= {"positive": 100 * float(truth.mean())}
                row |= classification(truth, joined["predicted"].to_numpy().astype(bool), intervals)
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _decided(table: pl.DataFrame, variable: str) -> pl.DataFrame:
    """The systems' values, negative below a negative parent; a model that could not learn the variable has none."""
    negative = pl.lit(False)
    name = variable
    while (parent := PARENTS.get(name)) is not None:
        negative, name = negative | pl.col(parent).eq_missing(False), parent
    values = table.select(
        "key", predicted=pl.when(negative & table[variable].is_not_null().any()).then(False).otherwise(variable)
    )
    return values.drop_nulls("predicted")


def text_table(
    posts: pl.DataFrame, predicted: Mapping[str, pl.DataFrame], baselines: pl.DataFrame, intervals: Bootstrap
) -> pl.DataFrame:
    """A row for each text and system: variable (group or implied), system, posts, bleu2 and rouge_l in percent with
    _low and _high, generated (percent of posts with a text) and distinct (texts, percent of the posts).

    Posts are test posts with an implied statement; references are all their groups or statements."""
    with_text = posts.filter(pl.col("split") == "test", pl.col("implied").list.len() > 0)
    systems: dict[str, pl.DataFrame] = {}
    for name, table in predicted.items():
        systems[name + GIVEN] = table
        empty = [
            pl.when(pl.col("targeted").eq_missing(True)).then(text).otherwise(pl.lit("")).alias(text) for text in TEXTS
        ]
        systems[name] = table.with_columns(empty)
    systems |= {str(name): part for (name,), part in baselines.group_by("system", maintain_order=True)}
    rows = []
    for variable, column in zip(TEXTS, ("groups", "implied"), strict=True):
        for system, table in systems.items():
            references = with_text.select("key", references=column)
            joined = references.join(table.select("key", variable), on="key", maintain_order="left")
            if not joined.height or not (joined[variable] != "").any():
                continue
            scores = text_scores(joined[variable].to_list(), joined["references"].to_list())
            texts, size = joined.filter(pl.col(variable) != "")[variable], joined.height
            shares = {"generated": 100 * len(texts) / size, "distinct": 100 * texts.n_unique() / size}
            row = {"variable": variable, "system": system, "posts": size}
            rows.append(row | text_figures(scores, intervals) | shares)
    return pl.DataFrame(rows, schema=None if rows else TEXT_SCHEMA, infer_schema_length=None)


TEXT_SCHEMA = {
    **dict.fromkeys(("variable", "system"), pl.String),
    "posts": pl.Int64,
    **dict.fromkeys([key for name in TEXT_FIGURES for key in (name, *bounds(name))], pl.Float64),
    **dict.fromkeys(("generated", "distinct"), pl.Float64),
}


def as_metrics(
    classified: pl.DataFrame, texts: pl.DataFrame, statistics: Mapping[str, Any], calibration: Mapping[str, Any]
) -> dict[str, Any]:
    """All figures of both tables under {variable}/{system}/{figure}; the corpus's statistics under corpus/, the
    scorer's calibration under scorer/; and f1, the mean over classifications of the model's F1 on the paper's split,
    which the paper chooses settings by."""
    found: dict[str, Any] = {f"corpus/{name}": value for name, value in statistics.items()}
    for table in (classified, texts):
        found |= keyed("{variable}/{system}", table.rows(named=True))
    found |= {f"scorer/{name}": value for name, value in calibration.items()}
    scores = [found[f"{name}/{MODEL}/f1"] for name in CHOICES if found.get(f"{name}/{MODEL}/f1") is not None]
    return found | {"f1": sum(scores) / len(scores) if scores else None}


def published() -> pl.DataFrame:
    """Published figures on the complete data (data/frames/published.csv): system, variable, figure, value, source."""
    return frame_of("frames/published.csv")


def unmeasured(posts: pl.DataFrame) -> list[str]:
    """The classifications without both values in test posts."""
    test = posts.filter(pl.col("split") == "test")
    return [name for name in CHOICES if truth_of(test, name).drop_nulls().n_unique() < 2]
