"""Drop rules against people, without training: of the statements that the crowd rated, which a policy would drop, and
how far that is what most raters call polarised."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.filter import Policy
from mitigate.filter.findings import polarised
from mitigate.filter.policy import in_scope
from mitigate.measure import confusion
from mitigate.measure.bootstrap import Bootstrap
from mitigate.metrics import bounds
from mitigate.tasks.ratings.agreement import label_described, words_and_texts
from mitigate.triples import NEUTRAL, PREJUDICE, LabelCache, Scorer

FIGURES: dict[str, confusion.Figure] = {
    "precision": confusion.precision,
    "recall": confusion.sensitivity,
    "before": confusion.truly_polarised,
    "after": confusion.left_polarised,
}
"""Of the dropped statements those that most raters call polarised; of those that they call polarised the dropped ones;
and the share that they call polarised before and after."""
ALL = "all"


def is_drop_rule(policy: Policy) -> bool:
    """Whether the policy drops whole triples by their labels, or nothing: whatever other triples there are."""
    whole = policy.strongest == 1 and not policy.unless_valid
    return policy.action == "drop" and whole and not policy.own_action


def drop_rules(
    labelled: pl.DataFrame, policies: Sequence[Policy], intervals: Bootstrap, names: Sequence[str] | None = None
) -> pl.DataFrame:
    """A row for each resource (and for all) and policy: statements, dropped (%), and FIGURES in percent with _low and
    _high over targets and texts; null where nothing is dropped or nothing is left. names: of the resources; None: all.

    labelled: rated statements (resource, most, cluster, masked, head, tail) with the labels that the policies read."""
    labelled = labelled if names is None else labelled.filter(pl.col("resource").is_in(names))
    resources = labelled["resource"].unique(maintain_order=True).to_list()
    parts = [(resource, labelled.filter(resource=resource)) for resource in resources]
    parts += [(ALL, labelled)] if len(resources) > 1 else []
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
    """The same for rated statements that these scorers label."""
    return drop_rules(label_described(rated, scorers, cache=cache), policies, intervals)


def as_metrics(table: pl.DataFrame) -> dict[str, Any]:
    """The same under keys: {resource}/policy/{policy}/{figure}."""
    return {
        f"{row['resource']}/policy/{row['policy']}/{name}": row[name]
        for row in table.rows(named=True)
        for name in table.columns[2:]
    }


def _row(rows: pl.DataFrame, policy: Policy, intervals: Bootstrap) -> dict[str, Any]:
    dropped = rows.with_columns(dropped=polarised(policy) & in_scope(policy.scope))["dropped"].to_numpy()
    table = confusion.confusion(rows["most"].to_numpy(), np.where(dropped, PREJUDICE, NEUTRAL), np.arange(rows.height))
    found = confusion.with_intervals(table, FIGURES, intervals, words_and_texts(rows))
    percent = {name: None if value is None else 100 * value for name, value in found.items()}
    return {"statements": rows.height, "dropped": 100 * float(dropped.mean()), **percent}
