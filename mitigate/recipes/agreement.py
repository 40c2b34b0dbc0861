"""How far scorers agree with people: the harms paper's Tables 2 and 3, beside the paper's own figures and a scorer
that always says neutral. load > verbalise > score > measure."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from omegaconf import DictConfig

from mitigate import targets
from mitigate import verbalise as verbalising
from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.label_cache import LabelStore
from mitigate.load.crowd import RESOURCES, read_crowd
from mitigate.measure import agreement
from mitigate.measure.agreement import classification, fold_other, majority, vote_counts
from mitigate.recipes.job import Job, build, perform, say
from mitigate.recipes.scorers import build_scorer
from mitigate.report.proxies import ALWAYS_NEUTRAL, paper
from mitigate.score import labels as labelling
from mitigate.score.labels import label_column
from mitigate.store import as_parquet, digest_of
from mitigate.triples import NEUTRAL, ROLES, Scorer
from mitigate.verbalise import mask_column

STAGES = ("labels", "metrics")
SCORERS = (*ROLES, "keyword")
PER_RATING, BY_MAJORITY = "rating", "majority"
FIGURES = {  # measure -> its heading
    "accuracy": "acc",
    "balanced_accuracy": "bal.acc",
    "macro_f1": "macroF1",
    "kappa": "kappa",
    **{
        f"{name}/{figure}": f"{name[:3]} {figure[0].upper()}"
        for name in ("favouritism", "prejudice")
        for figure in ("recall", "precision", "f1")
    },
}


def run(config: DictConfig) -> None:
    """Label the sentences that people judged, whole demographic words masked, and compare."""
    crowd = read(config.data.root)
    scorers = judged_scorers(config)
    cache = LabelStore(Path(config.paths.cache) / "labels")
    source = digest_of(as_parquet(crowd.with_columns(pl.col("votes").cast(pl.List(pl.String)).list.join(" "))))

    def pipeline(job: Job) -> dict[str, Any]:
        labels = job.old_stage(
            "labels",
            lambda _: label(crowd, scorers, cache),
            needs=[source],
            settings=[scorer.fingerprint for scorer in scorers],
            code=(targets, verbalising, labelling),
        )
        metrics = job.old_stage("metrics", lambda _: measure(labels.table()), needs=[labels.digest], code=[agreement])
        if not job.run.dry:
            write(job.folder / "agreement.csv", table(metrics.facts()).write_csv())
            job.tracking.summarise(metrics.facts())
        return metrics.facts()

    if metrics := perform(config, f"{config.recipe.name}-{config.score.regard}", source, STAGES, pipeline):
        say(printed(table(metrics)))


def read(root: str | None) -> pl.DataFrame:
    """The crowd's sentences: resource, sentence, votes (-1, 0, 1), masked."""
    place = root or os.environ.get("MITIGATE_DATA")
    if not place:
        raise MitigateError("recipe=agreement reads people's judgements: give the folder of humans/ with data.root=DIR")
    return read_crowd(Path(place) / "humans").with_columns(mask_column("sentence", "token").alias("masked"))


def judged_scorers(config: DictConfig) -> list[Scorer]:
    """Those that people's judgements are compared with: SCORERS."""
    return [*(build_scorer(config.score, role) for role in ROLES), build(config.score.scorers.keyword)]


def label(crowd: pl.DataFrame, scorers: list[Scorer], cache: LabelStore) -> pl.DataFrame:
    """The sentences with each scorer's labels."""
    said = [pl.Series(scorer.name, label_column(crowd["masked"], scorer, cache).label) for scorer in scorers]
    return crowd.with_columns(*said, pl.lit(NEUTRAL, dtype=pl.Int8).alias(ALWAYS_NEUTRAL))


def measure(labels: pl.DataFrame) -> dict[str, Any]:
    """{resource}/{scorer}/{rating|majority}/{figure}: against every single judgement, and against what most of a
    sentence's judges said; "other" counts as neutral."""
    found: dict[str, Any] = {}
    for (resource,), rows in labels.group_by("resource", maintain_order=True):
        votes = rows["votes"].to_list()
        sizes = [len(given) for given in votes]
        ratings = np.concatenate(votes)
        most = majority(vote_counts(np.repeat(rows["sentence"].to_list(), sizes).tolist(), ratings))
        for scorer in (*SCORERS, ALWAYS_NEUTRAL):
            said = fold_other(rows[scorer].to_numpy())
            for against, figures in (
                (PER_RATING, classification(ratings, np.repeat(said, sizes))),
                (BY_MAJORITY, classification(most, said)),
            ):
                found |= {f"{resource}/{scorer}/{against}/{figure}": value for figure, value in figures.items()}
        found |= {f"{resource}/sentences": len(votes), f"{resource}/ratings": len(ratings)}
    return found


def table(metrics: dict[str, Any], resources: Iterable[str] = RESOURCES) -> pl.DataFrame:
    """A row for each resource, scorer and way of comparing, the paper's rows among them; a column for each figure."""
    stated = paper()
    rows = []
    for resource in resources:
        for scorer in (*SCORERS, ALWAYS_NEUTRAL):
            for against in (PER_RATING, BY_MAJORITY):
                figures = {name: metrics[f"{resource}/{scorer}/{against}/{name}"] for name in FIGURES}
                rows.append({"resource": resource, "scorer": scorer, "against": against, **figures})
            if (resource, scorer) in stated:
                figures = {name: stated[resource, scorer].get(name) for name in FIGURES}
                rows.append({"resource": resource, "scorer": scorer, "against": "the paper", **figures})
    return pl.DataFrame(rows, infer_schema_length=None)


def printed(frame: pl.DataFrame) -> str:
    """The table for the terminal."""
    width = max(map(len, frame["resource"]))
    lines = [" " * (width + 27) + "".join(f"{heading:>9}" for heading in FIGURES.values())]
    for row in frame.rows(named=True):
        cells = "".join(f"{'' if row[name] is None else format(row[name], '.3f'):>9}" for name in FIGURES)
        lines.append(f"{row['resource']:<{width}}  {row['scorer']:<15}{row['against']:<10}{cells}")
    return "\n".join(lines)
