"""Reading what people said: load > measure > report, beside what the scorers say of the same statements."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import report as report_room
from mitigate import targets, verbalise
from mitigate.errors import MitigateError
from mitigate.label_cache import LabelStore
from mitigate.load.crowd import crowd_files, read_beside
from mitigate.load.ratings import read_answers
from mitigate.measure import agreement as agreement_measures
from mitigate.measure import bootstrap, comparison
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import agreement
from mitigate.recipes.humans import figures
from mitigate.recipes.humans.sample import KEY
from mitigate.recipes.job import Job, command, perform, plain, provenance, say
from mitigate.report import ratings as page
from mitigate.report import tables
from mitigate.score import labels as labelling
from mitigate.store import Result, as_parquet, digest_of, read_json
from mitigate.triples import Scorer
from mitigate.verbalise import mask_column

STAGES = ("judged", "labels", "summary", "raters", "differences", "humans", "report")
WAYS = (
    "recipe=humans asks people or reads what they said. Ask: data.runs=[DIR,...], or data=statements data.path=FILE. "
    "Read: humans.survey=DIR humans.answers=[FILE.csv,...], or humans.sentences=FILE humans.bias_labels=FILE, or "
    "data.root=DIR for the harms paper's crowd."
)


@dataclass(frozen=True)
class Judgements:
    """Statements of one or more sources, and what raters said of them."""

    key: pl.DataFrame  # columns KEY
    ratings: pl.DataFrame  # schema RATINGS
    sources: list[str]  # the first is what others are compared with
    demonstration: bool = False
    notices: list[str] = field(default_factory=list)

    def judged(self) -> pl.DataFrame:
        """A row for each source and rating."""
        return self.key.join(self.ratings, on="item", maintain_order="left_right")


def run(config: DictConfig) -> None:
    """Read and check the ratings, and say and write what they come to."""
    judgements = read(config)
    scorers = agreement.judged_scorers(config)
    for notice in judgements.notices:
        say(f"  note: {notice}")
    source = digest_of(as_parquet(judgements.judged()))
    name = f"{config.recipe.name}-ratings-{config.score.regard}"
    perform(config, name, source, STAGES, lambda job: pipeline(job, judgements, source, scorers))


def read(config: DictConfig) -> Judgements:
    """What the settings name. Raises MitigateError when they name nothing, and as the readers do."""
    settings = config.humans
    if settings.answers:
        return read_survey(Path(settings.survey), [Path(path) for path in settings.answers], config.data.on_bad_line)
    if settings.sentences:
        files = [settings.sentences, settings.bias_labels, settings.quality_labels]
        name = Path(settings.sentences).stem.removesuffix("_sentences")
        return beside({name: [Path(path) for path in files if path]})
    place = config.data.root or os.environ.get("MITIGATE_DATA")
    if not place:
        raise MitigateError(WAYS)
    return beside(crowd_files(Path(place) / "humans"))


def read_survey(folder: Path, answers: list[Path], on_bad_line: Any) -> Judgements:
    """The answers to the survey of a run folder."""
    asked = read_json(folder / "survey.json")
    if asked is None or not (folder / "key.parquet").is_file():
        raise MitigateError(f"humans.survey={folder}: no survey.json and key.parquet there; give the folder that asked")
    key = pl.read_parquet(folder / "key.parquet")
    loaded = read_answers(answers, frozenset(key["item"]), asked["raters"], on_bad_line)
    return Judgements(key, loaded.ratings, asked["sources"], asked["demonstration"], loaded.notices)


def beside(files: Mapping[str, Sequence[Path]]) -> Judgements:
    """Sentences with labels beside them, by the name of their source."""
    keys, ratings = [], []
    for source, places in files.items():
        given = read_beside(*places).rename({"item": "statement"})
        ids = [digest_of(f"{source}\t{statement}")[:10] for statement in given["statement"]]
        given = given.with_columns(pl.Series("item", ids), pl.lit(source).alias("source"))
        unknown = [pl.lit(None, pl.String).alias(name) for name in ("target", "category", "relation")]
        key = given.with_columns(*unknown, pl.lit(None, pl.Int64).alias("rank")).select(KEY)
        keys.append(key.unique("item", maintain_order=True))
        ratings.append(given.select("item", "rater", "label", "quality"))
    notices = ["these files do not say who rated, nor which target, category and relation a sentence has"]
    return Judgements(pl.concat(keys), pl.concat(ratings), list(files), notices=notices)


def pipeline(job: Job, judgements: Judgements, source: str, scorers: list[Scorer]) -> dict[str, Any]:
    """The stages in their order; returns the figures."""
    measure, sources = job.config.measure, judgements.sources
    intervals = Bootstrap(resamples=measure.resamples, seed=job.config.seed)
    judged = job.old_stage("judged", lambda _: judgements.judged(), needs=[source])
    labels = label(job, judged, scorers)
    code = (figures, agreement_measures, bootstrap, comparison)
    needs = {"needs": [judged.digest], "settings": [sources, plain(measure), job.config.seed], "code": code}
    summary = job.old_stage("summary", lambda _: figures.summary(judged.table(), sources, intervals), **needs)
    raters = job.old_stage("raters", lambda _: figures.raters(judged.table()), **needs)
    differences = job.old_stage(
        "differences", lambda _: figures.differences(judged.table(), sources, intervals), **needs
    )
    frames = [result.table() for result in (summary, raters, differences)]
    metrics = job.old_stage(
        "humans",
        lambda _: agreement.measure(labels.table()) | figures.flat(*frames),
        needs=[labels.digest, summary.digest, raters.digest, differences.digest],
        code=[agreement, agreement_measures, figures],
    )
    report(job, judgements, metrics, frames)
    return metrics.facts()


def label(job: Job, judged: Result, scorers: list[Scorer]) -> Result:
    """What the scorers say of each statement, demographic words masked, beside the votes of its raters."""
    cache = LabelStore(Path(job.config.paths.cache) / "labels")

    def compute(_: str) -> pl.DataFrame:
        rows = judged.table()
        own = tuple(sorted(set(rows["target"].drop_nulls()) - set(targets.targets())))
        votes = rows.group_by("source", "item", maintain_order=True).agg(pl.col("statement").first(), votes="label")
        return agreement.label(
            votes.select(
                pl.col("source").alias("resource"),
                pl.col("item").alias("sentence"),
                "votes",
                mask_column("statement", "token", own).alias("masked"),
            ),
            scorers,
            cache,
        )

    by_whom = [scorer.fingerprint for scorer in scorers]
    code = (targets, verbalise, labelling)
    return job.old_stage("labels", compute, needs=[judged.digest], settings=by_whom, code=code)


def report(job: Job, judgements: Judgements, metrics: Result, frames: list[pl.DataFrame]) -> None:
    """humans.html and the tables, and the same in short on the terminal."""
    scorers = agreement.table(metrics.facts(), judgements.sources)
    summary, raters, differences = frames
    found = {"summary": summary, "raters": raters, "differences": differences, "scorers": scorers}

    def compute(_: str) -> dict[str, Any]:
        about = page.Results(
            name=job.folder.name,
            command=command(job.config),
            demonstration=judgements.demonstration,
            notices=judgements.notices,
            facts=provenance(job.config, {}),
            summary=summary,
            raters=raters,
            differences=differences,
            scorers=scorers,
        )
        page.write(job.folder / "humans.html", about)
        for name, frame in found.items():
            if frame.height:
                tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
                tables.save_latex(frame, job.folder / "tables" / f"{name}.tex", f"{name} ({job.folder.name})")
        job.tracking.summarise(metrics.facts())
        return {"tables": [name for name, frame in found.items() if frame.height]}

    job.old_stage("report", compute, needs=[metrics.digest], code=[report_room], leaves=["humans.html", "tables"])
    if not job.run.dry:
        say("\n" + page.console(summary, raters, differences) + "\n\n" + agreement.printed(scorers))
        say(f"  report      {job.folder / 'humans.html'}")
