"""What a finished run leaves for people: metrics.json, the page, plots and tables, the generator's card, and the
record in W&B."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import report as room
from mitigate.recipes.job import Job, command, plain, provenance, say
from mitigate.recipes.mitigate import measures
from mitigate.recipes.mitigate.plan import Plan
from mitigate.recipes.scorers import ROLES
from mitigate.report import card, gallery, page, tables
from mitigate.report.ledger import summary
from mitigate.store import Result

RECORDED_COLUMNS = ["target", "category", "relation", "tail", "rank", "sentiment", "regard", "regard_strength"]
RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parquet file has them all


def report(
    job: Job, plan: Plan, ledger: Result, generator: Result, statements: Result, metrics: dict[str, Any]
) -> Result:
    """Write everything, and record it."""
    shown = plain(plan.config.recipe.shown)

    def compute(_: str) -> dict[str, Any]:
        rows, probed = ledger.table().filter(split="train"), statements.table()
        about = page.Report(
            name=job.folder.name,
            command=command(job.config),
            demonstration=plan.config.data.demonstration,
            metrics=metrics,
            targets=measures.per_target_tables(probed, plan.targets, plan.config.measure.empty_targets),
            statements=probed,
            ledger=rows,
            shown=shown,
            scorers={role: plan.config.score[role] for role in ROLES},
            stages=[page.Stage(r.stage, r.seconds, r.from_cache) for r in job.run.results],
            facts=_facts(job, plan, generator),
            notices=[*_as_it_is(plan), *plan.corpus.notices, *measures.notices(metrics, probed, plan.targets)],
        )
        page.write(job.folder / "report.html", about)
        gallery.save(about.pictures, job.folder / "plots")
        for name, frame in _tables(about, rows).items():
            tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
            tables.save_latex(frame, job.folder / "tables" / f"{name}.tex", caption=f"{name} ({job.folder.name})")
        if plan.config.train:
            card.write(job.folder / "model", _card(plan, job, metrics, rows, about.notices))
        return {"notices": list(about.notices)}

    result = job.old_stage(
        "report",
        compute,
        needs=[ledger.digest, generator.digest, statements.digest],
        settings=[metrics, shown],
        code=[room],
        leaves=["report.html", "plots", "tables", "model/README.md"],
    )
    if not job.run.dry:
        _record(job, plan, metrics, statements.table())  # also what is kept from before, if W&B hands out the job
        say("\n" + tables.console({plan.policy.name: metrics}))
        for notice in result.facts()["notices"]:
            say(f"  note: {notice}")
        say(f"  report      {job.folder / 'report.html'}")
    return result


def _as_it_is(plan: Plan) -> list[str]:
    """What is to be said of a model that was not trained here."""
    return [] if plan.config.train else ["The model was probed as it is: neither corpus nor policy had a part in it."]


def _facts(job: Job, plan: Plan, generator: Result) -> dict[str, Any]:
    peak = max(result.peak_memory for result in job.run.results)
    return provenance(
        plan.config,
        {
            "data": f"{plan.config.data.name}, {plan.config.data.attribution}, licence {plan.config.data.licence}",
            "data fingerprint": plan.source,
            "regard classifier": plan.scorers[1].fingerprint,
            "training": generator.facts(),
            "peak memory": f"{peak / 2**30:.2f} GiB",
        },
    )


def _tables(about: page.Report, ledger: pl.DataFrame) -> dict[str, pl.DataFrame]:
    found = {"measures": tables.measures({"value": about.metrics})}
    found |= {f"targets_{column}": frame for column, frame in about.targets.items()}
    return found | {f"ledger_by_{by}": summary(ledger, by) for by in ("relation", "target", "reason")}


def _card(plan: Plan, job: Job, metrics: dict[str, Any], ledger: pl.DataFrame, notices: Sequence[str]) -> card.Card:
    data, model = plan.config.data, plan.config.model
    return card.Card(
        name=job.folder.name,
        license=data.licence.lower(),
        base_model=model.base,
        data=data.attribution,
        attribution=f"Trained on {data.attribution} ({data.licence}), from {model.base} ({model.licence}).",
        policy=plan.policy.name,
        command=command(job.config),
        demonstration=data.demonstration,
        metrics=metrics,
        ledger=ledger,
        notices=notices,
    )


def uploads(config: DictConfig) -> list[str]:
    """What _record gives to W&B besides metrics, in words."""
    texts = "statements and the ledger" if _with_texts(config) else "no texts"
    return ["plots", texts, *["the generator"] * bool(config.tracking.model and config.train)]


def _record(job: Job, plan: Plan, metrics: dict[str, Any], statements: pl.DataFrame) -> None:
    """Summary, statements, pictures, and artifacts with the licence of what they come from."""
    tracking, data = job.tracking, plan.config.data
    tracking.summarise(metrics)
    if _with_texts(plan.config):
        step = -(-statements.height // RECORDED_STATEMENTS)  # evenly over the grid
        tracking.table("statements", statements.select(RECORDED_COLUMNS).gather_every(step))
    for picture in sorted((job.folder / "plots").glob("*.png")):
        tracking.image(f"plots/{picture.stem}", picture, picture.stem)
    origin = {"licence": data.licence, "attribution": data.attribution, "policy": plan.policy.name}
    if _with_texts(plan.config):
        tracking.artifact(f"ledger-{job.folder.name}", "dataset", job.folder / "ledger.parquet", origin)
    if plan.config.tracking.model and plan.config.train:
        tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", origin | {"metrics": metrics})


def _with_texts(config: DictConfig) -> bool:
    """Texts of a user's own go to W&B only when that is wished."""
    return bool(config.tracking.statements or not config.data.own_texts)
