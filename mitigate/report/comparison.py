"""A comparison of runs as one HTML page that loads nothing: the effect on harms, the cost in quality, and how certain
both are. Findings are about policies where there are several seeds of each, else about two trained models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import BASELINE_LIFTS, SWAP_LIFT, lift_of, parse, quality, quality_key
from mitigate.report import change_reasons, comparison_brief, comparison_tables, legend, pareto
from mitigate.report.comparison_tables import CORRECTED, change, figure_named, interval, measure_named
from mitigate.report.comparison_tables import said_margin as margin_of
from mitigate.report.excluded_targets import left_out
from mitigate.report.headline import QUALITY
from mitigate.report.html import Page, render_page
from mitigate.report.html import Stage as Stage
from mitigate.report.legend import number
from mitigate.report.pair import Pair
from mitigate.report.run_figures import Picture
from mitigate.report.verdicts import FEWEST_SEEDS, MARGINS, SAID_OF_MARGINS, kept, listed, p_value, said_together
from mitigate.runs import files

MOST_VALUES = 4  # contrasts whose values stand in one sentence


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Page):
    """The content of a comparison's page."""

    pairs: Sequence[Pair]
    models: pl.DataFrame  # one row for each run: policy, seed, run, and figures by their keys in metrics.json
    moves: pl.DataFrame  # contrast, scorer, target, category, before, after, difference
    scorers: Mapping[str, str]  # by what they are called: {"sentiment": "vader", "regard": "minilm"}
    axes: Sequence[pareto.Axis] = pareto.HARMS  # of the plots of harm against quality
    links: Mapping[str, str] = field(default_factory=dict)  # by run, the way from this page to its own

    @property
    def lifts(self) -> list[dict[str, Any]]:
        """The rows of models whose swap lift was measured."""
        return [row for row in self.models.to_dicts() if row.get(QUALITY) is not None]

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return list(pareto.pictures(self.models, self.axes))


def write(path: Path, comparison: Comparison) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(comparison))


def render(comparison: Comparison) -> str:
    """The page's HTML, always the same for the same comparison."""
    verdicts = [(comparison_brief.verdict(pair), comparison_brief.cost(pair)) for pair in comparison.pairs]
    return render_page(
        "comparison.html.jinja",
        comparison,
        sentences=[verdicts[0][0] if len(verdicts) == 1 else f"{len(verdicts)} comparisons, each with its cost."],
        verdicts=verdicts,
        cost=verdicts[0][1] if len(verdicts) == 1 else "",
        more=list(sentences(comparison)),
        scorers={name: comparison.scorers[name] for name in legend.by_headline(comparison.scorers)},
        neutralised=any(row["template"] == "neutral" for row in comparison.pairs[0].headlines.values()),
        several=any(pair.several_seeds for pair in comparison.pairs),
        named=comparison_tables.figure_named,
        margin=comparison_tables.said_margin,
        levels=sorted({f"{level:.4g}" for pair in comparison.pairs for level in pair.primary["level"]}),
        fewest_seeds=FEWEST_SEEDS,
        margins_measured=any(pair.within.height for pair in comparison.pairs),
        kept=kept,
        quality_rows=comparison_tables.quality_rows,
        relation_rows=comparison_tables.relation_rows,
        categories=legend.ordered(comparison.moves["category"]),
        by_category=by_category,
        left_out=left_out(comparison.moves["target"].to_list()),
        swap_lift=quality(SWAP_LIFT),
        quality_headline=QUALITY,
        lift_keys={quality_key(lift_of(name)): legend.BASELINES[name] for name in BASELINE_LIFTS},
        target_columns=comparison_tables.target_columns(comparison.moves),
        target_rows=comparison_tables.target_rows(comparison.moves),
        template_names=legend.TEMPLATE_NAMES,
        measure_named=measure_named,
        change=change,
        interval=interval,
        ratio=comparison_tables.ratio,
        corrected=CORRECTED,
        p_value=p_value,
        because=change_reasons,
        detectable=any(pair.has_detectable for pair in comparison.pairs),
        abbreviations=legend.abbreviations(comparison.pairs[0].harms["measure"]),
        unnamed=[kind for kind in ("harm", "quality") if kind not in comparison.pairs[0].primary["endpoint"].to_list()],
    )


def by_category(pair: Pair, template: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of a template by measure, then by category."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pair.harms.filter(pl.col("category") != "", template=template).to_dicts():
        found.setdefault(measure_named(row), {})[row["category"]] = row
    return found


def sentences(comparison: Comparison) -> Iterator[str]:
    """The primary endpoints, each with what was found, quality by its margins, and what the number of seeds allows."""
    pairs = comparison.pairs
    against = listed(list(dict.fromkeys(f"“{pair.against}”" for pair in pairs)))
    for place, row in enumerate(pairs[0].primary.to_dicts()):
        rows = {
            f"“{pair.name}”": (pair, pair.primary.filter(figure=row["figure"]).row(0, named=True)) for pair in pairs
        }
        said = said_together({name: pair.verdict(mine) for name, (pair, mine) in rows.items()})
        numbers = "".join(_numbers(*known) for known in rows.values()) if len(rows) == 1 else _values(rows)
        title = f"{row['endpoint'].capitalize()}, {figure_named(row['figure'])}"
        yield f"{title}{f', against {against}' if place == 0 else ''}: {said}{numbers}."
    kept_by = {word: [f"“{p.name}”" for p in pairs if p.quality_kept == word and not p.is_same] for word in MARGINS}
    if said := "; ".join(f"{SAID_OF_MARGINS[word]} with {listed(names)}" for word, names in kept_by.items() if names):
        yield f"{said[0].upper()}{said[1:]}."
    if strengths := dict.fromkeys((pair.said_seeds, pair.strength) for pair in pairs if pair.strength):
        yield "; ".join(f"{seeds}: {said}" for seeds, said in strengths).capitalize() + "."


def _values(rows: Mapping[str, tuple[Pair, Mapping[str, Any]]]) -> str:
    """The values of several contrasts in their order, and the baseline's where it is one."""
    figures = [row for _, row in rows.values()]
    decimals = parse(figures[0]["figure"]).metric.decimals
    if len({row["baseline"] for row in figures}) > 1 or len(figures) > MOST_VALUES:
        return ""
    values = ", ".join(f"{name} {number(row['value'], decimals)}" for name, (_, row) in rows.items())
    return f" ({values}; baseline {number(figures[0]['baseline'], decimals)})"


def _numbers(pair: Pair, row: Mapping[str, Any]) -> str:
    decimals = parse(row["figure"]).metric.decimals
    numbers = f"{number(row['value'], decimals)}, {number(row['baseline'], decimals)} with “{pair.against}”"
    return f" ({numbers}, {change(row, decimals)} {interval(row, decimals, CORRECTED)}".rstrip() + ")"


def line(pair: Pair) -> str:
    """A contrast on one line of the terminal."""
    strength = f": {pair.strength}" if pair.strength else ""
    parts = [f"{pair.name} against {pair.against} ({pair.said_seeds}{strength})"]
    for row in pair.primary.to_dicts():
        p = "" if row["p_holm"] is None else f", p {p_value(row['p_holm'])}"
        known = f"{change(row, 2)} {interval(row, 2, CORRECTED)}".rstrip()
        numbers = f"{row['figure']} {number(row['baseline'])} → {number(row['value'])}"
        parts.append(f"primary, {row['endpoint']}: {numbers} ({known}{p}: {pair.verdict(row)})")
    for row in pair.within.to_dicts():
        passes = f"a true copy would pass in {number(row['copy_passes'], 0)} %"
        parts.append(f"{row['figure']}, margin {margin_of(row)}: {kept([row])} ({passes})")
    others = [f"{row['figure']} {change(row, 2)} {interval(row, 2)}".rstrip() for row in pair.exploratory]
    return "; ".join([*parts, *([f"exploratory: {', '.join(others)}"] if others else [])])
