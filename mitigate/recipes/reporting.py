"""Provenance for the reports of all recipes, and records in W&B."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.finished import source_of as source_of
from mitigate.load.settings import Data
from mitigate.measure.results import Results
from mitigate.recipes.job import Config, Job, say
from mitigate.tracking.headlines import Chart, headlines

NOTHING: Mapping[str, str] = {}
DESCRIBED = {"data": ("attribution", "licence", "demonstration"), "model": ("base", "licence")}
SHOW_TEXTS = ["regions", "bars", "shown", "professions"]  # groups of pictures that name targets or professions
RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parquet files have them all


def about(job: Job, more: Mapping[str, Any]) -> dict[str, Any]:
    """The origin of a page: the command, the stages so far, and the provenance with what is given besides."""
    stages = [
        {"name": one.stage, "seconds": one.seconds, "result": "cached" if one.from_cache else "computed"}
        for one in job.run.results
    ]
    return {"name": job.folder.name, "command": job.command, "stages": stages, "facts": job.provenance(more)}


def origin(config: Config, groups: Sequence[str] = tuple(DESCRIBED)) -> dict[str, dict[str, Any]]:
    """The description of data and model for a page and a model's card; `source` is the data's attribution, or else its
    title."""
    found = {group: {name: getattr(getattr(config, group), name) for name in DESCRIBED[group]} for group in groups}
    return found | {"data": {**found["data"], "source": config.data.attribution or title_of(config.data)}}


def title_of(data: Data) -> str:
    """The title of the resource that the group `data` names; for a file of a user's own its name."""
    return data.title or (Path(data.path).name if data.path else data.name)


def say_verdict(verdict: str, cost: str) -> None:
    """Print the finding in a sentence and its cost; "" is left out."""
    for name, sentence in {"verdict": verdict, "cost": cost}.items():
        if sentence:
            say(f"  {name:<10}  {sentence}")


def record_metrics(
    job: Job,
    metrics: Results,
    baseline: Mapping[str, Any] | None = None,
    *,
    also: Mapping[str, str] = NOTHING,
) -> None:
    """Give W&B the headlines and `also`, such as the verdict, as the run's values, and all metrics as a table, beside
    the baseline's if there is one."""
    values = {row.name: value for row, value in headlines(metrics).items()}
    job.tracking.summarise(values | dict(also))
    job.tracking.table("metrics", metrics.shown(baseline))


def record_charts(job: Job, charts: Mapping[str, Chart]) -> None:
    """Give W&B charts by name."""
    for name, chart in charts.items():
        job.tracking.chart(name, chart)


def record_plots(job: Job) -> None:
    """Give W&B the run folder's pictures with their captions; those that show texts only where texts may go there."""
    folder = job.folder / "plots"
    if not (folder / "captions.csv").is_file():
        return
    listed = pl.read_csv(folder / "captions.csv", infer_schema=False, glob=False)
    shown = listed if job.records_texts else listed.filter(~pl.col("group").is_in(SHOW_TEXTS))
    rows = shown.sort("picture").select("picture", "caption").iter_rows()
    job.tracking.pictures((name, caption, folder / f"{name}.png") for name, caption in rows)


def record_statements(job: Job, statements: pl.DataFrame) -> None:
    """Give W&B the statements, of many an even choice, where texts may go there."""
    if job.records_texts and statements.height:
        step = -(-statements.height // RECORDED_STATEMENTS)
        job.tracking.table("statements", statements.gather_every(step))
