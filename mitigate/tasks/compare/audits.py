"""The comparison of two resources by their audits (tasks.compare.plan.Kind): differences in all figures with corrected
p-values and intervals, and the content of its page and of comparison.json."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.change import of_row
from mitigate.measure.comparison import holm
from mitigate.measure.resource_differences import OF_SECOND, rank_correlation, representation, shares
from mitigate.metrics import TEMPLATE_PREFIX, Share, harm_key
from mitigate.report import compared_audits
from mitigate.report.audit_tables import Wording
from mitigate.report.compared_audits import Resources
from mitigate.report.examples import FEWEST_STATEMENTS, examples
from mitigate.report.verdicts import ALPHA
from mitigate.runs.finished import folders
from mitigate.tasks.compare.audit_plan import AuditsPlan, ComparedAudit, both, plan_audits
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.compare.plan import Stage, by_figure, most_different
from mitigate.tasks.targets import list_of_runs

DEMONSTRATION = "A small corpus written for demonstration: it shows how things work and claims nothing."
UPLOADS = ("tables", "charts", "plots")
POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")
CORRECTED = ("p_holm", "low_corrected", "high_corrected")

render = compared_audits.render


def read_plan(
    runs: str | Sequence[str] | None, baseline: str | Sequence[str] | None, endpoints: Endpoints
) -> AuditsPlan:
    """Read and check the two folders of audits. They have no primary endpoints."""
    return plan_audits([*folders(baseline), *folders(runs)])


def measure(stage: Stage, plan: AuditsPlan) -> list[Any]:
    """Measure all figures, the targets of both, and how far the two rank targets in the same order."""
    return [
        stage("figures", differences, plan.audits, plan.wordings),
        stage("targets", both_sides, plan.audits, plan.wordings),
        stage("agreement", agreements, plan.audits, plan.wordings),
    ]


def page_of(
    plan: AuditsPlan,
    figures: pl.DataFrame,
    targets: pl.DataFrame,
    agreement: Mapping[str, float | None],
    *,
    folder: Path,
    **about: Any,
) -> Resources:
    """The content of the page."""
    found = Resources(
        name=folder.name,
        demonstration=plan.demonstration,
        titles=(plan.titles[0], plan.titles[1]),
        is_same=plan.is_same,
        wordings=plan.wordings,
        spoken=plan.spoken,
        figures=figures,
        targets=targets,
        agreement=agreement,
        fewest_statements=FEWEST_STATEMENTS,
        scorers=plan.scorers,
        notices=plan.notices,
        **about,
    )
    most = {scorer: _differ_most(found.of(scorer)) for scorer in found.headlines}
    said = {
        scorer: _strongest(plan, (scorer, found.headlines[scorer]), frame["target"]) for scorer, frame in most.items()
    }
    return replace(found, differ_most=most, said=said)


def content_of(plan: AuditsPlan, page: Resources) -> dict[str, Any]:
    """The content of comparison.json."""
    return {
        "demonstration": plan.demonstration,
        "resources": [
            {"title": title, "run": str(run.folder), "fingerprint": run.metrics["fingerprint"], "targets": spoken}
            for title, run, spoken in zip(plan.titles, plan.runs, plan.spoken, strict=True)
        ],
        "targets": page.targets["target"].n_unique(),
        "identical": plan.is_same,
        "figures": by_figure(page.frames["figures"].drop("category"), "key"),
        "agreement": dict(page.agreement),
        "lines": [compared_audits.line(page, scorer) for scorer in page.headlines],
        "notices": plan.notices,
    }


def _differ_most(targets: pl.DataFrame) -> pl.DataFrame:
    """The targets whose percentage polarised differs most from the first to the second, with `difference`; both have at
    least FEWEST_STATEMENTS statements about them."""
    polarised, of_second = (pl.col("prejudice" + end) + pl.col("favouritism" + end) for end in ("", OF_SECOND))
    enough = pl.min_horizontal("statements", "statements" + OF_SECOND) >= FEWEST_STATEMENTS
    return most_different(targets.filter(enough).with_columns(difference=of_second - polarised))


def _strongest(plan: AuditsPlan, wording: Wording, targets: pl.Series) -> dict[str, list[pl.DataFrame]]:
    """Target -> the statements of each resource with the strongest labels, and these labels, as `label`."""
    found: dict[str, list[pl.DataFrame]] = {target: [] for target in targets}
    for audit in plan.audits:
        column = audit.columns[wording]
        about_them = audit.statements.filter(pl.col("target").is_in(targets.to_list())).collect(engine="streaming")
        shown = examples(about_them, scorers=[column]).rename({column: "label"})
        for target, sides in found.items():
            sides.append(shown.filter(target=target))
    return found


def differences(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer ("" for the number of statements), template, key as in metrics.json, category ("" for all targets), the
    other columns of comparison.DIFFERENCES, `p_holm` (figures over all targets are one family, those of categories
    another), and the figures over all of each audit's own targets, as first_alone and second_alone."""
    first = both(audits, wordings[0])
    categories = first["category"].unique().to_list()
    clusters = list_of_runs(audit.run for audit in audits).clusters
    found = [_named(audits, categories, representation(first, clusters), "", "paper")]
    for scorer, template in wordings:
        rows = shares(both(audits, (scorer, template)), scorer, clusters)
        found.append(_named(audits, categories, rows, scorer, template))
    return corrected(pl.concat(found))


def both_sides(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer, template, target, category, and the figures of the targets that both resources have statements about, as
    side_by_side."""
    return pl.concat(
        both(audits, (scorer, template)).select(
            pl.lit(scorer).alias("scorer"), pl.lit(template).alias("template"), pl.all()
        )
        for scorer, template in wordings
    )


def agreements(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> dict[str, float | None]:
    """Rank correlations between the targets of the two: "sentiment/O-/rank_correlation" ..."""
    return {
        harm_key(scorer, "rank correlation", share, template): rank_correlation(both(audits, (scorer, template)), share)
        for scorer, template in wordings
        for share in POLARISED
    }


def _named(
    audits: Sequence[ComparedAudit], categories: Sequence[str], rows: pl.DataFrame, scorer: str, template: str
) -> pl.DataFrame:
    last = pl.col("figure").str.split("/").list.last()
    return rows.select(
        pl.lit(scorer).alias("scorer"),
        pl.lit(template).alias("template"),
        (pl.lit(TEMPLATE_PREFIX[template]) + pl.col("figure")).alias("key"),
        pl.when(last.is_in(categories)).then(last).otherwise(pl.lit("")).alias("category"),
        pl.exclude("figure"),
        *(
            pl.Series(
                f"{side}_alone", [audit.alone((scorer, template), figure) for figure in rows["figure"]], pl.Float64
            )
            for side, audit in zip(("first", "second"), audits, strict=True)
        ),
    )


def corrected(table: pl.DataFrame) -> pl.DataFrame:
    """Add `p_holm`, and the bounds of corrected intervals, low_corrected and high_corrected (Bonferroni: those of m
    figures all cover in at least 95 % of cases). A row's category is "" for all targets."""
    columns: dict[str, list[float | None]] = {name: [None] * table.height for name in CORRECTED}
    for family in (pl.col("category") == "", pl.col("category") != ""):
        places = table.select(family.arg_true()).to_series().to_list()
        rows = [table.row(place, named=True) for place in places]
        adjusted = holm([row["p"] for row in rows])
        level = 1 - ALPHA / max(1, sum(p is not None for p in adjusted))
        for place, row, p in zip(places, rows, adjusted, strict=True):
            interval = of_row(row).row(level)
            for name, value in zip(CORRECTED, (p, interval["low"], interval["high"]), strict=True):
                columns[name][place] = value
    return table.with_columns(pl.Series(name, values, dtype=pl.Float64) for name, values in columns.items())
