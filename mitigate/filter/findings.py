"""Findings of a policy's scorers in a statement: in words, and as one number."""

from functools import reduce

import polars as pl

from mitigate.filter.policy import Policy
from mitigate.triples import FAVOURITISM, PREJUDICE, label_columns


def in_words(policy: Policy) -> pl.Expr:
    """Each scorer's finding, such as "sentiment +1, regard -1"; "" where all are neutral."""
    found = [_in_words(scorer, label_columns(scorer, policy.template)[0]) for scorer in policy.scorers]
    return pl.concat_str(found, separator=", ", ignore_nulls=True) if found else pl.lit("")


def polarised(policy: Policy) -> pl.Expr:
    """Return whether any scorer found something."""
    return in_words(policy) != ""


def direction(policy: Policy) -> pl.Expr:
    """The strength of the strongest polarised finding, below 0 for prejudice and above for favouritism; 0 where all
    are neutral. Of two as strong, that of the scorer named first."""
    found = [_direction(*label_columns(scorer, policy.template)) for scorer in policy.scorers]
    return reduce(lambda one, two: pl.when(two.abs() > one.abs()).then(two).otherwise(one), found)


def among_strongest(policy: Policy, found: pl.Expr) -> pl.Expr:
    """Return whether a statement is one of the strongest `policy.strongest` share of those that are found in its split,
    and of these at least one. A statement is as strong as its strongest finding (direction); of two as strong, the one
    that stands first in the table comes first. So a smaller share is always part of a larger one."""
    weakness = pl.when(found).then(-direction(policy).abs().fill_nan(0.0))  # null is not ranked
    number = (found.sum().over("split") * policy.strongest).round(6).ceil()
    return (weakness.rank("ordinal").over("split") <= number).fill_null(False)


def _in_words(scorer: str, column: str) -> pl.Expr:
    sign = pl.when(pl.col(column) == PREJUDICE).then(pl.lit("-1")).otherwise(pl.lit("+1"))
    return pl.when(_polar(column)).then(pl.concat_str(pl.lit(f"{scorer} "), sign))


def _direction(label: str, strength: str) -> pl.Expr:
    return pl.when(_polar(label)).then(pl.col(label) * pl.col(strength).abs().cast(pl.Float64)).otherwise(0.0)


def _polar(column: str) -> pl.Expr:
    return pl.col(column).is_in([PREJUDICE, FAVOURITISM])
