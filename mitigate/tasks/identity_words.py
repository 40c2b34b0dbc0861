"""Labels that depend on an identity word: with the word masked, as demographic words of the list of targets are, the
same text has another label."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.load.identity import identity_forms
from mitigate.measure.agreement import fold_other
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.tasks.statements import choice, long_texts
from mitigate.triples import LabelCache, Scorer
from mitigate.verbalise import MASK
from mitigate.words.target_list import PAPER, TargetList
from mitigate.words.word_forms import contains, extract_all, pattern, replace_all

COLUMN = "_identity"  # what ends the column beside a scorer's labels
SHOWN = 3  # words of a notice


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
