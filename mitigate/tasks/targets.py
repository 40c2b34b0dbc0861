"""Targets of the statements of a file, and the statements about chosen targets."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import first
from mitigate.runs.finished import FinishedRun
from mitigate.words.target_list import TargetList, list_of
from mitigate.words.targets import as_targets, choose_targets

Wanted = str | Path | Sequence[str] | None
"""Setting of targets, as in words.targets.choose_targets; None: those that are named."""
OF_A_RUN = "tables/targets.csv"


def targets_of_statements(wanted: Wanted, statements: pl.DataFrame) -> pl.DataFrame:
    """The targets (columns TARGETS) to measure over: by default those that the file of statements names (harms paper,
    Section 2.1), with wanted="all" the 329 besides."""
    named = as_targets(dict(statements.select("target", "category").unique(maintain_order=True).iter_rows()))
    if wanted in (None, "data"):
        return named
    chosen = choose_targets(wanted)
    return pl.concat([chosen, named.filter(category="own")]) if wanted == "all" else chosen


def those_about(statements: pl.DataFrame, chosen: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Select the statements about the targets, in any of their forms, with the targets' words and categories; and a
    notice that counts the others. Raises MitigateError where no statement is about any of them."""
    named = statements.with_columns(target=list_of(chosen).target_of(pl.col("target")))
    rows = named.drop("category").join(
        chosen.select("target", "category"), on="target", how="inner", maintain_order="left"
    )
    rows = rows.select(statements.columns)
    if rows.is_empty():
        raise MitigateError(
            f"no statement is about a target of recipe.targets or probe.targets ({chosen.height:,} given); those in "
            f"the file: {first(statements['target'].unique(maintain_order=True).to_list(), ', ')}"
        )
    others = statements.height - rows.height
    those = "1 statement left out, which is" if others == 1 else f"{others:,} statements left out, which are"
    return rows, [f"{those} about none of the {chosen.height:,} targets"] if others else []


def list_of_runs(runs: Iterable[FinishedRun]) -> TargetList:
    """The paper's targets and the own targets of finished runs. Raises MitigateError for a damaged file."""
    found = []
    for run in runs:
        if OF_A_RUN in run.files:
            if fault := run.fault(OF_A_RUN):
                raise MitigateError(f"{fault}.")
            found.append(choose_targets(run.folder / OF_A_RUN))
    return list_of(pl.concat([as_targets([]), *found]).unique("target", keep="first", maintain_order=True))
