"""Ratings by people: the drift between two batches of raters, the precision of a survey, and what people would say of
all statements, from their ratings of some and a classifier's labels of all.

Raters of another batch may rate the same statement differently. Drift is measured on anchors, the statements that both
sets have. Figures are percentages of votes. Errors are over words: each is left out in turn, of both sets and of the
anchors at once (the jackknife), so that they include the covariance of change and drift.

Precision is that of a difference between two models that are rated in one batch, from variance components of the
percentages. Models are probed with the same questions (a word and a relation). The part that their statements share by
the question, such as how often anything about it is polarised, cancels in the difference."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from mitigate.load.ratings import target_of
from mitigate.measure.base import ENDS
from mitigate.measure.compare import Change
from mitigate.measure.intervals import FEW_TARGETS, jackknife
from mitigate.triples import NEUTRAL
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import PAPER, TargetList

REACH = float(special.ndtri(0.975) + special.ndtri(0.8))
"""Number of standard errors of a difference that a 95 % interval detects with 80 % power."""


FIGURES = {"polarised": pl.col("label") != NEUTRAL, "valid": pl.col("quality")}
"""Percentages of votes: not neutral, and making sense."""
AS_THEY_ARE, EQUALLY = "as they are", "relations equally"
"""Weights of relations: by their statements, among all statements and among anchors, or equal."""
FEWEST = 5  # words of a relation's anchors; a relation with fewer does not count where weights are equal
PARTS = ("total", "drift", "remaining")
DRIFT: dict[str, Any] = {
    **dict.fromkeys(("baseline", "source", "figure", "weights"), pl.String),
    **dict.fromkeys(("anchors", "words"), pl.Int64),  # statements that both batches rated; the words they are about
    **dict.fromkeys(("before", "after"), pl.Float64),  # percentages of votes
    **{f"{part}{end}": pl.Float64 for part in PARTS for end in ENDS},
    "detectable": pl.Float64,  # of what remains: the minimum detectable difference (80 % power)
}


class Votes(NamedTuple):
    """Votes on statements, (statements,) each. Words and relations are numbers from 0, the same in all sets."""

    shares: np.ndarray  # percentage of a statement's votes
    weights: np.ndarray  # of a statement within its relation: its number of votes, or 1
    words: np.ndarray
    relations: np.ndarray


class Drift(NamedTuple):
    """Differences in percentage points."""

    total: Change  # from the first set to the second
    drift: Change  # of the anchors, from the first batch of raters to the second
    remaining: Change  # total - drift


def without_drift(sets: Sequence[Votes], anchors: Sequence[Votes], *, equally: bool) -> Drift:
    """The change between two sets with the drift between them taken out.

    sets: the first and the second. anchors: the same statements as rated in the first batch and in the second.
    equally: every relation has the same weight; otherwise it is weighted by its statements in the set or the anchors.
    With `equally` every relation must have statements in all four."""
    sides = [*sets, *anchors]
    shape = 1 + max(side.relations.max() for side in sides), 1 + max(side.words.max() for side in sides)
    sums = np.zeros((len(sides), 2, *shape))  # weights, and weighted shares, (sides, 2, relations, words)
    for (weights, weighted), side in zip(sums, sides, strict=True):
        np.add.at(weights, (side.relations, side.words), side.weights)
        np.add.at(weighted, (side.relations, side.words), side.weights * side.shares)
    whole = sums.sum(axis=-1, keepdims=True)
    first, second, before, after = means = _means(whole, equally)[:, 0]
    apart = _means(whole - sums, equally)  # (sides, words)
    total, drift = apart[1] - apart[0], apart[3] - apart[2]
    errors = jackknife(np.column_stack([total, drift, total - drift]))
    changes = zip((first, before, means[3] - means[2]), (second, after, means[1] - means[0]), *errors, strict=True)
    return Drift(*(Change(float(a), float(b), "difference", float(size), float(df)) for a, b, size, df in changes))


def _means(sums: np.ndarray, equally: bool) -> np.ndarray:
    """Percentages of each side, (sides, n), from sums (sides, 2, relations, n)."""
    if not equally:
        sums = sums.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore"):
        return (sums[:, 1] / sums[:, 0]).mean(axis=1)


def drift_table(rated: pl.DataFrame, sources: Sequence[str], target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row of DRIFT for each two sources of different batches, figure and weights of relations, in percentage points.
    Drift and remaining difference are null where fewer than FEW_TARGETS words have anchors: then effects of batches and
    models cannot be separated."""
    statements = vote_shares(rated, target_list)
    batches = dict(rated.select("source", "batch").unique().iter_rows())
    pairs = [pair for pair in combinations(sources, 2) if batches[pair[0]] != batches[pair[1]]]
    found = [
        {"baseline": first, "source": second, "figure": figure, **row}
        for first, second in pairs
        for figure in FIGURES
        for row in _rows(statements.filter(figure=figure), (first, second), [batches[first], batches[second]])
    ]
    return pl.DataFrame(found, schema=DRIFT)


def vote_shares(rated: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row for each batch, source, statement and figure: share (percentage of its votes), votes, word and relation
    (numbers)."""
    texts = described(rated.select("statement", "target", "relation").unique("statement", maintain_order=True))
    clusters = target_list.with_words(texts["word"].drop_nulls().unique().sort().to_list()).clusters
    texts = texts.select(
        "statement",
        word=pl.coalesce(pl.col("word").replace(clusters), "statement").rank("dense").cast(pl.Int64) - 1,
        relation=pl.col("relation").fill_null("").rank("dense").cast(pl.Int64) - 1,
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


def _rows(statements: pl.DataFrame, pair: tuple[str, str], batches: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one figure of two sources; none if one of them was not asked about it. Each anchor counts once,
    whatever its votes."""
    sets = [statements.filter(source=source) for source in pair]
    if not all(side.height for side in sets):
        return
    rated = [statements.filter(batch=batch).unique("statement", keep="first", maintain_order=True) for batch in batches]
    both = pl.concat(rated).filter(pl.len().over("statement") > 1)
    anchors = [both.filter(batch=batch).sort("statement").with_columns(votes=1.0) for batch in batches]
    counts = {"anchors": anchors[0].height, "words": anchors[0]["word"].n_unique()}
    is_enough = counts["words"] >= FEW_TARGETS
    found = without_drift(as_votes(sets), as_votes(anchors if is_enough else sets), equally=False)
    yield {"weights": AS_THEY_ARE, **counts, **_columns(found, PARTS if is_enough else PARTS[:1])}
    by_words = anchors[0].group_by("relation").agg(pl.col("word").n_unique()).filter(pl.col("word") >= FEWEST)
    common = sorted(set(by_words["relation"]).intersection(*(side["relation"] for side in sets)))
    if is_enough and len(common) > 1:
        kept = [as_votes([part.filter(pl.col("relation").is_in(common)) for part in each]) for each in (sets, anchors)]
        yield {"weights": EQUALLY, **counts, **_columns(without_drift(*kept, equally=True), PARTS)}


def as_votes(sides: Sequence[pl.DataFrame]) -> list[Votes]:
    """Return the sides as measure.ratings takes them, relations numbered without gaps."""
    relations = np.unique(pl.concat(sides)["relation"])
    return [
        Votes(
            side["share"].to_numpy(),
            side["votes"].to_numpy(),
            side["word"].to_numpy(),
            np.searchsorted(relations, side["relation"]),
        )
        for side in sides
    ]


def _columns(found: Drift, wanted: Sequence[str]) -> dict[str, Any]:
    row = found.total.row()
    columns = {"before": row["baseline"], "after": row["value"]}
    for part in wanted:
        row = getattr(found, part).row()
        columns |= {f"{part}{end}": row[name] for end, name in zip(ENDS, ("change", "low", "high"), strict=True)}
    return columns | ({"detectable": row["detectable"]} if wanted == PARTS else {})


class Components(NamedTuple):
    """Variances in squared percentage points."""

    statement: float  # between statements of one relation; in a difference, without what models share by question
    rating: float  # between single ratings of one statement


def components(shares: np.ndarray, votes: np.ndarray, relations: np.ndarray) -> Components:
    """The variance components of one set, by the moments of an analysis of variance (Searle, Casella and McCulloch
    1992, ch. 3).

    shares: percentage of each statement's votes; votes: their number; relations: numbers; (statements,) each. Some
    statement must have two votes."""
    rating = float((votes * shares * (100 - shares)).sum() / (votes - 1).sum())
    apart = within_relations(shares, relations)
    between = float((apart**2).sum() / (len(shares) - len(np.unique(relations))))
    return Components(max(0.0, between - rating * float((1 / votes).mean())), rating)


def within_relations(shares: np.ndarray, relations: np.ndarray) -> np.ndarray:
    """The distance of each statement's percentage from the mean of its relation."""
    numbers = np.unique(relations, return_inverse=True)[1]
    return shares - (np.bincount(numbers, shares) / np.bincount(numbers))[numbers]


def error(found: Components, statements: float, raters: float, shared: float = 0.0) -> float:
    """The standard error of a difference between two models, percentage points.

    statements: of each model; raters: of each statement; shared: the fraction of statements that both models have,
    which are rated once and do not differ. REACH times the error is the minimum detectable difference."""
    return math.sqrt(2 * (1 - shared) * (found.statement + found.rating / raters) / statements)


def statements_needed(points: float, found: Components, raters: float, shared: float = 0.0) -> float:
    """The number of statements of each model at which a difference of so many points is detectable (80 % power)."""
    return (REACH / points * error(found, 1, raters, shared)) ** 2


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
