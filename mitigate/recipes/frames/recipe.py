"""recipe=frames: Social Bias Frames. load > train > measure > report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import torch

from mitigate.errors import MitigateError, check_installed
from mitigate.load.statements import root_with
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import of_study
from mitigate.recipes import reporting
from mitigate.recipes.job import Config, Job, perform, say
from mitigate.report import frames as page
from mitigate.report.page import write
from mitigate.stages import Result, digest_of_values, in_folder
from mitigate.tasks.frames import posts as of_posts
from mitigate.tasks.frames.figures import (
    FOLDS,
    MODEL,
    as_metrics,
    classification_table,
    published,
    text_table,
    unmeasured,
)
from mitigate.tasks.frames.forms import Start, check_start, fold_numbers, train_base, train_fold
from mitigate.tasks.frames.predictions import predict_base, predict_baselines, predict_folds, predict_texts
from mitigate.tasks.frames.scorer import choose_scorer, flip_rates
from mitigate.tasks.ratings.paper_statements import read_rated
from mitigate.train.frames import Settings
from mitigate.words.frames import NAMES
from models.digests import sha256_of
from models.hf_layouts import WEIGHTS

FOLDER, RATED = "sbic", "humans"
SOURCE = "the Social Bias Inference Corpus (docs/frames.md lists its files)"
RESAMPLES = 2000  # at most: there are thousands of posts
DATA = "Social Bias Inference Corpus (Sap et al. 2020), CC BY 4.0"


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    annotations: pl.DataFrame
    posts: pl.DataFrame
    start: Start
    weights: Path | None
    settings: Settings
    fold_settings: Settings
    samples: int  # that texts are chosen from
    device: str
    intervals: Bootstrap  # over posts
    source: str  # the hash of posts and start
    rated: pl.DataFrame | None  # statements about targets (sentence, target, category); None where humans/ is not there

    @property
    def folds(self) -> Sequence[int]:
        """The folds that are trained."""
        return fold_numbers(self.posts)


def make_plan(config: Config) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    check_installed("recipe=frames", "frames", "sacrebleu", "rouge_score")
    how = config.frames
    if how.device == "cuda" and not torch.cuda.is_available():
        raise MitigateError("frames.device=cuda: PyTorch finds no GPU on this machine; set frames.device=cpu or auto")
    weights = None if how.weights is None else Path(how.weights)
    start = Start(how.start, how.reading, how.dropout, _digest(how.start, weights))
    check_start(how.start, weights)
    shared = {"batch_size": how.batch_size, "seed": config.seed}
    shared["checkpoint_every"] = how.checkpoint_every
    root = root_with(config.data.root, [FOLDER], SOURCE)
    annotations, posts = of_posts.read_posts(root / FOLDER)
    of_posts.check(posts)
    return Plan(
        annotations=annotations,
        posts=posts,
        start=start,
        weights=weights,
        settings=Settings(epochs=how.epochs, lr=how.lr, **shared),
        fold_settings=Settings(epochs=how.fold_epochs, lr=how.fold_lr, **shared),
        samples=how.samples,
        device=how.device,
        intervals=Bootstrap(resamples=min(config.measure.resamples, RESAMPLES), seed=config.seed),
        source=digest_of_values(annotations, posts, start),
        rated=read_rated(root).select("sentence", "target", "category") if (root / RATED).is_dir() else None,
    )


def _digest(kind: str, weights: Path | None) -> str:
    """The hash of the weights that the training starts from. Raises MitigateError where there are none."""
    if kind == "minilm":
        return ""  # the project hashes its own encoder
    if weights is None or not (weights / WEIGHTS).is_file():
        raise MitigateError(
            f"frames.start=model needs frames.weights=DIR with {WEIGHTS} of a GPT-1 or GPT-2; found {weights}"
        )
    return sha256_of(weights / WEIGHTS)


def run(config: Config) -> float | None:
    """Train, measure and report; returns the mean F1 over classifications, by which the paper chooses settings."""
    plan = make_plan(config)
    parts = plan.posts["split"].value_counts(sort=True).iter_rows()
    say("  posts: " + ", ".join(f"{split} {count:,}" for split, count in parts))
    found = perform(
        config,
        f"frames-{config.frames.start}-seed{config.seed}",
        plan.source,
        partial(pipeline, plan=plan),
        record,
        uploads=["the model that the scorer uses"],
    )
    return found["metrics"].facts()["f1"] if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    posts, seed, here = plan.posts, plan.settings.seed, in_folder()
    base, folds = train(job, plan)
    how = plan.samples, seed
    predicted = {MODEL: job.stage("predict", predict_base, posts, *how, after=[base], using=here)}
    if plan.folds:
        of_folds = partial(predict_folds, posts, plan.folds)
        predicted[FOLDS] = job.stage("predict_folds", of_folds, *how, after=folds, using=here)
    baselines = job.stage("baselines", predict_baselines, posts, seed)
    generated = predicted.get(FOLDS, predicted[MODEL])
    baseline_texts = job.stage("baseline_texts", predict_texts, posts, plan.folds, generated)
    classified = job.stage("classified", classification_table, posts, predicted, baselines, plan.intervals)
    texts = job.stage("texts", text_table, posts, predicted, baseline_texts, plan.intervals)
    chosen = job.stage(
        "scorer", choose_scorer, posts, predicted[MODEL], predicted.get(FOLDS), after=[base, *folds[:1]], using=here
    )
    if plan.rated is not None:
        values = flip_rates, plan.rated, seed, plan.intervals
        job.stage("flips", *values, after=[chosen], using=here)
    corpus = of_posts.statistics(plan.annotations, posts)
    job.stage("results", of_study, job.stage("metrics", as_metrics, classified, texts, corpus, chosen))
    report(job, plan, predicted)


def train(job: Job, plan: Plan) -> tuple[Result, list[Result]]:
    """The training on the training split, and a further one from there for each fold."""
    base = job.stage(
        "base",
        train_base,
        plan.posts,
        plan.start,
        plan.settings,
        using=job.training("base", accelerator=plan.device, weights=plan.weights),
    )
    folds = [
        job.stage(
            f"fold_{fold}",
            train_fold,
            plan.posts,
            fold,
            plan.fold_settings,
            after=[base],
            using=job.training(f"fold_{fold}", accelerator=plan.device),
        )
        for fold in plan.folds
    ]
    return base, folds


def report(job: Job, plan: Plan, predicted: dict[str, Result]) -> None:
    """Write the page and its tables, from the stages so far."""
    done = job.results
    tables = {name: done.get(name) for name in ("classified", "texts", "flips")}
    corpus = {"sources": of_posts.sources(plan.posts), "categories": of_posts.categories(plan.annotations)}
    job.stage(
        "report",
        write_report,
        done["metrics"],
        plan.posts,
        predicted,
        {**tables, **corpus},
        after=[job.folder.name],
        using=in_folder(about=reporting.about(job, {"data": DATA, "data fingerprint": plan.source})),
    )


def record(job: Job) -> None:
    """Record the figures and the scorer's model on W&B, and print the figures."""
    metrics = job.results["metrics"].facts()
    figures = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
    job.tracking.summarise(figures)
    tables = {name: job.results[name].table() for name in ("classified", "texts")}
    for name, table in tables.items():
        job.tracking.table(name, table)
    job.tracking.artifact("frames", "model", job.folder / metrics["scorer/model"], figures)
    reporting.say_verdict(job.results["report"].facts()["verdict"], "")
    say("\n" + page.console(**tables, published=published(), brief=job.brief))
    say(f"  report      {job.folder / 'frames.html'}")


EXAMPLES = 12


def write_report(
    metrics: Mapping[str, Any],
    posts: pl.DataFrame,
    predicted: Mapping[str, pl.DataFrame],
    tables: Mapping[str, Any],
    *,
    folder: Path,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the page and its tables. tables: classified, texts, flips (None: not measured), sources and
    categories. Returns the state with its hedge, and the values that cannot be measured on these posts."""
    lacking, has_folds = unmeasured(posts), len(predicted) > 1
    shown = {**tables, "examples": examples(posts, list(predicted.values())[-1])}
    said = notices(posts, lacking, has_folds=has_folds)
    made = page.page(shown, published(), metrics, notices=said, **about)
    write(made, folder, "frames.html")
    return {"verdict": f"{made.state}. {made.hedge}", "unmeasured": lacking}


def notices(posts: pl.DataFrame, lacking: list[str], *, has_folds: bool) -> list[str]:
    """Notices of limits of the figures."""
    found = []
    if lacking:
        names = ", ".join(NAMES[name] for name in lacking)
        found.append(
            f"These posts have no values of: {names}. The model does not learn them, and they are not measured."
        )
    if has_folds:
        found.append(
            "Implied statements exist for original test posts only. They are learnt and measured in five folds of "
            "these posts, which is not the paper's split."
        )
    if posts["files"].list.contains("frames_test_posts.csv").any():
        found.append(
            "No file marks posts that target no group. Posts that are not offensive count as such, and so do "
            "offensive test posts of offensive_test.csv that no other file has."
        )
    return found


def examples(posts: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    """Some test posts with generated texts and references: post, generated, annotators. They are not selected by
    content: every n-th in the order of keys."""
    with_texts = posts.filter(pl.col("split") == "test", pl.col("implied").list.len() > 0)
    joined = with_texts.join(predicted.select("key", of="group", said="implied"), on="key", maintain_order="left")
    shown = joined.gather_every(max(1, joined.height // EXAMPLES)).head(EXAMPLES)
    groups, implied = (pl.col(name).list.join("; ") for name in ("groups", "implied"))
    return shown.select(
        "post", generated=pl.format("{}: {}", "of", "said"), annotators=pl.format("{}: {}", groups, implied)
    )
