"""What scorers' labels owe to the group that a sentence names: identity terms in neutral, kind and unkind frames
(data/identity), labelled and compared after Dixon et al. (2018)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.load.identity import identity_forms, identity_texts
from mitigate.measure.agreement import fold_other
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.identity import BY_TERM, FALSE_NEGATIVES, FALSE_POSITIVES, GAPS, LARGEST, by_term, summary
from mitigate.metrics import bounds, identity_key
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.tasks.statements import choice, long_texts
from mitigate.triples import LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.target_list import PAPER, TargetList
from mitigate.words.word_forms import contains, extract_all, pattern, replace_all

SHOWN_PARTS = ("unseen", "all")
SAID = {  # share labelled wrongly, by error
    FALSE_POSITIVES: ("neutral and kind sentences", "prejudice"),
    FALSE_NEGATIVES: ("unkind sentences", "no prejudice"),
}
FIGURES = {"": "mean", "_equality_difference": "equality_difference", "_farthest": "term", "_beyond": "beyond"}
COLUMN = "_identity"  # what ends the column beside a scorer's labels
SHOWN = 3  # words of a notice


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


def with_identity_words(
    statements: pl.DataFrame,
    scorers: Sequence[Scorer],
    target_list: TargetList | None = PAPER,
    *,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """Labelled statements (masked, and each scorer's labels) with the columns {scorer}_identity: the identity words
    that a label depends on, in lower case; null where it stays the same without them, or where there are none.

    The words are the identity terms of data/identity and the targets of the list that the masking has left; without a
    list, the terms that are no targets of the paper's. All of a text are masked at once, with their article. Only texts
    that have such a word are labelled again."""
    words = _pattern(target_list)
    masked = statements["masked"]
    rows = contains(masked, f"(?i){words}").arg_true()
    texts = masked.gather(rows)
    named = extract_all(texts.str.to_lowercase(), words).list.unique(maintain_order=True).list.join(", ")
    without = replace_all(texts, rf"(?i)(?:\b(?:an?|the) )?(?:{words})(?: {MASK})?", MASK)
    for scorer in scorers:
        before = fold_other(statements[scorer.name].gather(rows).to_numpy())
        after = fold_other(label_column(without, scorer, cache).label)
        depends = np.full(statements.height, None, dtype=object)
        depends[rows.to_numpy()[before != after]] = named.filter(before != after).to_list()
        statements = statements.with_columns(pl.Series(scorer.name + COLUMN, depends.tolist(), dtype=pl.String))
    return statements


def identity_word_notices(labels: pl.DataFrame) -> Iterator[str]:
    """A sentence for each scorer with labels that depend on identity words, with the words and how many labels."""
    for column in filter(lambda name: name.endswith(COLUMN), labels.columns):
        found = labels[column].drop_nulls()
        if found.is_empty():
            continue
        counts = found.value_counts().sort("count", column, descending=[True, False]).rows()
        named = [f"{words} ({count:,})" for words, count in counts[:SHOWN]] + ["..."] * (len(counts) > SHOWN)
        yield (
            f"{len(found):,} of {labels.height:,} labels of {column.removesuffix(COLUMN)} depend on an identity word: "
            f"with the word masked, the text has another label ({', '.join(named)}). Words that probe.targets "
            "names are masked"
        )


def identity_words_of(scorers: Sequence[Scorer], seed: int, *, folder: Path, cache: LabelCache) -> dict[str, list[str]]:
    """The notices of the labelled statements in a folder of parts (of very many, those that tasks.statements.choice
    takes), for identity terms of data/identity that are no targets, and of long texts: notices."""
    labelled = choice(folder, seed)[0].select("masked", *(scorer.name for scorer in scorers))
    words = identity_word_notices(with_identity_words(labelled, scorers, None, cache=cache))
    return {"notices": [*long_texts(labelled["masked"]), *words]}


def _pattern(target_list: TargetList | None) -> str:
    forms = identity_forms() | target_list.forms if target_list else identity_forms() - PAPER.forms
    return pattern(forms).removeprefix("(?i)")
