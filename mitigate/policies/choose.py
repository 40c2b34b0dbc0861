"""Policies that choose among the tails that a generator generates, in the scope of a filter or not; and a policy of two
policies, one that filters and one that chooses."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field
from pydantic.dataclasses import dataclass

from mitigate.errors import MitigateError
from mitigate.policies.base import PROMPT, STRICT, Control, Policy, Scored, Seed, reorder
from mitigate.words.targets import PAPER, TargetList

UNLIKELY_VALID = -pl.col("people_validity").fill_null(0.0)
"""Higher, the less often people call a tail valid; the same for all tails of relations that nobody rated."""


@dataclass(frozen=True, config=STRICT)
class Choice(Policy, ABC):
    """Trains on all triples, and chooses among generated tails. A class derived from it has the method `order`, and the
    random control of what that does: as many tails of each prompt move out of the best ones."""

    candidates: Annotated[int, Field(ge=2, le=1000, description="generated tails of each prompt to choose among")] = 20
    keep: Annotated[
        int | None, Field(ge=1, le=1000, description="tails of each prompt that are kept, at most; null: probe.top")
    ] = None
    control: Control = False
    seed: Seed = 1
    needs: ClassVar[str | None] = None  # what its order reads besides labels: "validity" to people, or "contrast"

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep > self.candidates:
            raise MitigateError(
                f"policy.keep={self.keep} must be at most policy.candidates={self.candidates}; set policy.keep=null"
            )

    @abstractmethod
    def order(self) -> list[pl.Expr]:
        """The keys of the order, the first key first; of each, low values come first."""

    def demoted(self, candidates: pl.DataFrame, top: int) -> pl.Series | pl.Expr:
        """Return which tails are left behind the `top` ones."""
        kept = reorder(candidates, self.order(), top).select(*PROMPT, rank="beam_rank", stays=True)
        return candidates.join(kept, on=[*PROMPT, "rank"], how="left", maintain_order="left")["stays"].is_null()

    def choose(self, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
        top = top if self.keep is None else min(top, self.keep)
        if not self.control:
            return reorder(candidates, self.order(), top)
        drawn = draw_as_many(candidates, self.demoted(candidates, top), top, self.seed)
        return reorder(candidates.with_columns(drawn=drawn), [pl.col("drawn")], top)


@dataclass(frozen=True, config=STRICT)
class Rerank(Choice, Scored):
    """The neutral tails come first. Control: moves as many tails of each prompt."""

    def order(self) -> list[pl.Expr]:
        return [self.polarised()]

    def demoted(self, candidates: pl.DataFrame, top: int) -> pl.Expr:
        return self.polarised()


@dataclass(frozen=True, config=STRICT)
class Critic(Choice, Scored):
    """Neutral tails come first, and among these the ones that people would most probably call valid, in the relations
    that people rated. Control: moves as many tails of each prompt."""

    needs = "validity"

    def order(self) -> list[pl.Expr]:
        return [self.polarised(), pl.when(self.polarised()).then(0.0).otherwise(UNLIKELY_VALID)]


@dataclass(frozen=True, config=STRICT)
class Validity(Choice):
    """The tails come first that people would most probably call valid, polarised or not: a control of Critic."""

    needs = "validity"

    def order(self) -> list[pl.Expr]:
        return [UNLIKELY_VALID]


@dataclass(frozen=True, config=STRICT)
class Contrast(Choice):
    """The tails come first that are likelier after the neutral control token (Tag) than after the polarised one."""

    needs = "contrast"

    def order(self) -> list[pl.Expr]:
        return [-pl.col("contrast")]


@dataclass(frozen=True, config=STRICT)
class Then(Policy):
    """Filters as the first policy does, and chooses as the second one."""

    first: Annotated[Policy, Field(description="policy that filters the training triples")]
    second: Annotated[Policy, Field(description="policy that chooses among generated tails")]
    control: Control = False

    def __post_init__(self) -> None:
        if not self.first.filters or choice_of(self.second) is None:
            names = f"policy@policy.first={self.first.name} policy@policy.second={self.second.name}"
            raise MitigateError(f"{names}: the first must filter, such as both, the second choose, such as rerank")
        for part in ("first", "second") if self.control else ():
            object.__setattr__(self, part, replace(getattr(self, part), **{"control": True}))

    @property
    def parts(self) -> tuple[Policy, ...]:
        return (*self.first.parts, *self.second.parts)

    def tags(self, target_list: TargetList = PAPER) -> str | None:
        return self.first.tags(target_list)

    def filter(self, labelled: pl.DataFrame, target_list: TargetList = PAPER) -> pl.DataFrame:
        return self.first.filter(labelled, target_list)

    def choose(self, candidates: pl.DataFrame, top: int) -> pl.DataFrame:
        return self.second.choose(candidates, top)


def choice_of(policy: Policy) -> Choice | None:
    """The part of a policy that chooses among generated tails."""
    return next((part for part in policy.parts if isinstance(part, Choice)), None)


def needs_of(policy: Policy) -> str | None:
    """The column, besides labels, that a policy chooses by: "validity" or "contrast"."""
    return next((part.needs for part in policy.parts if isinstance(part, Choice)), None)


def renamed(policy: Policy, names: Mapping[str, str]) -> Policy:
    """The policy with other names of the scorers that it reads, such as those that they have in tables."""
    if isinstance(policy, Then):
        return replace(policy, first=renamed(policy.first, names), second=renamed(policy.second, names))
    scorers = tuple(dict.fromkeys(names.get(name, name) for name in policy.reads))
    return replace(policy, scorers=scorers) if isinstance(policy, Scored) else policy


def draw_as_many(candidates: pl.DataFrame, demoted: pl.Series | pl.Expr, top: int, seed: int) -> pl.Series:
    """Return whether each candidate is drawn: for each prompt as many of the `top` best ones as are demoted, and as
    many of the others, so that `reorder` by it moves as many tails out of the `top`.

    The draw for a prompt depends on the seed, the prompt and its candidates, not on other prompts."""
    drawn_by = [repr((seed, *candidate)).encode() for candidate in candidates.select("head", "relation", "rank").rows()]
    lots = pl.Series([int.from_bytes(blake2b(one, digest_size=8).digest()) for one in drawn_by], dtype=pl.UInt64)
    rows = candidates.select(*PROMPT, is_best=pl.col("rank") <= top, demoted=demoted).with_columns(lot=lots)
    of_part = (*PROMPT, "is_best")
    return rows.select(pl.col("lot").rank("ordinal").over(of_part) <= pl.col("demoted").sum().over(of_part)).to_series()
