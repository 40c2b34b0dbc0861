"""`recipe=compare`: hands over to the recipe that compares what the folders hold: runs of the main job, audits, or
embeddings. And what these recipes share."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from omegaconf import DictConfig, OmegaConf

from mitigate.recipes.arguments import literally
from mitigate.recipes.job import is_brief, plain, say
from mitigate.recipes.reporting import say_notices, say_verdict
from mitigate.tasks.compare.endpoints import Endpoints
from mitigate.tasks.runs import FinishedRun, folders, recipe_of

RECIPES = {"audit": "mitigate.recipes.compare_audits", "kge": "mitigate.recipes.compare_kge"}  # by what is compared
OF_RUNS = "mitigate.recipes.compare"
MOST_OF_A_TAG = 50  # letters; W&B allows 64 with what stands before
LONGEST_NAME = 100  # letters of a run folder's name, before its hash


def run(config: DictConfig) -> None:
    """Compare what `compare.runs` and `compare.baseline` name: a folder of an audit among them means audits,
    and one of recipe=kge embeddings."""
    kinds = {recipe_of(folder) for folder in named(config)}
    name = next((recipe for kind, recipe in RECIPES.items() if kind in kinds), OF_RUNS)
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
    """The verdict of each contrast with its cost and four figures; with verbose=true the lines of all figures."""
    if found is None or not is_brief(config):
        say_found(found)
        return
    for contrast in found["contrasts"]:
        say_verdict(contrast["sentence"], contrast["cost"])
    say(found["figures"])
    say_notices(config, found["notices"])


def say_found(found: Mapping[str, Any] | None) -> None:
    """The lines of a comparison, and its notices."""
    for line in (*found["lines"], *(f"note: {notice}" for notice in found["notices"])) if found else ():
        say(f"  {line}")
