"""recipe=agreement: how far the scorers agree with people on the crowd labels of the harms paper (its Tables 2 and 3).
load > verbalise > score > measure."""

import os
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.label_cache import LabelStore
from mitigate.load.crowd import read_crowd
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.rated import printed
from mitigate.recipes.scorers import build_rated_scorers
from mitigate.store import as_parquet, digest_of
from mitigate.tasks.agreement import agreement_table, label_rated, mask_rated, measure_agreement

STAGES = ("labels", "metrics")


def run(config: DictConfig) -> None:
    """Label the sentences that people rated, whole demographic words masked, and compare."""
    crowd = read(config.data.root)
    scorers = build_rated_scorers(config.score)
    source = digest_of(as_parquet(crowd.with_columns(pl.col("votes").cast(pl.List(pl.String)).list.join(" "))))
    using = {"cache": LabelStore(Path(config.paths.cache) / "labels")}

    def pipeline(job: Job) -> dict[str, Any]:
        labels = job.stage("labels", label_rated, crowd, scorers, using=using)
        metrics = job.stage("metrics", measure_agreement, labels)
        if not job.run.dry:
            write(job.folder / "agreement.csv", agreement_table(metrics.facts()).write_csv())
            job.tracking.summarise(metrics.facts())
        return metrics.facts()

    if metrics := perform(config, f"{config.recipe.name}-{config.score.regard}", source, STAGES, pipeline):
        say(printed(agreement_table(metrics)))


def read(root: str | None) -> pl.DataFrame:
    """The crowd's sentences: resource, sentence, votes (-1, 0, 1), masked."""
    place = root or os.environ.get("MITIGATE_DATA")
    if not place:
        raise MitigateError("recipe=agreement reads people's ratings: give the folder of humans/ with data.root=DIR")
    return mask_rated(read_crowd(Path(place) / "humans"))
