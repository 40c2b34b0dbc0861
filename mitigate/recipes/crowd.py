"""recipe=crowd: the crowd classifier, trained from scratch on people's ratings: load > train > measure > card."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.load.root import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.scorers import Scorers
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.runs.label_cache import LabelStore
from mitigate.tasks.agreement import label_described
from mitigate.tasks.crowd.figures import SCORER, accuracy_table, as_metrics, passed_table
from mitigate.tasks.crowd.texts import Texts, read_texts
from mitigate.tasks.crowd.training import train_crowd
from mitigate.tasks.crowd.unseen import label_unseen
from mitigate.triples import Scorer

HELD_OUT = ("ngram", "keyword")
SETTINGS = ("implied_weight", "decay", "false_alarms")


def run(config: DictConfig) -> float | None:
    """Train the classifier and measure it; returns its recall on polarised statements that the policy `both` passes."""
    texts = read_texts(root_with(config.data.root, ["humans", "sbic"]))
    say(f"crowd: {texts.rated.height:,} rated statements, {len(texts.implied):,} implied by posts")
    scorers = Scorers(config.score).rated(HELD_OUT)
    found = perform(
        config,
        config.recipe.name,
        texts.digest(),
        lambda job: pipeline(job, texts, scorers),
        lambda job: record(job, texts),
        uploads=["the classifier"],
    )
    return found["metrics"].facts()[f"passed/{SCORER}/recall"] if found else None


def pipeline(job: Job, texts: Texts, scorers: list[Scorer]) -> None:
    """The stages in their order; the classifier is left in the folder crowd/ of the run."""
    config = job.config
    intervals = Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    cache = LabelStore(Path(config.paths.cache) / "labels")
    heads = job.stage(
        "heads",
        train_crowd,
        texts.rated,
        texts.implied,
        _settings(config),
        using={"folder": job.folder},
        leaves=["crowd/model.safetensors", "crowd/config.json", "crowd/folds.csv"],
        may_be_kept=True,
    )
    others = job.stage("others", label_described, texts.rated, scorers, using={"cache": cache})
    using = {"folder": job.folder / "crowd", "cache": cache}
    labels = job.stage("unseen", label_unseen, others, after=[heads], using=using)
    accuracy = job.stage("accuracy", accuracy_table, labels, intervals)
    passed = job.stage("passed", passed_table, labels, [SCORER, *HELD_OUT], intervals)
    job.stage("metrics", as_metrics, accuracy, passed)


def record(job: Job, texts: Texts) -> None:
    """The figures, and the classifier with its accuracy and card."""
    metrics, folder = job.results["metrics"].facts(), job.folder / "crowd"
    accuracy, passed = job.results["accuracy"].table(), job.results["passed"].table()
    job.tracking.summarise(metrics)
    write(folder / "accuracy.csv", accuracy.with_columns(pl.col(pl.Float64).round(4)).write_csv())
    card = classifier_cards.crowd(accuracy, passed, _settings(job.config), texts.rated.height, len(texts.implied))
    write(folder / "README.md", card)
    job.tracking.artifact("crowd", "model", folder, metrics)


def _settings(config: DictConfig) -> dict[str, Any]:
    return {name: plain(config.recipe)[name] for name in SETTINGS}
