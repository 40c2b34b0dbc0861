"""The words that drove a label, by occlusion: a scorer's labels of a text without each of its words (Li et al. 2016,
Understanding Neural Networks through Representation Erasure)."""

from collections.abc import Collection
from itertools import chain

import numpy as np
import polars as pl

from mitigate.score.labels import label_column
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Labels, Scorer

MOST = 1000  # texts that are examined, each as many times as it has words
SHOWN = 3  # words of a text
SHARE = 0.1  # of the strongest word's effect; weaker words are not shown

OCCLUSION = {
    "masked": pl.String,  # the text
    "place": pl.Int64,  # of the word in the text, from 1
    "word": pl.String,
    "label": pl.Int8,
    "strength": pl.Float32,
    "label_without": pl.Int8,
    "strength_without": pl.Float32,
}


def driving_words(
    texts: pl.Series, labels: Labels, scorer: Scorer, cache: LabelCache, passed_over: Collection[str] = ()
) -> pl.Series:
    """The words that drove the label of each text, with the fall of the strength without each, such as "thief -0.55,
    liar -0.10"; null where none did.

    Only texts whose label is not neutral are examined, at most the MOST of largest strength; words of `passed_over` are
    never removed."""
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
    found = {
        text: ", ".join(f"{word} {value:+.2g}" for word, value in part.select("word", "pull").head(SHOWN).rows())
        for (text,), part in most.group_by("masked", maintain_order=True)
    }
    return pl.Series([found.get(text) for text in texts], dtype=pl.String)


def occluded(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """A row (columns OCCLUSION) for each word of each distinct text, in their order: the labels of the text with and
    without the word. A text is scored once more for each of its words."""
    distinct = texts.unique(maintain_order=True)
    words = [text.split() for text in distinct]
    without = [" ".join([*parts[:place], *parts[place + 1 :]]) for parts in words for place in range(len(parts))]
    whole, rest = (label_column(each, scorer, cache) for each in (distinct, pl.Series(without, dtype=pl.String)))
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
