"""Runs as they are compared: those that differ by seed alone taken together, and each such group set against a
baseline."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.fingerprints import digest_of
from mitigate.runs.finished import FinishedRun

FOUND = STATEMENTS, LIKELIHOOD = "statements.parquet", "likelihood.parquet"  # what figures are made of
VALIDITY = "validity.parquet"  # the statements once more, where their validity was measured
LIFT, PUBLISHED = "lift.parquet", "published.parquet"  # of runs that measured these
NOT_THE_MODEL = ("recipe.name", "measure.resamples", "model.folder.", "model.missing.")
"""Settings that, like the seed, do not set one group of runs apart from another, or how such begin: where a model's
files are looked for follows from model.base."""
MODEL, GENERATOR = "model.name", "policy.generator"


def statements_of(run: FinishedRun) -> pl.DataFrame:
    """What the run's model generated about each target, labelled; with `judged_valid` and `people_validity` where
    these were measured."""
    name = VALIDITY if VALIDITY in run.files else STATEMENTS
    return run.table(name, ["target", "category", "relation", "tail", "rank", "statement"])


def likelihood_of(run: FinishedRun) -> pl.DataFrame:
    """How likely the model finds each valid test triple, and what it generates in its tail's place."""
    columns = ["row", "head", "relation", "tail", "target", "nll", "tokens", "characters", "generated"]
    return run.table(LIKELIHOOD, columns)


def lift_of(run: FinishedRun) -> pl.DataFrame | None:
    """Swap lift prompt by prompt; None where the run did not measure it."""
    columns = ["system", "group", "head", "relation", "accepted", "elsewhere", "counts"]
    return run.table(LIFT, columns) if LIFT in run.files else None


def published_of(run: FinishedRun) -> pl.DataFrame | None:
    """How likely the model finds each published triple about a target; None where the run did not measure it."""
    columns = ["head", "relation", "tail", "category", "nll", "tokens"]
    return run.table(PUBLISHED, columns) if PUBLISHED in run.files else None


def numbers_of(run: FinishedRun) -> str:
    """The hash of all that figures are made of: the same for a copy, and for a policy that changed nothing."""
    return digest_of(str([run.files[name] for name in FOUND]))


def model_settings(run: FinishedRun) -> dict[str, Any]:
    """What decides what is found, but for the seed and what follows it: "trainer.lr" -> 0.0005. Each seed may have a
    generator of its own that a policy asks for tails: only whether there is one sets arms apart."""
    flat = run.settings.items()
    kept = {name: value for name, value in flat if not name.startswith(NOT_THE_MODEL) and name.split(".")[-1] != "seed"}
    return kept | ({GENERATOR: kept[GENERATOR] is not None} if GENERATOR in kept else {})


@dataclass(frozen=True, eq=False)
class Arm:
    """Runs that differ by seed alone."""

    name: str  # the policy, and what else sets it apart
    runs: tuple[FinishedRun, ...]


@dataclass(frozen=True, eq=False)
class Contrast:
    """An arm against the baseline; where either has a single seed, one of its runs against one of the baseline's."""

    name: str
    against: str
    before: tuple[FinishedRun, ...]
    after: tuple[FinishedRun, ...]

    @property
    def several_seeds(self) -> bool:
        """Whether it says anything about a policy, and not only about two models."""
        return min(len(self.before), len(self.after)) > 1

    @property
    def is_same(self) -> bool:
        """Whether all numbers are: of one run, of a copy, or of a policy that changed nothing."""
        return {numbers_of(run) for run in self.before} == {numbers_of(run) for run in self.after}


def arms(runs: Sequence[FinishedRun]) -> list[Arm]:
    """The runs by what sets them apart but for the seed, in their order."""
    known = [model_settings(run) for run in runs]
    shared = sorted(set.intersection(*map(set, known)))  # another revision may know other settings
    groups: dict[str, list[FinishedRun]] = {}
    for run, settings in zip(runs, known, strict=True):
        groups.setdefault(json.dumps({name: settings[name] for name in shared}), []).append(run)
    firsts = [mine[0] for mine in groups.values()]
    return [Arm(_name(mine[0], firsts), tuple(mine)) for mine in groups.values()]


def among(groups: Sequence[Arm], runs: Sequence[FinishedRun]) -> tuple[list[Arm], list[str]]:
    """What of the arms is among these runs, and what is to be said of runs that are left out: of two with the same
    settings and the same seed the second is no second draw."""
    found, notices = [], []
    for arm in groups:
        first_of: dict[int, FinishedRun] = {}
        for run in (run for run in arm.runs if run in runs):
            twin = first_of.setdefault(run.seed, run)
            if twin is not run:
                numbers = "the same numbers" if numbers_of(run) == numbers_of(twin) else "other numbers"
                notices.append(
                    f"{run.folder.name} has the settings and the seed of {twin.folder.name}, and {numbers}: it is "
                    "left out."
                )
        if first_of:
            found.append(Arm(arm.name, tuple(first_of.values())))
    return found, notices


def contrasts(baselines: Sequence[Arm], others: Sequence[Arm]) -> list[Contrast]:
    """Each of the others against the baseline nearest to it in settings."""
    found = []
    for arm in others:
        base = min(baselines, key=lambda base: len(differing([base.runs[0], arm.runs[0]])))
        if min(len(base.runs), len(arm.runs)) > 1:
            found.append(Contrast(arm.name, base.name, base.runs, arm.runs))
            continue
        for run in arm.runs:
            before = next((other for other in base.runs if other.seed == run.seed), base.runs[0])
            names = [base.name, arm.name]
            if len(base.runs) > 1 or names[0] == names[1]:
                names[0] += f", seed {before.seed}"
            if len(arm.runs) > 1 or base.name == arm.name:
                names[1] += f", seed {run.seed}"
            found.append(Contrast(names[1], names[0], (before,), (run,)))
    return found


def differing(runs: Sequence[FinishedRun]) -> list[str]:
    """The settings beyond policy and seed that are not the same in all runs that know them."""
    known = [model_settings(run) for run in runs]
    names = dict.fromkeys(name for settings in known for name in settings if not name.startswith("policy."))
    return [name for name in names if len({str(settings[name]) for settings in known if name in settings}) > 1]


def shortened(names: Sequence[str]) -> list[str]:
    """The names of settings that differ; where models do, their name stands for all else that sets a model apart."""
    if MODEL not in names:
        return list(names)
    return [name for name in names if name == MODEL or not name.startswith(("model.", "train", "trainer."))]


def _name(run: FinishedRun, others: Sequence[FinishedRun]) -> str:
    """The run's policy, with the settings that tell it from the others of that policy."""
    mine = model_settings(run)
    alike = [model_settings(other) for other in others if other.policy == run.policy]
    own = shortened([name for name in mine if len({str(settings.get(name)) for settings in alike}) > 1])
    told = [mine[name] if name == MODEL else f"{name}={_last(mine[name])}" for name in own]
    return ", ".join([run.policy, *map(str, told)])


def _last(value: Any) -> str:
    """A value, of a path no more than the last two parts."""
    text = str(value)
    return str(Path(*Path(text).parts[-2:])) if text.startswith("/") else text
