"""Making a survey: load > sample > survey. The raters' files stand in the run folder's survey/; key.parquet beside it
holds which model each statement is from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of, write
from mitigate.finished import open_run
from mitigate.load.targets import OF_A_RUN, list_of_runs
from mitigate.recipes.job import Config, Job, perform, say, say_notes
from mitigate.recipes.loading import load_data, named_targets, read_target_list
from mitigate.report import survey as page
from mitigate.stages import as_parquet, in_folder
from mitigate.tasks.ratings.anchors import AGAIN, draw_anchors, read_earlier
from mitigate.tasks.ratings.answers import EARLIER
from mitigate.tasks.ratings.survey import POINTS, draw, in_order, power, statements_of_file, statements_of_runs
from mitigate.words.targets import TargetList

TOP = 3  # best statements of each target and relation, to draw from
DAILY = 100  # statements that a rater should rate a day, at most
SECONDS = 12  # to rate a statement; an estimate, for a first budget
FEW_HOURS = 2  # shorter times are given in minutes


def run(config: Config) -> None:
    """Draw the statements and write the survey."""
    humans, seed = config.humans, config.seed
    pool, target_list = read_pool(config)
    sources = pool["source"].unique(maintain_order=True).to_list()
    demonstration = any(open_run(folder).setting("data.demonstration", False) for folder in config.data.runs)
    earlier = read_earlier(humans.anchors_from, sources) if humans.anchors_from else None
    anchors = None if earlier is None else draw_anchors(earlier, humans.relations, humans.anchors, seed)
    settings = {"daily": DAILY, **{name: getattr(humans, name) for name in ("raters", "pay", "contact")}}
    about = {"sources": sources, "demonstration": demonstration}

    def pipeline(job: Job) -> None:
        key = job.stage("key", draw, pool, humans.size, seed, anchors)
        values = (key, settings, about, target_list, earlier)
        job.stage("survey", write_survey, *values, using=in_folder())

    source = digest_of(as_parquet(pool) + target_list.content + (b"" if earlier is None else as_parquet(earlier)))
    found = perform(config, f"{config.recipe.name}-survey-seed{seed}", source, pipeline, record)
    if found:
        key = found["key"]
        say_survey(key.path.parent, found["survey"].facts(), key.table(), humans)


def record(job: Job) -> None:
    """Record the sizes on W&B."""
    survey = job.results["survey"].facts()
    job.tracking.summarise({name: survey[name] for name in ("items", "raters", "hours")})


def read_pool(config: Config) -> tuple[pl.DataFrame, TargetList]:
    """The statements to draw from, and the targets of the runs, or those that probe.targets names. Raises MitigateError
    for triples where statements are needed."""
    settings = config.humans
    if config.data.runs:
        pool = statements_of_runs(config.data.runs, settings.relations, TOP)
        return pool, list_of_runs(map(open_run, config.data.runs)) if named_targets(config) is None else _named(config)
    loaded = load_data(config)
    if loaded.kind != "statements":
        raise MitigateError(
            f"data={config.data.name} has no statements for a survey; set data=statements data.path={config.data.path}"
        )
    say_notes(loaded.notices)
    name = Path(config.data.path).name.split(".")[0]
    return statements_of_file(loaded.rows, name, TOP, config.seed), _named(config)


def _named(config: Config) -> TargetList:
    """The targets that probe.targets names, with a notice where they are not in the paper's list."""
    target_list, notices = read_target_list(config)
    say_notes(notices)
    return target_list


def write_survey(
    key: pl.DataFrame,
    settings: Mapping[str, Any],
    about: Mapping[str, Any],
    target_list: TargetList,
    earlier: pl.DataFrame | None,
    *,
    folder: Path,
) -> dict[str, Any]:
    """Write the raters' page and CSV, which name no model; beside them the own targets, by which statements are masked
    later, and the earlier ratings of the anchors' sources. Returns the sizes, the precision of the ratings, and
    `about`."""
    items = in_order(key)
    name = digest_of("".join(items["item"]))[:8]
    survey = page.render(name, items, *(settings[one] for one in ("daily", "pay", "contact")))
    write(folder / "survey" / "survey.html", survey)
    write(folder / "survey" / "statements.csv", items.write_csv())
    if target_list.own:
        write(folder / OF_A_RUN, target_list.own_table.write_csv())
    if earlier is not None:
        write(folder / EARLIER, as_parquet(earlier))
    hours = items.height * settings["raters"] * SECONDS / 3600
    sizes = {
        "items": items.height,
        "raters": settings["raters"],
        "hours": round(hours, 1),
        "parts": -(-items.height // settings["daily"]),
    }
    return {"name": name, **sizes, "power": power(key, settings["raters"]), **about}


def say_survey(folder: Path, facts: Mapping[str, Any], key: pl.DataFrame, settings: Any) -> None:
    """Print the sizes, and how to use the survey."""
    for source, count in key.group_by("source").len().sort("source").rows():
        is_short = count < settings.size and not source.endswith(AGAIN)
        fewer = f", no more among the best {TOP} of each target and relation" if is_short else ""
        say(f"  {count:>7,} statements of {source}{fewer}")
    say(f"  {facts['items']:>7,} to rate; a statement that several models generate is rated once")
    hours = facts["hours"]
    work = f"{60 * hours:.0f} minutes" if hours < FEW_HOURS else f"{hours:,.0f} hours"
    say(f"  {facts['raters']} raters each: about {work} of paid work at {SECONDS} s a statement")
    for figure, found in facts["power"].items():
        say(f"  {figure:<10}  {describe_power(found, facts['raters'])}")
    say(f"  hand out    {folder / 'survey' / 'survey.html'} for a browser, or statements.csv beside it for a platform")
    if facts["parts"] > 1:
        say(f"              {facts['parts']} parts of a day's work: survey.html#1 begins with the first, #2 the next")
    say(f"  keep        {folder / 'key.parquet'}: it records the model of each statement")


def describe_power(found: Mapping[str, float], raters: int) -> str:
    """The minimum detectable difference of a survey, and the size at which it is POINTS, in a sentence."""
    each = int(found["statements"])
    return (
        f"a difference of {found['detectable']:.1f} points from the first model is detectable (80 % power); {POINTS:g} "
        f"points take {each:,} statements of each model, {each * raters:,} ratings"
    )
