"""Provenance for the reports of all recipes, and records in W&B."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from mitigate.finished import source_of as source_of
from mitigate.measure.results import Results
from mitigate.recipes.config import title_of as title_of
from mitigate.recipes.job import Job, say
from mitigate.tracking.headlines import Chart, headlines

NOTHING: Mapping[str, str] = {}
SHOW_TEXTS = ["regions", "bars", "shown", "professions"]  # groups of pictures that name targets or professions
RECORDED_STATEMENTS = 20_000  # W&B's tables are slow beyond; the parquet files have them all


def about(job: Job, more: Mapping[str, Any]) -> dict[str, Any]:
    """The origin of a page: the command, the stages so far, and the provenance with what is given besides."""
    stages = [
        {"name": one.stage, "seconds": one.seconds, "result": "cached" if one.from_cache else "computed"}
        for one in job.run.results
    ]
    return {"name": job.folder.name, "command": job.command, "stages": stages, "facts": job.provenance(more)}


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
