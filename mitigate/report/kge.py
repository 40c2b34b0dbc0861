"""A run on knowledge-graph embeddings as one HTML page that loads nothing, and in short on the terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mitigate.measure.base import ENDS, PERTURBED, PROJECTED, REGULARISED, Measure, bounds, find
from mitigate.measure.base import Figure as Key
from mitigate.package_data import frame_of
from mitigate.report.drawing import BOTH, FAVOURITISM, INK, KEPT, PREJUDICE, legend, name_points, panel, styled
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number
from mitigate.report.metrics_table import crossed, measured
from mitigate.report.run_figures import Picture
from mitigate.report.table import Cell, Column, Table, as_text, text
from mitigate.report.table_declarations import declared

TITLES = {
    "": "as trained",
    REGULARISED: "penalised in training",
    PROJECTED: "attribute projected out",
    PERTURBED: "control: moved at random",
}
NAMED = 14  # professions
LONGEST_LINE = 60  # characters that fit beside the axes
MARKERS = ("o", "v", "^", "D", "s", "P", "X")  # as trained, and after each mitigation
COLOURS = (INK, PREJUDICE, FAVOURITISM, BOTH, KEPT, PREJUDICE, INK)
VALUES_SHOWN = 12
FRONT = {"parity": "demographic parity distance, %", "leakage_nonlinear": "leakage to a nonlinear probe"}
"""The figures of bias that are shown against MRR, and their axes."""
CORRELATION, MRR = "kge/rank_correlation", "kge/mrr"
BEFORE_AND_AFTER = (
    *(MRR, "kge/hits_1", "kge/hits_3", "kge/hits_10", "kge/parity", "kge/parity_by_chance", "kge/predictive_parity"),
    *("kge/accuracy", "kge/amplification", "kge/leakage_linear", "kge/leakage_linear_by_chance"),
    *("kge/leakage_nonlinear", "kge/leakage_nonlinear_by_chance", CORRELATION),
)


def metric(key: str) -> Measure:
    """The measure of a key, with its k filled in."""
    figure = find(key) or Key(key)
    title = figure.declared.title.replace("{k}", str(figure.k))
    return replace(figure.declared, key=key, title=title)


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Page):
    """The content of the page; an absent part stays empty."""

    title: str  # of the graph
    model: str
    data: str
    sensitive: str
    names: tuple[str, str]  # value a, value b
    values: pl.DataFrame  # value, people; the last row are people of unknown value
    fewest: int
    top: int
    metrics: Mapping[str, Any]
    professions: pl.DataFrame  # as tasks.kge.figures.profession_table has them
    changes: pl.DataFrame  # model, profession, change
    pairs: pl.DataFrame
    ranks: pl.DataFrame  # model, mrr, hits_1 ...
    others: Mapping[str, pl.DataFrame]
    variants: Sequence[str] = field(default_factory=tuple)

    @cached_property
    def pictures(self) -> list[Picture]:
        return list(_pictures(self))


def render(results: Results) -> str:
    names, metrics = results.names, results.metrics
    values = pl.concat([results.values.head(VALUES_SHOWN), results.values.tail(1)]).unique(maintain_order=True)
    figures = [(metric(key).named, key) for key in BEFORE_AND_AFTER]
    variants = {name: TITLES[name] for name in ("", *results.variants)}
    first_training = results.pairs.filter(pl.col("model") == results.pairs["model"].first())
    ends = both_ways(results.professions, names, results.top)
    return render_page(
        "kge.html.jinja",
        results,
        sentences=list(findings(results)),
        published=published(results.data, results.model),
        ranks=_rank_table(results),
        values=declared("embeddings values", values, sensitive=results.sensitive),
        towards=[
            declared("embeddings professions towards one", rows, names=names, name=name, first_in_order=order)
            for (name, rows), order in zip(ends, ("", ", the most negative change first"), strict=True)
        ],
        all_professions=declared("embeddings all professions", results.professions, names=names),
        certainty=_certainty_table(metrics),
        pairs=declared("embeddings pairs", first_training, cells=PAIR_CELLS),
        predictions=crossed("embeddings before and after", metrics, figures, variants, key_of),
        mitigated=bool(results.variants),
        meanings=meanings(map(metric, BEFORE_AND_AFTER)),
        pair_agreement=metrics["kge/pairs/agreement"],
        is_linear=not results.changes["deviation"].max(),
    )


def meanings(metrics: Iterable[Measure]) -> dict[str, str]:
    """The meaning of each figure and its source, without those that have no meaning of their own."""
    return {
        row.named: f"{row.meaning} {row.source}." if row.source else row.meaning
        for row in metrics
        if row.family == "kge" and not row.name.endswith("by_chance") and "hits" not in row.name
    }


def _rank_table(results: Results) -> Table:
    """The ranks of each training, and published ones."""
    hits = pl.col("hits_1", "hits_3", "hits_10") * 100
    rows = results.ranks.with_columns(pl.col("model").str.replace_all("_", " "), hits).to_dicts()
    stated = published(results.data, results.model)
    rows += [{"model": f"published: {row['source']}", "mrr": row["mrr"]} for row in stated]
    return declared("embeddings ranks", rows, title=results.title, model=results.model)


def _pair(row: Mapping[str, Any]) -> str:
    return "mean of pairs drawn at random" if row["person_a"] is None else "{person_a} and {person_b}".format_map(row)


PAIR_CELLS = {
    "pair": _pair,
    "towards_first": lambda row: row["most_a"] or None,
    "towards_second": lambda row: row["most_b"] or None,
}
CERTAINTY = (CORRELATION, "kge/seeds/agreement", "kge/seeds/shared_ends", "kge/models/agreement")


def _certainty_table(metrics: Mapping[str, Any]) -> Table:
    def value(row: Measure) -> Cell:
        cell = measured(metrics, row.key)
        return cell._replace(text=f"{cell.text} %") if row.unit == "%" else cell

    found = [metric(key) for key in CERTAINTY if metrics.get(key) is not None]
    return declared("embeddings certainty", found, cells={"value_with_unit": value})


def front_table(metrics: Mapping[str, Any], variants: Sequence[str]) -> pl.DataFrame:
    """Bias and MRR before and after mitigations: columns mitigation, mrr, mrr_low, mrr_high, and the same of FRONT's
    figures, also by chance."""
    names = ["mrr", *(f"{name}{end}" for name in FRONT for end in ("", "_by_chance"))]
    columns = [f"{name}{end}" for name in names for end in ENDS]
    rows = [
        {"mitigation": TITLES[variant]} | {name: metrics.get(key_of(f"kge/{name}", variant)) for name in columns}
        for variant in ("", *variants)
    ]
    return pl.DataFrame(rows, schema={"mitigation": pl.String} | dict.fromkeys(columns, pl.Float64))


def key_of(key: str, variant: str) -> str:
    """The key of a figure as trained, or after a mitigation."""
    return f"{variant}/{key}" if variant else key


def findings(results: Results) -> Iterator[str]:
    m, (a, b) = results.metrics, results.names
    with_counts = measured(m, CORRELATION).line
    yield (
        f"Over {m['kge/professions']:,} professions, the change of scores towards {a} has a rank correlation of "
        f"{with_counts} with the ratio of {a} to {b} in the graph."
    )
    said = published(results.data, results.model)
    beside = f"; published is {said[0]['mrr']:.3f} ({said[0]['source']})" if said else "; no published figure is known"
    count = "one training" if m["kge/trainings"] == 1 else f"{m['kge/trainings']} trainings"
    yield (
        f"The embeddings ({results.model}, {count}) have a filtered MRR of "
        f"{measured(m, MRR).line} on test triples{beside}."
    )


def both_ways(professions: pl.DataFrame, names: Sequence[str], top: int) -> list[tuple[str, list[dict[str, Any]]]]:
    """The professions that value a raises most, and those that value b does, as the paper's tables: of each table the
    value and its rows. Those whose change goes the other way are left out."""
    first = professions.filter(pl.col("change") > 0).head(top)
    second = professions.filter(pl.col("change") < 0).reverse().head(top)
    return [(names[0], first.rows(named=True)), (names[1], second.rows(named=True))]


def published(data: str, model: str) -> list[dict[str, Any]]:
    """Published figures of the model on this graph (data/kge_published.csv): mrr, source."""
    return frame_of("kge_published.csv").filter(data=data, model=model).rows(named=True)


def console(metrics: Mapping[str, Any], professions: pl.DataFrame, names: Sequence[str], top: int) -> str:
    """The figures, and the professions at both ends."""
    certain = (CORRELATION, "kge/seeds/agreement", "kge/pairs/rank_correlation")
    rows = {"": [(metric(key).title, key) for key in certain if metrics.get(key) is not None]}
    for variant, title in TITLES.items():
        if key_of(MRR, variant) in metrics:
            rows[title] = [(metric(key).named, key_of(key, variant)) for key in BEFORE_AND_AFTER]
    value = Column("", lambda row: measured(metrics, row[1]))
    change = Column("change", "change", show=4)
    people = [Column(name[:12], column) for name, column in zip(names, ("of_a", "of_b"), strict=True)]
    ends = [
        as_text(Table("", [text(f"towards {name}", lambda row: row["profession"][:40]), change, *people], found))
        for name, found in both_ways(professions, names, top)
    ]
    return "\n\n".join([as_text(Table("", [text("", lambda row: row[0]), value], rows)).lstrip("\n"), *ends])


def _pictures(results: Results) -> Iterator[Picture]:
    order = results.changes["profession"].unique(maintain_order=True)
    rows = pl.DataFrame({"profession": order, "row": np.arange(len(order))})
    professions = results.professions.join(rows, on="profession", maintain_order="left")
    changes = results.changes["change"].to_numpy().reshape(-1, len(order))
    ranked = professions["profession"]
    first, second = (", ".join(names.head(3)) for names in (ranked, ranked.reverse()))
    alt = (
        f"Scatter plot of {professions.height} professions. Most towards {results.names[0]}: {first}; towards "
        f"{results.names[1]}: {second}."
    )
    yield Picture("scatter", "scatter", "Score and counts", alt, scatter(professions, changes, results.names))
    if results.variants:
        points = front_table(results.metrics, results.variants)
        for name, axis in FRONT.items():
            places = "; ".join(
                f"{row['mitigation']} {number(row['mrr'], 3)} and {number(row[name], 2)}"
                for row in points.rows(named=True)
            )
            alt = f"Mean reciprocal rank and {axis}: {places}."
            yield Picture(f"front_{name}", "front", f"MRR and {axis}", alt, front(points, name, axis))


@styled
def scatter(professions: pl.DataFrame, changes: np.ndarray, names: Sequence[str]) -> Figure:
    """The change of each profession's score against its log count ratio: the mean over seeds, and each seed.
    professions: in any order, with the columns row, log_ratio, change; changes: (seeds, professions), by row."""
    figure, axes = panel(4.2)
    across, change = professions["log_ratio"].to_numpy(), professions["change"].to_numpy()
    if len(changes) > 1:
        for number, row in enumerate(changes[:, professions["row"].to_numpy()]):
            label = None if number else "single seed"
            axes.plot(across, row, ".", color=INK, ms=2.5, alpha=0.45, label=label)
    above = change > 0
    for chosen, colour, marker, name in ((above, FAVOURITISM, "o", names[0]), (~above, PREJUDICE, "^", names[1])):
        points, label = (across[chosen], change[chosen]), fill(f"towards {name}", LONGEST_LINE)
        axes.scatter(*points, s=18, c=colour, marker=marker, alpha=0.8, lw=0, label=label)
    axes.axhline(0, color=INK, lw=0.6)
    axes.set_xlabel(fill(f"log ratio of counts, {names[0]} to {names[1]}", LONGEST_LINE))
    axes.set_ylabel("change of score, equation 1")
    legend(axes, columns=1 if max(map(len, names)) > LONGEST_LINE // 3 else 2)
    _name_outliers(figure, axes, professions["profession"], across, change)
    return figure


@styled
def front(points: pl.DataFrame, figure_name: str, axis: str) -> Figure:
    """A figure of bias against MRR, before and after mitigations: means with their intervals over trainings, and the
    bias by chance. points: as report.kge.front_table has them."""
    figure, axes = panel(3.2)
    for marker, colour, row in zip(MARKERS, COLOURS, points.rows(named=True), strict=False):
        if row[figure_name] is None or row["mrr"] is None:
            continue
        reach = _reach(row, figure_name), _reach(row, "mrr")
        style = {"color": colour, "ms": 5, "lw": 0.8, "label": row["mitigation"]}
        axes.errorbar(row["mrr"], row[figure_name], *reach, marker, **style)
    if chance := points[f"{figure_name}_by_chance"].drop_nulls().to_list():
        axes.axhline(float(np.mean(chance)), color=INK, lw=0.8, ls=":", label="by chance")
    axes.locator_params("x", nbins=6)
    axes.set_xlabel("mean reciprocal rank, higher is better")
    axes.set_ylabel(axis)
    legend(axes, columns=2)
    return figure


def _reach(row: Mapping[str, Any], name: str) -> list[list[float]] | None:
    """The lengths of an error bar below and above a figure; None without an interval."""
    low, high = (row[bound] for bound in bounds(name))
    return None if low is None or high is None else [[row[name] - low], [high - row[name]]]


def _name_outliers(figure: Figure, axes: Axes, professions: pl.Series, ratio: np.ndarray, change: np.ndarray) -> None:
    """Write the names of professions with the largest changes and furthest from a straight line through all, where
    there is space."""
    slope, start = np.polyfit(ratio, change, 1) if np.ptp(ratio) else (0.0, float(change.mean()))
    furthest = np.argsort(-np.abs(change - start - slope * ratio), kind="stable")[: NAMED // 2]
    order = np.argsort(-np.abs(change), kind="stable")
    chosen = list(dict.fromkeys([*furthest.tolist(), *order.tolist()]))[:NAMED]
    name_points(figure, axes, professions.to_list(), np.stack([ratio, change], axis=1), chosen)
