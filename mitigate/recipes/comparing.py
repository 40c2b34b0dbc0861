"""`recipe=compare`: hands over to the recipe that compares what the folders hold: runs of the main job, audits, or
embeddings. And what these recipes share."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.cli.arguments import literally
from mitigate.errors import MitigateError
from mitigate.recipes.job import call, is_brief, plain, say
from mitigate.recipes.reporting import say_notices, say_verdict
from mitigate.report.verdicts import FAILS, HOLDS, OPEN
from mitigate.runs.finished import FinishedRun, folders, recipe_of
from mitigate.tasks.compare.endpoints import Endpoints

RECIPES = {"audit": "mitigate.recipes.compare_audits", "kge": "mitigate.recipes.compare_kge"}  # by what is compared
OF_RUNS = "mitigate.recipes.compare"
MOST_OF_A_TAG = 50  # letters; W&B allows 64 with what stands before
STATUS = {HOLDS: 0, FAILS: 4, OPEN: 3}  # exit status with compare.gate=true; 1 is a failed job, 2 a user's error
LONGEST_NAME = 100  # letters of a run folder's name, before its hash


def run(config: DictConfig) -> None:
    """Compare what `compare.runs` and `compare.baseline` name: a folder of an audit among them means audits,
    and one of recipe=kge embeddings."""
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
    """The folders that are compared, the baseline first if there is one."""
    found = [*folders(plain(config.compare.baseline)), *folders(plain(config.compare.runs))]
    return list(dict.fromkeys(map(str, found)))


def endpoints_of(config: DictConfig) -> Endpoints:
    """The endpoints that `compare.primary` and `compare.margins` name. Raises MitigateError for a name that is no
    metric's."""
    return Endpoints(**plain(config.compare.primary), margins=plain(config.compare.margins))


def with_facts(config: DictConfig, facts: Mapping[str, Any]) -> DictConfig:
    """The configuration with facts about the compared runs. Their texts stay texts: those of a foreign folder may look
    like ${oc.env:HOME}."""
    return DictConfig(OmegaConf.merge(config, literally(facts)))


def data_of(runs: Sequence[FinishedRun]) -> dict[str, Any]:
    """What W&B and the page need to know of the data that runs are of, besides its name."""
    return {key: any(run.setting(f"data.{key}") for run in runs) for key in ("own_texts", "demonstration")}


def folder_name(*parts: str) -> str:
    """The name of a run folder, of texts that may hold anything."""
    return re.sub(r"[^\w.,+=-]+", "_", "-".join(parts))[:LONGEST_NAME]


def say_brief(config: DictConfig, found: Mapping[str, Any] | None) -> None:
    """The verdict of each contrast with its cost, and four figures; with verbose=true the lines of all figures."""
    for contrast in found["contrasts"] if found else ():
        say_verdict(contrast["sentence"], contrast["cost"])
    if found is None or not is_brief(config):
        say_found(found)
        return
    say(found["figures"])
    say_notices(config, found["notices"])


def end_by_gate(config: DictConfig, found: Mapping[str, Any] | None) -> None:
    """With compare.gate=true, end the process with the exit status of what the primary endpoints show. A rehearsal
    shows nothing."""
    if config.compare.gate:
        outcome = found["gate"] if found else OPEN
        say(f"  gate        {outcome}: exit status {STATUS[outcome]}")
        raise SystemExit(STATUS[outcome])


def say_found(found: Mapping[str, Any] | None) -> None:
    """The lines of a comparison, and its notices."""
    for line in (*found["lines"], *(f"note: {notice}" for notice in found["notices"])) if found else ():
        say(f"  {line}")
