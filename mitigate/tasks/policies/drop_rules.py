"""Drop rules compared with people, without training: the rated statements that a policy would drop, against those that
most raters call polarised."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure import confusion
from mitigate.measure.base import bounds
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed
from mitigate.policies import Policy
from mitigate.tasks.ratings.agreement import label_described, words_and_texts
from mitigate.triples import NEUTRAL, PREJUDICE, LabelCache, Scorer

FIGURES: dict[str, confusion.Figure] = {
    "precision": confusion.precision,
    "recall": confusion.sensitivity,
    "before": confusion.truly_polarised,
    "after": confusion.left_polarised,
}
"""Shares: of dropped statements that most raters call polarised, of such statements that are dropped, and of polarised
statements before and after."""
ALL = "all"


def drop_rules(
    labelled: pl.DataFrame, policies: Sequence[Policy], intervals: Bootstrap, names: Sequence[str] | None = None
) -> pl.DataFrame:
    """A row for each resource (and for all) and policy: statements, dropped (%), and FIGURES in percent with _low and
    _high over targets and texts; null where nothing is dropped or nothing is left. names: of the resources; None: all.

    labelled: rated statements (resource, most, cluster, masked, head, tail) with the labels that the policies read."""
    labelled = labelled if names is None else labelled.filter(pl.col("resource").is_in(names))
    parts = [(str(resource), rows) for (resource,), rows in labelled.group_by("resource", maintain_order=True)]
    parts += [(ALL, labelled)] if len(parts) > 1 else []
    rows = [
        {"resource": resource, "policy": policy.name, **_row(rows, policy, intervals)}
        for resource, rows in parts
        for policy in policies
    ]
    kinds: dict[str, Any] = {"resource": pl.String, "policy": pl.String, "statements": pl.Int64, "dropped": pl.Float64}
    kinds |= {key: pl.Float64 for name in FIGURES for key in (name, *bounds(name))}
    return pl.DataFrame(rows, schema=kinds)


def measure_drop_rules(
    rated: pl.DataFrame,
    policies: Sequence[Policy],
    scorers: Sequence[Scorer],
    intervals: Bootstrap,
    *,
    cache: LabelCache,
) -> pl.DataFrame:
    """drop_rules of rated statements that these scorers label."""
    return drop_rules(label_described(rated, scorers, cache=cache), policies, intervals)


def as_metrics(table: pl.DataFrame) -> dict[str, Any]:
    """The table of drop_rules under keys: {resource}/policy/{policy}/{figure}."""
    return keyed("{resource}/policy/{policy}", table.rows(named=True))


def _row(rows: pl.DataFrame, policy: Policy, intervals: Bootstrap) -> dict[str, Any]:
    dropped = (policy.filter(rows)["weight"] == 0).to_numpy()
    table = confusion.confusion(rows["most"].to_numpy(), np.where(dropped, PREJUDICE, NEUTRAL), np.arange(rows.height))
    found = confusion.with_intervals(table, FIGURES, intervals, words_and_texts(rows))
    percent = {name: None if value is None else 100 * value for name, value in found.items()}
    return {"statements": rows.height, "dropped": 100 * float(dropped.mean()), **percent}
