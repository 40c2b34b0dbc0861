"""Which figures a run has, what each shows in words, and where the harms paper has its like."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from mitigate.report import drawing, ledger, plots
from mitigate.report.legend import ordered
from mitigate.report.regions import REGIONS, regions, with_regions
from mitigate.report.singled_out import FEWEST_STATEMENTS, often_told
from mitigate.report.words import words
from mitigate.triples import PREJUDICE

GROUPS = {  # group -> the heading and the caption that its figures share
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
        f"Of each category those with the fewest neutral statements, and with {FEWEST_STATEMENTS} statements or more "
        "if any target has so many; prejudice to the left, favouritism to the right.",
    ),
    "shown": (
        "Chosen targets",
        "Prejudice to the left, favouritism to the right (the paper's Fig. 3; recipe.shown=[...] chooses others).",
    ),
    "words": (
        "What is said against them",
        "Tails of statements that sentiment or regard finds negative, the larger the more often, for the two targets "
        "with the most of them, of different categories (the paper's Fig. 12 shows “british” and “female”).",
    ),
    "counts": (
        "How much is said about each target",
        "Statements about a target, on a logarithmic scale. A large spread is representation disparity (the paper's "
        "Fig. 4 and 11).",
    ),
}
MOST_BARS = 12


class Picture(NamedTuple):
    """A figure with its words. Names are unique within a run and fit to be file names."""

    name: str
    group: str  # of GROUPS, or a figure that stands for itself
    title: str
    alt: str  # what one would see, in words and numbers
    figure: Figure


def gallery(
    targets: Mapping[str, pl.DataFrame],
    rows: pl.DataFrame | None = None,
    statements: pl.DataFrame | None = None,
    shown: Sequence[str] = (),
) -> list[Picture]:
    """All figures of a run, by group: from its frames per target, by label column ("sentiment", "sentiment_neutral",
    "regard", ...), its filter's ledger, its labelled statements, and the targets that were chosen to be shown."""
    spoken = {column: frame.filter(pl.col("statements") > 0) for column, frame in targets.items()}
    spoken = {column: frame for column, frame in spoken.items() if not frame.is_empty()}
    return [
        *_boxes(spoken),
        *_regions(spoken),
        *_bars(spoken),
        *_shown(spoken, shown),
        *_counts(spoken),
        *_corpus_counts(targets, rows),
        *_words(statements),
        *_kept(rows),
    ]


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
    placed = {column: with_regions(frame) for column, frame in targets.items() if not _is_neutral(column)}
    categories = ordered([name for frame in placed.values() for name in frame["category"]])
    for category in categories:
        for column, frame in placed.items():
            yield Picture(
                f"regions-{column}-{slug(category)}",
                "regions",
                f"{category.capitalize()}, {_said(column)}",
                region_alt(frame, category),
                regions(targets[column], category),
            )


def region_alt(placed: pl.DataFrame, category: str) -> str:
    """What one would see of a category's targets, which have their regions."""
    rows = placed.filter(pl.col("category") == category)
    counts = ", ".join(f"{region} {(rows['region'] == region).sum()}" for region in REGIONS)
    worst, best = (
        ", ".join(rows.sort(sign, "target", descending=[True, False])["target"].head(3))
        for sign in ("prejudice", "favouritism")
    )
    return f"Scatter plot of {rows.height} targets. By region: {counts}. Most negative: {worst}. Most positive: {best}."


def _bars(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """As many of each category, so that none fills the figure."""
    for column, frame in targets.items():
        if _is_neutral(column):
            continue
        told, _ = often_told(frame)
        polarised = told.sort(pl.col("prejudice") + pl.col("favouritism"), descending=True, maintain_order=True)
        categories = ordered(polarised["category"].to_list())
        each = max(1, MOST_BARS // len(categories))
        chosen = pl.concat(polarised.filter(pl.col("category") == name).head(each) for name in categories)
        yield _bar_chart("bars", column, chosen)


def _shown(targets: Mapping[str, pl.DataFrame], shown: Sequence[str]) -> Iterator[Picture]:
    """Those of the chosen targets that are spoken of, in the order they were chosen."""
    wanted = pl.DataFrame({"target": list(shown)}, schema={"target": pl.String})
    for column, frame in targets.items():
        chosen = wanted.join(frame, on="target", how="inner", maintain_order="left")
        if not _is_neutral(column) and not chosen.is_empty():
            yield _bar_chart("shown", column, chosen)


def _bar_chart(group: str, column: str, chosen: pl.DataFrame) -> Picture:
    seen = _each(chosen, "target", "prejudice", "favouritism")
    alt = f"Bars of {_said(column)}, negative and positive: {seen}."
    return Picture(f"{group}-{column}", group, _title(column), alt, plots.bars(chosen))


def _counts(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """Only where targets differ: a generator is asked as often about each."""
    for frame in list(targets.values())[:1]:
        if frame["statements"].n_unique() > 1:
            alt = f"Box plots by category. Over all targets: {_spread(frame['statements'])}."
            yield Picture("counts", "counts", "Statements", alt, plots.counts(frame))


def _corpus_counts(targets: Mapping[str, pl.DataFrame], rows: pl.DataFrame | None) -> Iterator[Picture]:
    """How many triples of a filtered corpus are about each target, and how many of them were kept."""
    if rows is None or not targets:
        return
    of_resource = rows.filter(ledger.OF_RESOURCE).drop_nulls("target")
    about = of_resource.group_by("target").agg(statements=pl.len(), kept=ledger.KEPT.sum())
    asked = next(iter(targets.values())).select("target", "category")
    frame = asked.join(about, on="target", how="left").with_columns(pl.col("statements", "kept").fill_null(0))
    if not frame["statements"].sum():
        return
    if (frame["statements"] == frame["kept"]).all():
        frame = frame.drop("kept")
    seen = "; of them kept: ".join(_spread(frame[column]) for column in frame.columns[2:])
    alt = f"Box plots by category. Over all targets: {seen}."
    yield Picture("counts-corpus", "counts", "Training triples", alt, plots.counts(frame))


def _words(statements: pl.DataFrame | None) -> Iterator[Picture]:
    """Only where statements have tails: a sentence has none."""
    if statements is None or "tail" not in statements.columns:
        return
    labels = [pl.col(name) for name in ("sentiment", "regard") if name in statements.columns]
    negative = statements.filter(pl.any_horizontal(label == PREJUDICE for label in labels), pl.col("tail") != "")
    negative = negative.drop_nulls("target")
    most = negative.group_by("target", "category").len().sort("len", "target", descending=[True, False])
    for target in most.unique("category", keep="first", maintain_order=True)["target"].head(2):
        phrases = negative.filter(pl.col("target") == target).group_by(phrase="tail").agg(count=pl.len())
        common = phrases.sort("count", "phrase", descending=[True, False])["phrase"].head(10)
        yield Picture(
            f"words-{slug(target)}",
            "words",
            target,
            f"Word cloud. The commonest: {', '.join(common)}.",
            words(phrases),
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
        "What was kept of each relation, the one with the most triples first",
        f"Bars for {relations.height} relations. The largest shares dropped: {seen}.",
        plots.kept(relations),
    )


def _spread(counts: pl.Series) -> str:
    least, median, most = (counts.quantile(part) or 0 for part in (0, 0.5, 1))
    return f"least {least:,.0f}, median {median:,.0f}, most {most:,.0f}"


def _each(frame: pl.DataFrame, name: str, *columns: str) -> str:
    """Rows in words: "lawyer 12.1 % and 30.0 %; nurse 3.0 % and 41.2 %"."""
    shares = [" and ".join(f"{value:.1f} %" for value in values) for values in frame.select(columns).iter_rows()]
    return "; ".join(f"{word} {share}" for word, share in zip(frame[name], shares, strict=True))


def slug(word: str) -> str:
    """A target or category, which may be a user's own, as part of a file name."""
    return re.sub(r"\W+", "_", word)


def _is_neutral(column: str) -> bool:
    return column.endswith("_neutral")


def _said(column: str) -> str:
    scorer = column.removesuffix("_neutral")
    return f"{scorer}, phrase neutralised" if _is_neutral(column) else scorer


def _title(column: str) -> str:
    return _said(column).capitalize()
