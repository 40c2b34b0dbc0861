"""Reading ratings: load > measure > report, beside the scorers' labels of the same statements."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.load.crowd import rated_sets
from mitigate.load.root import find_root
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import reporting
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.rated_scorers import printed
from mitigate.recipes.scorers import Scorers
from mitigate.recipes.targets import list_named, wanted
from mitigate.report import ratings as page
from mitigate.report.html import save
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import as_parquet, digest_of
from mitigate.tasks import rating_figures
from mitigate.tasks.agreement import agreement_table
from mitigate.tasks.anchors import drift_table
from mitigate.tasks.ratings import Ratings, label_rated_statements, read_labelled_sentences, read_survey
from mitigate.triples import Scorer

WAYS = (
    "recipe=humans makes a survey or reads ratings. Make one: data.runs=[DIR,...], or data=statements data.path=FILE. "
    "Read: humans.survey=DIR humans.answers=[FILE.csv,...], or humans.sentences=FILE humans.bias_labels=FILE, or "
    "data.root=DIR for the harms paper's crowd."
)


def run(config: DictConfig) -> None:
    """Read and check the ratings, and write their figures."""
    ratings = read(config)
    scorers = Scorers(config.score).rated()
    if wanted(config) is not None:
        target_list, notices = list_named(config)
        ratings = replace(ratings, target_list=target_list, notices=[*ratings.notices, *notices])
    for notice in ratings.notices:
        say(f"  note: {notice}")
    source = digest_of(as_parquet(ratings.rated()) + ratings.target_list.content)
    name = f"{config.recipe.name}-ratings-{config.score.regard}"
    phases = partial(pipeline, ratings=ratings, scorers=scorers), partial(record, ratings=ratings, scorers=scorers)
    perform(config, name, source, *phases)


def read(config: DictConfig) -> Ratings:
    """The ratings that the settings name. Raises MitigateError when they name none, and as the readers do."""
    settings = config.humans
    if settings.answers:
        return read_survey(Path(settings.survey), [Path(path) for path in settings.answers], config.data.on_bad_line)
    if settings.sentences:
        files = [settings.sentences, settings.bias_labels, settings.quality_labels]
        name = Path(settings.sentences).stem.removesuffix("_sentences")
        return read_labelled_sentences({name: [Path(path) for path in files if path]})
    root = find_root(config.data.root)
    if root is None:
        raise MitigateError(WAYS)
    return read_labelled_sentences(rated_sets(root / "humans"))


def pipeline(job: Job, ratings: Ratings, scorers: list[Scorer]) -> None:
    """The stages in their order."""
    intervals = Bootstrap(resamples=job.config.measure.resamples, seed=job.config.seed)
    using = {"cache": LabelStore(Path(job.config.paths.cache) / "labels")}
    rated = job.stage("rated", Ratings.rated, ratings)
    labels = job.stage("labels", label_rated_statements, rated, scorers, target_list=ratings.target_list, using=using)
    summary = job.stage("summary", rating_figures.summary, rated, ratings.sources, intervals, ratings.target_list)
    raters = job.stage("raters", rating_figures.raters, rated)
    differences = job.stage(
        "differences", rating_figures.differences, rated, ratings.models, intervals, ratings.target_list
    )
    drift = job.stage("drift", drift_table, rated, ratings.by_time, ratings.target_list)
    names = [scorer.name for scorer in scorers]
    metrics = job.stage("humans", rating_figures.figures, labels, summary, raters, differences, drift, names)
    tables = {"summary": summary, "raters": raters, "differences": differences, "drift": drift}
    page_of = partial(
        page.Results,
        name=job.folder.name,
        command=job.command,
        demonstration=ratings.demonstration,
        notices=ratings.notices,
    )
    job.stage(
        "report",
        write_report,
        metrics,
        ratings.sources,
        names,
        **tables,
        using=lambda _: {"folder": job.folder, "page_of": partial(page_of, facts=reporting.facts(job, {}))},
        leaves=["humans.html", "tables"],
    )


def record(job: Job, ratings: Ratings, scorers: list[Scorer]) -> None:
    """The figures on W&B, and in short on the terminal."""
    metrics = job.results["humans"].facts()
    job.tracking.summarise(metrics)
    tables = [job.results[name].table() for name in ("summary", "raters", "differences", "drift")]
    agreement = agreement_table(metrics, ratings.sources, [scorer.name for scorer in scorers])
    say("\n" + page.console(*tables) + "\n\n" + printed(agreement))
    say(f"  report      {job.folder / 'humans.html'}")


def write_report(
    metrics: dict[str, Any],
    sources: list[str],
    names: list[str],
    *,
    summary: pl.DataFrame,
    raters: pl.DataFrame,
    differences: pl.DataFrame,
    drift: pl.DataFrame,
    folder: Path,
    page_of: Callable[..., page.Results],
) -> dict[str, Any]:
    """Write humans.html and the tables; returns which of these there are. names: of the scorers."""
    scorers = agreement_table(metrics, sources, names)
    frames = {"summary": summary, "raters": raters, "differences": differences, "drift": drift, "scorers": scorers}
    page.write(folder / "humans.html", page_of(**frames))
    save(folder, frames)
    return {"tables": [name for name, frame in frames.items() if frame.height]}
