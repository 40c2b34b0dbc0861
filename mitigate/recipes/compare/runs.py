"""Run folders as they are compared: read and checked, those that differ by seed alone taken together, and each such
group set against a baseline."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes.finished import lacking, read_finished
from mitigate.recipes.job import science
from mitigate.store import digest_of

FOUND = ("statements.parquet", "likelihood.parquet")  # what figures are made of
NOT_THE_MODEL = {"recipe.name", "measure.resamples"}
"""Settings that, like the seed, do not set one group of runs apart from another."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run folder of recipe=mitigate with all its stages done."""

    folder: Path
    config: DictConfig
    metrics: dict[str, Any]
    manifest: dict[str, Any]

    @property
    def policy(self) -> str:
        return str(self.config.policy.name)

    @property
    def seed(self) -> int:
        return int(self.config.seed)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What decides what is found, but for the seed and what follows it: "trainer.lr" -> 0.0005."""
        flat = _flat(science(self.config)).items()
        return {name: value for name, value in flat if name not in NOT_THE_MODEL and name.split(".")[-1] != "seed"}

    @cached_property
    def digest(self) -> str:
        """Of what the model said, and of what it thinks of the test triples."""
        return digest_of(str([self.manifest["files"][name] for name in FOUND]))

    @cached_property
    def statements(self) -> pl.DataFrame:
        """What the model said of each target, labelled; with `judged_valid` where somebody judged."""
        return pl.read_parquet(self.tables[0])

    @cached_property
    def likelihood(self) -> pl.DataFrame:
        """What the model thinks of each valid test triple, and what it would have said."""
        return pl.read_parquet(self.tables[1])

    @property
    def tables(self) -> tuple[Path, Path]:
        """The files of statements and of likelihood."""
        judged = "quality/valid/all" in self.metrics
        return self.folder / ("validity.parquet" if judged else "statements.parquet"), self.folder / FOUND[1]


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
        return {run.digest for run in self.before} == {run.digest for run in self.after}


def read_runs(folders: Iterable[Path], setting: str) -> list[FinishedRun]:
    """The finished runs in these folders. Raises MitigateError that names all that are something else."""
    found = [_read(folder) for folder in folders]
    if faults := [fault for fault in found if isinstance(fault, str)]:
        raise MitigateError(f"{setting}: {'; '.join(faults)}. Name folders that finished runs of recipe=mitigate left.")
    return [run for run in found if isinstance(run, FinishedRun)]


def _read(folder: Path) -> FinishedRun | str:
    """The run, or what is wrong with the folder."""
    found = read_finished(folder, "mitigate")
    if isinstance(found, str):
        return found
    run = FinishedRun(*found)
    return lacking(folder, run.tables) or run


def arms(runs: Sequence[FinishedRun]) -> list[Arm]:
    """The runs by what sets them apart but for the seed, in their order."""
    shared = set.intersection(*(set(run.settings) for run in runs))  # another revision may know other settings
    groups: dict[str, list[FinishedRun]] = {}
    for run in runs:
        groups.setdefault(json.dumps({name: run.settings[name] for name in sorted(shared)}), []).append(run)
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
                numbers = "the same numbers" if run.digest == twin.digest else "other numbers"
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
    names = dict.fromkeys(name for run in runs for name in run.settings if not name.startswith("policy."))
    return [name for name in names if len({str(run.settings[name]) for run in runs if name in run.settings}) > 1]


def _name(run: FinishedRun, others: Sequence[FinishedRun]) -> str:
    """The run's policy, with the settings that tell it from the others of that policy."""
    alike = [other for other in others if other.policy == run.policy]
    own = [name for name in run.settings if len({str(other.settings.get(name)) for other in alike}) > 1]
    return ", ".join([run.policy, *(f"{name}={run.settings[name]}" for name in own)])


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return found
