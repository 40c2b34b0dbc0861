"""Statements that the harms paper's crowd rated, each with its target, the majority label, and its wording with a
neutral relation phrase.

The release gives sentences alone, so targets and relations are read from them."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.load.ratings import KNOWLEDGE, RESOURCES, read_beside, read_crowd
from mitigate.measure.agreement import majority, vote_counts
from mitigate.triples import FAVOURITISM, PREJUDICE
from mitigate.verbalise import mask_column
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import clusters, targets
from mitigate.words.word_forms import any_of

SENTENCES = KNOWLEDGE[1]  # GenericsKB: the statements of the others are triples
POLARISED = [PREJUDICE, FAVOURITISM]


def read_rated(root: Path, names: Sequence[str] = RESOURCES) -> pl.DataFrame:
    """Read the rated statements of these sources below a folder that holds humans/, as describe_rated returns them."""
    return describe_rated(read_crowd(root / "humans", names))


def read_with_quality(root: Path, name: str = RESOURCES[-1]) -> pl.DataFrame:
    """Read the rated statements of one source with their quality: whether each rater calls the statement valid (list of
    bool). Raises MitigateError as read_beside does."""
    files = [root / "humans" / f"{name}_{kind}.txt" for kind in ("sentences", "bias_labels", "quality_labels")]
    rated = read_beside(*files).group_by("item", maintain_order=True).agg(votes="label", quality="quality")
    return describe_rated(rated.select(pl.lit(name).alias("resource"), "votes", "quality", sentence="item"))


def describe_rated(crowd: pl.DataFrame) -> pl.DataFrame:
    """Add to rated statements (resource, sentence, votes) most (the label of most raters; neutral where none leads),
    target and category (null where no target stands in the statement), cluster (its target's, or the statement itself),
    head and tail (the whole statement and "" if it is not a triple), masked and masked_neutral (its wording with
    demographic words masked, and with the relation's neutral phrase)."""
    found = [target_of(text) for text in crowd["sentence"]]
    words = clusters()
    about = [words.get(one, one) if one else text for one, text in zip(found, crowd["sentence"], strict=True)]
    parts = [_parts(*row) for row in crowd.select("resource", "sentence").iter_rows()]
    return crowd.with_columns(
        most=pl.Series(most_say(crowd["votes"]), dtype=pl.Int8),
        target=pl.Series(found, dtype=pl.String),
        category=pl.Series([targets().get(target) if target else None for target in found], dtype=pl.String),
        cluster=pl.Series(about),
        head=pl.Series([head for head, _, _ in parts]),
        tail=pl.Series([tail for _, _, tail in parts]),
        worded=pl.Series([" ".join(filter(None, part)) for part in parts]),
    ).with_columns(
        mask_column("sentence", "token").alias("masked"), mask_column("worded", "token").alias("masked_neutral")
    )


def most_say(votes: pl.Series) -> np.ndarray:
    """The label of most raters of each statement, from lists of votes, (n,); neutral where none leads."""
    items = np.repeat(np.arange(len(votes)), votes.list.len().to_numpy()).astype(str)
    return majority(vote_counts(items.tolist(), votes.explode().to_numpy()))


@cache
def target_of(statement: str) -> str | None:
    """Find the target of a statement: the one that it begins with, after an article; else the one that it ends with, as
    the tail of a triple; else the first in it. None for a statement without a target."""
    statement = statement.strip(" .")
    found = list(re.finditer(any_of(targets()), statement))
    if not found:
        return None
    first, last = found[0], found[-1]
    begins = statement[: first.start()].lower() in ("", "a ", "an ", "the ")
    ends = last.end() == len(statement)
    return _target_with(last[0] if ends and not begins else first[0])


@cache
def _target_with(form: str) -> str | None:
    return next((target for target in targets() if re.fullmatch(any_of([target]), form)), None)


def _parts(resource: str, sentence: str) -> tuple[str, str, str]:
    """Split a triple into head, neutral phrase and tail; a sentence stays whole."""
    if resource == SENTENCES or not (parts := parse_sentence(sentence)):
        return sentence, "", ""
    head, relation, tail = parts
    return head, relation.neutral_phrase, tail
