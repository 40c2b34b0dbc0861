"""The findings of two resources side by side, from their figures: what the page shows, and what comparison.json
holds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from mitigate.measure.between_resources import OF_SECOND
from mitigate.report import resources as page
from mitigate.report.examples import FEWEST_STATEMENTS, examples
from mitigate.tasks.compare.audits import AuditsPlan, ComparedAudit

MOST_DIFFERENT = 5  # up, and as many down


def resources(
    plan: AuditsPlan,
    figures: pl.DataFrame,
    targets: pl.DataFrame,
    agreement: Mapping[str, float | None],
    **about: Any,
) -> page.Resources:
    """What the page shows; about: its name, command, stages and facts."""
    found = page.Resources(
        demonstration=plan.demonstration,
        titles=plan.titles,
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
        (scorer, target): rows
        for scorer, frame in most.items()
        for target, rows in _said(plan.audits, (scorer, found.headlines[scorer]), frame["target"].to_list()).items()
    }
    return replace(found, differ_most=most, said=said)


def comparison(
    plan: AuditsPlan, figures: pl.DataFrame, targets: pl.DataFrame, agreement: Mapping[str, float | None]
) -> dict[str, Any]:
    """What comparison.json holds: every figure, and its finding in words."""
    about = resources(plan, figures, targets, agreement, name="", command="", stages=[], facts={})
    return {
        "demonstration": plan.demonstration,
        "resources": [
            {"title": title, "run": str(run.folder), "fingerprint": run.metrics["fingerprint"], "targets": spoken}
            for title, run, spoken in zip(plan.titles, plan.runs, plan.spoken, strict=True)
        ],
        "targets": targets["target"].n_unique(),
        "identical": plan.is_same,
        "figures": {
            row["key"]: {key: row[key] for key in figures.columns[4:]} | {"verdict": about.verdict(row)}
            for row in figures.to_dicts()
        },
        "agreement": dict(agreement),
        "lines": [page.line(about, scorer) for scorer in about.headlines],
        "notices": plan.notices,
    }


def frames(about: page.Resources) -> dict[str, pl.DataFrame]:
    """The tables by name."""
    words = pl.Series("verdict", [about.verdict(row) for row in about.figures.to_dicts()], dtype=pl.String)
    return {"figures": about.figures.with_columns(words), "targets": about.targets}


def _differ_most(targets: pl.DataFrame) -> pl.DataFrame:
    """With `difference`, of the percentage polarised: the targets for which the second's is highest above the
    first's and, after them, those for which it is lowest below; with at least FEWEST_STATEMENTS statements in both."""
    polarised, of_second = (pl.col("prejudice" + end) + pl.col("favouritism" + end) for end in ("", OF_SECOND))
    enough = pl.min_horizontal("statements", "statements" + OF_SECOND) >= FEWEST_STATEMENTS
    ranked = targets.filter(enough).with_columns(difference=of_second - polarised)
    ranked = ranked.sort("difference", "target", descending=[True, False])
    more, less = (ranked.filter(which) for which in (pl.col("difference") > 0, pl.col("difference") < 0))
    return pl.concat([more.head(MOST_DIFFERENT), less.tail(MOST_DIFFERENT)])


def _said(
    audits: Sequence[ComparedAudit], wording: page.Wording, targets: list[str]
) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """Target -> the statements that each resource's labels are strongest for, and these labels, as `label`."""
    found = []
    for audit in audits:
        column = audit.columns[wording]
        about_them = audit.statements.filter(pl.col("target").is_in(targets)).collect(engine="streaming")
        found.append(examples(about_them, scorers=[column]).rename({column: "label"}))
    return {target: (found[0].filter(target=target), found[1].filter(target=target)) for target in targets}
