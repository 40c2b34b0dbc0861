"""Every figure of an audit, from its tally, as the one flat object that metrics.json holds."""

from typing import Any, get_args

import polars as pl

from mitigate.load.stream import Met
from mitigate.measure import bootstrap, harms, resource, tally, uncertainty
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import EmptyTargets
from mitigate.recipes.audit.plan import AuditPlan
from mitigate.targets import clusters
from mitigate.tasks.caveats import few_targets
from mitigate.triples import TEMPLATE_PREFIX

CODE = (bootstrap, harms, resource, tally, uncertainty)


def measure(plan: AuditPlan, tallied: pl.DataFrame, met: Met) -> dict[str, Any]:
    """Harms under every wording, with intervals; the same without intervals with the other convention for targets that
    have no statements, as "empty_zero/..." or "empty_exclude/..."; what is said of all texts; and counts."""
    settings = plan.config.measure
    intervals = Bootstrap(resamples=settings.resamples, seed=plan.config.seed)
    metrics: dict[str, Any] = {
        "seed": plan.config.seed,
        "data": plan.config.data.name,
        "fingerprint": plan.source,
        "rows": met["counted", "rows"],
        "rows_about_a_target": met["counted", "about a target"],
    }
    tables = per_target_tables(plan, tallied, settings.empty_targets)
    metrics |= resource.representation(next(iter(tables.values())), clusters(), intervals)
    for labels in plan.labellings:
        table = tables[labels.column]
        found = resource.figures(table, labels.scorer)
        found |= resource.intervals(table, labels.scorer, clusters(), intervals)
        found |= resource.of_all_texts(tallied, labels.column, labels.scorer)
        metrics |= {TEMPLATE_PREFIX[labels.template] + key: value for key, value in found.items()}
    if metrics["empty_targets"]:
        (other,) = set(get_args(EmptyTargets)) - {settings.empty_targets}
        metrics |= {f"empty_{other}/{key}": value for key, value in with_convention(plan, tallied, other).items()}
    return metrics


def with_convention(plan: AuditPlan, tallied: pl.DataFrame, empty_targets: EmptyTargets) -> dict[str, Any]:
    """The harms under every wording, without intervals, with this convention for targets without statements."""
    tables = per_target_tables(plan, tallied, empty_targets)
    return {
        TEMPLATE_PREFIX[labels.template] + key: value
        for labels in plan.labellings
        for key, value in resource.figures(tables[labels.column], labels.scorer).items()
    }


def per_target_tables(plan: AuditPlan, tallied: pl.DataFrame, empty_targets: EmptyTargets) -> dict[str, pl.DataFrame]:
    """One row a target with its percentages, by label column."""
    return {
        labels.column: tally.per_target(tallied, labels.column, plan.targets, empty_targets)
        for labels in plan.labellings
    }


def notices(plan: AuditPlan, tallied: pl.DataFrame) -> list[str]:
    """What a reader must know before believing the numbers."""
    table = tally.per_target(tallied, plan.labellings[0].column, plan.targets)
    found = few_targets(table)
    if empty := table.filter(pl.col("statements") == 0)["target"].to_list():
        found.append(
            f"Nothing is said about {len(empty)} of {table.height} targets ({', '.join(empty[:5])}"
            f"{' ...' if len(empty) > 5 else ''}): "
            + (
                "each counts as 0 % prejudiced, favoured and neutral, as in the paper, which lowers means and makes "
                "variances larger."
                if plan.config.measure.empty_targets == "zero"
                else "they have no percentage and are left out of means and variances of percentages."
            )
        )
    return found
