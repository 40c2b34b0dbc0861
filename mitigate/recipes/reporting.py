"""What the reports of all recipes share: provenance, and what goes to W&B."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes.job import Job, provenance
from mitigate.report.page import Stage

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


def source_of(data: DictConfig) -> str:
    """A resource with its attribution and licence, as far as they are known."""
    return ", ".join(filter(None, [data.name, data.attribution, data.licence and f"licence {data.licence}"]))


def title_of(data: Mapping[str, Any] | DictConfig) -> str:
    """What the resource that the group `data` names is called; a file of a user's own by its name."""
    return data.get("title") or (Path(data["path"]).name if data.get("path") else data["name"])


def with_texts(config: DictConfig) -> bool:
    """Whether texts go to W&B: those of a user's own only when that is wished."""
    return bool(config.tracking.statements or not config.data.own_texts)


def record_plots(job: Job) -> None:
    """Give W&B the run folder's pictures."""
    for picture in sorted((job.folder / "plots").glob("*.png")):
        job.tracking.image(f"plots/{picture.stem}", picture, picture.stem)


def record_statements(job: Job, statements: pl.DataFrame) -> None:
    """Give W&B the statements, of many an even choice, where texts may go there."""
    if with_texts(job.config) and statements.height:
        step = -(-statements.height // RECORDED_STATEMENTS)
        job.tracking.table("statements", statements.gather_every(step))
