"""What a comparison knows and has checked before it computes anything: which runs stand against which, by whose
labels, and what a reader must be told of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.compare import notices as compare_notices
from mitigate.recipes.compare.runs import Arm, Contrast, FinishedRun, among, arms, contrasts, read_runs
from mitigate.recipes.finished import folders
from mitigate.recipes.job import plain
from mitigate.store import as_json, digest_of

Labelling = tuple[str, str]
"""A scorer, and the template of the statements it labelled."""

MOST_OF_A_TAG = 50  # letters; W&B allows 64 with what stands before


@dataclass(frozen=True)
class ComparePlan:
    """Runs that have been read, grouped and found fit to be compared."""

    config: DictConfig
    arms: list[Arm]
    contrasts: list[Contrast]
    labellings: dict[str, Labelling]  # by label column, of all labels that all runs have
    relations: list[str]  # that all were asked
    notices: list[str]
    source: str  # the hash of what is compared, and of who stands against whom

    @property
    def runs(self) -> list[FinishedRun]:
        """All of them, each once."""
        return list({run.folder: run for arm in self.arms for run in arm.runs}.values())

    @property
    def demonstration(self) -> bool:
        return any(run.config.data.demonstration for run in self.runs)

    def statements(self, run: FinishedRun) -> pl.DataFrame:
        """What the run's model said, of the relations that all were asked."""
        return run.statements.filter(pl.col("relation").is_in(self.relations))


def make_plan(config: DictConfig) -> ComparePlan:
    """Everything the stages need, with all faults of settings and input raised here."""
    named = folders(plain(config.compare.runs))
    baselines = _baseline_folders(plain(config.compare.baseline))
    if not named or len(named) + len(baselines) < 2:
        raise MitigateError(
            f"compare.runs={[str(folder) for folder in named]}, and a comparison takes two runs or more; name more run "
            "folders by compare.runs=[DIR,DIR,...], or the one to compare with by compare.baseline=DIR"
        )
    runs = {run.folder: run for run in read_runs(dict.fromkeys(named), "compare.runs")}
    if baselines:
        elsewhere = read_runs([folder for folder in baselines if folder not in runs], "compare.baseline")
        known = runs | {run.folder: run for run in elsewhere}
        first = [known[folder] for folder in dict.fromkeys(baselines)]
        others = [run for run in runs.values() if run.folder not in baselines] or list(runs.values())
    else:
        first, others = _by_policy(
            config.compare.baseline or "none", list(runs.values()), bool(config.compare.baseline)
        )
    groups = arms(list({run.folder: run for run in (*first, *others)}.values()))
    (base_arms, left_out), (other_arms, more_left_out) = among(groups, first), among(groups, others)
    pairs = contrasts(base_arms, other_arms)
    used = [run for pair in pairs for run in (*pair.before, *pair.after)]
    _check_targets(used)
    labellings, relations = _labellings(used), _relations(used)
    sides = [
        [pair.name, pair.against, *([run.digest for run in s] for s in (pair.before, pair.after))] for pair in pairs
    ]
    return ComparePlan(
        config,
        among(groups, used)[0],
        pairs,
        labellings,
        relations,
        [*left_out, *more_left_out, *compare_notices.notices(pairs, used, relations)],
        digest_of(as_json([sides, [[run.seed, run.metrics] for run in used]])),
    )


def _baseline_folders(baseline: str | Sequence[str] | None) -> list[Path]:
    """The folders that compare.baseline names; none when it names a policy, or nothing."""
    if isinstance(baseline, str) and "/" not in baseline and not Path(baseline).is_dir():
        return []
    return folders(baseline)


def _by_policy(name: str, runs: Sequence[FinishedRun], asked: bool) -> tuple[list[FinishedRun], list[FinishedRun]]:
    """The runs of a policy, and the others."""
    mine = [run for run in runs if run.policy == name]
    others = [run for run in runs if run.policy != name]
    if mine and others:
        return mine, others
    policies = ", ".join(dict.fromkeys(run.policy for run in runs))
    given = f"compare.baseline={name}" if asked else f"no compare.baseline is given, so that it is the policy {name}"
    wrong = "all runs are of that policy" if mine else "no run is of that policy"
    raise MitigateError(
        f"{given}, but {wrong} (policies among compare.runs: {policies}). Name one of them, or the baseline's folder: "
        "compare.baseline=DIR"
    )


def _labellings(runs: Sequence[FinishedRun]) -> dict[str, Labelling]:
    """The label columns of all runs; each stands beside a column of its strength."""
    schemas = [run.statements.schema for run in runs]
    shared = [name for name in schemas[0] if all({name, f"{name}_strength"} <= set(schema) for schema in schemas)]
    return {
        name: (name.removesuffix("_neutral"), "neutral" if name.endswith("_neutral") else "paper") for name in shared
    }


def _relations(runs: Sequence[FinishedRun]) -> list[str]:
    asked = [dict.fromkeys(run.statements["relation"].unique(maintain_order=True)) for run in runs]
    shared = [name for name in asked[0] if all(name in names for names in asked)]
    if not shared:
        raise MitigateError(_nothing_shared("relation", "probe.relations", runs))
    return shared


def _check_targets(runs: Sequence[FinishedRun]) -> None:
    if not set.intersection(*(set(run.statements["target"]) for run in runs)):
        raise MitigateError(_nothing_shared("target", "probe.targets", runs))


def _nothing_shared(what: str, setting: str, runs: Sequence[FinishedRun]) -> str:
    folders = ", ".join(dict.fromkeys(str(run.folder) for run in runs))
    return (
        f"the runs {folders} have no {what} in common, but models are compared by what all were asked; name runs with "
        f"the same {setting}"
    )


def about(plan: ComparePlan) -> dict[str, Any]:
    """What of the configuration is the compared runs': their data and model, which the record in W&B is grouped by,
    and in place of a policy's name who is compared."""
    configs = [run.config for run in plan.runs]
    return {
        "policy": {"name": shorten(", ".join(pair.name for pair in plan.contrasts), MOST_OF_A_TAG, placeholder=" ...")},
        "data": {
            "name": _shared_name([config.data.name for config in configs]),
            "licence": _shared_name([config.data.licence for config in configs]),
            "attribution": _shared_name([config.data.attribution for config in configs]),
            "own_texts": any(config.data.own_texts for config in configs),
            "demonstration": plan.demonstration,
        },
        "model": {"name": _shared_name([config.model.name for config in configs])},
    }


def _shared_name(names: Sequence[str]) -> str:
    return names[0] if len(set(names)) == 1 else "several"


def roles(plan: ComparePlan) -> Mapping[str, str]:
    """The scorers by role, where all runs had the same: {"sentiment": "vader", "regard": "minilm"}."""
    found = {}
    for role in ("sentiment", "regard"):
        names = {str(run.config.score[role]) for run in plan.runs}
        found[role] = names.pop() if len(names) == 1 else "several"
    return found
