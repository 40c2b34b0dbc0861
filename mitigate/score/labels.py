"""Labels for a column of texts: each distinct text is asked for once, first of the cache, then of the scorer."""

import numpy as np
import polars as pl
from tqdm.auto import tqdm

from mitigate.triples import LabelCache, Labels, Scorer, label_columns

SLICE = 8192  # texts scored between two writes to the cache: what a killed run loses at most


def label_column(texts: pl.Series, scorer: Scorer, cache: LabelCache) -> Labels:
    """The labels of n texts in their order, (n,) each, whatever repeats."""
    distinct = texts.unique(maintain_order=True)
    label, strength = _label_distinct(distinct.to_list(), scorer, cache)
    places = texts.replace_strict(distinct, pl.arange(len(distinct), eager=True))
    position = places.cast(pl.Int64).to_numpy()  # of no texts, polars keeps the type of the texts
    return Labels(label[position], strength[position])


def with_labels(statements: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The statements (columns masked, masked_neutral) with the scorer's labels and strengths under both
    templates. Texts that are the same under both are scored once."""
    size = len(statements)
    both = label_column(pl.concat([statements["masked"], statements["masked_neutral"]]), scorer, cache)
    columns = []
    for template, rows in (("paper", slice(0, size)), ("neutral", slice(size, None))):
        label, strength = label_columns(scorer.name, template)
        columns += [pl.Series(label, both.label[rows]), pl.Series(strength, both.strength[rows])]
    return statements.with_columns(columns)


def _label_distinct(texts: list[str], scorer: Scorer, cache: LabelCache) -> Labels:
    known, labels = cache.get(scorer.fingerprint, texts)
    missing = sorted(np.flatnonzero(~known), key=lambda i: len(texts[i]))  # like lengths make tight batches
    bar = tqdm(total=len(missing), desc=f"score {scorer.name}", unit=" texts", disable=None, leave=False)
    for start in range(0, len(missing), SLICE):
        rows = missing[start : start + SLICE]
        asked = [texts[i] for i in rows]
        said = scorer(asked)
        labels.label[rows], labels.strength[rows] = said
        cache.put(scorer.fingerprint, asked, said)
        bar.update(len(rows))
    bar.close()
    return labels
