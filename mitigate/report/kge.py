"""A run on knowledge-graph embeddings as one HTML page that loads nothing, and in short on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import kge_key, metric
from mitigate.report import legend
from mitigate.report.html import Page, render_page
from mitigate.report.kge_plots import null_strip, scatter
from mitigate.report.legend import number
from mitigate.report.run_figures import Picture
from mitigate.runs import files

TITLES = {"": "as trained", "downsampled": "downsampled to parity", "projected": "attribute projected out"}
BEFORE_AND_AFTER = (
    keys.KGE_MRR,
    *map(kge_key, ("hits_1", "hits_3", "hits_10")),
    *map(kge_key, ("parity", "parity_by_chance", "predictive_parity", "accuracy", "amplification")),
    *map(kge_key, ("leakage_linear", "leakage_linear_by_chance", "leakage_nonlinear", "leakage_nonlinear_by_chance")),
    keys.KGE_CORRELATION,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Page):
    """The content of the page; an absent part stays empty."""

    title: str  # of the graph
    model: str
    data: str
    sensitive: str
    names: tuple[str, str]  # value a, value b
    fewest: int
    top: int
    metrics: Mapping[str, Any]
    professions: pl.DataFrame  # as tasks.kge.figures.profession_table has them
    changes: pl.DataFrame  # model, profession, change
    null: pl.DataFrame | None
    correlations: Sequence[float | None]  # with log count ratios, of each training
    null_correlations: Sequence[float | None]
    pairs: pl.DataFrame
    ranks: pl.DataFrame  # model, mrr, hits_1 ...
    others: Mapping[str, pl.DataFrame]
    variants: Sequence[str] = field(default_factory=tuple)

    @cached_property
    def pictures(self) -> list[Picture]:
        """The figures, drawn once."""
        return list(_pictures(self))


def write(path: Path, results: Results) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(results))


def render(results: Results) -> str:
    """The page's HTML, always the same for the same results."""
    return render_page(
        "kge.html.jinja",
        results,
        sentences=list(findings(results)),
        tables=both_ways(results.professions, results.names, results.top),
        published=published(results.data, results.model),
        variants={"": TITLES[""], **{name: TITLES[name] for name in results.variants}},
        rows=[metric(key) for key in BEFORE_AND_AFTER],
        key_of=key_of,
        pairs=results.pairs.filter(pl.col("model") == results.pairs["model"].first()).rows(named=True),
        is_linear=float(results.changes["deviation"].max() or 0) == 0,  # type: ignore[arg-type]
        k=keys,
    )


def key_of(key: str, variant: str) -> str:
    """The key of a figure as trained, or after a mitigation."""
    return next(iter(keys.prefixed({key: None}, variant=variant)))


def findings(results: Results) -> Iterator[str]:
    """The findings in words, the headline first."""
    m, (a, b) = results.metrics, results.names
    with_counts = _with_interval(m, keys.KGE_CORRELATION)
    yield (
        f"Over {m[keys.KGE_PROFESSIONS]:,} professions, the change of scores towards {a} has a rank correlation of "
        f"{with_counts} with the ratio of {a} to {b} in the graph."
    )
    low, high = (m.get(key) for key in keys.bounds(keys.KGE_NULL))
    if low is not None and high is not None and m[keys.KGE_CORRELATION] is not None:
        outside = not low <= m[keys.KGE_CORRELATION] <= high
        place = "outside this band" if outside else "within this band: not shown to differ from chance"
        yield (
            f"The 95 % band of graphs with permuted attributes is {number(low)} to {number(high)} (from "
            f"{m[keys.KGE_NULL_GRAPHS]} graphs). The correlation is {place}."
        )
    else:
        yield "No band of permuted graphs was made (kge.permuted), so that chance cannot be ruled out."
    said = published(results.data, results.model)
    beside = f"; published is {said[0]['mrr']:.3f} ({said[0]['source']})" if said else "; no published figure is known"
    count = "one training" if m[keys.KGE_TRAININGS] == 1 else f"{m[keys.KGE_TRAININGS]} trainings"
    yield (
        f"The embeddings ({results.model}, {count}) have a filtered MRR of "
        f"{_with_interval(m, keys.KGE_MRR, 3)} on test triples{beside}."
    )


def both_ways(professions: pl.DataFrame, names: Sequence[str], top: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """The professions that value a raises most, and those that value b does, as the paper's tables: of each table the
    value and its rows. Those whose change goes the other way are left out."""
    first = professions.filter(pl.col("change") > 0).head(top)
    second = professions.filter(pl.col("change") < 0).reverse().head(top)
    return [(names[0], first.rows(named=True)), (names[1], second.rows(named=True))]


def published(data: str, model: str) -> list[dict[str, Any]]:
    """Published figures of the model on this graph (data/kge_published.csv): mrr, source."""
    with resources.files("mitigate").joinpath("data/kge_published.csv").open("rb") as file:
        return pl.read_csv(file).filter(data=data, model=model).rows(named=True)


def console(metrics: Mapping[str, Any], professions: pl.DataFrame, names: Sequence[str], top: int) -> str:
    """The figures, and the professions at both ends."""
    lines = []
    for key in (keys.KGE_CORRELATION, keys.KGE_NULL, keys.KGE_AGREEMENT, keys.KGE_PAIR_CORRELATION):
        if metrics.get(key) is not None:
            lines.append(f"  {metric(key).name:<62}{_with_interval(metrics, key)}")
    for variant, title in TITLES.items():
        if key_of(keys.KGE_MRR, variant) in metrics:
            lines.append(f"\n  {title}")
            lines += [
                f"    {metric(key).named:<60}{_with_interval(metrics, key_of(key, variant), metric(key).decimals)}"
                for key in BEFORE_AND_AFTER
            ]
    for name, rows in both_ways(professions, names, top):
        lines.append(f"\n  towards {name:<38}{'change':>10}{names[0][:12]:>14}{names[1][:12]:>14}")
        lines += [
            f"    {row['profession'][:40]:<42}{number(row['change'], 4):>10}{row['of_a']:>14,}{row['of_b']:>14,}"
            for row in rows
        ]
    return "\n".join(lines)


def _with_interval(metrics: Mapping[str, Any], key: str, decimals: int = 2) -> str:
    value, bounds = number(metrics.get(key), decimals), legend.interval(metrics, key, decimals)
    return f"{value} {bounds}" if bounds else value


def _pictures(results: Results) -> Iterator[Picture]:
    order = results.changes["profession"].unique(maintain_order=True)
    rows = pl.DataFrame({"profession": order, "row": np.arange(len(order))})
    professions = results.professions.join(rows, on="profession", maintain_order="left")
    changes = results.changes["change"].to_numpy().reshape(-1, len(order))
    first, second = (professions["profession"].head(3), professions["profession"].reverse().head(3))
    yield Picture(
        "scatter",
        "scatter",
        "Score and counts",
        f"Scatter plot of {professions.height} professions. Most towards {results.names[0]}: {', '.join(first)}; "
        f"towards {results.names[1]}: {', '.join(second)}.",
        scatter(professions, changes, results.names),
    )
    null = [value for value in results.null_correlations if value is not None]
    found = [value for value in results.correlations if value is not None]
    if null and found:
        low, high = (results.metrics.get(key) for key in keys.bounds(keys.KGE_NULL))
        band = None if low is None or high is None else (low, high)
        yield Picture(
            "null",
            "null",
            "Rank correlation, and chance",
            f"Rank correlations of {len(found)} trainings, {min(found):.2f} to {max(found):.2f}, and of {len(null)} "
            f"permuted graphs, {min(null):.2f} to {max(null):.2f}.",
            null_strip(found, null, band),
        )
