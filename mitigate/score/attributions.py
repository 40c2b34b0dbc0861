"""The words that drove a label: those counted by a scorer that counts words; for a classifier, those whose removal
changes its answer most. And occlusion: a scorer's labels of a text without each of its words."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from mitigate.score.labels import fault, label_column
from mitigate.score.user_scorer import own_errors_explained
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Labels, Scorer

MOST = 1000  # texts of a classifier that are examined, each as many times as it has words
SHOWN = 3  # words of a text
SHARE = 0.1  # of the strongest word's effect; weaker words are not shown

Words = list[tuple[str, float]]

OCCLUSION = {
    "masked": pl.String,  # the text
    "place": pl.Int64,  # of the word in the text, from 1
    "word": pl.String,
    "label": pl.Int8,
    "strength": pl.Float32,
    "label_without": pl.Int8,
    "strength_without": pl.Float32,
}


@runtime_checkable
class CountsWords(Protocol):
    """A scorer that counts words, and returns those that it counted with their values."""

    def words(self, text: str) -> Words: ...


def driving_words(
    texts: pl.Series, labels: Labels, scorer: Scorer, cache: LabelCache, passed_over: Collection[str] = ()
) -> pl.Series:
    """The words that drove the label of each text, such as "thief -0.81, liar -0.10"; null where none did.

    The number is a word's value for a scorer that counts words, else the fall of the strength without it. Only the
    texts that a classifier does not label neutral are examined, at most the MOST of largest strength; words of
    `passed_over` are never removed."""
    if isinstance(scorer, CountsWords) and callable(scorer.words):  # in a user's class it may be a list
        distinct = texts.unique()
        found = {text: _counted(scorer, text) for text in distinct}
    else:
        found = _by_removal(texts, labels, scorer, cache, passed_over)
    shown = [", ".join(f"{word} {value:+.2g}" for word, value in found.get(text, [])) or None for text in texts]
    return pl.Series(shown, dtype=pl.String)


def _counted(scorer: Any, text: str) -> Words:
    with own_errors_explained(scorer, [text]):
        found = scorer.words(text)
    try:
        return [(word + "", float(value)) for word, value in found]
    except (TypeError, ValueError) as error:
        raise fault(scorer, f"words: expected (word, its value) of each word; found {str(found)[:60]}") from error


def occluded(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """A row (columns OCCLUSION) for each word of each distinct text, in their order: the labels of the text with and
    without the word (Li et al. 2016, Understanding Neural Networks through Representation Erasure). A text is scored
    once more for each of its words."""
    distinct = texts.unique(maintain_order=True)
    words = [text.split() for text in distinct]
    whole, rest = label_column(distinct, scorer, cache), label_column(_without(words), scorer, cache)
    at = np.repeat(np.arange(len(distinct)), [len(parts) for parts in words])
    columns = {
        "masked": distinct.gather(at),
        "place": [place for parts in words for place in range(1, len(parts) + 1)],
        "word": list(chain(*words)),
        "label": whole.label[at],
        "strength": whole.strength[at],
        "label_without": rest.label,
        "strength_without": rest.strength,
    }
    return pl.DataFrame(columns, schema=OCCLUSION)


def _without(words: Sequence[Sequence[str]]) -> pl.Series:
    """The texts of these words without each word in turn."""
    texts = [" ".join([*parts[:i], *parts[i + 1 :]]) for parts in words for i in range(len(parts))]
    return pl.Series(texts, dtype=pl.String)


def _by_removal(
    texts: pl.Series, labels: Labels, scorer: Scorer, cache: LabelCache, passed_over: Collection[str]
) -> dict[str, Words]:
    surest = (
        pl.DataFrame({"text": texts, "label": labels.label, "strength": labels.strength})
        .filter(pl.col("label").is_in([PREJUDICE, FAVOURITISM]))
        .unique("text", maintain_order=True)
        .sort(pl.col("strength").abs(), descending=True, maintain_order=True)
        .head(MOST)
    )
    pull, size = pl.col("strength") - pl.col("strength_without"), pl.col("pull").abs()
    rows = occluded(surest["text"], scorer, cache).with_columns(pull=pull)
    towards = rows.filter(pl.col("pull") * pl.col("label") > 0, ~pl.col("word").is_in(list(passed_over)))
    most = towards.filter(size >= SHARE * size.max().over("masked")).sort(size, descending=True, maintain_order=True)
    parts = most.select("masked", "word", "pull").group_by("masked", maintain_order=True)
    return {str(text): part.select("word", "pull").head(SHOWN).rows() for (text,), part in parts}
