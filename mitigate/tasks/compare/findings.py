"""The findings of a comparison of runs, from its frames: what the page shows, what comparison.json holds, and the
tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.metrics import PAPER_SCORERS, harm_key
from mitigate.report import comparison as page
from mitigate.report.before_after import only_in
from mitigate.report.pareto import HARMS, QUALITIES, Axis, axis
from mitigate.report.proxies import proxies
from mitigate.tasks.compare.arms import Contrast
from mitigate.tasks.compare.figures import asked, chance
from mitigate.tasks.compare.plan import ComparePlan

MOST_MOVED = 5  # up, and as many down


def pairs(
    plan: ComparePlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, margins: Mapping[str, float]
) -> list[page.Pair]:
    """Each contrast with its figures, as the page shows it."""
    found = []
    for contrast in plan.contrasts:
        mine = moves.filter(contrast=contrast.name)
        columns = dict(mine.select("scorer", "column").unique(maintain_order=True).iter_rows())
        scorers = contrast.after[0].setting("policy.scorers")
        found.append(
            page.Pair(
                name=contrast.name,
                against=contrast.against,
                seeds=(len(contrast.before), len(contrast.after)),
                is_same=contrast.is_same,
                filtered_by=[str(scorer) for scorer in scorers] if isinstance(scorers, list) else [],
                harms=harms.filter(contrast=contrast.name),
                quality=quality.filter(contrast=contrast.name),
                moved={scorer: _moved(contrast, plan.relations, mine, scorer) for scorer in columns},
                chance={s: chance(contrast.before, column, plan.relations) for s, column in columns.items()},
                margins=margins,
            )
        )
    return found


def frames(
    plan: ComparePlan, found: Sequence[page.Pair], quality: pl.DataFrame, moves: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The tables by name."""
    return {"harms": with_words(found), "quality": quality, "moves": moves, "models": models(plan)}


def comparison(
    plan: ComparePlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, margins: Mapping[str, float]
) -> dict[str, Any]:
    """What comparison.json holds: every figure of every contrast, and its finding in words."""
    found = pairs(plan, harms, quality, moves, margins)
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
                "quality_kept": pair.quality_kept,
                "harms": {
                    row["figure"]: {key: row[key] for key in pair.harms.columns[6:]} | {"verdict": pair.verdict(row)}
                    for row in pair.harms.to_dicts()
                },
                "quality": {
                    row["figure"]: {k: row[k] for k in pair.quality.columns[2:]} for row in pair.quality.to_dicts()
                },
            }
            for contrast, pair in zip(plan.contrasts, found, strict=True)
        ],
        "lines": [page.line(pair) for pair in found],
        "notices": plan.notices,
        "proxies": [row._asdict() for row in proxies(plan.scorers)],
    }


def models(plan: ComparePlan) -> pl.DataFrame:
    """A row for each run: policy, seed, run, and its figures on the plots' axes, where it has them."""
    axes = [*axes_of(plan), *QUALITIES]
    rows = []
    for arm in plan.arms:
        for run in arm.runs:
            figures = {axis.key: run.metrics.get(axis.key) for axis in axes}
            rows.append({"policy": arm.name, "seed": run.seed, "run": run.folder.name, **figures})
    numbers = dict.fromkeys((axis.key for axis in axes), pl.Float64)
    return pl.DataFrame(rows, schema={"policy": pl.String, "seed": pl.Int64, "run": pl.String, **numbers})


def axes_of(plan: ComparePlan) -> list[Axis]:
    """The harms that are plotted: the paper's, and those by further scorers, which may be held-out ones."""
    further = dict.fromkeys(scorer for scorer, _ in plan.labellings.values() if scorer not in PAPER_SCORERS)
    keys = {scorer: harm_key(scorer, "mean", template="neutral") for scorer in further}
    return [*HARMS, *(axis(key, f"% neutral by {scorer}", scorer) for scorer, key in keys.items())]


def with_words(pairs: Sequence[page.Pair]) -> pl.DataFrame:
    """All rows of harms, each with what it allows one to say."""
    return pl.concat(
        pair.harms.with_columns(
            verdict=pl.Series([pair.verdict(row) for row in pair.harms.to_dicts()], dtype=pl.String)
        )
        for pair in pairs
    )


def _moved(contrast: Contrast, relations: Sequence[str], moves: pl.DataFrame, scorer: str) -> list[page.Moved]:
    """The targets that rose most and, after them, those that fell most; with the statements of
    only one of two models."""
    ranked = moves.filter(scorer=scorer).sort("difference", "target", descending=[True, False])
    ends = [
        ranked.filter(pl.col("difference") > 0).head(MOST_MOVED),
        ranked.filter(pl.col("difference") < 0).tail(MOST_MOVED),
    ]
    before, after = (asked(side[0], relations) for side in (contrast.before, contrast.after))
    return [
        page.Moved(
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
