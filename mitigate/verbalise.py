"""Sentences from triples: head, the relation's phrase, tail; with their demographic words masked, so that a scorer
labels the sentence for any person.

Independent of scorers and policies."""

from collections.abc import Iterable
from typing import Literal

import polars as pl

from mitigate.errors import one_of
from mitigate.words.events import PERSON, as_one_person, is_of_event
from mitigate.words.relations import Relation, with_own
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import replace_all

Masking = Literal["token", "paper"]
MASKINGS = ("token", "paper")
MASK = PERSON


def verbalise(
    triples: pl.DataFrame,
    masking: Masking = "token",
    target_list: TargetList = PAPER,
    own_relations: Iterable[Relation] = (),
) -> pl.DataFrame:
    """The triples with the columns of STATEMENTS added (needs head, relation, tail; keeps other columns).

    A frame without a `target` column gets one: the target that is the whole head or, failing that, the
    whole tail (harms paper, Section 3.1), else null.
    masking="token" replaces whole words, and every demographic target of the list in the sentence, their plurals and
    possessives included; "paper" is the paper's substitution: plain substring replacement of the one target the
    statement is about, of a run's own target in all its forms. In statements of events (events.is_of_event) PersonX is
    masked as a target is. own_relations: relations that are not the project's, with their phrases. Raises MitigateError
    for another masking."""
    check(masking)
    if "target" not in triples.columns:
        triples = triples.with_columns(whole_target(target_list))
        triples = triples.with_columns(
            category=pl.col("target").replace_strict(target_list.categories, default=None, return_dtype=pl.String)
        )
    named = with_own(own_relations)
    phrases = {name: relation.phrase for name, relation in named.items()}
    neutral_phrases = {name: relation.neutral_phrase for name, relation in named.items()}
    sentences = triples.with_columns(statement=_sentence(phrases), masked_neutral=_sentence(neutral_phrases))
    masked = sentences.with_columns(
        mask_column("statement", masking, target_list).alias("masked"),
        mask_column("masked_neutral", masking, target_list).alias("masked_neutral"),
    )
    return masked.with_columns(
        pl.when(is_of_event()).then(as_one_person(pl.col(column))).otherwise(column).alias(column)
        for column in ("masked", "masked_neutral")
    )


def check(masking: str) -> None:
    """Raise MitigateError for a masking that is neither "token" nor "paper"."""
    if masking not in MASKINGS:
        raise one_of("measure.masking", masking, MASKINGS)


def whole_target(target_list: TargetList = PAPER) -> pl.Expr:
    """The target that is all of the head, or else all of the tail, or null; as column `target`."""
    words = list(target_list.categories)
    head, tail = (target_list.target_of(pl.col(end)) for end in ("head", "tail"))
    return pl.when(head.is_in(words)).then(head).when(tail.is_in(words)).then(tail).alias("target")


def _sentence(phrases: dict[str, str]) -> pl.Expr:
    phrase = pl.col("relation").replace_strict(phrases, return_dtype=pl.String)
    return pl.concat_str("head", phrase, "tail", separator=" ").str.strip_chars()


def mask_column(column: str, masking: Masking, target_list: TargetList = PAPER) -> pl.Expr:
    """The texts of a column with demographic words replaced by "this person"; paper masking reads the
    column `target`."""

    def as_in_the_paper(row: dict[str, str]) -> str:
        text, target = row[column], row["target"]
        if target is None:
            return text
        own = target_list.substrings.get(target)
        return own.sub(MASK, text) if own else text.replace(target, MASK)

    if masking == "paper":
        return pl.struct(column, "target").map_elements(as_in_the_paper, return_dtype=pl.String)
    return replace_all(pl.col(column), target_list.pattern, MASK)
