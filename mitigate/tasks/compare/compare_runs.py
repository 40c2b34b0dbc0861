"""The comparison of finished runs as one function."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from mitigate.tasks.compare.endpoints import Endpoints, primary
from mitigate.tasks.compare.run_groups import Contrast
from mitigate.tasks.compare.run_plan import ENDPOINTS
from mitigate.tasks.compare.runs import measure, read_plan


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Results of a comparison of runs."""

    contrasts: list[Contrast]  # groups of runs against their baselines
    primary: pl.DataFrame  # a row for each contrast and endpoint, corrected; claims rest on these alone
    harms: pl.DataFrame  # a row for each contrast, scorer, template, measure and category: change, interval, p
    quality: pl.DataFrame  # a row for each contrast and figure of quality
    moves: pl.DataFrame  # a row for each contrast, scorer and target: the percentage neutral before and after
    notices: list[str]  # limits of the findings


def compare_runs(
    runs: Sequence[str | Path], baseline: str | Sequence[str] | None = None, *, endpoints: Endpoints = ENDPOINTS
) -> ComparedRuns:
    """Compare run folders of recipe=mitigate with a baseline: a policy among them (None: the policy none), or folders.

    Runs that differ by seed alone form a group. endpoints: the figures that a claim may rest on. Raises MitigateError
    for folders that are not finished runs, and where nothing can be compared."""
    plan = read_plan([str(run) for run in runs], baseline, endpoints)
    harms, quality, moves = measure(lambda _, function, *values: function(*values), plan)
    tested = primary(harms, quality, plan.endpoints)
    return ComparedRuns(plan.contrasts, tested, harms, quality, moves, plan.notices)
