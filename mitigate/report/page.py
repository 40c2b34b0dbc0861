"""A run as one HTML page that loads nothing: no script, style, font or picture from elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.learnt import faults
from mitigate.metrics import (
    ABOUT_BITS,
    ABOUT_PERPLEXITY,
    BASELINE_LIFTS,
    COVERAGE,
    LEAST_COVERAGE,
    PAPER_SCORERS,
    SWAP_LIFT,
    TAIL_COVERAGE,
    bounds,
    harm_key,
    metric,
    quality,
    quality_key,
    with_part,
)
from mitigate.report import brief, legend
from mitigate.report.examples import examples
from mitigate.report.excluded_targets import left_out
from mitigate.report.findings import findings
from mitigate.report.html import Page, render_page
from mitigate.report.html import Stage as Stage
from mitigate.report.ledger import most_polarised, summary, touched
from mitigate.report.run_figures import GROUPS, Picture, firsts, gallery
from mitigate.report.template_leak import difference, leak
from mitigate.runs import files
from mitigate.triples import label_columns

MOST_LEAKS = 10  # relations named in the section on the templates


@dataclass(frozen=True, kw_only=True)
class Report(Page):
    """The content of a run's page. Whatever a run does not have stays empty, and its section is left out."""

    metrics: legend.Metrics
    targets: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """By label column ("sentiment", "sentiment_neutral", "regard", "regard_neutral"): one row a target,
    (target, category, statements, prejudice, favouritism, neutral), the last three in percent."""
    statements: pl.DataFrame | None = None  # labelled
    ledger: pl.DataFrame | None = None  # the filter's, one row an input triple
    lifts: pl.DataFrame | None = None  # swap lift by group and relation, as tasks.lift.by_relation returns it
    shown: Sequence[str] = ()  # chosen targets, whose bars are drawn
    baseline: legend.Metrics | None = None  # of the run of policy none that differs by its policy alone, if at hand
    links: Mapping[str, str] = field(default_factory=dict)  # what other pages are called -> the way to them
    scorers: Mapping[str, str] = field(default_factory=dict)
    """Those of the roles, by what they are called: {"sentiment": "vader", "regard": "minilm"}."""

    @property
    def roles(self) -> list[str]:
        """The names of the scorers of the roles."""
        return list(self.scorers) or list(PAPER_SCORERS)

    @property
    def label_columns(self) -> dict[str, tuple[str, str]]:
        """By label column its scorer and its template, in the page's order, which begins with the headline's."""
        pairs = [(scorer, template) for scorer in legend.by_headline(self.roles) for template in legend.TEMPLATE_NAMES]
        return {label_columns(*pair)[0]: pair for pair in pairs}

    @property
    def ordered_targets(self) -> dict[str, pl.DataFrame]:
        """The tables of targets in the same order."""
        return {column: self.targets[column] for column in self.label_columns if column in self.targets}

    @property
    def first_columns(self) -> list[str]:
        """Of each scorer the label column of the statements that stands first."""
        return firsts(name for name in self.label_columns if name in getattr(self.statements, "columns", ()))

    @cached_property
    def verdict(self) -> tuple[str, str]:
        """The sentence that the run's page, card, terminal and record begin with, and its cost."""
        sentence, cost = brief.of_run(self.metrics, self.roles, self.baseline)
        return sentence or "This run measured no harms.", cost

    @cached_property
    def pictures(self) -> list[Picture]:
        """The run's figures, drawn once."""
        return gallery(self.ordered_targets, self.ledger, self.statements, self.shown, self.first_columns)


def write(path: Path, report: Report) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(report))


def render(report: Report) -> str:
    """The page's HTML, always the same for the same report."""
    verdict, cost = report.verdict
    scorers, templates = legend.by_headline(report.roles), _templates(report.metrics)
    return render_page(
        "page.html.jinja",
        report,
        sentences=[verdict],
        cost=cost,
        more=findings(report.metrics, scorers),
        scorers={name: report.scorers[name] for name in legend.by_headline(report.scorers)},
        unlearnt=bool(faults(report.metrics)),
        first_harms=legend.harms_by(scorers, report.metrics),
        headline_keys={one.key: brief.harm_of(one, set(report.metrics)) for one in legend.harms(report.metrics)},
        has_intervals=any(bound in report.metrics for one in legend.harms(report.metrics) for bound in bounds(one.key)),
        categories=legend.categories(report.metrics),
        templates=templates,
        first_template=next(iter(templates.values()), ""),
        template_difference=difference,
        groups=GROUPS,
        pictures=by_group(report.pictures),
        quality=[measure for measure in legend.QUALITY if _quality_subsets(report.metrics, [measure])],
        quality_subsets=_quality_subsets(report.metrics, legend.QUALITY),
        probed_parts=legend.probed_parts(report.metrics),
        validity=legend.validity(report.metrics),
        left_out=left_out([target for frame in report.targets.values() for target in frame["target"]]),
        **_of_lift(report.metrics, report.lifts),
        **_of_groups(report.metrics, scorers),
        **_of_statements(report.statements, scorers, report.first_columns),
        **_of_ledger(report.ledger, scorers),
        target_rows=target_rows(report.ordered_targets),
        label_columns={name: pair for name, pair in report.label_columns.items() if name in report.targets},
    )


def _templates(metrics: legend.Metrics) -> dict[str, str]:
    """The templates that were measured with, and their names."""
    return {
        template: name
        for template, name in legend.TEMPLATE_NAMES.items()
        if any(legend.harm_key(measure, template) in metrics for measure in legend.harms(metrics))
    }


def _quality_subsets(metrics: legend.Metrics, measures: Sequence[legend.Measure]) -> list[str]:
    return [
        subset
        for subset in legend.SUBSETS
        if any(legend.quality_key(measure, subset) in metrics for measure in measures)
    ]


def _of_lift(metrics: legend.Metrics, lifts: pl.DataFrame | None) -> dict[str, Any]:
    left_out: dict[str, list[str]] = {}
    if lifts is not None:
        for group, relation in lifts.filter(~pl.col("counts")).select("group", "relation").iter_rows():
            left_out.setdefault(group, []).append(relation)
    return {
        "lift_left_out": left_out,
        "lift": quality(SWAP_LIFT),
        "lift_parts": legend.lift_parts(metrics),
        "baseline_lifts": BASELINE_LIFTS,
        "baseline_names": legend.BASELINES,
        "quality_key": quality_key,
    }


def _of_groups(metrics: legend.Metrics, scorers: Sequence[str]) -> dict[str, Any]:
    """The figures of the groups with the worst results, as far as they were measured."""
    stems = [COVERAGE, TAIL_COVERAGE, LEAST_COVERAGE]
    harmful = [metric(harm_key(name, statistic, "prejudice")) for name in scorers for statistic in ("p90", "largest")]
    keys = {stem: metric(stem) for stem in stems} | {brief.harm_of(one, set(metrics)): one for one in harmful}
    about, rows = quality(ABOUT_PERPLEXITY), {"all targets": ("all", "neutral", "polar")}
    rows |= {name: (name, f"{name}/neutral", f"{name}/polar") for name in legend.categories(metrics)}
    return {
        "worst_off": {key: measure for key, measure in keys.items() if key in metrics},
        "with_part": with_part,
        "about": about,
        "about_bits": quality(ABOUT_BITS),
        "about_parts": {
            name: parts for name, parts in rows.items() if quality_key(ABOUT_PERPLEXITY, parts[0]) in metrics
        },
    }


def by_group(pictures: Sequence[Picture]) -> dict[str, list[Picture]]:
    """Group -> its pictures."""
    groups: dict[str, list[Picture]] = {}
    for picture in pictures:
        groups.setdefault(picture.group, []).append(picture)
    return groups


def target_rows(frames: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """The table of targets: the first frame's rows, each with its percentages under every label column."""
    values = {column: {row["target"]: row for row in frame.iter_rows(named=True)} for column, frame in frames.items()}
    first = next(iter(values.values()), {})
    return [
        {**row, "labels": {column: values[column].get(target, {}) for column in values}}
        for target, row in sorted(first.items())
    ]


def _of_statements(statements: pl.DataFrame | None, scorers: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """columns: of the labels by which examples are chosen."""
    if statements is None or statements.is_empty():
        return {"leaks": {}, "examples": {}}
    both = [scorer for scorer in scorers if label_columns(scorer, "neutral")[0] in statements.columns]
    leaks = {scorer: leak(statements, scorer).head(MOST_LEAKS) for scorer in both if "relation" in statements.columns}
    chosen = examples(statements, scorers=columns)
    return {"leaks": leaks, "examples": chosen.partition_by("target", as_dict=True, maintain_order=True)}


def _of_ledger(ledger: pl.DataFrame | None, scorers: Sequence[str]) -> dict[str, Any]:
    if ledger is None or ledger.is_empty():
        return {"summaries": {}, "touched": None, "filtered": False, "most_polarised": None}
    summaries = {by: summary(ledger, by) for by in ("reason", "relation", "target")}
    changed, most = touched(ledger), most_polarised(ledger, scorers)
    return {"summaries": summaries, "touched": changed, "filtered": not changed.is_empty(), "most_polarised": most}
