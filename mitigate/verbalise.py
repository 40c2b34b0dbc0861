"""Sentences from triples: head, the relation's phrase, tail; with their demographic words masked, so that a scorer
labels the sentence for any person."""

from collections.abc import Iterable
from typing import Literal

import polars as pl

from mitigate.errors import one_of
from mitigate.words.relations import PERSON, Relation, as_one_person, is_of_event, with_own
from mitigate.words.targets import PAPER, TargetList

Masking = Literal["token", "paper"]
MASKINGS = ("token", "paper")
MASK = PERSON


def verbalise(
    triples: pl.DataFrame,
    masking: Masking = "token",
    target_list: TargetList = PAPER,
    own_relations: Iterable[Relation] = (),
) -> pl.DataFrame:
    """The triples (head, relation, tail; other columns stay) with the columns of STATEMENTS added.

    A frame without a `target` column gets one: the target that is the whole head or, failing that, the whole tail
    (harms paper, Section 3.1), else null. masking: "token" replaces whole words of every target; "paper" is
    the paper's substring replacement of the one target that the statement is about. In statements of events PersonX is
    masked too. own_relations: a user's, with their phrases. Raises MitigateError for another masking."""
    check(masking)
    if "target" not in triples.columns:
        words = list(target_list.categories)
        head, tail = (target_list.target_of(pl.col(end)) for end in ("head", "tail"))
        target = pl.when(head.is_in(words)).then(head).when(tail.is_in(words)).then(tail)
        category = target.replace_strict(target_list.categories, default=None, return_dtype=pl.String)
        triples = triples.with_columns(target=target, category=category)
    wordings = {"statement": "phrase", "masked_neutral": "neutral_phrase"}
    sentences = triples
    for column, wording in wordings.items():
        phrases = {name: getattr(relation, wording) for name, relation in with_own(own_relations).items()}
        phrase = pl.col("relation").replace_strict(phrases, return_dtype=pl.String)
        text = pl.concat_str("head", phrase, "tail", separator=" ").str.strip_chars()
        sentences = sentences.with_columns(text.alias(column))
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


def mask_column(column: str, masking: Masking, target_list: TargetList = PAPER) -> pl.Expr:
    """The texts of a column with demographic words replaced by "this person"; paper masking reads the
    column `target`."""

    def as_in_the_paper(row: dict[str, str]) -> str:
        text, target = row[column], row["target"]
        if target is None:
            return text
        pattern = target_list.substrings.get(target)
        return pattern.sub(MASK, text) if pattern else text.replace(target, MASK)

    if masking == "paper":
        return pl.struct(column, "target").map_elements(as_in_the_paper, return_dtype=pl.String)
    return pl.col(column).str.replace_all(target_list.pattern, MASK)
