"""recipe=crowd: the crowd classifier, trained from scratch on people's ratings: load > train > measure > card."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.load.files import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.scorers import Scorers, label_cache
from mitigate.report import classifier_cards
from mitigate.runs.files import write
from mitigate.tasks.crowd.accuracy import SCORER, accuracy_table, as_metrics, passed_table
from mitigate.tasks.crowd.training import Texts, label_unseen, read_texts, train_crowd
from mitigate.tasks.ratings.agreement import label_described
from mitigate.triples import LabelCache, Scorer

HELD_OUT = ("ngram", "keyword")
SETTINGS = ("implied_weight", "decay", "false_alarms")


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    texts: Texts
    settings: Mapping[str, Any]  # of the training
    others: list[Scorer]  # that the classifier is compared with
    intervals: Bootstrap
    cache: LabelCache


def run(config: DictConfig) -> float | None:
    """Train the classifier and measure it; returns its recall on polarised statements that the policy `both` passes."""
    recipe = plain(config.recipe)
    plan = Plan(
        texts=read_texts(root_with(config.data.root, ["humans", "sbic"])),
        settings={name: recipe[name] for name in SETTINGS},
        others=Scorers(config.score).rated(HELD_OUT),
        intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
        cache=label_cache(config),
    )
    texts, phases = plan.texts, (partial(pipeline, plan=plan), partial(record, plan=plan))
    say(f"crowd: {texts.rated.height:,} rated statements, {len(texts.implied):,} implied by posts")
    found = perform(config, config.recipe.name, texts.digest(), *phases, uploads=["the classifier"])
    return found["metrics"].facts()[f"passed/{SCORER}/recall"] if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order; the classifier is left in the folder crowd/ of the run."""
    heads = job.stage(
        "heads",
        train_crowd,
        plan.texts.rated,
        plan.texts.implied,
        plan.settings,
        using={"folder": job.folder},
        leaves=["crowd/model.safetensors", "crowd/config.json", "crowd/folds.csv"],
        may_be_kept=True,
    )
    others = job.stage("others", label_described, plan.texts.rated, plan.others, using={"cache": plan.cache})
    using = {"folder": job.folder / "crowd", "cache": plan.cache}
    labels = job.stage("unseen", label_unseen, others, after=[heads], using=using)
    accuracy = job.stage("accuracy", accuracy_table, labels, plan.intervals)
    passed = job.stage("passed", passed_table, labels, [SCORER, *HELD_OUT], plan.intervals)
    job.stage("metrics", as_metrics, accuracy, passed)


def record(job: Job, plan: Plan) -> None:
    """Record the figures, and the classifier with its accuracy and card."""
    metrics, folder, texts = job.results["metrics"].facts(), job.folder / "crowd", plan.texts
    accuracy, passed = job.results["accuracy"].table(), job.results["passed"].table()
    job.tracking.summarise(metrics)
    write(folder / "accuracy.csv", accuracy.with_columns(pl.col(pl.Float64).round(4)).write_csv())
    card = classifier_cards.crowd(accuracy, passed, plan.settings, texts.rated.height, len(texts.implied))
    write(folder / "README.md", card)
    job.tracking.artifact("crowd", "model", folder, metrics)
