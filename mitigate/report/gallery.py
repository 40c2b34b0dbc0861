"""Which figures a run has, what each shows in words, and where the harms paper has its like."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from mitigate.report import drawing, ledger, plots

GROUPS = {  # group -> its heading and what holds for all its figures
    "boxes": (
        "Spread over targets",
        "Each box spans the middle half of a category's targets, the line is their median, dots lie more than 1.5 "
        "boxes away. A tall box is disparity (the paper's Fig. 1 and 5).",
    ),
    "regions": (
        "Regions of prejudice and favouritism",
        "One point a target. Dashed lines are the upper quartiles over all targets: right of the one a target leans "
        "to prejudice, above the other to favouritism (the paper's Fig. 2 and 8 for regard, Fig. 9 for sentiment).",
    ),
    "bars": (
        "The most polarised targets",
        "Of each category those with the fewest neutral statements (the paper's Fig. 3 shows targets its authors "
        "chose).",
    ),
    "counts": (
        "How much is said about each target",
        "Statements about a target, on a logarithmic scale. A large spread is representation disparity (the paper's "
        "Fig. 4 and 11).",
    ),
    "kept": ("What was kept of each relation", "The relation with the most triples first."),
}
MOST_BARS = 12


class Picture(NamedTuple):
    """A figure with its words. Names are unique within a run and fit to be file names."""

    name: str
    group: str  # of GROUPS
    title: str
    alt: str  # what one would see, in words and numbers
    figure: Figure


def gallery(targets: Mapping[str, pl.DataFrame], rows: pl.DataFrame | None = None) -> list[Picture]:
    """All figures of a run, by group: from its frames per target, by label column ("sentiment",
    "sentiment_neutral", "regard", ...), and its filter's ledger."""
    spoken = {column: frame.filter(pl.col("statements") > 0) for column, frame in targets.items()}
    spoken = {column: frame for column, frame in spoken.items() if not frame.is_empty()}
    return [*_boxes(spoken), *_regions(spoken), *_bars(spoken), *_counts(spoken), *_kept(rows)]


def save(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    """Write every picture into the folder as PNG and SVG."""
    return [path for picture in pictures for path in drawing.save(picture.figure, folder / picture.name)]


def _boxes(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    highest = pl.max_horizontal(pl.max("prejudice", "favouritism"))
    top = max((frame.select(highest).item() for frame in targets.values()), default=None)
    for column, frame in targets.items():
        medians = frame.group_by("category").agg(pl.median("prejudice", "favouritism"))
        seen = _each(medians.sort("category"), "category", "prejudice", "favouritism")
        yield Picture(
            f"boxes-{column}",
            "boxes",
            _title(column),
            f"Box plots of {_said(column)} by category. Median over targets, negative and positive: {seen}.",
            plots.boxes(frame, top),
        )


def _regions(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    placed = {column: plots.with_regions(frame) for column, frame in targets.items() if not _is_neutral(column)}
    categories = plots.ordered([name for frame in placed.values() for name in frame["category"]])
    for category in categories:
        for column, frame in placed.items():
            rows = frame.filter(pl.col("category") == category)
            counts = ", ".join(f"{region} {(rows['region'] == region).sum()}" for region in plots.REGIONS)
            worst, best = (
                ", ".join(rows.sort(sign, "target", descending=[True, False])["target"].head(3))
                for sign in ("prejudice", "favouritism")
            )
            yield Picture(
                f"regions-{column}-{_slug(category)}",
                "regions",
                f"{category.capitalize()}, {_said(column)}",
                f"Scatter plot of {rows.height} targets. By region: {counts}. Most negative: {worst}. Most positive: "
                f"{best}.",
                plots.regions(targets[column], category),
            )


def _bars(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """As many of each category, so that none fills the figure."""
    for column, frame in targets.items():
        if _is_neutral(column):
            continue
        polarised = frame.sort(pl.col("prejudice") + pl.col("favouritism"), descending=True, maintain_order=True)
        categories = plots.ordered(frame["category"].to_list())
        each = max(1, MOST_BARS // len(categories))
        chosen = pl.concat(polarised.filter(pl.col("category") == name).head(each) for name in categories)
        seen = _each(chosen, "target", "prejudice", "favouritism")
        yield Picture(
            f"bars-{column}",
            "bars",
            _title(column),
            f"Bars of {_said(column)}, negative and positive: {seen}.",
            plots.bars(chosen),
        )


def _counts(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """Only where targets differ: a generator is asked as often about each."""
    for frame in list(targets.values())[:1]:
        least, median, most = (frame["statements"].quantile(part) or 0 for part in (0, 0.5, 1))
        if least < most:
            yield Picture(
                "counts",
                "counts",
                "Statements",
                f"Box plots by category. Over all targets: least {least:,.0f}, median {median:,.0f}, most {most:,.0f}.",
                plots.counts(frame),
            )


def _kept(rows: pl.DataFrame | None) -> Iterator[Picture]:
    """Only where something was dropped."""
    if rows is None or rows.filter(~ledger.KEPT).is_empty():
        return
    relations = ledger.summary(rows, "relation")
    hardest = relations.sort("share_dropped", descending=True, maintain_order=True).head(3)
    seen = _each(hardest, "relation", "share_dropped")
    yield Picture(
        "kept",
        "kept",
        "Share kept",
        f"Bars for {relations.height} relations. The largest shares dropped: {seen}.",
        plots.kept(relations),
    )


def _each(frame: pl.DataFrame, name: str, *columns: str) -> str:
    """Rows in words: "lawyer 12.1 % and 30.0 %; nurse 3.0 % and 41.2 %"."""
    shares = [" and ".join(f"{value:.1f} %" for value in values) for values in frame.select(columns).iter_rows()]
    return "; ".join(f"{word} {share}" for word, share in zip(frame[name], shares, strict=True))


def _slug(category: str) -> str:
    """A user's category as part of a file name."""
    return re.sub(r"\W+", "_", category)


def _is_neutral(column: str) -> bool:
    return column.endswith("_neutral")


def _said(column: str) -> str:
    scorer = column.removesuffix("_neutral")
    return f"{scorer}, phrase neutralised" if _is_neutral(column) else scorer


def _title(column: str) -> str:
    return _said(column).capitalize()
