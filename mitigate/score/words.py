"""The words that drove a label: those counted by a scorer that counts words, and of a classifier's texts those without
which its answer would be most different. And occlusion: what a scorer says of a text without each of its words."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from mitigate.score.labels import fault, label_column
from mitigate.score.own import in_words
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Labels, Scorer

MOST = 1000  # texts of a classifier that are looked into, each as many times as it has words
SHOWN = 3  # words of a text
SHARE = 0.1  # of what the strongest word is worth; a weaker one is not shown

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
    """A scorer that knows which words it goes by, and what each is worth."""

    def words(self, text: str) -> Words: ...


def driving_words(
    texts: pl.Series, labels: Labels, scorer: Scorer, cache: LabelCache, passed_over: Collection[str] = ()
) -> pl.Series:
    """For each text what drove its label, such as "thief -0.81, liar -0.10"; null where nothing did.

    Behind a word stands its worth to a scorer that counts words, else by how much the strength falls without it. A
    classifier's texts are only looked into where it is not neutral, and at most the MOST it is surest of; words
    of `passed_over` are never tried."""
    if isinstance(scorer, CountsWords) and callable(scorer.words):  # in a user's class it may be a list
        distinct = texts.unique()
        found = {text: _counted(scorer, text) for text in distinct}
    else:
        found = _by_removal(texts, labels, scorer, cache, passed_over)
    said = [", ".join(f"{word} {worth:+.2g}" for word, worth in found.get(text, [])) or None for text in texts]
    return pl.Series(said, dtype=pl.String)


def _counted(scorer: Any, text: str) -> Words:
    with in_words(scorer, [text]):
        found = scorer.words(text)
    try:
        return [(word + "", float(worth)) for word, worth in found]
    except (TypeError, ValueError) as error:
        raise fault(
            scorer, f"words: expected (word, what it is worth) of each word; found {str(found)[:60]}"
        ) from error


def occluded(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """A row (columns OCCLUSION) for each word of each distinct text, in their order: what the scorer says of the text,
    and of the text with the word left out (Li et al. 2016, Understanding Neural Networks through Representation
    Erasure). A text is scored once more for each of its words."""
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
    """The texts of these words with each word in turn left out, one after another."""
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
    words = [text.split() for text in surest["text"]]
    tried = label_column(_without(words), scorer, cache).strength
    strengths = np.split(tried, np.cumsum([len(parts) for parts in words])[:-1]) if words else []
    return {
        text: _largest(parts, strength - rest, label, passed_over)
        for (text, label, strength), parts, rest in zip(surest.rows(), words, strengths, strict=True)
    }


def _largest(words: Sequence[str], falls: np.ndarray, label: int, passed_over: Collection[str]) -> Words:
    """The few words that pull towards the label most."""
    pulls = {i: float(fall) for i, fall in enumerate(falls) if fall * label > 0 and words[i] not in passed_over}
    most = max(map(abs, pulls.values()), default=0.0)
    order = sorted(pulls, key=lambda i: -abs(pulls[i]))[:SHOWN]
    return [(words[i], pulls[i]) for i in order if abs(pulls[i]) >= SHARE * most]
