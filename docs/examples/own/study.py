"""Your own scorer and policy. They are named in score/study.yaml and in policy/, beside this file."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from pydantic.dataclasses import dataclass

import mitigate
from mitigate.policies import Filter


class Words:
    """Labels a text with any of the words as prejudice, all others as neutral."""

    version = "1"  # another one whenever the labels change: results of later commands are then computed again

    def __init__(self, words: Sequence[str]) -> None:
        self.words = set(words)

    def __call__(self, texts: Sequence[str]) -> mitigate.Labels:
        found = np.array([bool(self.words & set(text.lower().split())) for text in texts])
        return mitigate.Labels(-found.astype(np.int8), -found.astype(np.float32))


@dataclass(frozen=True)
class ShortTails(Filter):
    """Drops triples that its scorers label as polarised, and halves the weight of others with a long tail. Its control,
    policy.control=true, draws as many triples of each relation for the same weights."""

    version = "1"

    most: int = 4  # words of a tail

    def weigh(self, rows: pl.DataFrame, target_list: mitigate.TargetList) -> pl.DataFrame:
        is_dropped = pl.col("reached")
        is_long = pl.col("tail").str.split(" ").list.len() > self.most
        return rows.with_columns(
            weight=pl.when(is_dropped).then(0.0).when(is_long).then(0.5).otherwise(1.0),
            reason=pl.when(is_long & ~is_dropped).then(pl.lit("long tail")).otherwise("reason"),
        )
