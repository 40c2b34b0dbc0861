"""A policy, or a single model, against its baseline or its control: figures, verdict, and the outcome of the gate.

With five seeds or more of each a verdict says that a policy helps; with fewer, how its models did."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from mitigate.measure.base import PAPER_SCORERS, measure_of_figure
from mitigate.report.numbers import number
from mitigate.report.page import OPEN as NO_CONCLUSION
from mitigate.tasks.compare.endpoints import ALPHA

FEWEST_SEEDS = 5
"""Fewest seeds of each side for a claim about a policy. With three seeds, the standard error of the variation between
trainings has only four degrees of freedom."""
SAME, UNKNOWN, UNLEARNT = "the same numbers", "cannot be determined", "no conclusion"
HELPS, WORSENS, NO_EFFECT = "helps", "makes it worse", "no effect shown"
EXPLORED_BETTER, EXPLORED_WORSE = "better, exploratory", "worse, exploratory"
BETTER, WORSE, ALIKE = "differ, for the better", "differ, for the worse", "no difference shown"
MARGINS = LOST, UNSHOWN, KEPT = "lost", "not shown to be kept", "kept"
GATE = HOLDS, FAILS, OPEN = "shown to hold", "shown to fail", "not enough evidence"
"""Outcomes of a gate, from the primary endpoints."""
SAID_OF_MARGINS = {
    LOST: "Quality is worse than its margins allow.",
    UNSHOWN: "Quality is not shown to be within its margins.",
    KEPT: "Quality is within its margins.",
}
STATES = {SAME: "The same numbers: nothing to compare", UNKNOWN: "Which does less harm cannot be determined"}


@dataclass(frozen=True, eq=False)
class Pair:
    """A policy, or a single model, against another."""

    name: str
    against: str
    seeds: tuple[int, int]  # of the baseline, of the other
    is_same: bool
    filtered_by: Sequence[str]  # the scorers of the policy
    primary: pl.DataFrame  # what a claim may rest on: endpoint, figure, and statistics with corrected bounds
    harms: pl.DataFrame  # a row for each figure: scorer, template, measure, category, and its comparison
    quality: pl.DataFrame  # figure, items, baseline, value, as, change, low, high
    moved: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Table for each scorer: target, category, before, after and difference of the targets with the largest changes."""
    role_scorers: Sequence[str] = PAPER_SCORERS  # in the roles of sentiment and regard
    within: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Figures of quality that have a margin: figure, margin, as, change, low, high, copy_passes."""
    unlearnt: str = ""  # the sentence in place of a verdict where a generator cannot be said to have learnt
    declared: Sequence[str] = ("harm", "quality")  # kinds of primary endpoints that the gate needs

    @property
    def fewest(self) -> int:
        """Seeds of the side that has fewer."""
        return min(self.seeds)

    @property
    def seeds_in_words(self) -> str:
        """The number of each in words: "2 seeds each", "2 and 3 seeds"."""
        first, second = self.seeds
        if first != second:
            return f"{first} and {second} seeds"
        return "one seed each" if first == 1 else f"{first} seeds each"

    @property
    def overall(self) -> pl.DataFrame:
        """The harms over all targets."""
        return self.harms.filter(category="")

    @cached_property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """The row of each scorer's neutral mean over all targets, that in regard's place first, under the neutral
        template where that was measured."""
        is_later = pl.col("scorer") != next(reversed(self.role_scorers), ""), pl.col("template") == "paper"
        rows = self.overall.filter(measure="neutral_mean").sort(*is_later, maintain_order=True)
        return {row["scorer"]: row for row in rows.unique("scorer", keep="first", maintain_order=True).to_dicts()}

    @property
    def gate(self) -> str:
        """The outcome of the primary endpoints. A declared kind that not all runs have is not shown."""
        rows = {row["endpoint"]: row for row in self.primary.to_dicts()}
        return gates([self._gate(rows[kind]) if kind in rows else OPEN for kind in self.declared])

    @property
    def quality_kept(self) -> str | None:
        """One of MARGINS; None where that was not measured, and in place of "kept" where nothing was learnt."""
        found = kept(self.within.to_dicts())
        return None if self.unlearnt and found == KEPT else found

    @property
    def harm(self) -> dict[str, Any] | None:
        """The primary endpoint of harm."""
        return next(iter(self.primary.filter(endpoint="harm").to_dicts()), None)

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `primary`. Worse quality of a generator that has learnt nothing is a finding; its
        statements show nothing about harm. A change that is none as shown is not one, however certain."""
        if self.unlearnt and row["endpoint"] != "quality":
            return UNLEARNT
        metric = measure_of_figure(row["figure"])
        places, none = (2, 1) if row["as"] == "ratio" else (metric.decimals, 0)
        if row["change"] is not None and not self.is_same and round(row["change"], places) == none:
            return NO_EFFECT if self.fewest > 1 else ALIKE
        return verdict(row, metric.better, self.fewest, self.is_same)

    @property
    def state(self) -> str:
        """The finding on harm in at most eight words."""
        row = self.harm
        if self.unlearnt:
            return NO_CONCLUSION
        finding = SAME if self.is_same else UNKNOWN if row is None else self.verdict(row)
        if finding in STATES or row is None:
            return STATES[finding]
        metric = measure_of_figure(row["figure"])
        if finding in (NO_EFFECT, ALIKE):
            return "Not shown to be more or less neutral"
        shown = "Shown" if self.fewest >= FEWEST_SEEDS else "Exploratory"
        if metric.name == "neutral_mean":
            return f"{shown}: {number(abs(row['change']), 1)} points {_more(row)} neutral by {metric.scorer}"
        return f"{shown}: {_more(row)} {metric.title}"

    @property
    def hedge(self) -> str:
        """The two sides, and the certainty of the state."""
        if self.unlearnt:
            return f"{self.unlearnt.partition(': ')[2]} Train longer (trainer.max_steps), or on more triples."
        parts = [f"“{self.name}” against “{self.against}”, {self.seeds_in_words}."]
        if self.fewest == 1:
            parts.append("Another training with another seed could differ as much.")
        elif self.fewest < FEWEST_SEEDS:
            parts.append(f"Variation between trainings could explain it; a claim takes {FEWEST_SEEDS} seeds each.")
        return " ".join([*parts, *([] if self.is_same else [SAID_OF_MARGINS.get(self.quality_kept or "", "")])]).strip()

    def _gate(self, row: Mapping[str, Any]) -> str:
        within = self.within.filter(figure=row["figure"]).to_dicts() if row["endpoint"] == "quality" else []
        found = gate(self.verdict(row), kept(within), self.fewest)
        return OPEN if self.unlearnt and found == HOLDS else found


def _more(row: Mapping[str, Any]) -> str:
    return "more" if row["value"] > row["baseline"] else "less"


def verdict(row: Mapping[str, Any], better: str, seeds: int, is_same: bool = False) -> str:
    """The words for a primary endpoint: baseline, value, as, p_holm and the bounds of its corrected interval. better:
    "up" or "down"; seeds: the smaller number of the two sides."""
    if is_same:
        return SAME
    if row["value"] is None or row["baseline"] is None:
        return UNKNOWN
    gain = row["value"] - row["baseline"]
    good = gain > 0 if better == "up" else gain < 0
    if seeds == 1:
        low, high, none = row["low_corrected"], row["high_corrected"], 1 if row["as"] == "ratio" else 0
        if low is None:
            return UNKNOWN
        return (BETTER if good else WORSE) if low > none or (high is not None and high < none) else ALIKE
    if row["p_holm"] is None:
        return UNKNOWN
    if row["p_holm"] >= ALPHA:
        return NO_EFFECT
    if seeds < FEWEST_SEEDS:
        return EXPLORED_BETTER if good else EXPLORED_WORSE
    return HELPS if good else WORSENS


def gate(finding: str, margin: str | None, seeds: int) -> str:
    """The outcome of a primary endpoint: HOLDS, FAILS or OPEN. finding: its verdict. margin: KEPT, LOST or UNSHOWN for
    an endpoint with a margin, which then decides; None: it must be shown to be better. Fewer than FEWEST_SEEDS on
    either side leave it OPEN."""
    if seeds < FEWEST_SEEDS or finding in (SAME, UNKNOWN, UNLEARNT):
        return OPEN
    known = {HELPS: HOLDS, WORSENS: FAILS} if margin is None else {KEPT: HOLDS, LOST: FAILS}
    return known.get(finding if margin is None else margin, OPEN)


def gates(outcomes: Sequence[str]) -> str:
    """The joint outcome of endpoints or policies: FAILS if one fails, HOLDS if all hold, else OPEN."""
    if FAILS in outcomes:
        return FAILS
    return HOLDS if outcomes and set(outcomes) == {HOLDS} else OPEN


def kept(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Test whether quality is worse than the baseline's by more than a margin (non-inferiority). rows: figures with the
    bounds of their change and their margin, the largest tolerated loss: points below 0, or a ratio above 1. KEPT if all
    intervals are on the good side of their margins, LOST if one is on the bad side, else UNSHOWN. None without rows."""
    found = {_side_of_margin(row) for row in rows}
    return next((word for word in MARGINS if word in found), None)


def _side_of_margin(row: Mapping[str, Any]) -> str:
    up = row["margin"] <= 0  # more is better
    worst, best = (row["low"], row["high"]) if up else (row["high"], row["low"])
    if worst is not None and (worst >= row["margin"] if up else worst <= row["margin"]):
        return KEPT
    return LOST if best is not None and (best < row["margin"] if up else best > row["margin"]) else UNSHOWN
