"""Groups of runs for a comparison: arms of runs that differ by seed alone, and contrasts of arms with a baseline."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mitigate.files import digest_of
from mitigate.finished import FinishedRun, differing, model_settings

FOUND = STATEMENTS, LIKELIHOOD = "statements.parquet", "likelihood.parquet"  # the tables of figures
VALIDITY = "validity.parquet"  # the statements with their validity, if it was measured
LIFT, PUBLISHED = "lift.parquet", "published.parquet"  # of runs that measured these
STATEMENT = ["target", "category", "relation", "tail", "rank", "statement"]
COLUMNS = {
    STATEMENTS: STATEMENT,
    VALIDITY: STATEMENT,  # and judged_valid, people_validity
    LIKELIHOOD: ["row", "head", "relation", "tail", "target", "nll", "tokens", "characters", "generated"],
    LIFT: ["system", "group", "head", "relation", "accepted", "elsewhere", "counts"],
    PUBLISHED: ["head", "relation", "tail", "category", "nll", "tokens"],
}
"""The columns that each table of a run has to have."""
MODEL = "model.name"
CONTROL = "-control"  # ends the name of a policy's control


def table_of(run: FinishedRun, name: str) -> pl.DataFrame:
    """One of the run's tables of COLUMNS."""
    return run.table(name, COLUMNS[name])


def statements_of(run: FinishedRun) -> pl.DataFrame:
    """Labelled statements of the run's model about each target; with `judged_valid` and `people_validity` if these were
    measured."""
    return table_of(run, VALIDITY if VALIDITY in run.files else STATEMENTS)


def numbers_of(run: FinishedRun) -> str:
    """The hash of the tables of figures: the same for a copy, and for a policy that changed nothing."""
    return digest_of(str([run.files[name] for name in FOUND]))


@dataclass(frozen=True, eq=False)
class Arm:
    """Runs that differ by seed alone."""

    name: str  # the policy, and the settings that distinguish it
    runs: tuple[FinishedRun, ...]


@dataclass(frozen=True, eq=False)
class Contrast:
    """An arm and its baseline; if either has a single seed, one run of each."""

    name: str
    against: str
    before: tuple[FinishedRun, ...]
    after: tuple[FinishedRun, ...]

    @property
    def key(self) -> str:
        """Its name in tables: that of the arm, or of both sides where the other is the control."""
        return f"{self.name} − {self.against}" if CONTROL in self.against else self.name

    @property
    def runs(self) -> list[FinishedRun]:
        """The runs of both sides."""
        return [*self.before, *self.after]

    def have(self, name: str) -> bool:
        """Return whether all runs have a table."""
        return all(name in run.files for run in self.runs)

    @property
    def several_seeds(self) -> bool:
        """Return whether policies are compared, and not only two models."""
        return min(len(self.before), len(self.after)) > 1

    @property
    def is_same(self) -> bool:
        """Return whether all numbers are equal: of one run, of a copy, or of a policy that changed nothing."""
        return {numbers_of(run) for run in self.before} == {numbers_of(run) for run in self.after}


def arms(runs: Sequence[FinishedRun]) -> list[Arm]:
    """Group the runs by their settings without the seed, in their order."""
    every = [model_settings(run) for run in runs]
    shared = sorted(set.intersection(*map(set, every)))  # another revision may have other settings
    groups: dict[str, list[FinishedRun]] = {}
    for run, settings in zip(runs, every, strict=True):
        groups.setdefault(json.dumps({name: settings[name] for name in shared}), []).append(run)
    firsts = [mine[0] for mine in groups.values()]
    return [Arm(_name(mine[0], firsts), tuple(mine)) for mine in groups.values()]


def restrict_arms(groups: Sequence[Arm], runs: Sequence[FinishedRun]) -> tuple[list[Arm], list[str]]:
    """Restrict the arms to these runs, with notices of runs that are left out: the second of two runs with the same
    settings and the same seed is not a second draw."""
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
    """Pair each of the others with the baseline nearest to it in settings, and with its control where that is among
    them; a control with a policy of its own among them is compared with that alone."""
    controls = {arm.name: arm for arm in others if arm.runs[0].policy.endswith(CONTROL)}
    of_policy = {arm.name: arm.name.replace(arm.runs[0].policy, arm.runs[0].policy + CONTROL, 1) for arm in others}
    found = []
    for arm, base in [
        *((arm, nearest(arm, baselines)) for arm in others if arm.name not in of_policy.values()),
        *((arm, controls[of_policy[arm.name]]) for arm in others if of_policy[arm.name] in controls),
    ]:
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


def nearest(arm: Arm, baselines: Sequence[Arm]) -> Arm:
    """The baseline that differs from an arm in the fewest settings."""
    return min(baselines, key=lambda base: len(differing([base.runs[0], arm.runs[0]])))


def shortened(names: Sequence[str]) -> list[str]:
    """The names of settings that differ; if models differ, their name stands for all settings of a model."""
    if MODEL not in names:
        return list(names)
    return [name for name in names if name == MODEL or not name.startswith(("model.", "train", "trainer."))]


def _name(run: FinishedRun, others: Sequence[FinishedRun]) -> str:
    """The run's policy, with the settings that distinguish it from the others of that policy."""
    mine = model_settings(run)
    same_policy = [model_settings(other) for other in others if other.policy == run.policy]
    own = shortened([name for name in mine if len({str(settings.get(name)) for settings in same_policy}) > 1])
    parts = [run.policy]
    for name in own:
        value = str(mine[name])
        short = str(Path(*Path(value).parts[-2:])) if value.startswith("/") else value  # a path by its last two parts
        parts.append(value if name == MODEL else f"{name}={short}")
    return ", ".join(parts)
