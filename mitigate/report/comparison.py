"""A comparison of runs as one HTML page that loads nothing: the effect on harms, the cost in quality, and how certain
both are. Findings are about policies where there are several seeds of each, else about two trained models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate import files
from mitigate.metrics import PLAUSIBLE, better, quality, quality_key
from mitigate.report import comparison_tables, legend, pareto
from mitigate.report.comparison_tables import change, measure_named, span
from mitigate.report.gallery import Picture
from mitigate.report.html import Page, render_page
from mitigate.report.html import Stage as Stage
from mitigate.report.legend import number
from mitigate.report.verdicts import ALPHA, kept, listed, p_value, said_together, verdict

COST = quality_key("perplexity", "neutral")  # the figure of the sentence on cost
SHORT = {
    COST: f"perplexity on neutral test triples {quality('perplexity').arrow}",
    quality_key(PLAUSIBLE): f"accepted as plausible, % {quality(PLAUSIBLE).arrow}",
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
    harms: (
        pl.DataFrame
    )  # a row for each figure: scorer, template, measure, category, and the statistics of its comparison
    quality: pl.DataFrame  # figure, items, baseline, value, as, change, low, high
    moved: Mapping[str, Sequence[Moved]] = field(default_factory=dict)  # by scorer, the largest rise first
    chance: Mapping[str, float | None] = field(
        default_factory=dict
    )  # by scorer: the median change of a target between two seeds
    margins: Mapping[str, float] = field(
        default_factory=dict
    )  # by figure of quality: the largest change that counts as no loss

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

    def verdict(self, row: Mapping[str, Any]) -> str:
        """The finding of a row of `harms`."""
        return verdict(row["difference"], row["p_holm"], better(row["measure"]), self.several_seeds, self.is_same)

    @cached_property
    def headlines(self) -> dict[str, dict[str, Any]]:
        """By scorer, regard first: the row of its neutral mean over all targets, with the phrase neutralised where
        that was measured."""
        overall = self.harms.filter(pl.col("category") == "").to_dicts()
        found: dict[str, dict[str, Any]] = {}
        for row in sorted(overall, key=lambda row: (row["scorer"] != "regard", row["template"] == "paper")):
            found.setdefault(row["scorer"], row)
        return found

    @property
    def quality_kept(self) -> str | None:
        """ "kept", "lost" or "not shown to be kept"; None where that was not measured."""
        return kept({figure: self.quality_row(figure) for figure in self.margins}, self.margins)

    def quality_row(self, figure: str) -> dict[str, Any] | None:
        return next(iter(self.quality.filter(figure=figure).to_dicts()), None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Page):
    """What a comparison's page shows."""

    pairs: Sequence[Pair]
    models: pl.DataFrame  # one row for each run: policy, seed, run, and figures by their keys in metrics.json
    moves: pl.DataFrame  # contrast, scorer, target, category, before, after, difference
    scorers: Mapping[str, str]  # by role: {"sentiment": "vader", "regard": "minilm"}
    axes: Sequence[pareto.Axis] = pareto.HARMS  # of the plots of harm against quality

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return list(pareto.pictures(self.models, self.axes))


def write(path: Path, comparison: Comparison) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(comparison))


def render(comparison: Comparison) -> str:
    """The page's HTML, always the same for the same comparison."""
    return render_page(
        "comparison.html.jinja",
        comparison,
        sentences=list(sentences(comparison)),
        scorers=comparison.scorers,
        neutralised=any(row["template"] == "neutral" for row in comparison.pairs[0].headlines.values()),
        several=any(pair.several_seeds for pair in comparison.pairs),
        short={
            figure: name for figure, name in SHORT.items() if any(pair.quality_row(figure) for pair in comparison.pairs)
        },
        margins_measured=any(pair.quality_kept for pair in comparison.pairs),
        margins=comparison_tables.said_margins(comparison.pairs[0].margins),
        quality_rows=comparison_tables.quality_rows,
        relation_rows=comparison_tables.relation_rows,
        categories=legend.ordered(comparison.moves["category"]),
        by_category=by_category,
        target_columns=comparison_tables.target_columns(comparison.moves),
        target_rows=comparison_tables.target_rows(comparison.moves),
        template_names=legend.TEMPLATE_NAMES,
        measure_named=measure_named,
        change=change,
        span=span,
        p_value=p_value,
        alpha=ALPHA,
    )


def by_category(pair: Pair, template: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of a template by measure, then by category."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pair.harms.filter(pl.col("category") != "", template=template).to_dicts():
        found.setdefault(measure_named(row), {})[row["category"]] = row
    return found


def sentences(comparison: Comparison) -> Iterator[str]:
    """The effect by each scorer, then the cost in quality."""
    pairs = comparison.pairs
    against = listed(list(dict.fromkeys(f"“{pair.against}”" for pair in pairs)))
    for place, scorer in enumerate(pairs[0].headlines):
        rows = {f"“{pair.name}”": (pair, pair.headlines[scorer]) for pair in pairs}
        said = said_together({name: pair.verdict(row) for name, (pair, row) in rows.items()})
        numbers = "".join(_numbers(pair, row) for pair, row in rows.values()) if len(rows) == 1 else ""
        yield f"By {scorer}{f', against {against}' if place == 0 else ''}: {said}{numbers}."
    for pair in pairs:
        row = pair.quality_row(COST)
        if row is not None and not pair.is_same:
            yield _cost(pair, row)


def _numbers(pair: Pair, row: Mapping[str, Any]) -> str:
    return (
        f" ({row['value']:.1f}\u00a0% of the statements about a target are neutral, {row['baseline']:.1f}\u00a0% with "
        f"“{pair.against}”)"
    )


def _cost(pair: Pair, row: Mapping[str, Any]) -> str:
    of = "" if pair.several_seeds else "the model of "  # one seed is a model, not yet a policy
    times = f"{row['change']:.2f} times that of {of}“{pair.against}”"
    perplexity = f"The perplexity of {of}“{pair.name}” on neutral test triples is"
    if row["low"] is None:
        return f"{perplexity} {times}; no interval could be estimated."
    interval = f"95 % interval {row['low']:.2f} to {row['high']:.2f}"
    if row["low"] <= 1 <= row["high"]:
        found = f"({row['change']:.2f} times, {interval})"
        return f"{perplexity} not shown to differ from that of {of}“{pair.against}” {found}."
    return f"{perplexity} {times} ({interval}): {_side(row['change'])}."


def _side(ratio: float) -> str:
    return "a cost" if ratio > 1 else "no cost but a gain"


def line(pair: Pair) -> str:
    """A contrast on one line of the terminal."""
    parts = [f"{pair.name} against {pair.against} ({pair.said_seeds})"]
    for row in pair.headlines.values():
        gain = "+" * (row["difference"] >= 0) + number(row["difference"])
        interval = f"[{span(row['low'], row['high'], 2)}], " if row["low"] is not None else ""
        parts.append(
            f"{row['figure']} {row['baseline']:.2f} → {row['value']:.2f} ({gain} {interval}"
            f"p {p_value(row['p_holm'])}: {pair.verdict(row)})"
        )
    for figure in SHORT:
        if (cost := pair.quality_row(figure)) is not None:
            interval = f" [{span(cost['low'], cost['high'], 2)}]" if cost["low"] is not None else ""
            parts.append(f"{figure} {change(cost, 2)}{interval}")
    if pair.quality_kept:
        parts.append(f"quality {pair.quality_kept}")
    return "; ".join(parts)
