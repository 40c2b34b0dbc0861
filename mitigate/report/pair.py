"""A policy, or a single model, against its baseline, as a comparison's page shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.report import comparison_tables, verdicts
from mitigate.report.brief import LIFT

SHORT = {
    LIFT: "swap lift, points ↑",
    table.quality_key(table.PEOPLE_VALID, "neutral"): "people-valid, % of neutral statements ↑",
    table.quality_key("perplexity", "neutral"): "perplexity on neutral test triples ↓",
    table.quality_key(table.PLAUSIBLE): "accepted as plausible, % ↑",
}


class Moved(NamedTuple):
    """A target whose percentage of neutral statements changed, and statements about it before and after."""

    target: str
    category: str
    before: float
    after: float
    said: Mapping[str, pl.DataFrame]  # by policy: (statement, label)


@dataclass(frozen=True, eq=False)
class Pair:
    """A policy, or a single model, against its baseline."""

    name: str
    against: str
    seeds: tuple[int, int]  # of the baseline, of the other
    is_same: bool
    filtered_by: Sequence[str]  # the scorers of the policy
    primary: pl.DataFrame  # what a claim may rest on: endpoint, figure, and statistics with corrected bounds
    harms: pl.DataFrame  # a row for each figure: scorer, template, measure, category, and its comparison
    quality: pl.DataFrame  # figure, items, baseline, value, as, change, low, high
    moved: Mapping[str, Sequence[Moved]] = field(default_factory=dict)  # by scorer, the largest rise first
    chance: Mapping[str, float | None] = field(default_factory=dict)
    """By scorer: the median change of a target between two seeds."""
    missing: Mapping[str, str] = field(default_factory=dict)  # figures of quality that are not compared -> why
    places: Sequence[str] = table.PAPER_SCORERS  # the scorers of the places of sentiment and regard
    within: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Figures of quality that have a margin: figure, margin, as, change, low, high, copy_passes."""
    unlearnt: str = ""  # the sentence in place of a verdict where a generator cannot be said to have learnt
    declared: Sequence[str] = ("harm", "quality")  # kinds of primary endpoints that the gate needs

    @property
    def several_seeds(self) -> bool:
        return min(self.seeds) > 1

    @property
    def said_seeds(self) -> str:
        """How many of each: "2 seeds each", "2 and 3 seeds"."""
        first, second = self.seeds
        if first == second:
            return "one seed each" if first == 1 else f"{first} seeds each"
        return f"{first} and {second} seeds"

    @property
    def fewest(self) -> int:
        """Seeds of the side that has fewer."""
        return min(self.seeds)

    @property
    def held_out(self) -> list[str]:
        """The scorers that the models are compared by and the policy does not filter by."""
        return [name for name in self.harms["scorer"].unique(maintain_order=True) if name not in self.filtered_by]

    @property
    def has_detectable(self) -> bool:
        """Whether of any harm over all targets the minimum detectable change is known."""
        return bool(self.harms.filter(pl.col("category") == "", pl.col("detectable").is_not_null()).height)

    def why_not(self, measure: str, relation: str) -> str:
        """Why a figure of quality of one relation is not compared."""
        absent = "no test triples" if measure == comparison_tables.PERPLEXITY else "not measured"
        return self.missing.get(table.quality_key(measure, table.relation_part(relation)), absent)

    @property
    def strength(self) -> str:
        """The strength of the evidence by the number of seeds; "" where there are enough for a claim."""
        if self.is_same or min(self.seeds) >= verdicts.FEWEST_SEEDS:
            return ""
        return "exploratory, no claim" if self.several_seeds else "two models, no claim about policies"

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `primary`. That a generator which has learnt nothing is worse in quality is one; what
        it says shows nothing about harm. A change that is none as shown is not one, however certain."""
        if self.unlearnt and row["endpoint"] != "quality":
            return verdicts.UNLEARNT
        metric = table.parse(row["figure"]).metric
        if row["change"] is not None and not self.is_same and comparison_tables.is_none_as_shown(row, metric.decimals):
            return verdicts.NO_EFFECT if self.several_seeds else verdicts.ALIKE
        return verdicts.verdict(row, metric.better, min(self.seeds), self.is_same)

    @property
    def gate(self) -> str:
        """The outcome of the primary endpoints (verdicts.GATE). A declared kind that not all runs have is not shown."""
        rows = {row["endpoint"]: row for row in self.primary.to_dicts()}
        return verdicts.gates([self._gate(rows[kind]) if kind in rows else verdicts.OPEN for kind in self.declared])

    def _gate(self, row: Mapping[str, Any]) -> str:
        within = self.within.filter(figure=row["figure"]).to_dicts() if row["endpoint"] == "quality" else []
        found = verdicts.gate(self.verdict(row), verdicts.kept(within), self.fewest)
        return verdicts.OPEN if self.unlearnt and found == verdicts.HOLDS else found

    @property
    def exploratory(self) -> list[dict[str, Any]]:
        """The headlines, and the figures of SHORT, that are no primary endpoints."""
        rows = [*self.headlines.values(), *filter(None, map(self.quality_row, SHORT))]
        return [row for row in rows if row["figure"] not in self.primary["figure"].to_list()]

    @cached_property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """By scorer, that in regard's place first: the row of its neutral mean over all targets, with the phrase
        neutralised where that was measured."""
        overall = self.harms.filter(pl.col("category") == "").to_dicts()
        found: dict[str, dict[str, Any]] = {}
        first = self.places[-1] if self.places else ""
        for row in sorted(overall, key=lambda row: (row["scorer"] != first, row["template"] == "paper")):
            found.setdefault(row["scorer"], row)
        return found

    @property
    def quality_kept(self) -> str | None:
        """ "kept", "lost" or "not shown to be kept"; None where that was not measured, and in place of "kept" where
        nothing was learnt."""
        found = verdicts.kept(self.within.to_dicts())
        return None if self.unlearnt and found == verdicts.KEPT else found

    def quality_row(self, figure: str) -> dict[str, Any] | None:
        return next(iter(self.quality.filter(figure=figure).to_dicts()), None)
