"""Which targets statements of a file are about, and the statements about chosen targets."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import first
from mitigate.targets import choose_targets, targets

Wanted = str | Path | Sequence[str] | None
"""As in targets.choose_targets; None: those that are named."""


def targets_of_statements(wanted: Wanted, statements: pl.DataFrame) -> pl.DataFrame:
    """The targets (target, category) to measure over. A file of statements is about the targets it names (harms paper,
    Section 2.1), whatever else there may be: these by default, and with wanted="all" besides the 329."""
    named = statements.select("target", "category").unique(maintain_order=True)
    if wanted in (None, "data"):
        return named
    chosen = choose_targets(wanted)
    return pl.concat([chosen, named.filter(category="own")]) if wanted == "all" else chosen


def those_about(statements: pl.DataFrame, chosen: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The statements about the targets, with the category these have there, and notices: of how many others there
    are, and of targets that are not of the paper's 329, which are often misspelt.

    Raises MitigateError where no statement is about any of them."""
    rows = statements.drop("category").join(chosen, on="target", how="inner", maintain_order="left")
    rows = rows.select(statements.columns)
    if rows.is_empty():
        raise MitigateError(
            f"no statement is about any of the {chosen.height:,} targets of recipe.targets; those in the file: "
            f"{first(statements['target'].unique(maintain_order=True).to_list(), ', ')}"
        )
    notices = []
    if others := statements.height - rows.height:
        notices.append(f"{others:,} statements left out, which are about none of the {chosen.height:,} targets")
    if own := rows.filter(category="own")["target"].unique(maintain_order=True).to_list():
        notices.append(f"Targets that are not of the paper's 329, and a category of their own: {first(own, ', ')}")
    return rows, notices


def own_targets(chosen: pl.DataFrame) -> list[str]:
    """The targets that are not of the paper's 329, sorted."""
    return sorted(set(chosen["target"]) - set(targets()))
