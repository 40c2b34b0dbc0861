"""Anchors: statements that raters of several batches rated. They give the difference between two rated sets without the
drift between their batches; and surveys draw anchors to rate again.

Rated statements are tables of recipe=humans: a row for each source and rating, with the batch of the ratings. The word
and the relation of a statement are read from its text if the source does not give them."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.finished import open_run
from mitigate.measure.base import ENDS
from mitigate.measure.human_ratings import Drift, Votes, without_drift
from mitigate.measure.intervals import FEW_TARGETS
from mitigate.measure.results import keyed
from mitigate.tasks.ratings.paper_statements import target_of
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import PAPER, TargetList, targets

FIGURES = {"polarised": pl.col("label") != 0, "valid": pl.col("quality")}
"""Percentages of votes: not neutral, and making sense."""
AS_THEY_ARE, EQUALLY = "as they are", "relations equally"
"""Weights of relations: by their statements, among all statements and among anchors, or equal."""
FEWEST = 5
"""Words of a relation's anchors; a relation with fewer does not count where weights are equal."""
PARTS = ("total", "drift", "remaining")
DRIFT: dict[str, Any] = {
    **dict.fromkeys(("baseline", "source", "figure", "weights"), pl.String),
    **dict.fromkeys(("anchors", "words"), pl.Int64),  # statements that both batches rated; the words they are about
    **dict.fromkeys(("before", "after"), pl.Float64),  # percentages of votes
    **{f"{part}{end}": pl.Float64 for part in PARTS for end in ENDS},
    "detectable": pl.Float64,  # of what remains: the minimum detectable difference (80 % power)
}
AGAIN = ", rated again"
"""Ending of the name of a source of anchors in a survey."""
RATED = "rated.parquet"


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


def flat(drift: pl.DataFrame) -> dict[str, Any]:
    """The table of drift_table under keys: drift/{source}/{baseline}/{figure}/{weights}/{column}."""
    return keyed("drift/{source}/{baseline}/{figure}/{weights}", drift.rows(named=True))


def vote_shares(rated: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row for each batch, source, statement and figure: share (percentage of its votes), votes, word and relation
    (numbers)."""
    texts = rated.select("statement", "target", "relation").unique("statement", keep="first", maintain_order=True)
    texts = described(texts)
    clusters = target_list.with_words(texts["word"].drop_nulls().unique().sort().to_list()).clusters
    texts = texts.select(
        "statement",
        word=pl.coalesce(pl.col("word").replace(clusters), "statement").rank("dense").cast(pl.Int64) - 1,
        relation=pl.col("relation").fill_null("").rank("dense").cast(pl.Int64) - 1,
    )
    parts = [
        rated.with_columns(vote=figure)
        .drop_nulls("vote")
        .group_by("batch", "source", "statement", maintain_order=True)
        .agg(share=100 * pl.col("vote").mean(), votes=pl.len().cast(pl.Float64))
        .with_columns(figure=pl.lit(name))
        for name, figure in FIGURES.items()
    ]
    return pl.concat(parts).join(texts, on="statement", maintain_order="left")


def described(texts: pl.DataFrame) -> pl.DataFrame:
    """Fill `word`, the target, and the relation of statements (statement, target, relation) from their texts where
    they are missing."""
    found = [(target_of(text), parse_sentence(text)) for text in texts["statement"]]
    words = pl.Series([word for word, _ in found], dtype=pl.String)
    relations = pl.Series([parts[1].name if parts else None for _, parts in found], dtype=pl.String)
    return texts.with_columns(word=pl.coalesce("target", words), relation=pl.coalesce("relation", relations))


def _rows(statements: pl.DataFrame, pair: tuple[str, str], batches: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one figure of two sources; none if one of them was not asked about it."""
    sets, anchors = sides(statements, pair, batches)
    if not all(side.height for side in sets):
        return
    counts = {"anchors": anchors[0].height, "words": anchors[0]["word"].n_unique()}
    is_enough = counts["words"] >= FEW_TARGETS
    found = without_drift(as_votes(sets), as_votes(anchors if is_enough else sets), equally=False)
    yield {"weights": AS_THEY_ARE, **counts, **_columns(found, PARTS if is_enough else PARTS[:1])}
    by_words = anchors[0].group_by("relation").agg(pl.col("word").n_unique()).filter(pl.col("word") >= FEWEST)
    shared = sorted(set(by_words["relation"]).intersection(*(side["relation"] for side in sets)))
    if is_enough and len(shared) > 1:
        kept = [as_votes([part.filter(pl.col("relation").is_in(shared)) for part in each]) for each in (sets, anchors)]
        yield {"weights": EQUALLY, **counts, **_columns(without_drift(*kept, equally=True), PARTS)}


def sides(
    statements: pl.DataFrame, pair: Sequence[str], batches: Sequence[str]
) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """Split one figure of vote_shares into the rows of both sources, and those of the anchors in both batches. Each
    anchor counts once, whatever its votes."""
    rated = [statements.filter(batch=batch).unique("statement", keep="first", maintain_order=True) for batch in batches]
    both = pl.concat(rated).filter(pl.len().over("statement") > 1)
    anchors = [both.filter(batch=batch).sort("statement").with_columns(votes=1.0) for batch in batches]
    return [statements.filter(source=source) for source in pair], anchors


def as_votes(sides: Sequence[pl.DataFrame]) -> list[Votes]:
    """Return the sides as measure.human_ratings takes them, relations numbered without gaps."""
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


def _columns(found: Drift, parts: Sequence[str]) -> dict[str, Any]:
    row = found.total.row()
    columns = {"before": row["baseline"], "after": row["value"]}
    for part in parts:
        row = getattr(found, part).row()
        columns |= {f"{part}{end}": row[name] for end, name in zip(ENDS, ("change", "low", "high"), strict=True)}
    return columns | ({"detectable": row["detectable"]} if parts == PARTS else {})


def read_earlier(folder: str, sources: Sequence[str]) -> pl.DataFrame:
    """Read the ratings of an earlier run that read ratings, without raters, since the present raters are others. A
    source with the name of one of `sources`, those of the present survey, is named "..., earlier". Raises MitigateError
    for anything but a finished run of recipe=humans that read ratings."""
    try:
        run = open_run(folder, "humans", [RATED], figures="humans.json")
        rated = run.table(RATED, ["source", "batch"])
    except MitigateError as error:
        raise MitigateError(
            f"humans.anchors_from: {error} Give the run folder of a recipe=humans that read ratings."
        ) from error
    is_taken = pl.col("source").is_in(sources)
    name = pl.when(is_taken).then(pl.format("{}, earlier", "source")).otherwise("source")
    return rated.with_columns(name.alias("source"), pl.lit(None, pl.String).alias("rater"))


def draw_anchors(earlier: pl.DataFrame, relations: Sequence[str], size: int, seed: int) -> pl.DataFrame:
    """Draw up to `size` rated statements to rate again (source, target, category, relation, rank, statement), as many
    of each relation: first those that most batches rated, which link all of these, and a second statement about a word
    after one about every other. None has an underscore, as targets of two words have in the paper's sets. Raises
    MitigateError where no rated statement with a target has one of the relations."""
    texts = earlier.group_by("statement", maintain_order=True).agg(
        pl.col("source", "target", "category", "relation").first(), batches=pl.col("batch").n_unique()
    )
    texts = texts.filter(~pl.col("statement").str.contains("_"))  # models' statements have none, which raters would see
    candidates = described(texts).filter(pl.col("relation").is_in(relations)).drop_nulls("word")
    if candidates.is_empty():
        raise MitigateError(
            f"humans.anchors_from: no rated statement with a target has one of the relations {', '.join(relations)}; "
            "choose others with humans.relations=[...]"
        )
    order = candidates.sort("statement").sample(fraction=1, shuffle=True, seed=seed)
    order = order.with_columns(turn=pl.int_range(pl.len()).over("relation", "word", "batches"))
    order = order.sort("batches", "turn", descending=[True, False], maintain_order=True)
    chosen = order.with_columns(place=pl.int_range(pl.len()).over("relation")).sort("place", maintain_order=True)
    return chosen.head(size).select(
        pl.format("{}" + AGAIN, "source").alias("source"),
        pl.col("word").alias("target"),
        pl.coalesce("category", pl.col("word").replace_strict(targets(), default=None)).alias("category"),
        "relation",
        pl.lit(None, pl.Int64).alias("rank"),
        "statement",
    )
