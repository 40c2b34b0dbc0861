"""A policy by the method of a class of one's own: called, and what it returns is checked."""

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter.policy import Policy

WANTED = "it returns the rows that it is given, in their order, with `weight` (0 or more) and `reason` (a text)"


def by_own_action(policy: Policy, rows: pl.DataFrame, filtered: pl.Expr) -> pl.DataFrame:
    """The rows with the weights and the reasons that policy.act gives them; those of other splits than the policy
    filters stay as they are. Raises MitigateError where it returns anything else."""
    assert policy.own_action is not None
    found = policy.own_action(rows)
    if fault := _fault(found, rows):
        raise MitigateError(f"policy {policy.name!r}: {type(policy).__name__}.act {fault}; {WANTED}")
    return rows.with_columns(
        weight=pl.when(filtered).then(found["weight"].cast(pl.Float64)).otherwise("weight"),
        reason=pl.when(filtered).then(found["reason"]).otherwise("reason"),
    )


def _fault(found: object, rows: pl.DataFrame) -> str | None:
    if not isinstance(found, pl.DataFrame):
        return f"returned {type(found).__name__}, no table"
    if lacking := [name for name in ("row", "weight", "reason") if name not in found.columns]:
        return f"returned no column {lacking[0]}"
    if found["row"].to_list() != rows["row"].to_list():
        return f"returned {found.height:,} rows, of {rows.height:,}, or in another order"
    if not found["weight"].dtype.is_numeric() or not (found["weight"].is_finite() & (found["weight"] >= 0)).all():
        return "returned a weight that is not a number of 0 or more"
    if found["weight"].null_count() or found["reason"].dtype != pl.String or found["reason"].null_count():
        return "returned a weight or a reason that is missing, or a reason that is not a text"
    return None
