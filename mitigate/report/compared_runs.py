"""A comparison of runs as one HTML page that loads nothing: the effect on harms, the cost in quality, and how certain
both are. Findings are about policies where there are several seeds of each, else about two trained models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate.measure.base import bounds, find, key_of, measure_of
from mitigate.measure.quality import BASELINES, LIFT
from mitigate.report import contrast_findings, metric_display, pareto
from mitigate.report.change_formats import CELLS, Row, by_category, measure_in_words, section_and_part
from mitigate.report.contrast_findings import Pair
from mitigate.report.examples import statement_tables, target_table
from mitigate.report.excluded_targets import left_out
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import TEMPLATE_NAMES, number
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, as_text, grouped
from mitigate.report.table_declarations import Cells, declared
from mitigate.report.verdicts import FEWEST_SEEDS, kept


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison(Page):
    pairs: Sequence[Pair]
    models: pl.DataFrame  # one row for each run: policy, seed, run, and figures by their keys in metrics.json
    moves: pl.DataFrame  # contrast, scorer, target, category, before, after, difference
    scorers: Mapping[str, str]  # by what they are called: {"sentiment": "vader", "regard": "minilm"}
    axes: Sequence[pareto.Axis] = pareto.HARMS  # of the plots of harm against quality
    links: Mapping[str, str] = field(default_factory=dict)  # by run, the way from this page to its own

    @cached_property
    def pictures(self) -> list[Picture]:
        return list(pareto.pictures(self.models, self.axes))

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        return {
            "primary": pl.concat(pair.primary_with_verdicts for pair in self.pairs),
            "margins": pl.concat(pair.within for pair in self.pairs),
            "harms": pl.concat(pair.harms for pair in self.pairs),
            "quality": pl.concat(pair.quality for pair in self.pairs),
            "moves": self.moves,
            "models": self.models,
        }

    @property
    def differences(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """The rows over all targets of each pair, for W&B: policy, baseline, rows."""
        return [(pair.name, pair.against, pair.overall.to_dicts() + pair.quality.to_dicts()) for pair in self.pairs]

    @property
    def first_scorer(self) -> str:
        """The scorer in regard's place."""
        return next(reversed(list(self.scorers)), "regard")


def render(comparison: Comparison) -> str:
    pairs, scorers = comparison.pairs, metric_display.by_headline(comparison.scorers)
    verdicts = [(contrast_findings.verdict(pair), contrast_findings.cost(pair)) for pair in pairs]
    headline, cost = verdicts[0] if len(pairs) == 1 else (f"{len(pairs)} comparisons, each with its cost.", "")
    categories = metric_display.ordered(comparison.moves["category"])
    return render_page(
        "compared_runs.html.jinja",
        comparison,
        sentences=[headline],
        verdicts=verdicts,
        cost=cost,
        scorers={name: comparison.scorers[name] for name in scorers},
        neutralised=any(row["template"] == "neutral" for row in pairs[0].headlines.values()),
        several=any(pair.several_seeds for pair in pairs),
        levels=sorted({f"{level:.4g}" for pair in pairs for level in pair.primary["level"]}),
        fewest_seeds=FEWEST_SEEDS,
        **_summary_tables(pairs),
        tables=[_pair_tables(pair, categories) for pair in pairs],
        lifts=_lift_table(comparison),
        targets=_target_table(comparison.moves),
        runs=_table("runs", comparison.models, {"run": lambda row: _linked(comparison, row["run"], row["run"])}),
        left_out=left_out(comparison.moves["target"].to_list()),
        detectable=any(pair.has_detectable for pair in pairs),
        abbreviations=metric_display.abbreviations(pairs[0].harms["figure"]),
        unnamed=[kind for kind in ("harm", "quality") if kind not in pairs[0].primary["endpoint"].to_list()],
    )


def lines(comparison: Comparison) -> list[str]:
    tables = [as_text(table) for table in _summary_tables(comparison.pairs).values() if table]
    return "\n\n".join(tables).splitlines()


def _summary_tables(pairs: Sequence[Pair]) -> dict[str, Table | None]:
    """The primary endpoints, the margins, and the exploratory figures of all pairs, by their names in the template."""
    rows = {
        "primary": [row for pair in pairs for row in _rows(pair, pair.primary.to_dicts())],
        "margins": [row for pair in pairs for row in _rows(pair, pair.within.to_dicts())],
        "exploratory": [row for pair in pairs for row in _rows(pair, pair.exploratory)],
    }
    return {name: _table(name, found) if found else None for name, found in rows.items()}


PAIR_CELLS: Cells = {
    **CELLS,
    "policy_and_baseline": lambda row: Cell(row["policy"], [row["against"]]),
    "quality_kept": lambda row: Cell(row["finding"], [row["strength"]] if row["strength"] else []),
    "number": lambda row: "" if row["items"] is None else number(row["items"]),
}


def _table(name: str, rows: Any, cells: Cells = PAIR_CELLS, /, *, without: Iterable[str] = (), **words: Any) -> Table:
    return declared(f"comparison {name}", rows, cells=cells, without=without, **words)


def _rows(pair: Pair, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows of a pair, with the pair's own fields and their finding: the verdict of a primary endpoint, or whether a
    figure is within its margin."""

    def finding(row: Row) -> str:
        if "endpoint" in row:
            return f"{row['endpoint']}: {pair.verdict(row)}"
        return str(kept([row])) if "margin" in row else ""

    own = {
        "policy": pair.name,
        "against": f"against {pair.against}, {pair.seeds_in_words}",
        "seeds": pair.fewest,
        "strength": f"({pair.strength})" if pair.strength else "",
    }
    return [{**own, **row, "finding": finding(row)} for row in rows]


def _pair_tables(pair: Pair, categories: Sequence[str]) -> dict[str, Any]:
    by_template = pair.harms.sort(pl.col("template") == "paper", maintain_order=True)
    harms = [
        {**row, "section": TEMPLATE_NAMES[row["template"]], "name": measure_in_words(row)}
        for row in _rows(pair, by_template.to_dicts())
    ]
    quality = [
        {**row, **dict(zip(("section", "name"), section_and_part(row["figure"]), strict=True))}
        for row in _rows(pair, pair.quality.to_dicts())
    ]
    of_relations = [row for row in quality if (figure := find(row["figure"])) and figure.by == "relation"]
    of_relations.sort(key=lambda row: -(row["items"] or 0))
    of_seeds = () if pair.several_seeds else ("tested_p", "targets_fixed", "tested_fixed_p")
    of_power = () if pair.has_detectable else ("minimum_detectable",)

    def table(name: str, rows: Sequence[Row], *without: str) -> Table:
        words = {"name": pair.name, "against": pair.against, "title": pair.title}
        return _table(name, grouped(rows, itemgetter("section")), without=without, **words)

    in_categories = [row for row in harms if row["category"]]
    return {
        "pair": pair,
        "harms": table("harms", [row for row in harms if not row["category"]], *of_seeds, *of_power),
        "categories": by_category("comparison categories", in_categories, categories, against=pair.against),
        "quality": table("quality", [row for row in quality if row not in of_relations]),
        "relations": table("quality by relation", of_relations) if of_relations else None,
        "moved": {scorer: _moved_tables(pair, scorer) for scorer in pair.headlines},
    }


def _moved_tables(pair: Pair, scorer: str) -> dict[str, Any]:
    """The targets with the largest changes by a scorer, and the statements about each before and after."""
    moved = pair.moved[scorer].with_columns(difference=pl.col("after") - pl.col("before"))
    caption, empty = "Generated about “{target}” only by “{title}”", "no statement that the other does not generate"
    return {
        "chance": pair.chance[scorer],
        "table": _table("moved", moved, scorer=scorer, name=pair.name),
        "said": statement_tables(pair.statements[scorer], (pair.against, pair.name), caption, scorer, empty),
    }


def _lift_table(comparison: Comparison) -> Table | None:
    """The swap lift of the models for which it was measured."""
    lift = measure_of("swap_lift")
    keys = {LIFT: "lift", **{key_of(f"swap_lift_{name}"): name for name in BASELINES}}
    keys |= dict(zip(bounds(LIFT), bounds("lift"), strict=True))
    rows = [
        {keys.get(name, name): value for name, value in row.items()}
        for row in comparison.models.to_dicts()
        if row.get(LIFT) is not None
    ]
    cells = {"linked_policy": lambda row: _linked(comparison, row["run"], row["policy"])}
    return _table("swap lift", rows, cells, lift=lift.named.capitalize()) if rows else None


def _linked(comparison: Comparison, run: str, name: str) -> str:
    place = comparison.links.get(run)
    return Markup('<a href="{}">{}</a>').format(place, name) if place else name


def _target_table(moves: pl.DataFrame) -> Table:
    """For each target the changes by each contrast and scorer."""

    def difference(name: str) -> Column:
        return Column(name, lambda row: number(row[name], 1))

    named = moves.sort("target").with_columns(column=pl.format("{}, {}", "contrast", "scorer"))
    columns = named.pivot("column", index=["target", "category"], values="difference", aggregate_function="last")
    names = moves.select(pl.format("{}, {}", "contrast", "scorer")).to_series().unique(maintain_order=True)
    return target_table(
        "Change of the percentage of neutral statements, in percentage points; above 0 is more neutral.",
        [difference(name) for name in names],
        columns.to_dicts(),
        lambda row: max(abs(row[name] or 0) for name in names),
        largest="the largest changes",
        file="tables/moves.csv",
    )
