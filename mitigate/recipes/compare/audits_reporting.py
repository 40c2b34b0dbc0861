"""What a comparison of two resources leaves for people: comparison.json, the page, plots and tables, and the record in
W&B."""

import sys
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from mitigate import report as room
from mitigate.measure.between_resources import OF_SECOND
from mitigate.recipes.compare.audits_plan import AuditsPlan, roles
from mitigate.recipes.job import Job, command, provenance, say
from mitigate.report import gallery, tables
from mitigate.report import resources as page
from mitigate.report.examples import examples
from mitigate.report.singled_out import FEWEST_STATEMENTS
from mitigate.store import Result

MOST_DIFFERENT = 5  # up, and as many down


def report(job: Job, plan: AuditsPlan, figures: Result, targets: Result, agreement: Result) -> dict[str, Any]:
    """Write everything, and record it; returns what comparison.json holds."""

    @cache
    def about() -> page.Resources:
        return _about(job, plan, figures.table(), targets.table(), agreement.facts())

    needs = [plan.source, figures.digest, targets.digest, agreement.digest]
    code = [room, sys.modules[__name__]]
    settings = [plan.titles, plan.notices]
    compared = job.old_stage("comparison", lambda _: _facts(plan, about()), needs=needs, settings=settings, code=code)

    def compute(_: str) -> dict[str, Any]:
        page.write(job.folder / "comparison.html", about())
        gallery.save(about().pictures, job.folder / "plots")
        for name, frame in _frames(about()).items():
            tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
            caption = f"{name}, {plan.titles[0]} and {plan.titles[1]} ({job.folder.name})"
            tables.save_latex(tables.with_p_as_shown(frame), job.folder / "tables" / f"{name}.tex", caption)
        return {"notices": plan.notices}

    leaves = ["comparison.html", "plots", "tables"]
    job.old_stage("report", compute, needs=[*needs, compared.digest], settings=settings, code=code, leaves=leaves)
    if not job.run.dry:
        _record(job, about())  # also what is kept from before, if W&B hands out the job
        say(f"  comparison  {job.folder / 'comparison.html'}")
    return compared.facts()


def _about(
    job: Job, plan: AuditsPlan, figures: pl.DataFrame, targets: pl.DataFrame, agreement: dict[str, float | None]
) -> page.Resources:
    found = page.Resources(
        name=job.folder.name,
        command=command(job.config),
        demonstration=plan.demonstration,
        titles=plan.titles,
        is_same=plan.is_same,
        wordings=plan.wordings,
        spoken=plan.spoken,
        figures=figures,
        targets=targets,
        agreement=agreement,
        fewest_statements=FEWEST_STATEMENTS,
        scorers=roles(plan),
        stages=[page.Stage(r.stage, r.seconds, r.from_cache) for r in job.run.results],
        facts=_provenance(plan),
        notices=plan.notices,
    )
    most = {scorer: _differ_most(found.of(scorer)) for scorer in found.headlines}
    said = {
        (scorer, target): rows
        for scorer, frame in most.items()
        for target, rows in _said(plan, (scorer, found.headlines[scorer]), frame["target"].to_list()).items()
    }
    return replace(found, differ_most=most, said=said)


def _differ_most(targets: pl.DataFrame) -> pl.DataFrame:
    """With `difference`, of the percentage polarised: those of whom the second says most more and, after them, those of
    whom it says most less; of each at least FEWEST_STATEMENTS in both."""
    polarised, of_second = (pl.col("prejudice" + end) + pl.col("favouritism" + end) for end in ("", OF_SECOND))
    enough = pl.min_horizontal("statements", "statements" + OF_SECOND) >= FEWEST_STATEMENTS
    ranked = targets.filter(enough).with_columns(difference=of_second - polarised)
    ranked = ranked.sort("difference", "target", descending=[True, False])
    more, less = (ranked.filter(which) for which in (pl.col("difference") > 0, pl.col("difference") < 0))
    return pl.concat([more.head(MOST_DIFFERENT), less.tail(MOST_DIFFERENT)])


def _said(plan: AuditsPlan, wording: page.Wording, targets: list[str]) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """Target -> the statements that each resource's labels are strongest for, and these labels, as `label`."""
    found = []
    for audit in plan.audits:
        column = audit.columns[wording]
        about_them = audit.statements.filter(pl.col("target").is_in(targets)).collect(engine="streaming")
        found.append(examples(about_them, scorers=[column]).rename({column: "label"}))
    return {target: (found[0].filter(target=target), found[1].filter(target=target)) for target in targets}


def _facts(plan: AuditsPlan, about: page.Resources) -> dict[str, Any]:
    """What comparison.json holds: every figure, and what may be said of it."""
    rows = about.figures.to_dicts()
    return {
        "demonstration": plan.demonstration,
        "resources": [
            {"title": title, "run": str(audit.folder), "fingerprint": audit.metrics["fingerprint"], "targets": spoken}
            for title, audit, spoken in zip(plan.titles, plan.audits, plan.spoken, strict=True)
        ],
        "targets": about.targets["target"].n_unique(),
        "identical": plan.is_same,
        "figures": {
            row["key"]: {key: row[key] for key in about.figures.columns[4:]} | {"verdict": about.verdict(row)}
            for row in rows
        },
        "agreement": about.agreement,
        "lines": [page.line(about, scorer) for scorer in about.headlines],
        "notices": plan.notices,
    }


def _frames(about: page.Resources) -> dict[str, pl.DataFrame]:
    words = pl.Series("verdict", [about.verdict(row) for row in about.figures.to_dicts()], dtype=pl.String)
    return {"figures": about.figures.with_columns(words), "targets": about.targets}


def _provenance(plan: AuditsPlan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for title, audit in zip(plan.titles, plan.audits, strict=True):
        data = audit.config.data
        found[title] = {
            "run": audit.folder.name,
            "command": audit.manifest["command"],
            "data": ", ".join(filter(None, [data.name, data.attribution, data.licence and f"licence {data.licence}"])),
            "fingerprint": audit.metrics["fingerprint"],
            "statements": audit.metrics["statements"],
        }
    return provenance(
        plan.config,
        {**found, "masking": plan.audits[0].config.measure.masking, "resamples": plan.config.measure.resamples},
    )


def _record(job: Job, about: page.Resources) -> None:
    """Summary, tables and plots; targets of a user's own only when that is wished."""
    tracking = job.tracking
    overall = about.figures.filter(category="").to_dicts()
    tracking.summarise(
        {f"{row['key']}/difference": row["difference"] for row in overall}
        | {f"{row['key']}/p": row["p_holm"] for row in overall}
        | dict(about.agreement)
    )
    for name, frame in _frames(about).items():
        if name != "targets" or job.config.tracking.statements or not job.config.data.own_texts:
            tracking.table(name, frame)
    for picture in sorted((job.folder / "plots").glob("*.png")):
        tracking.image(f"plots/{picture.stem}", picture, picture.stem)
