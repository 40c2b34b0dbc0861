"""Ratings of statements by people, as a page and on the terminal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate.package_data import frame_of
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number, signed
from mitigate.report.table import Column, Table, as_text, grouped, text, with_bounds
from mitigate.report.table_declarations import column, declared, present
from mitigate.report.verdicts import listed, p_value
from mitigate.words.outside_text import counted

LABELS = ("prejudice", "neutral", "favouritism")
FIGURE_NAMES = {"HNM": "human neutral mean (HNM)"}
PAIR = ("baseline", "source", "figure")


@dataclass(frozen=True, kw_only=True)
class Results(Page):
    """The content of the page; the section of an empty frame is left out."""

    summary: pl.DataFrame  # a row for each source, category or relation (source, by, part, ...)
    raters: pl.DataFrame
    differences: pl.DataFrame
    drift: pl.DataFrame  # a row for each two sources of different batches, figure and weighting (tasks.anchors.DRIFT)
    scorers: pl.DataFrame  # resource, scorer, against, and figures from 0 to 1


def render(results: Results) -> str:
    drifting, scorers = drift_rows(results.drift), results.scorers.rows(named=True)
    named = {"scorer": lambda row: f"{row['scorer'].replace('_', ' ')}, {row['against']}"}
    return render_page(
        "ratings.html.jinja",
        results,
        sentences=list(findings(results)),
        sections=_sections(results.summary),
        differences=declared("ratings differences", results.differences) if results.differences.height else None,
        drift=declared("ratings drift", grouped(drifting, itemgetter("pair"))) if drifting else None,
        indistinct=list(indistinct(results.drift)),
        raters=_with_bar("raters", results.raters) if results.raters.height else None,
        scorer_figures=present(declared("ratings scorers", grouped(scorers, itemgetter("resource")), cells=named)),
        paper=present(declared("ratings as printed", grouped(paper(), itemgetter("source")))),
    )


def _sections(summary: pl.DataFrame) -> dict[str, tuple[str, list[Table]]]:
    """The anchor of a section: its title, and its tables of labels and of means."""
    found: dict[str, tuple[str, list[Table]]] = {}
    titles = {"all": "Ratings by people", "category": "By category", "relation": "By relation"}
    for by, title in titles.items():
        if rows := summary.filter(by=by).rows(named=True):
            first = text("Source", "source") if by == "all" else text(by.capitalize(), "part")
            groups = {"": rows} if by == "all" else grouped(rows, itemgetter("source"))
            found[by] = title, [_with_bar(name, groups, first=first) for name in ("labels", "means")]
    return found


def _with_bar(name: str, rows: Any, first: Column | None = None) -> Table:
    """A table of those columns that some row has a figure in, with the shares of the three labels as a bar."""

    def bar(row: Mapping[str, Any]) -> Markup:
        part = Markup('<i class="{}" style="width:{}%"></i>').format
        parts = Markup("").join(part(label, round(row[label], 2)) for label in LABELS)
        named = ", ".join(f"{label} {number(row[label], 1)} %" for label in LABELS)
        return Markup('<span class="share" role="img" aria-label="{}">{}</span>').format(named, parts)

    return present(declared(f"ratings {name}", rows, cells={"labels": bar}, first=first))


def findings(results: Results) -> Iterator[str]:
    rated = results.summary.filter(by="all").rows(named=True)
    shares = [f"{row['neutral']:.1f} % of the ratings of “{row['source']}”" for row in rated]
    yield f"People rate the statement as neutral in {listed(shares)}."
    for row in results.differences.rows(named=True):
        name, about = FIGURE_NAMES.get(row["figure"], row["figure"]), counted(row["targets"], "target")
        bounds = with_bounds(row, "difference", of="").below
        change = " ".join([f"{signed(row['difference'])} percentage points", *bounds])
        chance = "" if row["p"] is None else f", p {p_value(row['p'])}"
        yield f"{row['source']} against {row['baseline']}, {about}: {name} {change}{chance}."
    for (baseline, source, figure), rows in results.drift.drop_nulls("drift").group_by(PAIR, maintain_order=True):
        first = rows.row(0, named=True)
        remains = " or ".join(f"{_points(row, 'remaining')} ({row['weights']})" for row in rows.rows(named=True))
        yield (
            f"{source} against {baseline}, rated by other batches of raters: {figure} votes {_points(first, 'total')} "
            f"percentage points. On {counted(first['anchors'], 'statement')} that both rated the batches differ by "
            f"{_points(first, 'drift')}. Without this drift {remains} remains."
        )
    yield from indistinct(results.drift)


def indistinct(drift: pl.DataFrame) -> Iterator[str]:
    """A sentence for the pairs of sources whose batches rated too few statements in common to measure drift."""
    few = drift.filter(pl.col("drift").is_null()).unique(PAIR[:2], maintain_order=True)
    if few.height:
        pairs = "; ".join(
            f"{row['source']} and {row['baseline']} ({counted(row['anchors'], 'statement')})"
            for row in few.rows(named=True)
        )
        yield (
            f"Batches and models cannot be told apart where both batches rated too few of the same statements: {pairs}."
        )


def drift_rows(drift: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows that have drift, with the pair and figure as a title of their own."""
    return [
        row | {"pair": f"{row['source']} against {row['baseline']}", "name": f"{row['figure']}, {row['weights']}"}
        for row in drift.drop_nulls("drift").rows(named=True)
    ]


def _points(row: Mapping[str, Any], name: str) -> str:
    return " ".join([signed(row[name]), *with_bounds(row, name).below])


def console(summary: pl.DataFrame, raters: pl.DataFrame, differences: pl.DataFrame, drift: pl.DataFrame) -> str:
    """The figures of each source, category and relation, of each rater, the differences between sources, and those
    between batches."""
    rows = summary.rows(named=True)
    source = text("", lambda row: f"  {row['part']}" if row["part"] else row["source"])
    tables = [
        present(declared(f"ratings {name}", rows, first=source, without=("labels",))) for name in ("labels", "means")
    ]
    tables.append(declared("ratings raters", raters, first=text("", "rater"), without=("rater", "labels")))
    difference = Column("percentage points", lambda row: with_bounds(row, "difference", 2, of=""))
    figure = text("", lambda row: f"{row['figure']} of {row['source']}")
    tables.append(Table("", [figure, difference, column("p")], differences))
    votes, without = text("", "{pair}: {name}".format_map), ("votes", "before", "after", "detectable")
    tables.append(declared("ratings drift", drift_rows(drift), first=votes, without=without))
    blocks = [as_text(table) for table in tables if table.height]
    return "\n\n".join([*blocks, *(f"  {sentence}" for sentence in indistinct(drift))])


def paper() -> list[dict[str, Any]]:
    """The harms paper's own figures (Section 2.3, Tables 2, 7, 8 and 12), a row a source or category of one."""
    return frame_of("paper_ratings.csv").with_columns(pl.col("category").fill_null("all")).rows(named=True)
