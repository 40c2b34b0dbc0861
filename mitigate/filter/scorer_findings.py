"""Findings of a policy's scorers in a statement: in words, and as one number."""

from functools import reduce

import polars as pl

from mitigate.filter.policy import Policy
from mitigate.triples import FAVOURITISM, PREJUDICE, label_columns


def in_words(policy: Policy) -> pl.Expr:
    """Each scorer's finding, such as "sentiment +1, regard -1"; "" where all are neutral."""
    found = []
    for scorer in policy.scorers:
        column, _ = label_columns(scorer, policy.template)
        sign = pl.when(pl.col(column) == PREJUDICE).then(pl.lit("-1")).otherwise(pl.lit("+1"))
        found.append(pl.when(_polar(column)).then(pl.concat_str(pl.lit(f"{scorer} "), sign)))
    return pl.concat_str(found, separator=", ", ignore_nulls=True) if found else pl.lit("")


def polarised(policy: Policy) -> pl.Expr:
    """Return whether any scorer found something."""
    return in_words(policy) != ""


def direction(policy: Policy) -> pl.Expr:
    """The strength of the strongest polarised finding, below 0 for prejudice and above for favouritism; 0 where all are
    neutral. Of two equally strong, that of the scorer named first."""
    columns = [label_columns(scorer, policy.template) for scorer in policy.scorers]
    found = [
        pl.when(_polar(label)).then(pl.col(label) * pl.col(strength).abs().cast(pl.Float64)).otherwise(0.0)
        for label, strength in columns
    ]
    return reduce(lambda one, two: pl.when(two.abs() > one.abs()).then(two).otherwise(one), found)


def among_strongest(policy: Policy, found: pl.Expr) -> pl.Expr:
    """Return whether a statement is in the strongest `policy.strongest` share of the found statements of its split, at
    least one. Its strength is that of its strongest finding (direction); of two equally strong, the first in the table
    comes first. So a smaller share is always part of a larger one."""
    weakness = pl.when(found).then(-direction(policy).abs().fill_nan(0.0))  # null is not ranked
    number = (found.sum().over("split") * policy.strongest).round(6).ceil()
    return (weakness.rank("ordinal").over("split") <= number).fill_null(False)


def _polar(column: str) -> pl.Expr:
    return pl.col(column).is_in([PREJUDICE, FAVOURITISM])
