"""recipe=humans: the harms paper's human evaluation: a survey for raters (survey.py), and the figures of their ratings
beside the scorers' labels of the same statements: load > measure > report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.load.ratings import rated_sets
from mitigate.load.statements import find_root
from mitigate.measure.intervals import Bootstrap
from mitigate.recipes import reporting
from mitigate.recipes.humans import survey
from mitigate.recipes.job import Config, Job, perform, say, say_notes
from mitigate.recipes.loading import named_targets, read_target_list
from mitigate.recipes.rated_scorers import agreement
from mitigate.recipes.scorers import Scorers, label_cache
from mitigate.report import ratings as page
from mitigate.report.page import write
from mitigate.stages import as_parquet
from mitigate.tasks.ratings import figures
from mitigate.tasks.ratings.agreement import agreement_table
from mitigate.tasks.ratings.anchors import drift_table
from mitigate.tasks.ratings.answers import Ratings, label_rated_statements, read_labelled_sentences, read_survey
from mitigate.triples import LabelCache, Scorer

PAIR = ("sentences", "bias_labels")
WAYS = (
    "recipe=humans has neither statements for a survey nor ratings to read. To make a survey, set "
    "data.runs=[DIR,...], or data=statements data.path=FILE. To read ratings, set humans.survey=DIR "
    "humans.answers=[FILE.csv,...], or humans.sentences=FILE humans.bias_labels=FILE, or data.root=DIR for the harms "
    "paper's crowd."
)

TABLES = ("summary", "raters", "differences", "drift")  # stages


def run(config: Config) -> None:
    """Make a survey of runs or of a file of statements, else read the ratings that the settings name. Raises
    MitigateError for both at once, for two sources of one kind, and for half of what belongs together."""
    runs, path = bool(config.data.runs), bool(config.data.path)
    answers, labels = (
        bool(config.humans.answers),
        any(getattr(config.humans, name) for name in (*PAIR, "quality_labels")),
    )
    if (runs or path) and (answers or labels):
        raise MitigateError(
            "settings that make a survey (data.runs, data.path) and that read ratings (humans.answers, "
            "humans.sentences) are both set; set only one kind"
        )
    if (runs and path) or (answers and labels):
        one, other = ("data.runs", "data.path") if runs and path else ("humans.answers", "humans.sentences")
        raise MitigateError(f"{one} and {other} are both set, but only one is read; leave one out")
    if answers != bool(config.humans.survey):
        raise MitigateError(
            "humans.answers and humans.survey need each other; set humans.answers=[FILE.csv,...] and "
            "humans.survey=DIR, the run folder of the survey"
        )
    if labels and not all(getattr(config.humans, name) for name in PAIR):
        raise MitigateError(
            "humans.sentences and humans.bias_labels need each other; set humans.sentences=FILE and "
            "humans.bias_labels=FILE"
        )
    (survey.run if runs or path else measure_ratings)(config)


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    ratings: Ratings
    scorers: list[Scorer]  # that are compared with the raters
    intervals: Bootstrap
    cache: LabelCache

    @property
    def names(self) -> list[str]:
        """The names of the scorers."""
        return [scorer.name for scorer in self.scorers]


def measure_ratings(config: Config) -> None:
    """Read and check the ratings, and write their figures."""
    ratings = read(config)
    scorers = Scorers(config.score).rated()
    if named_targets(config) is not None:
        target_list, notices = read_target_list(config)
        ratings = replace(ratings, target_list=target_list, notices=[*ratings.notices, *notices])
    say_notes(ratings.notices)
    intervals = Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    plan = Plan(ratings, scorers, intervals, label_cache(config))
    source = digest_of(as_parquet(ratings.rated()) + ratings.target_list.content)
    name = f"{config.recipe.name}-ratings-{config.score.regard}"
    perform(config, name, source, partial(pipeline, plan=plan), partial(record, plan=plan))


def read(config: Config) -> Ratings:
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


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    ratings, intervals = plan.ratings, plan.intervals
    rated = job.stage("rated", Ratings.rated, ratings)
    labelled: dict[str, Any] = {"target_list": ratings.target_list, "using": {"cache": plan.cache}}
    labels = job.stage("labels", label_rated_statements, rated, plan.scorers, **labelled)
    compared = rated, ratings.models, intervals, ratings.target_list
    tables = {
        "summary": job.stage("summary", figures.summary, rated, ratings.sources, intervals, ratings.target_list),
        "raters": job.stage("raters", figures.raters, rated),
        "differences": job.stage("differences", figures.differences, *compared),
        "drift": job.stage("drift", drift_table, rated, ratings.by_time, ratings.target_list),
    }
    metrics = job.stage("humans", figures.figures, labels, *tables.values(), plan.names)
    job.stage("results", figures.results, *tables.values())
    job.stage(
        "report",
        write_report,
        metrics,
        ratings.sources,
        plan.names,
        tables,
        ratings.by_time[-1],
        demonstration=ratings.demonstration,
        notices=ratings.notices,
        after=[job.folder.name],
        using=lambda work: {"folder": work.folder, **reporting.about(job, {})},
    )


def record(job: Job, plan: Plan) -> None:
    """Record the figures on W&B, and print the verdict and a few tables, or with verbose=true all."""
    metrics, found = job.results["humans"].facts(), job.results["report"].facts()
    job.tracking.summarise(metrics)
    scorers = agreement(agreement_table(metrics, plan.ratings.sources, plan.names))
    reporting.say_verdict(found["verdict"], "")
    say("\n" + page.console({name: job.results[name].table() for name in TABLES}, scorers, job.brief))
    say(f"  report      {job.folder / 'humans.html'}")


def write_report(
    metrics: dict[str, Any],
    sources: list[str],
    names: list[str],
    tables: Mapping[str, pl.DataFrame],
    source: str,
    *,
    folder: Path,
    **about: Any,
) -> dict[str, Any]:
    """Write humans.html and the tables; returns the verdict. names: of the scorers; source: that of the first screen;
    about: further fields of Page."""
    frames = {**tables, "scorers": agreement_table(metrics, sources, names)}
    made = page.page(frames, source, agreement(frames["scorers"]), **about)
    write(made, folder, "humans.html")
    return {"verdict": f"{made.state}. {made.hedge}"}
