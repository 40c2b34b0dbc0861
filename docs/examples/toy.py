"""recipe=toy: how many statements of a file are neutral, and which words most often end the others."""

from typing import Any

import polars as pl

import mitigate
from mitigate.recipes.config import Config, build
from mitigate.recipes.job import open_job, say


def run(config: Config) -> None:
    """Label the triples by sentiment, relations worded neutrally, and count. Each stage is a function and what it is
    given; a finished one is read from the run folder."""
    triples = build(config.data.load, "data.load").rows
    with open_job(config, f"{config.recipe.name}-{config.data.name}", triples) as job:
        labels = job.stage("labels", label, triples)
        job.stage("words", last_words, labels, top=config.recipe.top)
        metrics = job.stage("metrics", count, labels).facts()
        say(f"  {metrics['neutral']:.1f} % of {metrics['statements']:,} statements are neutral")


def label(triples: pl.DataFrame) -> pl.DataFrame:
    return mitigate.label(triples, ["sentiment"])


def last_words(labels: pl.DataFrame, top: int) -> pl.DataFrame:
    ends = labels.filter(pl.col("sentiment_neutral") != 0)["tail"].str.split(" ").list.last().rename("word")
    return ends.value_counts(sort=True).sort("count", "word", descending=[True, False]).head(top)


def count(labels: pl.DataFrame) -> dict[str, Any]:
    return {"statements": labels.height, "neutral": 100 * (labels["sentiment_neutral"] == 0).mean()}


label.version = last_words.version = count.version = "1"  # type: ignore[attr-defined]  # change it with their code
