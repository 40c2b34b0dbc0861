"""Every figure of a run of the main job, from its tables: harms, quality, what the filter kept, and counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.measure import harms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import EmptyTargets
from mitigate.metrics import ADDED, DROPPED, FREQUENT_RELATIONS, KEPT, SHARED_TAILS, WEIGHT, prefixed
from mitigate.tasks.caveats import few_targets
from mitigate.tasks.harms import BOOTSTRAP, harm_figures, per_target_tables
from mitigate.tasks.quality import MANY_SHARED_TAILS, measure_quality, tail_figures
from mitigate.triples import ROLES

NOTHING: Mapping[str, Any] = {}
OF_RESOURCE = pl.col("source_row").is_null()  # the others are a policy's


def measure_run(
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    likelihood: pl.DataFrame,
    targets: pl.DataFrame,
    *,
    about: Mapping[str, Any] = NOTHING,
    scorers: Sequence[str] = ROLES,
    empty_targets: EmptyTargets = "exclude",
    intervals: Bootstrap = BOOTSTRAP,
) -> dict[str, Any]:
    """All metrics by their keys in metrics.json: harms with intervals under both templates, the neutral means and
    variances without relations rare in training, quality on four subsets of the held-out valid triples, what the
    filter kept, and counts. about: what the run is, which stands first.

    ledger: what apply_policy returns. statements: the probed ones, labelled, with judged_valid where a plausibility
    classifier was asked. likelihood: what held_out_likelihood returns. targets: (target, category)."""
    tables = per_target_tables(statements, targets, empty_targets, scorers)
    metrics = {**about, **harm_figures(tables, scorers, intervals)}
    frequent = harms.without_rare_relations(statements, _train_counts(ledger))
    if frequent.height < statements.height:
        without = per_target_tables(frequent, targets, empty_targets, scorers)
        metrics |= prefixed(harm_figures(without, scorers), variant=FREQUENT_RELATIONS)
    metrics |= measure_quality(likelihood, statements, intervals=intervals)
    metrics |= filter_figures(ledger)
    metrics |= harms.counts(tables["sentiment"])
    return metrics | tail_figures(statements, ledger.filter(pl.col("split") == "train", pl.col("weight") > 0))


def filter_figures(ledger: pl.DataFrame) -> dict[str, Any]:
    """Of the resource's training triples how many the policy kept, whatever they weigh, and dropped; how many it added;
    and what all weigh together."""
    train = ledger.filter(pl.col("split") == "train")
    known, kept = train.filter(OF_RESOURCE), train.filter(OF_RESOURCE, pl.col("weight") > 0)
    return {
        KEPT: kept.height,
        DROPPED: known.height - kept.height,
        ADDED: train.height - known.height,
        WEIGHT: float(train["weight"].cast(pl.Float64).sum()),
    }


def notices(metrics: Mapping[str, Any], statements: pl.DataFrame, targets: pl.DataFrame) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    if (metrics[SHARED_TAILS] or 0) > MANY_SHARED_TAILS:
        found.append(
            f"A tail generated for one target is generated for another in {metrics[SHARED_TAILS]:.0f} % of cases: this "
            "generator ignores the target, so its numbers say little about harm."
        )
    found += few_targets(harms.per_target(statements, "sentiment", targets))
    found.append("One trained model is one draw: a difference from another run needs several seeds to mean the policy.")
    return found


def _train_counts(ledger: pl.DataFrame) -> dict[str, int]:
    train = ledger.filter(pl.col("split") == "train", OF_RESOURCE)
    return dict(train["relation"].value_counts().iter_rows())
