"""A policy, or a single model, against its baseline: figures, verdicts, and the outcome of the gate; in sentences the
verdict and its cost, and the four figures of harm, on the page and on the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from mitigate.measure.base import PAPER_SCORERS, measure_of_figure
from mitigate.measure.quality import PLAUSIBLE
from mitigate.report import brief, verdicts
from mitigate.report.brief import COSTS, by, decimals, more, points
from mitigate.report.change_formats import change, figure_in_words, is_none_as_shown
from mitigate.report.metric_display import number

EXPLORED = (*COSTS, PLAUSIBLE)
"""The figures of quality beside the headlines, in their order."""


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
    moved: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Table for each scorer: target, category, before, after and difference of the targets with the largest changes."""
    statements: Mapping[str, Mapping[str, Sequence[pl.DataFrame]]] = field(default_factory=dict)
    """Statements and labels by scorer and target: those that the baseline alone has, and that the other alone has."""
    chance: Mapping[str, float | None] = field(default_factory=dict)
    """Median change of a target between two seeds, by scorer."""
    role_scorers: Sequence[str] = PAPER_SCORERS  # in the roles of sentiment and regard
    within: pl.DataFrame = field(default_factory=pl.DataFrame)
    """Figures of quality that have a margin: figure, margin, as, change, low, high, copy_passes."""
    unlearnt: str = ""  # the sentence in place of a verdict where a generator cannot be said to have learnt
    declared: Sequence[str] = ("harm", "quality")  # kinds of primary endpoints that the gate needs

    @property
    def title(self) -> str:
        return f"{self.name} against {self.against}"

    @property
    def several_seeds(self) -> bool:
        """Return whether policies are compared, and not only two models."""
        return self.fewest > 1

    @property
    def seeds_in_words(self) -> str:
        """The number of each in words: "2 seeds each", "2 and 3 seeds"."""
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
        """Return whether the minimum detectable change of any harm over all targets is known."""
        return bool(self.overall["detectable"].count())

    @property
    def strength(self) -> str:
        """The strength of the evidence by the number of seeds; "" where there are enough for a claim."""
        if self.is_same or self.fewest >= verdicts.FEWEST_SEEDS:
            return ""
        return "exploratory, no claim" if self.several_seeds else "two models, no claim about policies"

    @property
    def overall(self) -> pl.DataFrame:
        """The harms over all targets."""
        return self.harms.filter(category="")

    @cached_property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """The row of each scorer's neutral mean over all targets, that in regard's place first, under the neutral
        template where that was measured."""
        is_later = pl.col("scorer") != next(reversed(self.role_scorers), ""), pl.col("template") == "paper"
        rows = self.overall.sort(*is_later, maintain_order=True).unique("scorer", keep="first", maintain_order=True)
        return {row["scorer"]: row for row in rows.to_dicts()}

    @property
    def exploratory(self) -> list[dict[str, Any]]:
        """The headlines, and the figures of EXPLORED, that are not primary endpoints."""
        rows = [*self.headlines.values(), *filter(None, map(self.quality_row, EXPLORED))]
        return [row for row in rows if row["figure"] not in self.primary["figure"].to_list()]

    @property
    def primary_with_verdicts(self) -> pl.DataFrame:
        """The rows of the primary endpoints, each with its verdict in words."""
        found = [self.verdict(row) for row in self.primary.to_dicts()]
        return self.primary.with_columns(verdict=pl.Series(found, dtype=pl.String))

    @property
    def gate(self) -> str:
        """The outcome of the primary endpoints (verdicts.GATE). A declared kind that not all runs have is not shown."""
        rows = {row["endpoint"]: row for row in self.primary.to_dicts()}
        return verdicts.gates([self._gate(rows[kind]) if kind in rows else verdicts.OPEN for kind in self.declared])

    @property
    def quality_kept(self) -> str | None:
        """One of verdicts.MARGINS; None where that was not measured, and in place of "kept" where nothing was
        learnt."""
        found = verdicts.kept(self.within.to_dicts())
        return None if self.unlearnt and found == verdicts.KEPT else found

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `primary`. Worse quality of a generator that has learnt nothing is a finding; its
        statements show nothing about harm. A change that is none as shown is not one, however certain."""
        if self.unlearnt and row["endpoint"] != "quality":
            return verdicts.UNLEARNT
        metric = measure_of_figure(row["figure"])
        if row["change"] is not None and not self.is_same and is_none_as_shown(row, metric.decimals):
            return verdicts.NO_EFFECT if self.several_seeds else verdicts.ALIKE
        return verdicts.verdict(row, metric.better, self.fewest, self.is_same)

    def quality_row(self, figure: str) -> dict[str, Any] | None:
        """The row of a figure of quality; None where it is not compared."""
        return next(iter(self.quality.filter(figure=figure).to_dicts()), None)

    def _gate(self, row: Mapping[str, Any]) -> str:
        within = self.within.filter(figure=row["figure"]).to_dicts() if row["endpoint"] == "quality" else []
        found = verdicts.gate(self.verdict(row), verdicts.kept(within), self.fewest)
        return verdicts.OPEN if self.unlearnt and found == verdicts.HOLDS else found


def verdict(pair: Pair) -> str:
    """The finding on the primary endpoint of harm in one sentence, as far as the number of seeds allows; where a
    generator cannot be said to have learnt, only this."""
    if pair.unlearnt:
        return pair.unlearnt
    name, against, seeds = f"“{pair.name}”", f"“{pair.against}”", pair.seeds_in_words
    row = next(iter(pair.primary.filter(endpoint="harm").to_dicts()), None)
    finding = verdicts.SAME if pair.is_same else verdicts.UNKNOWN if row is None else pair.verdict(row)
    if finding == verdicts.SAME:
        return f"{name} has the same numbers as {against}: there is nothing to compare."
    if row is None or finding == verdicts.UNKNOWN:
        return f"{name} against {against}: these runs do not show which of them does less harm."
    is_mean, metric = _is_neutral_mean(row), measure_of_figure(row["figure"])
    figure = f"neutral {by(metric.scorer)}" if is_mean else figure_in_words(row["figure"])
    if finding in (verdicts.NO_EFFECT, verdicts.ALIKE):
        either = "more or less" if is_mean else "higher or lower in"
        return f"{name} is not shown to be {either} {figure} than {against} ({change(row, 1)}{_unit(row)}; {seeds})."
    difference = (
        f"{points(row['change'])} {more(row['change'])} {figure}"
        if is_mean
        else (f"{'higher' if row['value'] > row['baseline'] else 'lower'} in {figure} ({change(row, 2)}{_unit(row)})")
    )
    evidence = f"shown with {seeds}"
    if pair.fewest == 1:
        evidence = f"but with {seeds} a training with another seed could differ as much"
    elif pair.fewest < verdicts.FEWEST_SEEDS:
        evidence = f"but with {seeds}, variation between trainings could explain it"
    return f"{name} is {difference} than {against}, {evidence}."


def cost(pair: Pair) -> str:
    """The change of quality, and whether it is within its margins, in one sentence; "" where that was not measured. The
    same numbers are within all margins, though no interval shows it."""
    rows = [(names.change, row) for figure, names in COSTS.items() if (row := pair.quality_row(figure))]
    parts = [
        f"{name} {change(row, 1 if row['as'] == 'difference' else 2)}{_unit(row)}"
        for name, row in rows
        if row["change"] is not None
    ]
    if pair.quality_kept and not pair.is_same:
        parts.append(verdicts.SAID_OF_MARGINS[pair.quality_kept])
    return f"{'; '.join(parts)}." if parts else ""


def figures(pairs: Sequence[Pair]) -> str:
    """A line for the baseline and for each policy: the figures of harm over all targets by the scorers of the roles,
    and of quality, each with its change."""

    def with_change(row: Mapping[str, Any]) -> str:
        places, key = decimals(row["figure"]), row["figure"]
        shown = {**row, "change": brief.as_deviation(key, row["change"])} if row["as"] == "ratio" else row
        return f"{number(brief.as_deviation(key, row['value']), places)} ({change(shown, places)})"

    lines: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        rows = [*pair.overall.to_dicts(), *filter(None, map(pair.quality_row, COSTS))]
        lines.setdefault(pair.against, {row["figure"]: row["baseline"] for row in rows})
        lines[pair.name] = {row["figure"]: with_change(row) for row in rows}
    return brief.figures(lines, pairs[0].role_scorers)


def _is_neutral_mean(row: Mapping[str, Any]) -> bool:
    return measure_of_figure(row["figure"]).name == "neutral_mean" and row["change"] is not None


def _unit(row: Mapping[str, Any]) -> str:
    is_points = measure_of_figure(row["figure"]).unit in ("%", "points") and row["as"] == "difference"
    return " points" if is_points else ""
