"""Dependence of scorers' labels on the group that a sentence names: identity terms in neutral, kind and unkind frames
(data/identity), labelled and compared after Dixon et al. (2018)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.base import bounds
from mitigate.measure.identity import (
    BY_TERM,
    FALSE_NEGATIVES,
    FALSE_POSITIVES,
    GAPS,
    LARGEST,
    by_term,
    mean_error,
    summary,
)
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.statements import choice, long_texts
from mitigate.score.base import IDENTITY
from mitigate.score.labeller import with_identity_words
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.triples import LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import identity_texts

WRONGLY_LABELLED = {  # the texts and their wrong label, by error
    FALSE_POSITIVES: ("neutral and kind sentences", "prejudice"),
    FALSE_NEGATIVES: ("unkind sentences", "no prejudice"),
}
FIGURES = {
    **{"": "mean", "_equality_difference": "equality_difference", "_farthest": "term", "_beyond": "beyond"},
    **{"_masked": "masked", **{f"_{column}": column for column in ("largest", *bounds("largest"))}},
}
"""Endings of the keys of an error's figures, and the columns of identity_summary that hold them."""
SHOWN = 3  # words of a notice


def identity_key(scorer: str, figure: str, part: str, number: str = "both") -> str:
    """The key of a figure: "regard/identity/unseen/false_positives"."""
    return "/".join([scorer, "identity", part, *([] if number == "both" else [number]), figure])


def term_texts(terms: int | None = None, seed: int = 0) -> pl.DataFrame:
    """Read the texts of load.identity_terms.identity_texts. terms: the number of unseen terms that are drawn, with the
    unseen frames alone; None: all terms and frames."""
    texts = identity_texts(MASK)
    if terms is None:
        return texts
    unseen = texts.filter(frame_split="test")
    named = unseen.filter(term_split="test")["term"].unique(maintain_order=True)
    drawn = named.sample(min(terms, len(named)), seed=seed).to_list()
    return unseen.filter(pl.col("term").is_in(drawn) | pl.col("term_split").is_null())


def label_identity_terms(
    scorers: Sequence[Scorer], texts: pl.DataFrame | None = None, *, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Label texts of term_texts, all of them by default, by each scorer: its label and strength. Unlike statements,
    texts are labelled as they are: no demographic word is masked, except in the frames about "this person"."""
    texts = term_texts() if texts is None else texts
    for scorer in scorers:
        label, strength = label_columns(scorer.name, "paper")
        found = label_column(texts["text"], scorer, cache)
        texts = texts.with_columns(pl.Series(label, found.label), pl.Series(strength, found.strength))
    return texts


def measure_identity_terms(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """measure.identity.by_term of each scorer, by name: scorer, and its columns BY_TERM."""
    return pl.concat(
        by_term(labels.with_columns(label=pl.col(name), strength=pl.col(f"{name}_strength")), intervals).select(
            pl.lit(name).alias("scorer"), *BY_TERM
        )
        for name in scorers
    )


def mean_false_positives(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> dict[str, float | None]:
    """The bounds of each scorer's mean share of false positives on unseen terms and frames, in percent, by their
    metrics: {scorer}/identity/unseen/false_positives_low and _high. labels: what label_identity_terms returns."""
    found: dict[str, float | None] = {}
    for name in scorers:
        figures = mean_error(labels.with_columns(label=pl.col(name)), FALSE_POSITIVES, intervals)
        found |= {identity_key(name, figure, "unseen"): value for figure, value in figures.items()}
    return found


def identity_summary(terms: pl.DataFrame) -> pl.DataFrame:
    """measure.identity.summary of each scorer in what measure_identity_terms returns: scorer, and its columns."""
    found = [
        summary(rows).select(pl.lit(name).alias("scorer"), pl.all())
        for (name,), rows in terms.group_by("scorer", maintain_order=True)
    ]
    return pl.concat(found)


def identity_metrics(summed: pl.DataFrame) -> dict[str, Any]:
    """Return the rows of identity_summary as metrics: {scorer}/identity/{part}[/{number}]/{error}, the mean over terms,
    and the row's other figures with the endings _largest, _farthest (the term), _equality_difference, _beyond and
    _masked."""
    return {
        identity_key(row["scorer"], row["error"] + ending, row["part"], row["number"]): row[column]
        for row in summed.rows(named=True)
        for ending, column in FIGURES.items()
    }


def identity_notices(summed: pl.DataFrame) -> Iterator[str]:
    """Yield a notice for each scorer and error of unseen terms and frames where a term is farther than LARGEST from
    the mean."""
    for row in summed.filter(pl.col("part") == "unseen", pl.col("number") == "both").rows(named=True):
        if row["beyond"]:
            texts, label = WRONGLY_LABELLED[row["error"]]
            yield (
                f"labels of {row['scorer']} depend on the group that a sentence names: {row['mean']:.1f} % of the "
                f"{texts} are labelled {label}, of those about “{row['term']}” {row['mean'] + row['largest']:.1f} %; "
                f"unseen terms that are more than {LARGEST:g} points from the mean: {row['beyond']} of {row['terms']}"
            )


def farthest(terms: pl.DataFrame, scorer: str, error: str) -> list[tuple[str, float]]:
    """The three unseen terms in unseen frames with the shares of this error, in percent, that are farthest from the
    mean, the farthest first."""
    rows = terms.filter(pl.col("scorer") == scorer, pl.col("part") == "unseen", pl.col("number") == "both")
    named = rows.filter(pl.col("axis").is_not_null())
    return named.sort(pl.col(GAPS[error]).abs(), descending=True).select("term", error).head(3).rows()


def identity_word_notices(labels: pl.DataFrame) -> Iterator[str]:
    """Yield a notice for each scorer with labels that depend on identity words: the words, and how many labels."""
    for column in filter(lambda name: name.endswith(IDENTITY), labels.columns):
        found = labels[column].drop_nulls()
        if found.is_empty():
            continue
        counts = found.value_counts().sort("count", column, descending=[True, False]).rows()
        named = [f"{words} ({count:,})" for words, count in counts[:SHOWN]] + ["..."] * (len(counts) > SHOWN)
        yield (
            f"{len(found):,} of {labels.height:,} labels of {column.removesuffix(IDENTITY)} depend on an identity "
            f"word: with the word masked, the text has another label ({', '.join(named)}). Words that probe.targets "
            "names are masked"
        )


def identity_words_of(scorers: Sequence[Scorer], seed: int, *, folder: Path, cache: LabelCache) -> dict[str, list[str]]:
    """Notices about the labelled statements in a folder of parts (of very many, those that
    measure.statements.choice takes): long texts, and labels that depend on identity terms of data/identity that
    are not targets."""
    labelled = choice(folder, seed)[0].select("masked", *(scorer.name for scorer in scorers))
    words = identity_word_notices(with_identity_words(labelled, scorers, None, cache=cache))
    return {"notices": [*long_texts(labelled["masked"]), *words]}
