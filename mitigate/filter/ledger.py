"""The ledger of a policy: the findings of its scorers in each triple, the weight of the triple, and the reason."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter.policy import Policy, check_relations, in_scope
from mitigate.filter.reweight import DRAWN, by_own_action, drop_at_random, even_out, swap
from mitigate.triples import FAVOURITISM, IMPLIES, PREJUDICE, kind_of_reason, label_columns
from mitigate.words.relations import relations
from mitigate.words.targets import PAPER, TargetList
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG

REACHED = pl.col("reached")  # polarised, in the policy's scope, of a split that it filters
IN_SCOPE = pl.col("in_scope")
OTHERWISE: dict[str, dict[str, Any]] = {
    "policy.template=neutral": {"template": "neutral"},
    "policy.scope=person_heads": {"scope": "person_heads"},
    "policy.scope=targets": {"scope": "targets"},
}
"""Settings that make a policy drop fewer triples, and the fields that they change."""


def apply_policy(
    policy: Policy,
    labelled: pl.DataFrame,
    target_list: TargetList = PAPER,
    *,
    may_be_empty: bool = False,
) -> pl.DataFrame:
    """Apply a policy. Returns the ledger: the labelled triples with `weight` (float32), the `reason` for it, and
    `source_row`; after them the triples that the policy adds, with null as `row` and the row that they are made from as
    `source_row`.

    labelled: what label_statements returns for triples (head, relation, tail). Without `split`, all are training
    triples; without `row`, they are numbered from 1. target_list: targets of the policy's scope and swaps.

    The reason is "kept", or each scorer's finding and, unless that alone removed or reduced it, the outcome: "sentiment
    +1, regard -1", "regard -1, outside the scope", "regard -1, swapped", "regard -1, tagged"; or "drawn at random".
    Where a scorer explains its labels (column {scorer}_why), the implied statement follows. Splits that the policy does
    not filter are kept whole. A policy that tags leaves `token`, the control token before the head, null outside the
    scope. Raises MitigateError when no training triple is left, unless the ledger may_be_empty, and for labels that the
    policy needs and the table lacks."""
    if "row" not in labelled.columns:
        labelled = labelled.with_row_index("row", offset=1)
    if "split" not in labelled.columns:
        labelled = labelled.with_columns(split=pl.lit("train"))
    ledger = _ledger(policy, labelled, target_list)
    if not may_be_empty:
        check_left(policy, ledger, target_list)
    return ledger


def check_left(policy: Policy, ledger: pl.DataFrame, target_list: TargetList = PAPER) -> None:
    """Raise MitigateError when no training triple is left. Its message names settings that leave some."""
    if _leaves_some(ledger):
        return
    labelled = ledger.filter(pl.col("source_row").is_null()).drop("weight", "reason", "source_row")

    def has_columns(other: Policy) -> bool:
        labels = {name for scorer in other.scorers for name in label_columns(scorer, other.template)}
        more = {"head", "tail"} if other.scope != "all" else set()
        return labels | more <= set(labelled.columns)

    milder = {} if policy.own_action else {name: replace(policy, **fields) for name, fields in OTHERWISE.items()}
    helping = [
        name
        for name, other in milder.items()
        if other != policy and has_columns(other) and _leaves_some(_ledger(other, labelled, target_list))
    ]
    raise MitigateError(
        f"policy {policy.name!r} drops every training triple: {count_reasons(ledger)}. Nothing is left to "
        f"train on; {''.join(f'{setting} leaves some, or ' for setting in helping)}choose another policy, such as "
        "policy=none."
    )


def _leaves_some(ledger: pl.DataFrame) -> bool:
    return not ledger.filter(pl.col("split") == "train", pl.col("weight") > 0).is_empty()


def _ledger(policy: Policy, labelled: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    rows, filtered = _prepared(policy, labelled, target_list), _filtered(policy)
    if policy.own_action:
        ledger = by_own_action(policy, rows, filtered)
    else:
        ledger = ACTIONS[policy.action](policy, rows, target_list)
    if policy.balance:
        ledger = even_out(ledger, direction(policy), filtered)
    prepared = ("found", "in_scope", "reached")
    return _explained(policy, ledger).drop(prepared).with_columns(pl.col("weight").cast(pl.Float32))


def _filtered(policy: Policy) -> pl.Expr:
    return pl.lit(True) if policy.splits == "all" else pl.col("split") == "train"


def _prepared(policy: Policy, labelled: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    """The rows with the findings of the policy's scorers (`found`, "" in splits that are not filtered), `in_scope`,
    `reached`, and the ledger's columns before any action."""
    found = pl.when(_filtered(policy)).then(in_words(policy)).otherwise(pl.lit(""))
    rows = labelled.with_columns(found=found, weight=pl.lit(1.0), source_row=pl.lit(None, pl.UInt32))
    rows = rows.with_columns(in_scope=in_scope(policy.scope, target_list))
    rows = rows.with_columns(reached=(pl.col("found") != "") & IN_SCOPE)
    return rows.with_columns(reason=_reason())


def count_reasons(ledger: pl.DataFrame) -> str:
    """The number of training triples of each reason, most frequent first, in words; added ones are not counted."""
    counts = (
        ledger.filter(pl.col("split") == "train", pl.col("source_row").is_null())
        .select(kind_of_reason(pl.col("reason")))["reason"]
        .value_counts(sort=True)
        .sort("count", "reason", descending=[True, False])
    )
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.iter_rows())


def _explained(policy: Policy, ledger: pl.DataFrame) -> pl.DataFrame:
    """Append the statements that the policy's scorers find implied to the reasons of polarised triples."""
    columns = [f"{scorer}_why" for scorer in policy.scorers if f"{scorer}_why" in ledger.columns]
    if not columns:
        return ledger
    why = pl.concat_str(columns, separator="; ", ignore_nulls=True)
    is_explained = (pl.col("reason") != "kept") & (why != "")
    return ledger.with_columns(reason=pl.when(is_explained).then(pl.col("reason") + IMPLIES + why).otherwise("reason"))


def _reason() -> pl.Expr:
    return (
        pl.when(REACHED)
        .then("found")
        .when(pl.col("found") != "")
        .then(pl.col("found") + ", outside the scope")
        .otherwise(pl.lit("kept"))
    )


def _swap(policy: Policy, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
    check_relations(policy, {**relations(), **dict.fromkeys(rows["relation"])})
    return swap(rows, REACHED, policy.swapped_relations, policy.copies, policy.seed, target_list)


def _tag(policy: Policy, rows: pl.DataFrame, *_: object) -> pl.DataFrame:
    """Give each triple in the scope the token of its label; as a control permuted within split and relation."""
    token = pl.when(IN_SCOPE).then(pl.when(REACHED).then(pl.lit(POLARISED_TAG)).otherwise(pl.lit(NEUTRAL_TAG)))
    if policy.action == "tag":
        reason = pl.when(REACHED).then(pl.col("reason") + ", tagged").otherwise("reason")
        return rows.with_columns(token=token, reason=reason)
    lots = pl.Series(np.random.default_rng(policy.seed).random(rows.height))
    drawn = rows.with_columns(token=token, lot=lots).with_columns(
        pl.col("token").sort_by("lot").over("split", "relation", "in_scope")
    )
    reason = pl.when(pl.col("token") == POLARISED_TAG).then(pl.lit(DRAWN)).otherwise(pl.lit("kept"))
    return drawn.drop("lot").with_columns(reason=reason)


ACTIONS: dict[str, Callable[[Policy, pl.DataFrame, TargetList], pl.DataFrame]] = {
    "drop": lambda policy, rows, *_: rows.with_columns(weight=(~REACHED).cast(pl.Float64)),
    "downweight": lambda policy, rows, *_: rows.with_columns(  # a barely polarised triple keeps almost all its weight
        weight=pl.when(REACHED).then(1 - direction(policy).abs()).otherwise(1.0)
    ),
    "random": lambda policy, rows, *_: drop_at_random(rows, REACHED, IN_SCOPE, policy.seed),
    "swap": _swap,
    "tag": _tag,
    "random_tag": _tag,
    "keep": lambda policy, rows, *_: rows.with_columns(reason=pl.lit("kept")),
}


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


def _polar(column: str) -> pl.Expr:
    return pl.col(column).is_in([PREJUDICE, FAVOURITISM])
