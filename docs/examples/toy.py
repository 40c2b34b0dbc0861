"""recipe=toy: how many statements of a file are neutral, and which words most often end the others."""

from typing import Any

import polars as pl

import mitigate
from mitigate.recipes.job import Config, Job, build, perform, say


def run(config: Config) -> None:
    """Label the triples by sentiment, relations worded neutrally, and count."""
    triples = build(config.data.load, "data.load").rows
    name = f"{config.recipe.name}-{config.data.name}"
    if found := perform(config, name, triples, lambda job: pipeline(job, triples, config.recipe.top)):
        metrics = found["metrics"].facts()
        say(f"  {metrics['neutral']:.1f} % of {metrics['statements']:,} statements are neutral")


def pipeline(job: Job, triples: pl.DataFrame, top: int) -> None:
    """The stages: each is a function and what it is given. A finished one is read from the run folder."""
    labels = job.stage("labels", label, triples)
    job.stage("words", last_words, labels, top=top)
    job.stage("metrics", count, labels)


def label(triples: pl.DataFrame) -> pl.DataFrame:
    return mitigate.label_statements(triples, mitigate.default_scorers(["sentiment"]))


def last_words(labels: pl.DataFrame, top: int) -> pl.DataFrame:
    ends = labels.filter(pl.col("sentiment_neutral") != 0)["tail"].str.split(" ").list.last().rename("word")
    return ends.value_counts(sort=True).sort("count", "word", descending=[True, False]).head(top)


def count(labels: pl.DataFrame) -> dict[str, Any]:
    return {"statements": labels.height, "neutral": 100 * (labels["sentiment_neutral"] == 0).mean()}


label.version = last_words.version = count.version = "1"  # type: ignore[attr-defined]  # change it with their code
