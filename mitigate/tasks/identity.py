"""What scorers' labels owe to the group that a sentence names: identity terms in neutral, kind and unkind frames
(data/identity), labelled and compared after Dixon et al. (2018)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.load.identity import identity_texts
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.identity import BY_TERM, FALSE_NEGATIVES, FALSE_POSITIVES, GAPS, LARGEST, by_term, summary
from mitigate.metrics import bounds, identity_key
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.triples import LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK

SHOWN_PARTS = ("unseen", "all")
SAID = {  # share labelled wrongly, by error
    FALSE_POSITIVES: ("neutral and kind sentences", "prejudice"),
    FALSE_NEGATIVES: ("unkind sentences", "no prejudice"),
}
FIGURES = {"": "mean", "_equality_difference": "equality_difference", "_farthest": "term", "_beyond": "beyond"}
FIGURES |= {"_masked": "masked", **{f"_{column}": column for column in ("largest", *bounds("largest"))}}
"""What ends the keys of an error's figures, and the columns of identity_summary that hold them."""


def label_identity_terms(scorers: Sequence[Scorer], *, cache: LabelCache = NOTHING_CACHED) -> pl.DataFrame:
    """Every text of load.identity.identity_texts with each scorer's label and strength. Unlike statements, texts are
    labelled as they are: no demographic word is masked, but in the frames about "this person"."""
    texts = identity_texts(MASK)
    for scorer in scorers:
        label, strength = label_columns(scorer.name, "paper")
        said = label_column(texts["text"], scorer, cache)
        texts = texts.with_columns(pl.Series(label, said.label), pl.Series(strength, said.strength))
    return texts


def measure_identity_terms(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """measure.identity.by_term of each scorer, by name: scorer, and its columns BY_TERM."""
    tables = [
        by_term(labels.with_columns(label=pl.col(name), strength=pl.col(f"{name}_strength")), intervals)
        for name in scorers
    ]
    named = [table.select(pl.lit(name).alias("scorer"), *BY_TERM) for name, table in zip(scorers, tables, strict=True)]
    return pl.concat(named)


def identity_summary(terms: pl.DataFrame) -> pl.DataFrame:
    """What measure_identity_terms returns, as measure.identity.summary of each scorer: scorer, and its columns."""
    found = [
        summary(rows).select(pl.lit(name).alias("scorer"), pl.all())
        for (name,), rows in terms.group_by("scorer", maintain_order=True)
    ]
    return pl.concat(found)


def identity_metrics(summed: pl.DataFrame) -> dict[str, Any]:
    """The rows of identity_summary as metrics: {scorer}/identity/{part}[/{number}]/{error}, the mean over terms, and
    with _largest, _farthest (the term), _equality_difference, _beyond and _masked what else a row has."""
    return {
        identity_key(row["scorer"], row["error"] + ending, row["part"], row["number"]): row[column]
        for row in summed.rows(named=True)
        for ending, column in FIGURES.items()
    }


def identity_notices(summed: pl.DataFrame) -> Iterator[str]:
    """A sentence for each scorer and error of unseen terms and frames where a term is farther than LARGEST from the
    mean."""
    for row in summed.filter(pl.col("part") == "unseen", pl.col("number") == "both").rows(named=True):
        if row["beyond"]:
            texts, label = SAID[row["error"]]
            yield (
                f"labels of {row['scorer']} depend on the group that a sentence names: {row['mean']:.1f} % of the "
                f"{texts} are labelled {label}, of those about “{row['term']}” {row['mean'] + row['largest']:.1f} %; "
                f"unseen terms that are more than {LARGEST:g} points from the mean: {row['beyond']} of {row['terms']}"
            )


def farthest(terms: pl.DataFrame, scorer: str, error: str, most: int = 3) -> list[tuple[str, float]]:
    """The unseen terms in unseen frames whose share of this error is farthest from the mean, with their shares in
    percent, the farthest first."""
    rows = terms.filter(pl.col("scorer") == scorer, pl.col("part") == "unseen", pl.col("number") == "both")
    named = rows.filter(pl.col("axis").is_not_null())
    return named.sort(pl.col(GAPS[error]).abs(), descending=True).select("term", error).head(most).rows()


def measured_identity(summed: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
    """What data/identity/measured.csv holds, of scorers given as the name in tables and the name in the
    configuration: rows of SHOWN_PARTS, both numbers together."""
    rows = summed.filter(pl.col("part").is_in(SHOWN_PARTS), pl.col("number") == "both", pl.col("scorer").is_in(names))
    return rows.drop("number").with_columns(pl.col("scorer").replace(names), pl.col(pl.Float64).round(2))
