"""A policy turns labelled triples into the ledger a generator is trained by: every triple with the weight it
is kept at (0 drops it) and the reason, so that what was dropped can be looked at.

Knows nothing of how labels came about, nor of training."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.triples import FAVOURITISM, PREJUDICE, TEMPLATES, label_columns

SCORERS = ("sentiment", "regard")
SPLITS = ("train", "all")


@dataclass(frozen=True)
class Policy:
    """Drop the triples that any of the scorers finds polarised (harms paper, Section 4.3); no scorers, no filter.

    template: the wording whose labels count, "paper" or "neutral" (no harm read from the phrase itself).
    splits: "train" filters the training triples only, "all" filters dev and test too, as the paper did.
    Raises MitigateError for a value outside the lists."""

    name: str
    scorers: Sequence[str] = ()
    template: str = "paper"
    splits: str = "train"

    def __post_init__(self) -> None:
        for scorer in self.scorers:
            if scorer not in SCORERS:
                raise one_of("scorer in policy.scorers", scorer, SCORERS)
        if self.template not in TEMPLATES:
            raise one_of("policy.template", self.template, TEMPLATES)
        if self.splits not in SPLITS:
            raise one_of("filter.splits", self.splits, SPLITS)


def apply(policy: Policy, labelled: pl.DataFrame) -> pl.DataFrame:
    """The ledger: the labelled triples with `weight` (float32) and `reason`, "kept" or what each scorer found,
    such as "sentiment +1, regard -1". Other splits than those the policy filters are kept whole.

    Raises MitigateError when no training triple is left."""
    found = [_finding(scorer, label_columns(scorer, policy.template)[0]) for scorer in policy.scorers]
    filtered = pl.lit(True) if policy.splits == "all" else pl.col("split") == "train"
    finding = pl.concat_str(found, separator=", ", ignore_nulls=True) if found else pl.lit("")
    ledger = labelled.with_columns(reason=pl.when(filtered & (finding != "")).then(finding).otherwise(pl.lit("kept")))
    ledger = ledger.with_columns(weight=(pl.col("reason") == "kept").cast(pl.Float32))
    if ledger.filter(pl.col("split") == "train", pl.col("weight") > 0).is_empty():
        raise MitigateError(
            f"policy {policy.name!r} drops every training triple: {count_reasons(ledger)}. Nothing is left to "
            "train on; choose another policy, or policy.template=neutral."
        )
    return ledger


def _finding(scorer: str, column: str) -> pl.Expr:
    polar = pl.col(column).is_in([PREJUDICE, FAVOURITISM])
    sign = pl.when(pl.col(column) == PREJUDICE).then(pl.lit("-1")).otherwise(pl.lit("+1"))
    return pl.when(polar).then(pl.concat_str(pl.lit(f"{scorer} "), sign))


def count_reasons(ledger: pl.DataFrame) -> str:
    """How many training triples each reason has, most frequent first, in words."""
    counts = (
        ledger.filter(pl.col("split") == "train")["reason"]
        .value_counts(sort=True)
        .sort("count", "reason", descending=[True, False])
    )
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.iter_rows())
