"""Ratings by people: the drift between two batches of raters, and what people would say of all statements, from their
ratings of some and a classifier's labels of all.

Raters of another batch may rate the same statement differently. Drift is measured on anchors, the statements that both
sets have. Errors are over words: each is left out in turn, of both sets and of the anchors at once (the jackknife), so
that they include the covariance of change and drift."""

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from mitigate.measure.base import ENDS
from mitigate.measure.compare import Change
from mitigate.measure.intervals import FEW_TARGETS, jackknife
from mitigate.triples import NEUTRAL
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import PAPER, TargetList, target_of

FIGURES = {"polarised": pl.col("label") != NEUTRAL, "valid": pl.col("quality")}
"""Percentages of votes: not neutral, and making sense."""
PARTS = ("total", "drift", "remaining")
DRIFT: dict[str, Any] = {
    **dict.fromkeys(("baseline", "source", "figure"), pl.String),
    **dict.fromkeys(("anchors", "words"), pl.Int64),  # statements that both batches rated; the words they are about
    **dict.fromkeys(("before", "after"), pl.Float64),  # percentages of votes
    **{f"{part}{end}": pl.Float64 for part in PARTS for end in ENDS},
}


def changes_of(sides: Sequence[pl.DataFrame]) -> list[Change]:
    """The total change from a first set to a second; the drift, that of the same anchors from the first batch of raters
    to the second; and what remains, the change without the drift. Percentage points.

    sides: the two sets, and the anchors as each batch rated them, (word, share, votes): the word's number, the
    percentage of a statement's votes, and its weight."""
    size = 1 + max(int(side["word"].to_numpy().max()) for side in sides)
    sums = np.zeros((len(sides), 2, size))  # weights, and weighted shares
    for (weights, weighted), side in zip(sums, sides, strict=True):
        np.add.at(weights, side["word"].to_numpy(), side["votes"].to_numpy())
        np.add.at(weighted, side["word"].to_numpy(), side["votes"].to_numpy() * side["share"].to_numpy())
    whole = sums.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        (first, second, before, after), apart = ((of[:, 1] / of[:, 0]) for of in (whole[..., 0], whole - sums))
    total, drift = apart[1] - apart[0], apart[3] - apart[2]
    errors = jackknife(np.column_stack([total, drift, total - drift]))
    pairs = (first, second), (before, after), (after - before, second - first)
    return [
        Change(float(a), float(b), float(size), float(degrees))
        for (a, b), size, degrees in zip(pairs, *errors, strict=True)
    ]


def drift_table(rated: pl.DataFrame, sources: Sequence[str], target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row of DRIFT for each two sources of different batches and figure that both were asked about, in percentage
    points. Drift and remaining difference are null where fewer than FEW_TARGETS words have anchors: then effects of
    batches and models cannot be separated. Each anchor counts once, whatever its votes."""
    every, found = vote_shares(rated, target_list), []
    batches = dict(rated.select("source", "batch").unique().iter_rows())
    pairs = [pair for pair in combinations(sources, 2) if batches[pair[0]] != batches[pair[1]]]
    for pair, figure in product(pairs, FIGURES):
        statements, both = every.filter(figure=figure), [batches[source] for source in pair]
        sets = [statements.filter(source=source) for source in pair]
        if not all(side.height for side in sets):
            continue
        of_batch = [
            statements.filter(batch=batch).unique("statement", keep="first", maintain_order=True) for batch in both
        ]
        again = pl.concat(of_batch).filter(pl.len().over("statement") > 1)
        anchors = [again.filter(batch=batch).sort("statement").with_columns(votes=1.0) for batch in both]
        row: dict[str, Any] = {"baseline": pair[0], "source": pair[1], "figure": figure}
        row |= {"anchors": anchors[0].height, "words": anchors[0]["word"].n_unique()}
        is_enough = row["words"] >= FEW_TARGETS
        changes = [one.row() for one in changes_of([*sets, *(anchors if is_enough else sets)])]
        row |= {"before": changes[0]["baseline"], "after": changes[0]["value"]}
        for part, one in zip(PARTS if is_enough else PARTS[:1], changes, strict=False):
            row |= zip((f"{part}{end}" for end in ENDS), (one[name] for name in ("change", "low", "high")), strict=True)
        found.append(row)
    return pl.DataFrame(found, schema=DRIFT)


def vote_shares(rated: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row for each batch, source, statement and figure: share (percentage of its votes), votes, and word (a
    number)."""
    texts = described(rated.select("statement", "target", "relation").unique("statement", maintain_order=True))
    clusters = target_list.with_words(texts["word"].drop_nulls().unique().sort().to_list()).clusters
    texts = texts.select(
        "statement",
        word=pl.coalesce(pl.col("word").replace(clusters), "statement").rank("dense").cast(pl.Int64) - 1,
    )
    shares = [
        rated.with_columns(vote=figure)
        .drop_nulls("vote")
        .group_by("batch", "source", "statement", maintain_order=True)
        .agg(share=100 * pl.col("vote").mean(), votes=pl.len().cast(pl.Float64))
        .with_columns(figure=pl.lit(name))
        for name, figure in FIGURES.items()
    ]
    return pl.concat(shares).join(texts, on="statement", maintain_order="left")


def described(texts: pl.DataFrame) -> pl.DataFrame:
    """Fill `word`, the target, and the relation of statements (statement, target, relation) from their texts where
    they are missing."""
    found = [(target_of(text), parse_sentence(text)) for text in texts["statement"]]
    words = pl.Series([word for word, _ in found], dtype=pl.String)
    relations = pl.Series([parts[1].name if parts else None for _, parts in found], dtype=pl.String)
    return texts.with_columns(word=pl.coalesce("target", words), relation=pl.coalesce("relation", relations))


class Powered(NamedTuple):
    """The mean of people's ratings of all units, estimated from their ratings of some."""

    value: float
    low: float
    high: float
    weight: float  # of the predictions: 0 where they say nothing about the ratings
    variance: float  # of the ratings less the weighted predictions


def prediction_powered(
    rated: np.ndarray, predicted: np.ndarray, everywhere: np.ndarray, level: float = 0.95
) -> Powered:
    """Estimate the mean of people's ratings of all units by prediction-powered inference (Angelopoulos et al. 2023,
    Science 382, 669): the mean of the predictions of all, corrected by their mean error on the rated ones. Predictions
    have the weight that makes the variance least (PPI++; Angelopoulos, Duchi and Zrnic 2023, eq. 5). With predictions
    of 0 it is the mean of the ratings with its interval by Student's t.

    rated, predicted: the ratings of some units and the predictions of the same, (rated,), at least three. everywhere:
    the predictions of all units, (units,). The interval holds if the rated units are drawn from all at random, without
    replacement, and the classifier did not learn from their ratings, however wrong it is. It covers the mean over these
    units, not over others that might have been generated."""
    number, varies = len(rated), predicted.var() > 0
    weight = float(np.cov(rated, predicted)[0, 1] / predicted.var(ddof=1)) if varies else 0.0
    apart = rated - weight * predicted
    degrees = number - 1 - varies
    variance = float(((apart - apart.mean()) ** 2).sum() / degrees)
    value = weight * float(everywhere.mean()) + float(apart.mean())
    left = max(0.0, 1 - number / len(everywhere))  # a draw of all units has no error
    reach = float(special.stdtrit(degrees, (1 + level) / 2)) * math.sqrt(left * variance / number)
    return Powered(value, value - reach, value + reach, weight, variance)


def ratings_needed(points: float, variance: float, units: int, level: float = 0.95) -> int:
    """The number of rated units, of so many in all, whose interval reaches so many points up and down. variance: of
    the ratings less the weighted predictions (Powered)."""
    squared = (float(special.ndtri((1 + level) / 2)) / points) ** 2 * variance
    return math.ceil(squared / (1 + squared / units))
