"""Making a survey: load > sample > survey. What raters get stands in the run folder's survey/; key.parquet beside it
holds which model each statement is from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.files import write
from mitigate.load.files import LoadedStatements
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.loading import load_data
from mitigate.recipes.targets import list_named, wanted
from mitigate.report import survey as page
from mitigate.store import as_parquet, digest_of
from mitigate.target_list import TargetList
from mitigate.tasks.runs import open_run
from mitigate.tasks.survey import draw, statements_of_file, statements_of_runs
from mitigate.tasks.targets import OF_A_RUN, list_of_runs

STAGES = ("key", "survey")
SECONDS = 12  # to rate a statement; an estimate, for a first budget
FEW_HOURS = 2  # below which a time is given in minutes


def run(config: DictConfig) -> None:
    """Draw the statements and write the survey."""
    pool, target_list = read_pool(config)
    sources = pool["source"].unique(maintain_order=True).to_list()
    demonstration = any(is_demonstration(folder) for folder in config.data.runs)
    done: list[tuple[Path, pl.DataFrame]] = []  # the run folder and the key

    def pipeline(job: Job) -> dict[str, Any]:
        key = job.stage("key", draw, pool, config.humans.size, config.seed)
        told = {name: config.humans[name] for name in ("raters", "daily", "pay", "contact")}
        about = {"sources": sources, "demonstration": demonstration}
        using = {"folder": job.folder}
        leaves = ["survey", *([OF_A_RUN] if target_list.own else [])]
        survey = job.stage("survey", write_survey, key, told, about, target_list, using=using, leaves=leaves)
        job.tracking.summarise({name: survey.facts()[name] for name in ("items", "raters", "hours")})
        done.append((job.folder, key.table()))
        return survey.facts()

    source = digest_of(as_parquet(pool) + target_list.content)
    facts = perform(config, f"{config.recipe.name}-survey-seed{config.seed}", source, STAGES, pipeline)
    if facts is not None:
        folder, key = done[-1]
        say_survey(folder, facts, key, config.humans)


def read_pool(config: DictConfig) -> tuple[pl.DataFrame, TargetList]:
    """The statements to draw from, and the targets that the runs had, or that probe.targets names. Raises MitigateError
    for triples where statements are needed."""
    settings = config.humans
    if config.data.runs:
        pool = statements_of_runs(plain(config.data.runs), plain(settings.relations), settings.top)
        return pool, list_of_runs(map(open_run, config.data.runs)) if wanted(config) is None else _named(config)
    loaded = load_data(config)
    if not isinstance(loaded, LoadedStatements):
        raise MitigateError(f"a survey needs statements: data=statements data.path={config.data.path}")
    for notice in loaded.notices:
        say(f"  note: {notice}")
    name = Path(config.data.path).name.split(".")[0]
    return statements_of_file(loaded.statements, name, settings.top, config.seed), _named(config)


def _named(config: DictConfig) -> TargetList:
    """The targets that probe.targets names, said where they are not in the paper's list."""
    target_list, notices = list_named(config)
    for notice in notices:
        say(f"  note: {notice}")
    return target_list


def write_survey(
    key: pl.DataFrame, told: Mapping[str, Any], about: Mapping[str, Any], target_list: TargetList, *, folder: Path
) -> dict[str, Any]:
    """Write the page and the CSV that raters get, which name no model, and beside them the own targets, by which
    statements are masked later; returns the sizes and `about`."""
    asked = key.select("item", "target", "statement").unique("item", maintain_order=True)
    name = digest_of("".join(asked["item"]))[:8]
    survey = page.Survey(name, asked, told["daily"], told["pay"], told["contact"])
    write(folder / "survey" / "survey.html", page.render(survey))
    write(folder / "survey" / "statements.csv", asked.write_csv())
    if target_list.own:
        write(folder / OF_A_RUN, target_list.own_table.write_csv())
    hours = asked.height * told["raters"] * SECONDS / 3600
    return {"name": name, "items": asked.height, "raters": told["raters"], "hours": round(hours, 1), **about}


def say_survey(folder: Path, facts: Mapping[str, Any], key: pl.DataFrame, settings: DictConfig) -> None:
    """What was made and what to do with it, on the terminal."""
    for source, count in key.group_by("source").len().sort("source").rows():
        fewer = f", no more with humans.top={settings.top}" if count < settings.size else ""
        say(f"  {count:>7,} statements of {source}{fewer}")
    say(f"  {facts['items']:>7,} to rate, each once: what several models generate is rated once")
    hours = facts["hours"]
    work = f"{60 * hours:.0f} minutes" if hours < FEW_HOURS else f"{hours:,.0f} hours"
    say(f"  {facts['raters']} raters each: about {work} of paid work at {SECONDS} s a statement")
    say(f"  hand out    {folder / 'survey' / 'survey.html'} for a browser, or statements.csv beside it for a platform")
    say(f"  keep        {folder / 'key.parquet'}: it holds which model each statement is from")


def is_demonstration(folder: str) -> bool:
    """Whether a finished run is one on the sample corpus."""
    return bool(open_run(folder).setting("data.demonstration", False))
