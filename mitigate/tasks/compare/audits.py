"""The comparison of two resources by their audits (tasks.compare.plan.Kind): differences in all figures with corrected
p-values and intervals, and the content of its page and of comparison.json."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.comparison import change_of, holm
from mitigate.measure.resource_differences import OF_SECOND, rank_correlation, representation, shares
from mitigate.metrics import TEMPLATE_PREFIX, harm_key, parse
from mitigate.report import compared_audits
from mitigate.report.audit_tables import Wording, headlines
from mitigate.report.compared_audits import POLARISED, Resources
from mitigate.report.examples import FEWEST_STATEMENTS, examples
from mitigate.report.verdicts import ALPHA
from mitigate.tasks.compare.audit_plan import AuditsPlan, ComparedAudit, both
from mitigate.tasks.compare.audit_plan import read_plan as read_plan
from mitigate.tasks.compare.plan import Stage, by_figure, most_different
from mitigate.tasks.targets import list_of_runs

DEMONSTRATION = "A small corpus written for demonstration: it shows how things work and claims nothing."
UPLOADS = ("tables", "charts", "plots")
CORRECTED = ("p_holm", "low_corrected", "high_corrected")

render = compared_audits.render


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
    most = {
        scorer: _differ_most(targets.filter(scorer=scorer, template=template))
        for scorer, template in headlines(plan.wordings).items()
    }
    return Resources(
        titles=(plan.titles[0], plan.titles[1]),
        is_same=plan.is_same,
        wordings=plan.wordings,
        spoken=plan.spoken,
        figures=figures,
        targets=targets,
        agreement=agreement,
        differ_most=most,
        statements={scorer: _strongest(plan, scorer, frame["target"]) for scorer, frame in most.items()},
        scorers=plan.scorers,
        **plan.page_fields(folder),
        **about,
    )


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
        "lines": compared_audits.lines(page),
        "notices": plan.notices,
    }


def _differ_most(targets: pl.DataFrame) -> pl.DataFrame:
    """The targets whose percentage polarised differs most from the first to the second, with `difference`; both have at
    least FEWEST_STATEMENTS statements about them."""
    polarised, of_second = (pl.col("prejudice" + end) + pl.col("favouritism" + end) for end in ("", OF_SECOND))
    enough = pl.min_horizontal("statements", "statements" + OF_SECOND) >= FEWEST_STATEMENTS
    return most_different(targets.filter(enough).with_columns(difference=of_second - polarised))


def _strongest(plan: AuditsPlan, scorer: str, targets: pl.Series) -> dict[str, list[pl.DataFrame]]:
    """Target -> the statements of each resource with the strongest labels, and these labels, as `label`."""
    found: dict[str, list[pl.DataFrame]] = {target: [] for target in targets}
    for audit in plan.audits:
        column = audit.columns[scorer, headlines(plan.wordings)[scorer]]
        about_them = audit.statements.filter(pl.col("target").is_in(targets.to_list())).collect(engine="streaming")
        shown = examples(about_them, scorers=[column]).rename({column: "label"})
        for target, sides in found.items():
            sides.append(shown.filter(target=target))
    return found


def differences(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer ("" for the number of statements), template, key as in metrics.json, category ("" for all targets), the
    other columns of comparison.DIFFERENCES, the figures over all of each audit's own targets, as first_alone and
    second_alone, and the columns of CORRECTED."""
    clusters = list_of_runs(audit.run for audit in audits).clusters
    found = {("", "paper"): representation(both(audits, wordings[0]), clusters)}
    found |= {wording: shares(both(audits, wording), wording[0], clusters) for wording in wordings}
    return corrected(pl.concat(_named(audits, wording, rows) for wording, rows in found.items()))


def both_sides(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer, template, target, category, and the figures of the targets that both resources have statements about, as
    side_by_side."""
    return pl.concat(both(audits, wording).select(*_labels(wording), pl.all()) for wording in wordings)


def agreements(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> dict[str, float | None]:
    """Rank correlations between the targets of the two: "sentiment/O-/rank_correlation" ..."""
    return {
        harm_key(scorer, "rank correlation", share, template): rank_correlation(both(audits, (scorer, template)), share)
        for scorer, template in wordings
        for share in POLARISED
    }


def _labels(wording: Wording) -> list[pl.Expr]:
    """The columns scorer and template."""
    return [pl.lit(value).alias(name) for name, value in zip(("scorer", "template"), wording, strict=True)]


def _named(audits: Sequence[ComparedAudit], wording: Wording, rows: pl.DataFrame) -> pl.DataFrame:
    sides = zip(("first_alone", "second_alone"), audits, strict=True)
    alone = {side: [audit.alone(wording, figure) for figure in rows["figure"]] for side, audit in sides}
    return rows.select(
        *_labels(wording),
        (pl.lit(TEMPLATE_PREFIX[wording[1]]) + pl.col("figure")).alias("key"),
        pl.Series("category", [parse(figure).part for figure in rows["figure"]], dtype=pl.String),
        pl.exclude("figure"),
        *(pl.Series(side, values, dtype=pl.Float64) for side, values in alone.items()),
    )


def corrected(table: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of CORRECTED: Holm's p-values, and the bounds of Bonferroni's intervals (those of m figures all
    cover in at least 95 % of cases). Figures over all targets (category "") are a family, those of categories
    another."""
    rows = table.to_dicts()
    for is_overall in (True, False):
        family = [row for row in rows if (row["category"] == "") == is_overall]
        adjusted = holm([row["p"] for row in family])
        level = 1 - ALPHA / max(1, sum(p is not None for p in adjusted))
        for row, p in zip(family, adjusted, strict=True):
            interval = change_of(row).row(level)
            row.update(zip(CORRECTED, (p, interval["low"], interval["high"]), strict=True))
    return pl.DataFrame(rows, schema={**table.schema, **dict.fromkeys(CORRECTED, pl.Float64)})
