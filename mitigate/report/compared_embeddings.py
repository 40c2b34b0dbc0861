"""Two runs on knowledge-graph embeddings side by side, as one HTML page that loads nothing, and in short on the
terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from mitigate import metrics as keys
from mitigate.metrics import metric
from mitigate.report.html import Page, render_page
from mitigate.report.kge import meanings
from mitigate.report.kge_plots import rankings
from mitigate.report.metric_display import number
from mitigate.report.run_figures import Picture
from mitigate.report.table import Table, as_text, with_bounds
from mitigate.report.table_declarations import declared

MOVED = 15  # professions of a table
BETTER, WORSE, UNSHOWN, NO_INTERVAL = "better", "worse", "no difference shown", "unknown: no interval"


@dataclass(frozen=True, kw_only=True, eq=False)
class KgeComparison(Page):
    titles: tuple[str, str]
    names: tuple[str, str]  # value a, value b
    sensitive: str
    figures: pl.DataFrame  # key, first, second, change, low, high, trainings
    professions: pl.DataFrame  # tasks.compare.embeddings.both_rankings
    agreement: Mapping[str, float | None]
    differences: Sequence[Any] = ()  # no figures of statements, whose headlines W&B shows

    @property
    def frames(self) -> dict[str, pl.DataFrame]:
        return {"figures": self.figures, "professions": self.professions}

    @cached_property
    def pictures(self) -> list[Picture]:
        first, second = self.titles
        alt = (
            f"Scatter plot of {self.professions.height} professions, {first} across and {second} upwards. The places "
            f"of {', '.join(self.professions['profession'].head(3))} differ most."
        )
        title = "The change of each profession's score in both runs"
        return [Picture("rankings", "rankings", title, alt, rankings(self.professions, self.titles))]


def render(found: KgeComparison) -> str:
    moved = found.professions.head(MOVED)
    return render_page(
        "compared_embeddings.html.jinja",
        found,
        sentences=list(sentences(found)),
        figures=_figure_table(found),
        moved=declared("two embeddings professions", moved, names=found.names, titles=found.titles),
        meanings=meanings(metric(key) for key in found.figures["key"]),
    )


def _figure_table(found: KgeComparison) -> Table:
    cells = {
        "figure": lambda row: metric(row["key"]).named,
        "difference": lambda row: with_bounds(row, "change", metric(row["key"]).decimals, of=""),
        "second_is": lambda row: verdict(row, best_of(found, row)),
    }
    return declared("two embeddings", found.figures, cells=cells, titles=found.titles)


def best_of(found: KgeComparison, row: Mapping[str, Any]) -> tuple[float, float] | None:
    """The value at which a figure is best, in both runs, if there is one: chance need not be the same in both."""
    best = metric(row["key"]).best
    if "/" not in best:
        return (float(best), float(best)) if best else None
    return next(iter(found.figures.filter(key=best).select("first", "second").iter_rows()), None)


def verdict(row: Mapping[str, Any], best: tuple[float, float] | None = None) -> str:
    """The finding about the second run, as far as the interval of the difference shows it; a difference that is 0 as
    shown is none. best: as best_of returns it.

    The distance from what is best has an interval as wide as the figure's own, whichever side of it the runs are on."""
    if row["low"] is None:
        return NO_INTERVAL
    change, half, better = row["change"], (row["high"] - row["low"]) / 2, metric(row["key"]).better
    if best is not None:
        change, better = abs(row["first"] - best[0]) - abs(row["second"] - best[1]), "up"
    if abs(change) <= half or not round(change, metric(row["key"]).decimals):
        return UNSHOWN
    if better not in ("up", "down"):
        return "higher" if change > 0 else "lower"
    return BETTER if (change > 0) == (better == "up") else WORSE


def sentences(found: KgeComparison) -> Iterator[str]:
    first, second = found.titles
    together, shared = found.agreement["ranked_alike"], found.agreement["shared_ends"]
    yield (
        f"{first} and {second} rank {found.professions.height:,} professions by their change towards {found.names[0]} "
        f"with a rank correlation of {number(together)}."
    )
    if shared is not None:
        yield f"The two share {number(shared, 0)}\u00a0% of the professions at the ends of their rankings."
    rows = {row["key"]: row for row in found.figures.iter_rows(named=True)}
    for key in (keys.KGE_MRR, keys.KGE_CORRELATION):
        if key in rows:
            said = in_words(found, rows[key])
            yield f"{said[:1].upper()}{said[1:]}."


def in_words(found: KgeComparison, row: Mapping[str, Any]) -> str:
    """A figure of both runs: "MRR: 0.187 and 0.268, a difference of 0.081 [0.070, 0.092] (complex is better)"."""
    places, said = metric(row["key"]).decimals, verdict(row, best_of(found, row))
    whose = said if said in (UNSHOWN, NO_INTERVAL) else f"{found.titles[1]} is {said}"
    difference = with_bounds(row, "change", places, of="").line
    both = " and ".join(number(row[side], places) for side in ("first", "second"))
    return f"{metric(row['key']).name}: {both}, a difference of {difference} ({whose})"


def lines(found: KgeComparison) -> list[str]:
    said = list(sentences(found))[:2]
    return [f"{found.titles[1]} compared with {found.titles[0]}", *said, *as_text(_figure_table(found)).splitlines()]
