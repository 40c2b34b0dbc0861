"""Control tokens before heads (Korbak et al. 2023): the generator learns which statements are polarised."""

from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field
from pydantic.dataclasses import dataclass

from mitigate.policies.base import STRICT
from mitigate.policies.drop import AMONG, DRAWN, REACHED, Filter, people, words_of
from mitigate.words.targets import PAPER, TargetList
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG


@dataclass(frozen=True, config=STRICT)
class Tag(Filter):
    """Trains on all triples, each in the scope after the token of its label, and generates after the neutral one. The
    ledger's `token` is null outside the scope. Control: the same tokens, permuted within split and relation."""

    scope: Annotated[  # the token stands before the head, so that the tail cannot count
        Literal["all", "person_heads"], Field(description="triples that get a token: all, with a person in the head")
    ] = "all"

    def tags(self, target_list: TargetList = PAPER) -> str | None:
        return "" if self.scope == "all" else words_of(target_list, people())

    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        token = pl.when(REACHED).then(pl.lit(POLARISED_TAG)).otherwise(pl.lit(NEUTRAL_TAG))
        reason = pl.when(REACHED).then(pl.col("reason") + ", tagged").otherwise("reason")
        return rows.with_columns(token=pl.when("in_scope").then(token), reason=reason)

    def draw(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        lots = pl.Series("lot", np.random.default_rng(self.seed).random(rows.height))
        tagged = self.weigh(rows, target_list).with_columns(lots)
        drawn = tagged.with_columns(pl.col("token").sort_by("lot").over(AMONG)).drop("lot")
        is_drawn = (pl.col("token") == POLARISED_TAG).fill_null(False)
        return drawn.with_columns(reason=pl.when(is_drawn).then(pl.lit(DRAWN)).otherwise(pl.lit("kept")))
