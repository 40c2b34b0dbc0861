"""A run as one HTML page that loads nothing: no script, style, font or picture from elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import files
from mitigate.report import legend
from mitigate.report.examples import examples
from mitigate.report.findings import findings
from mitigate.report.gallery import GROUPS, Picture, gallery
from mitigate.report.html import Page, render_page
from mitigate.report.html import Stage as Stage
from mitigate.report.leak import difference, leak
from mitigate.report.ledger import summary, touched
from mitigate.triples import TEMPLATES, label_columns

SCORERS = ("sentiment", "regard")
MOST_LEAKS = 10  # relations named in the section on the templates


@dataclass(frozen=True, kw_only=True)
class Report(Page):
    """What a run's page shows. Whatever a run does not have stays empty, and its section is left out."""

    metrics: legend.Metrics
    targets: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """By label column ("sentiment", "sentiment_neutral", "regard", "regard_neutral"): one row a target,
    (target, category, statements, prejudice, favouritism, neutral), the last three in percent."""
    statements: pl.DataFrame | None = None  # labelled
    ledger: pl.DataFrame | None = None  # the filter's, one row an input triple
    shown: Sequence[str] = ()  # chosen targets, whose bars are drawn
    scorers: Mapping[str, str] = field(default_factory=dict)  # by role: {"regard": "minilm"}

    @cached_property
    def pictures(self) -> list[Picture]:
        """The run's figures, drawn once."""
        return gallery(self.targets, self.ledger, self.statements, self.shown)


def write(path: Path, report: Report) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(report))


def render(report: Report) -> str:
    """The page's HTML, always the same for the same report."""
    return render_page(
        "page.html.jinja",
        report,
        sentences=findings(report.metrics) or ["This run measured no harms."],
        scorers=report.scorers,
        categories=legend.categories(report.metrics),
        templates=_templates(report.metrics),
        template_difference=difference,
        groups=GROUPS,
        pictures=by_group(report.pictures),
        quality=[measure for measure in legend.QUALITY if _quality_subsets(report.metrics, [measure])],
        quality_subsets=_quality_subsets(report.metrics, legend.QUALITY),
        probed_parts=legend.probed_parts(report.metrics),
        **_of_targets(report.targets),
        **_of_statements(report.statements),
        **_of_ledger(report.ledger),
    )


def _templates(metrics: legend.Metrics) -> dict[str, str]:
    """The templates that were measured with, and their names."""
    return {
        template: name
        for template, name in legend.TEMPLATE_NAMES.items()
        if any(legend.harm_key(measure, template) in metrics for measure in legend.HARMS)
    }


def _quality_subsets(metrics: legend.Metrics, measures: Sequence[legend.Measure]) -> list[str]:
    return [
        subset
        for subset in legend.SUBSETS
        if any(legend.quality_key(measure, subset) in metrics for measure in measures)
    ]


def by_group(pictures: Sequence[Picture]) -> dict[str, list[Picture]]:
    """Group -> its pictures."""
    groups: dict[str, list[Picture]] = {}
    for picture in pictures:
        groups.setdefault(picture.group, []).append(picture)
    return groups


def _of_targets(frames: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    return {"target_rows": target_rows(frames), "label_columns": {column: _label_name(column) for column in frames}}


def target_rows(frames: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """The table of targets: the first frame's rows, each with its percentages under every label column."""
    values = {column: {row["target"]: row for row in frame.iter_rows(named=True)} for column, frame in frames.items()}
    first = next(iter(values.values()), {})
    return [
        {**row, "labels": {column: values[column].get(target, {}) for column in values}}
        for target, row in sorted(first.items())
    ]


def _label_name(column: str) -> tuple[str, str]:
    """The scorer and the template of a label column: "regard_neutral" is ("regard", "neutral")."""
    names = {label_columns(scorer, template)[0]: (scorer, template) for scorer in SCORERS for template in TEMPLATES}
    return names[column]


def _of_statements(statements: pl.DataFrame | None) -> dict[str, Any]:
    if statements is None or statements.is_empty():
        return {"leaks": {}, "examples": {}}
    both = [scorer for scorer in SCORERS if label_columns(scorer, "neutral")[0] in statements.columns]
    leaks = {scorer: leak(statements, scorer).head(MOST_LEAKS) for scorer in both if "relation" in statements.columns}
    chosen = examples(statements)
    return {"leaks": leaks, "examples": chosen.partition_by("target", as_dict=True, maintain_order=True)}


def _of_ledger(ledger: pl.DataFrame | None) -> dict[str, Any]:
    if ledger is None or ledger.is_empty():
        return {"summaries": {}, "touched": None}
    summaries = {by: summary(ledger, by) for by in ("reason", "relation", "target")}
    return {"summaries": summaries, "touched": touched(ledger)}
