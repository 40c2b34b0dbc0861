"""A triple becomes a sentence: head, the relation's phrase, tail; and the sentence is masked, so that a
scorer labels what the sentence says about a person, whoever that is.

Knows nothing of scorers and policies."""

from collections.abc import Iterable
from typing import Literal

import polars as pl

from mitigate.errors import one_of
from mitigate.relations import relations
from mitigate.targets import any_of, targets

Masking = Literal["token", "paper"]
MASKINGS = ("token", "paper")
MASK = "this person"


def verbalise(triples: pl.DataFrame, masking: Masking = "token", own_targets: Iterable[str] = ()) -> pl.DataFrame:
    """The triples with the columns of STATEMENTS added (needs head, relation, tail; keeps what else is there).

    A frame without a `target` column gets one: the target that is the whole head or, failing that, the
    whole tail (harms paper, Section 3.1), else null.
    masking="token" replaces whole words, and every demographic target in the sentence, their plurals and
    possessives included, own_targets as well as the 329; "paper" is the paper's substitution: plain substring
    replacement of the one target the statement is about. Raises MitigateError for another masking."""
    check(masking)
    if "target" not in triples.columns:
        triples = triples.with_columns(whole_target())
        triples = triples.with_columns(
            category=pl.col("target").replace_strict(targets(), default=None, return_dtype=pl.String)
        )
    named = relations()
    phrases = {name: relation.phrase for name, relation in named.items()}
    neutral_phrases = {name: relation.neutral_phrase for name, relation in named.items()}
    sentences = triples.with_columns(statement=_sentence(phrases), masked_neutral=_sentence(neutral_phrases))
    words = tuple(own_targets)
    return sentences.with_columns(
        mask_column("statement", masking, words).alias("masked"),
        mask_column("masked_neutral", masking, words).alias("masked_neutral"),
    )


def check(masking: str) -> None:
    """Raises MitigateError for a masking that is neither "token" nor "paper"."""
    if masking not in MASKINGS:
        raise one_of("measure.masking", masking, MASKINGS)


def whole_target() -> pl.Expr:
    """The target that is all of the head, or else all of the tail, or null; as column `target`."""
    known = list(targets())
    head, tail = pl.col("head").str.to_lowercase(), pl.col("tail").str.to_lowercase()
    return pl.when(head.is_in(known)).then(head).when(tail.is_in(known)).then(tail).alias("target")


def _sentence(phrases: dict[str, str]) -> pl.Expr:
    phrase = pl.col("relation").replace_strict(phrases, return_dtype=pl.String)
    return pl.concat_str("head", phrase, "tail", separator=" ").str.strip_chars()


def mask_column(column: str, masking: Masking, own_targets: tuple[str, ...] = ()) -> pl.Expr:
    """The texts of a column with demographic words replaced by "this person"; paper masking reads the
    column `target`."""
    if masking == "paper":
        return pl.struct(column, "target").map_elements(
            lambda row: row[column].replace(row["target"], MASK) if row["target"] else row[column],
            return_dtype=pl.String,
        )
    return pl.col(column).str.replace_all(any_of((*targets(), *own_targets)), MASK)
