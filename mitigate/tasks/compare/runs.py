"""The comparison of runs of the main job with a baseline: differences in harms and quality,
with intervals, as the library returns them, and the content of the page and of comparison.json."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from mitigate.finished import FinishedRun, Named
from mitigate.measure.base import bounds
from mitigate.measure.learnt import no_conclusion
from mitigate.report import compare as report
from mitigate.report.page import Page, write
from mitigate.tasks.compare.endpoints import Endpoints, primary, within_margins
from mitigate.tasks.compare.figures import harm_differences, moves
from mitigate.tasks.compare.pairs import Pair, gates
from mitigate.tasks.compare.quality import quality_differences
from mitigate.tasks.compare.run_groups import Contrast
from mitigate.tasks.compare.run_plan import ENDPOINTS, RunsPlan, make_plan, read_compared
from mitigate.tasks.compare.scorers import filtered_by

MOST_DIFFERENT = 5  # targets that are shown: those that rose, and as many that fell


def measure(stage: Callable[..., Any], plan: RunsPlan) -> list[Any]:
    """Measure the differences in harms and in quality, and the movement of each target. stage(name, function, *values)
    runs a stage."""
    return [
        stage("harms", harm_differences, plan.contrasts, plan.labellings, plan.relations),
        stage("quality", quality_differences, plan.contrasts, plan.relations, plan.deciding),
        stage("moves", moves, plan.contrasts, plan.labellings, plan.relations),
    ]


@dataclass(frozen=True, eq=False)
class ComparedRuns:
    """Results of a comparison of runs."""

    contrasts: list[Contrast]  # groups of runs against their baselines
    primary: pl.DataFrame  # a row for each contrast and endpoint, corrected; claims rest on these alone
    harms: pl.DataFrame  # a row for each contrast, scorer, template, measure and category: change, interval, p
    quality: pl.DataFrame  # a row for each contrast and figure of quality
    moves: pl.DataFrame  # a row for each contrast, scorer and target: the percentage neutral before and after
    notices: list[str]  # limits of the findings


def compare_runs(
    runs: Sequence[str | Path], baseline: Named = None, *, endpoints: Endpoints = ENDPOINTS
) -> ComparedRuns:
    """Compare run folders of recipe=mitigate with a baseline: a policy among them (None: the policy none), or folders.

    Runs that differ by seed alone form a group. endpoints: the figures that a claim may rest on. Raises MitigateError
    for folders that are not finished runs, and where nothing can be compared."""
    plan = make_plan(*read_compared([str(run) for run in runs], baseline), endpoints)
    harms, quality, moves = measure(lambda _, function, *values: function(*values), plan)
    tested = primary(harms, quality, plan.endpoints)
    return ComparedRuns(plan.contrasts, tested, harms, quality, moves, plan.notices)


def page_of(
    plan: RunsPlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame, *, run: Path, **about: Any
) -> Page:
    """The page, with the tables that are stored beside it."""
    found, rows = pairs(plan, harms, quality, moves), models(plan)
    tables = {
        "primary": pl.concat(
            pair.primary.with_columns(verdict=pl.Series(map(pair.verdict, pair.primary.to_dicts()), dtype=pl.String))
            for pair in found
        ),
        "margins": pl.concat(pair.within for pair in found),
        "harms": harms,
        "quality": quality,
        "moves": moves,
        "models": rows,
    }
    links = _links(plan.runs, run)
    fields = {"tables": tables, "demonstration": plan.demonstration, "notices": plan.notices, **about}
    return report.page(found, rows, moves, links, **fields)


def overview(plan: RunsPlan, *figures: pl.DataFrame) -> dict[str, Any]:
    """The content of comparison.json. figures: the results of measure."""
    found = pairs(plan, *figures)
    return {
        "demonstration": plan.demonstration,
        "contrasts": [
            {
                "policy": pair.name,
                "baseline": pair.against,
                "runs": [str(run.folder) for run in contrast.after],
                "baseline_runs": [str(run.folder) for run in contrast.before],
                "several_seeds": pair.fewest > 1,
                "identical": pair.is_same,
                "seeds": list(pair.seeds),
                "quality_kept": pair.quality_kept,
                "gate": pair.gate,
                "sentence": f"{pair.state}. {pair.hedge}",
                "primary": {
                    row.pop("endpoint"): {name: value for name, value in row.items() if name != "contrast"}
                    | {"verdict": pair.verdict({**row, "endpoint": kind})}
                    for row, kind in zip(pair.primary.to_dicts(), pair.primary["endpoint"], strict=True)
                },
                "margins": _by_figure(pair.within),
                "harms": _by_figure(pair.harms),
                "quality": _by_figure(pair.quality),
            }
            for contrast, pair in zip(plan.contrasts, found, strict=True)
        ],
        "gate": gates([pair.gate for pair in found]),
        "lines": report.everything(found).splitlines(),
        "figures": report.console(found),
        "notices": plan.notices,
    }


def write_page(plan: RunsPlan, *figures: pl.DataFrame, folder: Path, run: Path, **about: Any) -> dict[str, Any]:
    """Write comparison.html, its pictures and tables. about: the page's command, stages and facts."""
    write(page_of(plan, *figures, run=run, **about), folder, "comparison.html")
    return {"notices": plan.notices}


def pairs(plan: RunsPlan, harms: pl.DataFrame, quality: pl.DataFrame, moves: pl.DataFrame) -> list[Pair]:
    """Each contrast with its figures, as on the page."""
    tested = primary(harms, quality, plan.endpoints)
    within = within_margins(quality, tested, plan.endpoints.margins)
    found = []
    for contrast in plan.contrasts:
        primary_rows, within_rows, harm_rows, quality_rows, moved = (
            table.filter(contrast=contrast.key) for table in (tested, within, harms, quality, moves)
        )
        most = {
            scorer: _most_different(moved.filter(scorer=scorer))
            for scorer in moved["scorer"].unique(maintain_order=True)
        }
        sides = {contrast.name: contrast.after, contrast.against: contrast.before}
        found.append(
            Pair(
                name=contrast.name,
                against=contrast.against,
                seeds=(len(contrast.before), len(contrast.after)),
                is_same=contrast.is_same,
                filtered_by=filtered_by(contrast.after[0]),
                primary=primary_rows,
                within=within_rows,
                harms=harm_rows,
                quality=quality_rows,
                role_scorers=list(plan.scorers),
                unlearnt=no_conclusion({f"“{name}”": [run.metrics for run in runs] for name, runs in sides.items()}),
                declared=plan.endpoints.declared,
                moved=most,
            )
        )
    return found


def _most_different(targets: pl.DataFrame) -> pl.DataFrame:
    """The targets whose `difference` is largest, then those whose `difference` is most below 0."""
    ranked = targets.sort("difference", "target", descending=[True, False])
    more, less = ranked.filter(pl.col("difference") > 0), ranked.filter(pl.col("difference") < 0)
    return pl.concat([more.head(MOST_DIFFERENT), less.tail(MOST_DIFFERENT)])


def _by_figure(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows by figure, each with the columns that follow it."""
    columns = table.columns[table.columns.index("figure") + 1 :]
    return {row["figure"]: {column: row[column] for column in columns} for row in table.to_dicts()}


def models(plan: RunsPlan) -> pl.DataFrame:
    """A row for each run: policy, seed, run, and, if it has them, its figures on the plots' axes with the bounds of
    their intervals."""
    axes = [*report.harm_axes(dict.fromkeys(scorer for scorer, _ in plan.labellings.values())), *report.QUALITIES]
    keys = [name for axis in axes for name in (axis, *bounds(axis))]
    keys = [key for key in keys if any(key in run.metrics for run in plan.runs)]
    rows = [(arm.name, run.seed, run.folder.name, *map(run.metrics.get, keys)) for arm in plan.arms for run in arm.runs]
    schema = {"policy": pl.String, "seed": pl.Int64, "run": pl.String, **dict.fromkeys(keys, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _links(runs: Sequence[FinishedRun], folder: Path) -> dict[str, str]:
    """The links from the comparison's page to those of runs in the same folder, by run."""
    beside = [run.folder for run in runs if run.folder.parent == folder.resolve().parent]
    return {run.name: f"../{quote(run.name)}/report.html" for run in beside if (run / "report.html").is_file()}
