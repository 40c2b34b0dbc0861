"""The findings of a comparison of runs, from its frames: what the page shows, what comparison.json holds, and the
tables."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.learnt import no_conclusion
from mitigate.metrics import BASELINE_LIFTS, PAPER_SCORERS, SWAP_LIFT, bounds, harm_key, lift_of, quality_key
from mitigate.report import comparison_brief
from mitigate.report.examples import only_in
from mitigate.report.pair import Moved, Pair
from mitigate.report.pareto import HARMS, QUALITIES, Axis, axis
from mitigate.report.scorer_reliability import proxies
from mitigate.report.verdicts import gates
from mitigate.tasks.compare.endpoints import Endpoints, of_places, primary, within_margins
from mitigate.tasks.compare.figures import asked, chance
from mitigate.tasks.compare.missing import missing
from mitigate.tasks.compare.plan import ComparePlan
from mitigate.tasks.compare.run_groups import Contrast
from mitigate.tasks.compare.scorers import filtered_by

MOST_MOVED = 5  # up, and as many down


def pairs(
    plan: ComparePlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, endpoints: Endpoints
) -> list[Pair]:
    """Each contrast with its figures, as the page shows it."""
    endpoints = of_places(endpoints, plan.scorers)
    tested = primary(harms, quality, endpoints)
    within = within_margins(quality, tested, endpoints.margins)
    found = []
    for contrast in plan.contrasts:
        mine = moves.filter(contrast=contrast.name)
        columns = dict(mine.select("scorer", "column").unique(maintain_order=True).iter_rows())
        found.append(
            Pair(
                name=contrast.name,
                against=contrast.against,
                seeds=(len(contrast.before), len(contrast.after)),
                is_same=contrast.is_same,
                filtered_by=filtered_by(contrast.after[0]),
                primary=tested.filter(contrast=contrast.name),
                within=within.filter(contrast=contrast.name),
                harms=harms.filter(contrast=contrast.name),
                quality=(rows := quality.filter(contrast=contrast.name)),
                missing=missing(contrast, rows["figure"], plan.deciding),
                places=list(plan.scorers),
                unlearnt=no_conclusion(_metrics_of(contrast)),
                declared=endpoints.declared,
                moved={scorer: _moved(contrast, plan.relations, mine, scorer) for scorer in columns},
                chance={s: chance(contrast.before, column, plan.relations) for s, column in columns.items()},
            )
        )
    return found


def frames(
    plan: ComparePlan, found: Sequence[Pair], quality: pl.DataFrame, moves: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The tables by name."""
    return {
        "primary": with_words(found),
        "margins": pl.concat(pair.within for pair in found),
        "harms": pl.concat(pair.harms for pair in found),
        "quality": quality,
        "moves": moves,
        "models": models(plan),
    }


def comparison(
    plan: ComparePlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, endpoints: Endpoints
) -> dict[str, Any]:
    """What comparison.json holds: every figure of every contrast, and its finding in words."""
    found = pairs(plan, harms, quality, moves, endpoints)
    return {
        "demonstration": plan.demonstration,
        "contrasts": [
            {
                "policy": pair.name,
                "baseline": pair.against,
                "runs": [str(run.folder) for run in contrast.after],
                "baseline_runs": [str(run.folder) for run in contrast.before],
                "several_seeds": pair.several_seeds,
                "identical": pair.is_same,
                "seeds": list(pair.seeds),
                "quality_kept": pair.quality_kept,
                "gate": pair.gate,
                "sentence": comparison_brief.verdict(pair),
                "cost": comparison_brief.cost(pair),
                "primary": {
                    row["endpoint"]: {key: row[key] for key in pair.primary.columns[2:]}
                    | {"verdict": pair.verdict(row)}
                    for row in pair.primary.to_dicts()
                },
                "margins": _by_figure(pair.within),
                "harms": _by_figure(pair.harms),
                "quality": _by_figure(pair.quality),
                "missing": dict(pair.missing),
            }
            for contrast, pair in zip(plan.contrasts, found, strict=True)
        ],
        "gate": gates([pair.gate for pair in found]),
        "lines": [comparison_brief.line(pair) for pair in found],
        "figures": comparison_brief.figures(found),
        "notices": plan.notices,
        "proxies": [row._asdict() for row in proxies(plan.scorers)],
    }


def _metrics_of(contrast: Contrast) -> dict[str, list[dict[str, Any]]]:
    """The metrics of the runs of both sides, by what the sides are called."""
    sides = {contrast.name: contrast.after, contrast.against: contrast.before}
    return {f"“{name}”": [run.metrics for run in runs] for name, runs in sides.items()}


def models(plan: ComparePlan) -> pl.DataFrame:
    """A row for each run: policy, seed, run, and, where it has them, its figures on the plots' axes with the bounds of
    their intervals, and the swap lift of the baselines on the same heads."""
    lifts = [quality_key(measure) for measure in (SWAP_LIFT, *map(lift_of, BASELINE_LIFTS))]
    plotted = [axis.key for axis in (*axes_of(plan), *QUALITIES)]
    ends = [bound for key in plotted for bound in bounds(key) if any(bound in run.metrics for run in plan.runs)]
    keys = dict.fromkeys([*plotted, *ends, *lifts])
    rows = []
    for arm in plan.arms:
        for run in arm.runs:
            figures = {key: run.metrics.get(key) for key in keys}
            rows.append({"policy": arm.name, "seed": run.seed, "run": run.folder.name, **figures})
    numbers = dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(rows, schema={"policy": pl.String, "seed": pl.Int64, "run": pl.String, **numbers})


def axes_of(plan: ComparePlan) -> list[Axis]:
    """The harms that are plotted: the paper's, and those by further scorers, which may be held-out ones."""
    compared = dict.fromkeys(scorer for scorer, _ in plan.labellings.values())
    keys = {s: harm_key(s, "mean", template="neutral") for s in compared if s not in PAPER_SCORERS}
    return [
        *(harm for harm in HARMS if harm.slug in compared),
        *(axis(key, f"% neutral by {scorer}", scorer) for scorer, key in keys.items()),
    ]


def with_words(pairs: Sequence[Pair]) -> pl.DataFrame:
    """The rows of the primary endpoints, each with what it allows one to say."""
    return pl.concat(
        pair.primary.with_columns(
            verdict=pl.Series([pair.verdict(row) for row in pair.primary.to_dicts()], dtype=pl.String)
        )
        for pair in pairs
    )


def _by_figure(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows by figure, each with the columns that follow it."""
    columns = table.columns[table.columns.index("figure") + 1 :]
    return {row["figure"]: {name: row[name] for name in columns} for row in table.to_dicts()}


def _moved(contrast: Contrast, relations: Sequence[str], moves: pl.DataFrame, scorer: str) -> list[Moved]:
    """The targets that rose most and, after them, those that fell most; with the statements of
    only one of two models."""
    ranked = moves.filter(scorer=scorer).sort("difference", "target", descending=[True, False])
    ends = [
        ranked.filter(pl.col("difference") > 0).head(MOST_MOVED),
        ranked.filter(pl.col("difference") < 0).tail(MOST_MOVED),
    ]
    before, after = (asked(side[0], relations) for side in (contrast.before, contrast.after))
    return [
        Moved(
            row["target"],
            row["category"],
            row["before"],
            row["after"],
            {
                contrast.against: only_in(before, after, row["target"], row["column"]),
                contrast.name: only_in(after, before, row["target"], row["column"]),
            },
        )
        for row in pl.concat(ends).to_dicts()
    ]
