"""What a finished run leaves for people: metrics.json, the page, plots and tables, the generator's card, and the
record in W&B."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.measure.harms import EmptyTargets
from mitigate.recipes.job import Job, command, say
from mitigate.recipes.mitigate.plan import Plan
from mitigate.recipes.reporting import facts, record_plots, record_statements, source_of, stages, with_texts
from mitigate.report import card, page, tables
from mitigate.report.ledger import summary
from mitigate.report.saving import save
from mitigate.store import Result
from mitigate.tasks.harms import per_target_tables
from mitigate.tasks.run import notices
from mitigate.triples import ROLES

RECORDED_COLUMNS = ["target", "category", "relation", "tail", "rank", "sentiment", "regard", "regard_strength"]
AS_IT_IS = "The model was probed as it is: neither corpus nor policy had a part in it."


def report(job: Job, plan: Plan, ledger: Result, training: Result, statements: Result, metrics: Result) -> Result:
    """Write everything, and record it."""
    config = plan.config
    result = job.stage(
        "report",
        write_report,
        metrics,
        ledger,
        statements,
        plan.targets,
        empty_targets=config.measure.empty_targets,
        shown=config.recipe.shown,
        scorers={role: config.score[role] for role in ROLES},
        data={name: config.data[name] for name in ("licence", "attribution", "demonstration")},
        model={name: config.model[name] for name in ("base", "licence")} if config.train else None,
        also=[*([] if config.train else [AS_IT_IS]), *plan.corpus.notices],
        after=[training],
        using=lambda work: {
            "folder": work.folder,
            "command": command(config),
            "stages": stages(job),
            "facts": _facts(job, plan, training),
        },
        leaves=["report.html", "plots", "tables", "model/README.md"],
    )
    if not job.run.dry:
        _record(job, plan, metrics.facts(), statements.table())  # also what is cached, if W&B hands out the job
        say("\n" + tables.console({plan.policy.name: metrics.facts()}))
        for notice in result.facts()["notices"]:
            say(f"  note: {notice}")
        say(f"  report      {job.folder / 'report.html'}")
    return result


def write_report(
    metrics: Mapping[str, Any],
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    targets: pl.DataFrame,
    *,
    empty_targets: EmptyTargets,
    shown: Sequence[str],
    scorers: Mapping[str, str],
    data: Mapping[str, Any],
    model: Mapping[str, str] | None,
    also: Sequence[str],
    folder: Path,
    command: str,
    stages: Sequence[page.Stage],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The page, pictures and tables in the run folder, and of a model that was trained there the card. also: notices
    besides those that the figures call for. Returns all notices."""
    rows = ledger.filter(split="train")
    about = page.Report(
        name=folder.name,
        command=command,
        demonstration=data["demonstration"],
        metrics=metrics,
        targets=per_target_tables(statements, targets, empty_targets),
        statements=statements,
        ledger=rows,
        shown=shown,
        scorers=scorers,
        stages=stages,
        facts=facts,
        notices=[*also, *notices(metrics, statements, targets)],
    )
    page.write(folder / "report.html", about)
    found = {"measures": tables.measures({"value": metrics})}
    found |= {f"targets_{column}": frame for column, frame in about.targets.items()}
    found |= {f"ledger_by_{by}": summary(rows, by) for by in ("relation", "target", "reason")}
    save(folder, found, about.pictures)
    if model:
        licence, attribution = data["licence"], data["attribution"]
        written = card.Card(
            name=folder.name,
            license=licence.lower(),
            base_model=model["base"],
            data=attribution,
            attribution=f"Trained on {attribution} ({licence}), from {model['base']} ({model['licence']}).",
            policy=metrics["policy"],
            command=command,
            demonstration=data["demonstration"],
            metrics=metrics,
            ledger=rows,
            notices=about.notices,
        )
        card.write(folder / "model", written)
    return {"notices": list(about.notices)}


def _facts(job: Job, plan: Plan, training: Result) -> dict[str, Any]:
    more = {
        "data": source_of(plan.config.data),
        "data fingerprint": plan.source,
        "regard classifier": plan.scorers[1].fingerprint,
        "training": training.facts(),
    }
    return facts(job, more)


def uploads(config: DictConfig) -> list[str]:
    """What _record gives to W&B besides metrics, in words."""
    texts = "statements and the ledger" if with_texts(config) else "no texts"
    return ["plots", texts, *["the generator"] * bool(config.tracking.model and config.train)]


def _record(job: Job, plan: Plan, metrics: dict[str, Any], statements: pl.DataFrame) -> None:
    """Summary, statements, pictures, and artifacts with the licence of what they come from."""
    tracking, data = job.tracking, plan.config.data
    tracking.summarise(metrics)
    record_statements(job, statements.select(RECORDED_COLUMNS))
    record_plots(job)
    origin = {"licence": data.licence, "attribution": data.attribution, "policy": plan.policy.name}
    if with_texts(plan.config):
        tracking.artifact(f"ledger-{job.folder.name}", "dataset", job.folder / "ledger.parquet", origin)
    if plan.config.tracking.model and plan.config.train:
        tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", origin | {"metrics": metrics})
