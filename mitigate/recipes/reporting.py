"""What the reports of all recipes share: provenance, and what goes to W&B."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.job import Job, is_brief, is_said, provenance, say
from mitigate.report.page import Stage
from mitigate.tracking.charts import Chart, compared, summary
from mitigate.tracking.headlines import figures, headlines

NOT_GIVEN = "not given"
NOTHING: Mapping[str, str] = {}
DESCRIBED = {"data": ("attribution", "licence", "demonstration"), "model": ("base", "licence")}
SHOW_TEXTS = ["regions", "bars", "shown", "words", "peers"]  # groups of pictures with names of targets, or tails
RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parquet files have them all


def stages(job: Job) -> list[Stage]:
    """The stages so far, as a page lists them."""
    return [Stage(result.stage, result.seconds, result.from_cache) for result in job.run.results]


def facts(job: Job, more: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a run's page: command, versions, seed, what is given besides, memory, and the stages whose
    results stay although their code has changed (code=keep)."""
    peak = max((result.peak_memory for result in job.run.results), default=0)
    kept = {"kept although the code has changed": ", ".join(job.kept)} if job.kept else {}
    return provenance(job.config, {**more, **kept, "peak memory": f"{peak / 2**30:.2f} GiB"})


def about(job: Job, more: Mapping[str, Any]) -> dict[str, Any]:
    """Where a page comes from: the command, the stages so far, and the provenance with what is given besides."""
    return {"command": job.command, "stages": stages(job), "facts": facts(job, more)}


def origin(config: DictConfig, groups: Sequence[str] = tuple(DESCRIBED)) -> dict[str, dict[str, Any]]:
    """What a page and a model's card say of the data, and of the model where it has a part in them; `source` is the
    attribution, or else what the data is called. Raises MitigateError where the configuration does not say it, which
    may be that of a user."""
    lacking = [f"{group}.{name}" for group in groups for name in DESCRIBED[group] if name not in config[group]]
    if lacking:
        raise MitigateError(
            f"the report needs {', '.join(lacking)}; add what is missing to the YAML file of the group, null where "
            "there is nothing to say"
        )
    found = {group: {name: config[group][name] for name in DESCRIBED[group]} for group in groups}
    return found | {"data": {**found["data"], "source": config.data.attribution or title_of(config.data)}}


def source_of(data: Mapping[str, Any] | DictConfig) -> str:
    """A resource with its attribution and licence."""
    known = [data["name"], data["attribution"], f"licence {data['licence'] or NOT_GIVEN}"]
    return ", ".join(filter(None, known))


def title_of(data: Mapping[str, Any] | DictConfig) -> str:
    """What the resource that the group `data` names is called; a file of a user's own by its name."""
    return data.get("title") or (Path(data["path"]).name if data.get("path") else data["name"])


def say_verdict(verdict: str, cost: str) -> None:
    """The finding in a sentence and what it cost, on the terminal; "" is left out."""
    for name, sentence in {"verdict": verdict, "cost": cost}.items():
        if sentence:
            say(f"  {name:<10}  {sentence}")


def say_notices(config: DictConfig, notices: Sequence[str]) -> None:
    """The notices on the terminal, or how many of them the page has; of a sweep's jobs the first says that."""
    if not is_brief(config):
        for notice in notices:
            say(f"  note: {notice}")
    elif notices and not is_said(config):
        count = "one notice" if len(notices) == 1 else f"{len(notices)} notices"
        say(f"  notes       {count} on the page; verbose=true prints them, and every figure")


def with_texts(config: DictConfig) -> bool:
    """Whether texts go to W&B: those of a user's own only when that is wished."""
    return bool(config.tracking.statements or not config.data.own_texts)


def record_metrics(
    job: Job,
    metrics: Mapping[str, Any],
    baseline: Mapping[str, Any] | None = None,
    *,
    also: Mapping[str, str] = NOTHING,
) -> None:
    """Give W&B the headlines and `also`, such as the verdict, as the run's values, and all metrics as a table, beside
    the baseline's if there is one."""
    values = {row.name: value for row, value in headlines(metrics, job.config.recipe.name).items()}
    job.tracking.summarise(values | dict(also))
    job.tracking.table("metrics", figures(metrics, baseline))


def record_charts(job: Job, charts: Mapping[str, Chart]) -> None:
    """Give W&B charts by name."""
    for name, chart in charts.items():
        job.tracking.chart(name, chart)


def record_differences(
    job: Job, rows: pl.DataFrame, first: str = "regard", *, also: Mapping[str, str] = NOTHING
) -> None:
    """Give W&B how far headlines lie apart, charts.DIFFERENCES, as values with `also`, a table and charts. first: the
    scorer in regard's place."""
    job.tracking.summarise(summary(rows) | dict(also))
    job.tracking.table("differences", rows)
    record_charts(job, compared(rows, first))


def record_plots(job: Job) -> None:
    """Give W&B the run folder's pictures with their captions; those that show texts where texts may go there."""
    folder = job.folder / "plots"
    if not (folder / "captions.csv").is_file():
        return
    listed = pl.read_csv(folder / "captions.csv", infer_schema=False, glob=False)
    shown = listed if with_texts(job.config) else listed.filter(~pl.col("group").is_in(SHOW_TEXTS))
    rows = shown.sort("picture").select("picture", "caption").iter_rows()
    job.tracking.pictures((name, caption, folder / f"{name}.png") for name, caption in rows)


def record_statements(job: Job, statements: pl.DataFrame) -> None:
    """Give W&B the statements, of many an even choice, where texts may go there."""
    if with_texts(job.config) and statements.height:
        step = -(-statements.height // RECORDED_STATEMENTS)
        job.tracking.table("statements", statements.gather_every(step))
