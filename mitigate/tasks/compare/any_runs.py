"""Runs of any one recipe beside a baseline: their tidy tables joined by figure, means over seeds, and differences with
Student's interval over seeds where both sides have three or more."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.finished import FinishedRun, Named, folders, open_run
from mitigate.measure.results import Results
from mitigate.measure.seeds import of_seeds
from mitigate.report import compare as report
from mitigate.report.page import write
from mitigate.tasks.compare.run_groups import Arm, arms

TITLES = ("data.name", "model.name", "policy.name")  # settings that name a group of runs where they differ
COLUMNS = {
    **dict.fromkeys(("run", "against", "key", "figure", "section"), pl.String),
    **dict.fromkeys(("baseline", "value", "change", "low", "high"), pl.Float64),
    **dict.fromkeys(("seeds", "unit", "better"), pl.String),
}


@dataclass(frozen=True, eq=False)
class AnyPlan:
    """Runs of one recipe, in groups that differ by seed alone, the baseline's first."""

    recipe: str
    arms: Sequence[Arm]
    source: str  # the hash of the compared figures

    @property
    def runs(self) -> list[FinishedRun]:
        return [run for arm in self.arms for run in arm.runs]


def make_plan(named: Named, baseline: Named) -> AnyPlan:
    """Read and group the runs. baseline: a folder, or several that differ by seed; None: the first run. Raises
    MitigateError for runs of different recipes, and for fewer than two groups."""
    places = list(dict.fromkeys([*folders(baseline), *folders(named)]))
    runs = [open_run(place, figures=_file_of(place)) for place in places]
    recipes = dict.fromkeys(run.recipe for run in runs)
    if len(recipes) > 1:
        raise MitigateError(
            f"compare.runs are runs of {' and '.join(f'recipe={name}' for name in recipes)}; compare runs of one recipe"
        )
    groups = arms(runs)
    if len(groups) < 2:
        raise MitigateError(
            f"compare.runs={[str(place) for place in places]} differ by seed alone, so there is nothing to compare; "
            "name runs with other data, models or settings"
        )
    titles = _titles(groups)
    named_arms = [Arm(title, arm.runs) for title, arm in zip(titles, groups, strict=True)]
    return AnyPlan(next(iter(recipes)), named_arms, digest_of(json.dumps([[run.seed, run.metrics] for run in runs])))


def _file_of(folder: Path) -> str:
    """The file with the figures of a run folder."""
    return "humans.json" if (folder / "humans.json").is_file() else "metrics.json"


def _titles(groups: Sequence[Arm]) -> list[str]:
    """Names of the groups: what their data, model or policy differ by, else the folder of the first run."""
    found = [
        ", ".join(
            str(arm.runs[0].text(name)) for name in TITLES if len({other.runs[0].text(name) for other in groups}) > 1
        )
        for arm in groups
    ]
    return found if len(set(found)) == len(found) else [arm.runs[0].folder.name for arm in groups]


def differences(plan: AnyPlan) -> pl.DataFrame:
    """A row of COLUMNS for each group but the baseline and each figure that both have."""
    base, *others = plan.arms
    before = [Results.of_run(run) for run in base.runs]
    rows: list[dict[str, Any]] = []
    for arm in others:
        after = [Results.of_run(run) for run in arm.runs]
        for key, figure in before[0].figures.items():
            first, second = ([one[key] for one in side if one.get(key) is not None] for side in (before, after))
            if len(first) < len(before) or len(second) < len(after):
                continue
            declared = figure.declared
            found = of_seeds(first, second).row()
            if declared.unit == "%" and found["low"] is not None:
                found |= {"low": max(found["low"], -100.0), "high": min(found["high"], 100.0)}
            numbers = {name: found[name] for name in ("baseline", "value", "change", "low", "high")}
            seeds = f"{len(first)} and {len(second)} seeds" if len(first) != len(second) else f"{len(first)} seeds"
            seeds = "1 seed" if seeds == "1 seeds" else seeds
            words = {"key": key, "figure": figure.title, "section": declared.family}
            rows.append({"run": arm.name, "against": base.name, **words, **numbers, "seeds": seeds})
            rows[-1] |= {"unit": declared.unit, "better": declared.better}
    return pl.DataFrame(sorted(rows, key=lambda row: row["section"] == "count"), schema=COLUMNS)


def write_page(table: pl.DataFrame, plan: AnyPlan, *, folder: Path, **about: Any) -> dict[str, Any]:
    """Write comparison.html and the table."""
    demonstration = any(run.setting("data.demonstration") for run in plan.runs)
    made = report.any_page(table, plan.recipe, tables={"differences": table}, demonstration=demonstration, **about)
    write(made, folder, "comparison.html")
    return {"figures": table.height}
