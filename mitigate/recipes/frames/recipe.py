"""recipe=frames: Social Bias Frames. load > train > measure > report."""

from functools import partial

from omegaconf import DictConfig

from mitigate.recipes import reporting
from mitigate.recipes.frames.page import write_report
from mitigate.recipes.frames.plan import Plan, make_plan
from mitigate.recipes.job import Job, perform, say
from mitigate.report.frames import console
from mitigate.runs.store import Result
from mitigate.score.frames import FILE
from mitigate.tasks.frames.figures import FOLDS, MODEL, as_metrics, classification_table, text_table
from mitigate.tasks.frames.posts import categories, sources, statistics
from mitigate.tasks.frames.predictions import predict_base, predict_baselines, predict_folds, predict_texts
from mitigate.tasks.frames.scorer import choose_scorer, flip_rates
from mitigate.tasks.frames.training import train_base, train_fold

DATA = "Social Bias Inference Corpus (Sap et al. 2020), CC BY 4.0"


def run(config: DictConfig) -> float | None:
    """Train, measure and report; returns the mean F1 over classifications, by which the paper chooses settings."""
    plan = make_plan(config)
    parts = plan.posts["split"].value_counts(sort=True).iter_rows()
    say("  posts: " + ", ".join(f"{split} {count:,}" for split, count in parts))
    found = perform(
        config,
        f"frames-{config.frames.start}-seed{config.seed}",
        plan.source,
        lambda job: pipeline(job, plan),
        record,
        uploads=["the model that the scorer uses"],
    )
    return found["metrics"].facts()["f1"] if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order."""
    posts, seed, here = plan.posts, plan.settings.seed, {"folder": job.folder}
    base, folds = train(job, plan)
    how = plan.samples, seed
    predicted = {MODEL: job.stage("predict", predict_base, posts, *how, after=[base], using=here)}
    if plan.folds:
        of_folds = partial(predict_folds, posts, plan.folds)
        predicted[FOLDS] = job.stage("predict_folds", of_folds, *how, after=folds, using=here)
    baselines = job.stage("baselines", predict_baselines, posts, seed)
    said = predicted.get(FOLDS, predicted[MODEL])
    told = job.stage("baseline_texts", predict_texts, posts, plan.folds, said)
    classified = job.stage("classified", classification_table, posts, predicted, baselines, plan.intervals)
    texts = job.stage("texts", text_table, posts, predicted, told, plan.intervals)
    chosen = job.stage(
        "scorer",
        choose_scorer,
        posts,
        predicted[MODEL],
        predicted.get(FOLDS),
        after=[base, *folds[:1]],
        using=here,
        leaves=[FILE],
    )
    flips = None
    if plan.rated is not None:
        flips = job.stage(
            "flips", flip_rates, plan.rated, seed, plan.intervals, after=[chosen], using=here, may_be_kept=True
        )
    corpus = statistics(plan.annotations, posts)
    metrics = job.stage("metrics", as_metrics, classified, texts, corpus, chosen)
    report(job, plan, predicted, classified, texts, flips, metrics)


def train(job: Job, plan: Plan) -> tuple[Result, list[Result]]:
    """The training on the training split, and from there one for each fold."""
    base = job.stage(
        "base",
        train_base,
        plan.posts,
        plan.start,
        plan.settings,
        using=lambda work: {
            **job.training(plan.device, "base", work.fingerprint),
            "weights": plan.weights,
        },
        leaves=["models/base"],
        scratch=["checkpoints/base"],
        may_be_kept=True,
    )
    folds = [
        job.stage(
            f"fold_{fold}",
            train_fold,
            plan.posts,
            fold,
            plan.fold_settings,
            after=[base],
            using=lambda work, fold=fold: job.training(plan.device, f"fold_{fold}", work.fingerprint),
            leaves=[f"models/fold_{fold}"],
            scratch=[f"checkpoints/fold_{fold}"],
            may_be_kept=True,
        )
        for fold in plan.folds
    ]
    return base, folds


def report(
    job: Job,
    plan: Plan,
    predicted: dict[str, Result],
    classified: Result,
    texts: Result,
    flips: Result | None,
    metrics: Result,
) -> None:
    """The page, its tables and the card."""
    job.stage(
        "report",
        write_report,
        metrics,
        plan.posts,
        predicted,
        classified,
        texts,
        flips,
        sources(plan.posts),
        categories(plan.annotations),
        reading=plan.start.reads,
        start=plan.start.kind,
        seed=plan.settings.seed,
        using=lambda work: {
            "folder": work.folder,
            "needs": job.needs,
            "about": {
                "demonstration": False,
                **reporting.about(job, {"data": DATA, "data fingerprint": plan.source}),
            },
        },
        leaves=["frames.html", "README.md", "tables"],
    )


def record(job: Job) -> None:
    """The figures, on W&B also the scorer's model."""
    metrics = job.results["metrics"].facts()
    figures = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
    job.tracking.summarise(figures)
    tables = {name: job.results[name].table() for name in ("classified", "texts")}
    for name, table in tables.items():
        job.tracking.table(name, table)
    job.tracking.artifact("frames", "model", job.folder / metrics["scorer/model"], figures)
    say("\n" + console(tables["classified"], tables["texts"]))
    say(f"  report      {job.folder / 'frames.html'}")
