"""Policies that filter training triples: their base class, with the scope and the random control; and those that drop
polarised triples, as the paper does (Section 4.3), reduce their weight, or mark them by control tokens."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal

import numpy as np
import polars as pl
from pydantic import Field
from pydantic.dataclasses import dataclass

from mitigate.errors import MitigateError
from mitigate.files import rows_of
from mitigate.models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG
from mitigate.policies.base import STRICT, Control, Policy, Scored, Seed, Template
from mitigate.triples import IMPLIES
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import pattern, with_plurals

DRAWN = "drawn at random"
REACHED = pl.col("reached")  # polarised, in the policy's scope, of a split that it filters
AMONG = ("split", "relation", "in_scope")  # groups within which a control draws
Scope = Annotated[
    Literal["all", "person_heads", "targets"],
    Field(description="triples that it acts on: all, with a person or a target in the head, with a target"),
]


@dataclass(frozen=True, config=STRICT)
class Filter(Scored, ABC):
    """Acts on polarised training triples in its scope. A class derived from it has the method `weigh`, and the random
    control of what that does."""

    scope: Scope = "all"
    splits: Annotated[
        Literal["train", "all"], Field(description="splits that it filters; all: dev and test too, as the paper did")
    ] = "train"
    control: Control = False
    seed: Seed = 1

    @abstractmethod
    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        """The rows in their order with a new `weight` and `reason`. Before, the weight is 1, and the reason the
        polarised labels, if any. `reached` marks the rows to act on: polarised, in scope, and of a split to filter."""

    def draw(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        """The control: the weights of `weigh`, drawn among the triples in the scope of each split and relation."""
        lots = pl.Series("lot", np.random.default_rng(self.seed).permutation(rows.height))
        place = pl.col("lot").rank("ordinal") - 1
        drawn = self._weighed(rows, target_list).with_columns(lots)
        drawn = drawn.with_columns(pl.col("weight").sort().gather(place).over(AMONG)).drop("lot")
        return drawn.with_columns(reason=pl.when(pl.col("weight") != 1).then(pl.lit(DRAWN)).otherwise(pl.lit("kept")))

    def _weighed(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        """The result of `weigh`. Raises MitigateError where a class of a user's own returns something else."""
        ledger = self.weigh(rows, target_list)
        if isinstance(ledger, pl.DataFrame) and {"row", "weight", "reason"} <= {*ledger.columns}:
            weights = ledger["weight"].cast(pl.Float64)
            are_weights = (weights.is_finite() & (weights >= 0)).fill_null(False).all()
            if are_weights and ledger["row"].head(rows.height).equals(rows["row"]):
                return ledger
        raise MitigateError(
            f"policy {self.name!r}: {type(self).__name__}.weigh must return its rows in their order, with weights >= 0"
        )

    def filter(self, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
        """The ledger (Policy.filter). The reason is "kept", "drawn at random", or the polarised labels and, unless they
        removed or reduced the triple, the outcome: "regard -1, outside the scope", "regard -1, swapped". Where a scorer
        explains its labels (column {scorer}_why), the explanation follows. Splits that the policy does not filter are
        kept whole."""
        filtered = pl.lit(True) if self.splits == "all" else pl.col("split") == "train"
        finding, polarised = pl.col("finding"), pl.col("finding") != ""
        rows = Policy.filter(self, labelled, target_list).with_columns(
            weight=pl.lit(1.0),
            finding=pl.when(filtered).then(self.finding()).otherwise(pl.lit("")),
            in_scope=in_scope(self.scope, target_list),
        )
        rows = rows.with_columns(reached=polarised & pl.col("in_scope"))
        reason = pl.when(REACHED).then(finding).when(polarised).then(finding + ", outside the scope")
        rows = rows.with_columns(reason=reason.otherwise(pl.lit("kept")))
        ledger = self.draw(rows, target_list) if self.control else self._weighed(rows, target_list)
        why = [f"{scorer}_why" for scorer in self.scorers if f"{scorer}_why" in rows.columns]
        implied = pl.concat_str(why, separator="; ", ignore_nulls=True) if why else pl.lit("")
        explained = pl.when((pl.col("reason") != "kept") & (implied != "")).then(pl.col("reason") + IMPLIES + implied)
        return ledger.with_columns(
            weight=pl.when(filtered).then("weight").otherwise(1.0).cast(pl.Float32),
            reason=pl.when(filtered).then(explained.otherwise("reason")).otherwise(pl.lit("kept")),
        ).drop("finding", "in_scope", "reached")


@dataclass(frozen=True, config=STRICT)
class Drop(Filter):
    """Drops polarised triples, as the paper does. Control: drops as many of each relation."""

    template: Template = "paper"

    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        return rows.with_columns(weight=(~REACHED).cast(pl.Float64))


@dataclass(frozen=True, config=STRICT)
class Downweight(Filter):
    """Weighs a polarised triple by 1 - |strength| of the strongest finding. Control: as many of the same weights."""

    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        return rows.with_columns(weight=pl.when(REACHED).then(1 - self.direction().abs()).otherwise(1.0))


@dataclass(frozen=True, config=STRICT)
class Tag(Filter):
    """Trains on all triples, each in the scope after a control token of its label (Korbak et al. 2023), and generates
    after the neutral one. The ledger's `token` is null outside the scope. Control: the same tokens, permuted within
    split and relation."""

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


def in_scope(scope: str, target_list: TargetList = PAPER) -> pl.Expr:
    """Return whether a triple's head or tail has, as whole words, a target in any of its forms ("targets"); whether its
    head has one or a word of data/people.csv ("person_heads"); True for "all"."""
    if scope == "all":
        return pl.lit(True)
    text = pl.col("head") if scope == "person_heads" else pl.concat_str("head", "tail", separator="\n")
    return text.str.contains(words_of(target_list, () if scope == "targets" else people()))


def words_of(target_list: TargetList, others: Sequence[str] = ()) -> str:
    """A regular expression for targets in any of their forms, and for other words and their plurals."""
    return pattern(target_list.forms.union(form for word in others for form in with_plurals(word)))


@cache
def people() -> tuple[str, ...]:
    """Words for people: kin, ages, occupations, peoples, pronouns; with irregular plurals."""
    return tuple(row["word"] for row in rows_of("people.csv"))
