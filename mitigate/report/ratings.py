"""Ratings of statements by people, as a page and on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import ENDS
from mitigate.report.html import Page, render_page
from mitigate.report.legend import number
from mitigate.report.verdicts import p_value
from mitigate.runs import files
from mitigate.words.texts import counted

Column = tuple[str, str, int]  # in the frame, its heading, decimals

SHARES: tuple[Column, ...] = (
    ("statements", "statements", 0),
    ("ratings", "ratings", 0),
    ("prejudice", "prejudice", 1),
    ("neutral", "neutral", 1),
    ("favouritism", "favouritism", 1),
    ("majority_prejudice", "majority prejudice", 1),
    ("majority_neutral", "majority neutral", 1),
    ("majority_favouritism", "majority favouritism", 1),
)
MEANS: tuple[Column, ...] = (
    ("HNM", "HNM ↑", 1),
    ("quality", "quality ↑", 1),
    ("kappa", "Fleiss’ κ", 4),
    ("alpha", "Krippendorff’s α", 4),
    ("quality_kappa", "κ of quality", 4),
    ("quality_alpha", "α of quality", 4),
)
RATERS: tuple[Column, ...] = (
    ("ratings", "ratings", 0),
    *(column for column in SHARES if column[0] in ("prejudice", "neutral", "favouritism")),
    ("sense", "make sense", 1),
    ("same", "same as others", 1),
    ("same_quality", "same, quality", 1),
)
FIGURES: tuple[Column, ...] = (
    ("accuracy", "accuracy", 3),
    ("balanced_accuracy", "balanced accuracy", 3),
    ("macro_f1", "macro F", 3),
    ("kappa", "Cohen’s κ", 3),
    *(
        (f"{label}/{figure}", f"{label[:3]}. {figure[0].upper()}", 3)
        for label in ("favouritism", "prejudice")
        for figure in ("recall", "precision", "f1")
    ),
)
PRINTED: tuple[Column, ...] = (
    *(column for column in MEANS if not column[0].endswith("alpha")),
    ("sentiment_accuracy", "sentiment agrees, %", 1),
    ("regard_accuracy", "regard agrees, %", 1),
)
FIGURE_NAMES = {"HNM": "human neutral mean (HNM)"}
PARTS = ("total", "drift", "remaining")
DRIFT: tuple[Column, ...] = (
    ("anchors", "anchors", 0),
    ("before", "before, %", 1),
    ("after", "after, %", 1),
    *((part, part, 1) for part in PARTS),
    ("detectable", "detectable", 1),
)
PRINTED_DRIFT: tuple[Column, ...] = (
    ("anchors", "anchors", 0),
    *((f"{part}{end}", f"{part}{end.replace('_', ' ')}", 1) for part in PARTS for end in ENDS),
)
PAIR = ("baseline", "source", "figure")
DIFFERENCES: tuple[Column, ...] = (
    ("difference", "percentage points", 2),
    ("low", "low", 2),
    ("high", "high", 2),
    ("p", "p", 3),
)


@dataclass(frozen=True, kw_only=True)
class Results(Page):
    """The content of the page; the section of an empty frame is left out."""

    summary: pl.DataFrame  # a row for each source, category or relation (source, by, part, ...)
    raters: pl.DataFrame
    differences: pl.DataFrame
    drift: pl.DataFrame  # a row for each two sources of different batches, figure and weighting (tasks.anchors.DRIFT)
    scorers: pl.DataFrame  # resource, scorer, against, and figures from 0 to 1


def write(path: Path, results: Results) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(results))


def render(results: Results) -> str:
    """The page's HTML, always the same for the same results."""
    scorer_rows = [
        row | {"name": f"{row['scorer'].replace('_', ' ')}, {row['against']}"}
        for row in results.scorers.rows(named=True)
    ]
    return render_page(
        "ratings.html.jinja",
        results,
        present=present,
        p_value=p_value,
        sentences=list(findings(results)),
        sections=_sections(results.summary),
        scorer_rows=scorer_rows,
        drift_rows=drift_rows(results.drift),
        indistinct=list(indistinct(results.drift)),
        drift=DRIFT,
        paper=paper(),
        shares=SHARES,
        means=MEANS,
        raters=RATERS,
        figures=FIGURES,
        printed=PRINTED,
    )


def findings(results: Results) -> Iterator[str]:
    """The findings in words, the headline first."""
    sources = results.summary.filter(by="all").rows(named=True)
    shares = [f"{row['neutral']:.1f} % of the ratings of “{row['source']}”" for row in sources]
    yield f"People rate the statement as neutral in {' and '.join(filter(None, [', '.join(shares[:-1]), shares[-1]]))}."
    for row in sources:
        agree = "" if row["kappa"] is None else f" Raters agree with a Fleiss’ kappa of {number(row['kappa'], 3)}."
        yield (
            f"{row['source']}: of {row['ratings']:,} ratings of {row['statements']:,} statements, "
            f"{row['prejudice']:.1f} % are prejudice and {row['favouritism']:.1f} % favouritism.{agree}"
        )
    for row in results.differences.rows(named=True):
        name = FIGURE_NAMES.get(row["figure"], row["figure"])
        change = f"{name} {'+' if row['difference'] > 0 else ''}{number(row['difference'], 1)} percentage points"
        bounds = "" if row["low"] is None else f" [{number(row['low'], 1)}, {number(row['high'], 1)}]"
        chance = "" if row["p"] is None else f", p {p_value(row['p'])}"
        about = counted(row["targets"], "target")
        yield f"{row['source']} against {row['baseline']}, {about}: {change}{bounds}{chance}."
    for (baseline, source, figure), rows in _with_drift(results.drift).group_by(PAIR, maintain_order=True):
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
        for row in _with_drift(drift).rows(named=True)
    ]


def _with_drift(drift: pl.DataFrame) -> pl.DataFrame:
    return drift.drop_nulls("drift") if drift.height else drift


def _points(row: Mapping[str, Any], name: str) -> str:
    """A difference with its interval."""
    value, low, high = (number(row[f"{name}{end}"], 1) for end in ENDS)
    return f"{'+' if row[name] > 0 else ''}{value} [{low}, {high}]"


def console(summary: pl.DataFrame, raters: pl.DataFrame, differences: pl.DataFrame, drift: pl.DataFrame) -> str:
    """The figures of each source, category and relation, of each rater, the differences between sources, and those
    between batches."""
    blocks = []
    for columns in (SHARES, MEANS):
        names = [f"  {row['part']}" if row["part"] else row["source"] for row in summary.rows(named=True)]
        blocks.append(_table(names, summary, present(columns, summary.rows(named=True))))
    if raters.height:
        blocks.append(_table(raters["rater"].to_list(), raters, RATERS))
    if differences.height:
        names = [f"{row['figure']} of {row['source']}" for row in differences.rows(named=True)]
        blocks.append(_table(names, differences, DIFFERENCES))
    if rows := drift_rows(drift):
        names = [f"{row['pair']}: {row['name']}" for row in rows]
        blocks.append(_table(names, pl.DataFrame(rows), PRINTED_DRIFT))
    blocks += [f"  {sentence}" for sentence in indistinct(drift)]
    return "\n\n".join(blocks)


def paper() -> list[dict[str, Any]]:
    """The harms paper's own figures (Section 2.3, Tables 2, 7, 8 and 12), a row a source or category of one."""
    with resources.files("mitigate").joinpath("data/paper_ratings.csv").open("rb") as file:
        return pl.read_csv(file).with_columns(pl.col("category").fill_null("all")).rows(named=True)


def _sections(summary: pl.DataFrame) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """The anchor of a section: its title and its rows."""
    titles = {"all": "Ratings by people", "category": "By category", "relation": "By relation"}
    found = {by: summary.filter(by=by).rows(named=True) for by in titles}
    return {by: (titles[by], rows) for by, rows in found.items() if rows}


def present(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns in which some row has a number."""
    return [column for column in columns if any(row[column[0]] is not None for row in rows)]


def _table(names: Sequence[str], frame: pl.DataFrame, columns: Sequence[Column]) -> str:
    cells = [
        [heading, *(p_value(value) if name == "p" else number(value, decimals) for value in frame[name])]
        for name, heading, decimals in columns
    ]
    widths = [max(map(len, column)) for column in cells]
    margin = max(map(len, names))
    lines = zip(["", *names], *cells, strict=True)
    return "\n".join(
        f"  {name:<{margin}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        for name, *row in lines
    )
