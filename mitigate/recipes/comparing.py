"""`recipe=compare`: starts the recipe for the kind of runs that are compared: of the main job, audits, or embeddings.
These recipes share the functions below."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from textwrap import shorten
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.cli.arguments import literally
from mitigate.errors import MitigateError
from mitigate.recipes.job import GROUPS, Job, call, is_brief, plain, say, say_notes, say_page_notes
from mitigate.recipes.reporting import NOT_GIVEN, about, say_verdict
from mitigate.report.verdicts import FAILS, HOLDS, OPEN
from mitigate.runs.finished import FinishedRun, folders, recipe_of
from mitigate.runs.store import Result
from mitigate.tasks.compare.endpoints import Endpoints

RECIPES = {"audit": "mitigate.recipes.compare_audits", "kge": "mitigate.recipes.compare_kge"}  # by the kind of runs
OF_RUNS = "mitigate.recipes.compare"
MOST_OF_A_TAG = 50  # characters; W&B allows 64 with the prefix
STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error


def run(config: DictConfig) -> None:
    """Compare the folders of `compare.runs` and `compare.baseline`: audits where one of them is an audit, embeddings
    where one is of recipe=kge."""
    kinds = {recipe_of(folder) for folder in named(config)}
    name = next((recipe for kind, recipe in RECIPES.items() if kind in kinds), OF_RUNS)
    if config.compare.gate and (name != OF_RUNS or call(config)["sweep"]):
        where = "a sweep" if name == OF_RUNS else "a comparison of audits or embeddings, which has no primary endpoints"
        raise MitigateError(
            f"compare.gate=true is for a single comparison of runs of recipe=mitigate, and this is {where}; leave "
            "compare.gate out"
        )
    if config.compare.gate and not endpoints_of(config).declared:
        raise MitigateError(
            "compare.gate=true decides by the primary endpoints, and compare names no primary endpoint: give "
            "compare.primary.harm or compare.primary.quality"
        )
    import_module(name).run(config)


def named(config: DictConfig) -> list[str]:
    """The compared folders, the baseline first if there is one."""
    found = [*folders(plain(config.compare.baseline)), *folders(plain(config.compare.runs))]
    return list(dict.fromkeys(map(str, found)))


def endpoints_of(config: DictConfig) -> Endpoints:
    """The endpoints that `compare.primary` and `compare.margins` name. Raises MitigateError for an unknown metric."""
    return Endpoints(**plain(config.compare.primary), margins=plain(config.compare.margins))


def with_facts(config: DictConfig, facts: Mapping[str, Any]) -> DictConfig:
    """The configuration with facts about the compared runs. Texts are taken literally: those of a foreign folder may
    look like ${oc.env:HOME}."""
    return DictConfig(OmegaConf.merge(config, literally(facts)))


def listed(names: Iterable[str]) -> dict[str, str]:
    """The names of what is compared in place of a policy's, cut to the length of a W&B tag."""
    return {"name": shorten(", ".join(names), MOST_OF_A_TAG, placeholder=" ...")}


def data_of(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """Facts about the data of runs for W&B and the page: whether any has texts of a user's own or a demonstration's."""
    return {key: any(run.setting(f"data.{key}") for run in runs) for key in ("own_texts", "demonstration")}


def shared_facts(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """The data and the model of runs, by which W&B groups the record; "several" where they differ."""

    def shared(setting: str) -> str:
        names = {run.text(setting) or NOT_GIVEN for run in runs}
        return names.pop() if len(names) == 1 else "several"

    data = {key: shared(f"data.{key}") for key in ("name", "licence", "attribution")} | data_of(runs)
    return {"data": data, "model": {"name": shared("model.name")}}


def names_of(runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
    """The policies, data and models of runs, which tag the record in W&B."""
    return {group: [str(run.text(f"{group}.name")) for run in runs] for group in GROUPS}


def report_stage(
    job: Job, function: Callable[..., Any], *values: Any, facts: Mapping[str, Any], compared: Result
) -> None:
    """Write comparison.html, its pictures and tables by a function of these values, of `folder`, and of the page's
    command, stages and facts."""
    using = {"folder": job.folder, **about(job, facts)}
    job.stage("report", function, *values, using=using, after=[compared], leaves=["comparison.html", "plots", "tables"])


def say_brief(config: DictConfig, found: Mapping[str, Any] | None) -> None:
    """Print the verdict of each contrast with its cost, and four figures; with verbose=true, all figures."""
    for contrast in found["contrasts"] if found else ():
        say_verdict(contrast["sentence"], contrast["cost"])
    if found is None or not is_brief(config):
        say_found(found)
        return
    say(found["figures"])
    say_page_notes(config, found["notices"])


def end_by_gate(config: DictConfig, found: Mapping[str, Any] | None) -> None:
    """With compare.gate=true, end the process with the exit status of the primary endpoints' outcome; a rehearsal has
    none."""
    if config.compare.gate:
        outcome = found["gate"] if found else OPEN
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def say_found(found: Mapping[str, Any] | None) -> None:
    """Print the lines of a comparison, and its notices."""
    for line in found["lines"] if found else ():
        say(f"  {line}")
    say_notes(found["notices"] if found else ())
