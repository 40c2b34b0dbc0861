"""Findings of a comparison of runs, from its frames: the content of the page and of comparison.json, and the tables."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from mitigate import metrics
from mitigate.report import comparison_brief
from mitigate.report.examples import only_in
from mitigate.report.pair import Moved, Pair
from mitigate.report.pareto import HARMS, QUALITIES, Axis, axis
from mitigate.report.reasons import why
from mitigate.report.scorer_reliability import proxies
from mitigate.report.verdicts import gates
from mitigate.tasks.compare.endpoints import Endpoints, primary, with_own_scorers, within_margins
from mitigate.tasks.compare.figures import chance, statements_with
from mitigate.tasks.compare.plan import ComparePlan
from mitigate.tasks.compare.quality import COSTS, OF_THE_PROBE
from mitigate.tasks.compare.run_groups import Contrast
from mitigate.tasks.compare.scorers import filtered_by
from mitigate.tasks.quality import BY_LABEL
from mitigate.training_checks import no_conclusion

MOST_MOVED = 5  # up, and as many down
FURTHER = (metrics.SWAP_LIFT, metrics.ABOUT_PERPLEXITY, metrics.ABOUT_BITS)
LISTED = {*COSTS, *OF_THE_PROBE, *(metrics.quality(name).key for name in FURTHER)}
NOT_MEASURED = "not measured"
OTHER_SCORERS = "the runs were labelled by different scorers"
OTHER_ITEMS = "the runs were not asked the same"


def pairs(
    plan: ComparePlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, endpoints: Endpoints
) -> list[Pair]:
    """Each contrast with its figures, as on the page."""
    endpoints = with_own_scorers(endpoints, plan.scorers)
    tested = primary(harms, quality, endpoints)
    within = within_margins(quality, tested, endpoints.margins)
    found = []
    for contrast in plan.contrasts:
        mine = moves.filter(contrast=contrast.name)
        columns = dict(mine.select("scorer", "column").unique(maintain_order=True).iter_rows())
        sides = {contrast.name: contrast.after, contrast.against: contrast.before}
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
                unlearnt=no_conclusion({f"“{name}”": [run.metrics for run in runs] for name, runs in sides.items()}),
                declared=endpoints.declared,
                moved={scorer: _moved(contrast, plan.relations, mine, scorer) for scorer in columns},
                chance={s: chance(contrast.before, column, plan.relations) for s, column in columns.items()},
            )
        )
    return found


def frames(
    plan: ComparePlan, found: Sequence[Pair], quality: pl.DataFrame, moves: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Tables by name."""
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
    """Content of comparison.json: every figure of every contrast, and its finding in words."""
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
        "proxies": proxies(plan.scorers),
    }


def models(plan: ComparePlan) -> pl.DataFrame:
    """A row for each run: policy, seed, run, and, if it has them, its figures on the plots' axes with the bounds of
    their intervals, and the swap lift of the baselines on the same heads."""
    measures = (metrics.SWAP_LIFT, *map(metrics.lift_of, metrics.BASELINE_LIFTS))
    lifts = [metrics.quality_key(measure) for measure in measures]
    plotted = [axis.key for axis in (*axes_of(plan), *QUALITIES)]
    ends = [bound for key in plotted for bound in metrics.bounds(key) if any(bound in run.metrics for run in plan.runs)]
    keys = dict.fromkeys([*plotted, *ends, *lifts])
    rows = []
    for arm in plan.arms:
        for run in arm.runs:
            figures = {key: run.metrics.get(key) for key in keys}
            rows.append({"policy": arm.name, "seed": run.seed, "run": run.folder.name, **figures})
    numbers = dict.fromkeys(keys, pl.Float64)
    return pl.DataFrame(rows, schema={"policy": pl.String, "seed": pl.Int64, "run": pl.String, **numbers})


def axes_of(plan: ComparePlan) -> list[Axis]:
    """Plotted harms: the paper's, and those by further scorers, which may be held-out ones."""
    compared = dict.fromkeys(scorer for scorer, _ in plan.labellings.values())
    further = [scorer for scorer in compared if scorer not in metrics.PAPER_SCORERS]
    keys = [metrics.harm_key(scorer, "mean", template="neutral") for scorer in further]
    return [
        *(harm for harm in HARMS if harm.slug in compared),
        *(axis(key, f"% neutral by {scorer}", scorer) for scorer, key in zip(further, keys, strict=True)),
    ]


def with_words(pairs: Sequence[Pair]) -> pl.DataFrame:
    """The rows of the primary endpoints, each with its verdict in words."""
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
    """The targets that rose most and, after them, those that fell most; with the statements of only one of two
    models."""
    ranked = moves.filter(scorer=scorer).sort("difference", "target", descending=[True, False])
    ends = [
        ranked.filter(pl.col("difference") > 0).head(MOST_MOVED),
        ranked.filter(pl.col("difference") < 0).tail(MOST_MOVED),
    ]
    before, after = (statements_with(side[0], relations) for side in (contrast.before, contrast.after))
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


def missing(contrast: Contrast, compared: Iterable[str], scorers: Sequence[str]) -> dict[str, str]:
    """Figures in the metrics of some run that are not compared, each with the reason: key -> reason.

    compared: keys that are. scorers: those by which triples and statements are neutral or polarised, in all runs."""
    runs, done = [*contrast.before, *contrast.after], set(compared)
    found = {}
    for key in dict.fromkeys(key for run in runs for key in run.metrics):
        parsed = metrics.find(key)
        if key in done or parsed is None or parsed.end or parsed.variant or parsed.stem not in LISTED:
            continue
        lacking = [run for run in runs if run.metrics.get(key) is None]
        reasons = dict.fromkeys(why(run.metrics, key) or NOT_MEASURED for run in lacking)
        some = f" (in {len(lacking)} of {len(runs)} runs)" if len(lacking) < len(runs) else ""
        by_labels = parsed.part.rpartition("/")[2] in BY_LABEL and not scorers
        otherwise = OTHER_SCORERS if by_labels else OTHER_ITEMS
        found[key] = " or ".join(reasons) + some if lacking else otherwise
    return found
