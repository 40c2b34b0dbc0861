"""The figures of a run, with a text alternative for each. data/figures.csv has the heading and the
caption of each group, with the corresponding figure of the harms paper."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from mitigate.measure.base import PAPER_SCORERS
from mitigate.report import drawing, ledger, plots
from mitigate.report.examples import FEWEST_STATEMENTS, frequent_targets
from mitigate.report.metric_display import number, ordered
from mitigate.report.prejudice_regions import REGIONS, regions, with_regions
from mitigate.report.table_declarations import declarations
from mitigate.triples import PREJUDICE

GROUPS = {
    name: (row["title"], row["caption"].format(fewest=FEWEST_STATEMENTS))
    for name, row in declarations("figures.csv").items()
}
"""The heading and the caption that the figures of a group share, in the order of pages."""
MOST_BARS = 12
LONGEST_SLUG = 40  # characters: file systems allow 255 bytes for a name, and a character may have four


class Picture(NamedTuple):
    """A figure with its title and text alternative. Names are unique in a run and valid as file names."""

    name: str
    group: str  # of GROUPS, or a figure that stands for itself
    title: str
    alt: str  # the text alternative: what the figure shows, with its numbers
    figure: Figure


def gallery(
    targets: Mapping[str, pl.DataFrame],
    rows: pl.DataFrame | None = None,
    statements: pl.DataFrame | None = None,
    shown: Sequence[str] = (),
    columns: Sequence[str] = PAPER_SCORERS,
) -> list[Picture]:
    """All figures of a run, by group. Inputs: its frames per target, by label column ("regard_neutral", "regard",
    "sentiment_neutral", ...) in the order of the figures; its filter's ledger; its labelled statements; the chosen
    targets. columns: label columns whose prejudice the word clouds show."""
    mentioned = {column: frame.filter(pl.col("statements") > 0) for column, frame in targets.items()}
    mentioned = {column: frame for column, frame in mentioned.items() if not frame.is_empty()}
    first = {column: mentioned[column] for column in firsts(mentioned)}
    return named_apart(
        [
            *boxes(mentioned),
            *_regions(first),
            *_bars(first, shown),
            *_counts(mentioned, targets, rows),
            *_words(statements, columns),
        ]
    )


def named_apart(pictures: Iterable[Picture]) -> list[Picture]:
    """Number pictures of the same name from the second on: "c++" and "c#" are both "c_" in a file name."""
    found: dict[str, Picture] = {}
    for picture in pictures:
        names = (f"{picture.name}{f'-{number}' if number > 1 else ''}" for number in count(1))
        name = next(name for name in names if name not in found)
        found[name] = picture._replace(name=name)
    return list(found.values())


def save(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    return [path for picture in pictures for path in drawing.save(picture.figure, folder / picture.name)]


def captions(pictures: Sequence[Picture]) -> pl.DataFrame:
    """A table (picture, group, caption): the caption is the title with the caption of the group, or the text
    alternative."""
    rows = [(it.name, it.group, f"{it.title}. {GROUPS.get(it.group, ('', it.alt))[1]}") for it in pictures]
    return pl.DataFrame(rows, schema=["picture", "group", "caption"], orient="row")


def boxes(targets: Mapping[str, pl.DataFrame], group: str = "boxes", by: str = "category") -> Iterator[Picture]:
    """Box plots on one scale for each label column. by: the name of the column `category` in captions."""
    highest = pl.max_horizontal(pl.max("prejudice", "favouritism"))
    top = max((frame.select(highest).item() for frame in targets.values()), default=None)
    for column, frame in targets.items():
        seen = f"Median over targets, negative and positive: {_medians(frame)}."
        alt = f"Box plots of {_label_name(column)} by {by}. {seen}"
        yield Picture(f"{group}-{column}", group, _title(column), alt, plots.boxes(frame, top=top))


def _medians(frame: pl.DataFrame) -> str:
    """The medians of both shares over the targets of each category: "gender 1.2 % and 3.4 %; ..."."""
    columns = ("prejudice", "favouritism")
    return _each(frame.group_by("category").agg(pl.median(*columns)).sort("category"), "category", *columns)


def _regions(frames: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    for category in ordered([name for frame in frames.values() for name in frame["category"]]):
        for column, frame in frames.items():
            title = f"{category.capitalize()}, {_label_name(column)}"
            yield _region_picture(f"regions-{column}-{slug(category)}", title, frame, category)


def _region_picture(name: str, title: str, targets: pl.DataFrame, category: str) -> Picture:
    rows = with_regions(targets).filter(pl.col("category") == category)
    counts = ", ".join(f"{region} {(rows['region'] == region).sum()}" for region in REGIONS)
    worst, best = (
        ", ".join(rows.sort(sign, "target", descending=[True, False])["target"].head(3))
        for sign in ("prejudice", "favouritism")
    )
    seen = f"By region: {counts}. Most negative: {worst}. Most positive: {best}."
    alt = f"Scatter plot of {rows.height} targets. {seen}"
    return Picture(name, "regions", title, alt, regions(targets, category))


def _bars(frames: Mapping[str, pl.DataFrame], shown: Sequence[str]) -> Iterator[Picture]:
    """Bars of the most polarised targets, the same number for each category; and of the chosen ones that have
    statements, in the order they were chosen."""
    for column, frame in frames.items():
        chosen_from, _ = frequent_targets(frame)
        polarised = chosen_from.sort(pl.col("prejudice") + pl.col("favouritism"), descending=True, maintain_order=True)
        categories = ordered(polarised["category"].to_list())
        each = max(1, MOST_BARS // len(categories))
        yield _bar_chart("bars", column, pl.concat(polarised.filter(category=name).head(each) for name in categories))
    wanted = pl.DataFrame({"target": list(shown)}, schema={"target": pl.String})
    for column, frame in frames.items():
        chosen = wanted.join(frame, on="target", how="inner", maintain_order="left")
        if not chosen.is_empty():
            yield _bar_chart("shown", column, chosen)


def _bar_chart(group: str, column: str, chosen: pl.DataFrame) -> Picture:
    seen = _each(chosen, "target", "prejudice", "favouritism")
    alt = f"Bars of {_label_name(column)}, negative and positive: {seen}."
    return Picture(f"{group}-{column}", group, _title(column), alt, plots.bars(chosen))


def _counts(
    mentioned: Mapping[str, pl.DataFrame], targets: Mapping[str, pl.DataFrame], rows: pl.DataFrame | None
) -> Iterator[Picture]:
    """Counts of statements, if targets differ in them: a generator is probed equally often with each. Counts of a
    filtered corpus: triples about each target, and those kept."""
    for frame in list(mentioned.values())[:1]:
        if frame["statements"].n_unique() > 1:
            yield _count_boxes("counts", "Statements", frame, plots.NUMBERS)
    if rows is None or not targets:
        return
    of_resource = rows.filter(ledger.OF_RESOURCE).drop_nulls("target")
    about = of_resource.group_by("target").agg(statements=pl.len(), kept=ledger.KEPT.sum())
    probed = next(iter(targets.values())).select("target", "category")
    frame = probed.join(about, on="target", how="left").with_columns(pl.col("statements", "kept").fill_null(0))
    if frame["statements"].sum():
        is_whole = (frame["statements"] == frame["kept"]).all()
        series = plots.NUMBERS if is_whole else plots.NUMBERS_AND_KEPT
        yield _count_boxes("counts-corpus", "Training triples", frame, series)


def _count_boxes(name: str, title: str, frame: pl.DataFrame, series: Sequence[plots.Series]) -> Picture:
    spreads = []
    for one in series:
        least, median, most = (frame[one.column].quantile(part) or 0 for part in (0, 0.5, 1))
        spreads.append(f"least {least:,.0f}, median {median:,.0f}, most {most:,.0f}")
    alt = f"Box plots by category. Over all targets: {'; of them kept: '.join(spreads)}."
    return Picture(name, "counts", title, alt, plots.boxes(frame, series, "number for each target", counted=True))


def _words(statements: pl.DataFrame | None, columns: Sequence[str]) -> Iterator[Picture]:
    """Word clouds, if statements have tails: sentences have none."""
    if statements is None or "tail" not in statements.columns:
        return
    labels = [pl.col(name) for name in columns if name in statements.columns]
    negative = statements.filter(pl.any_horizontal(label == PREJUDICE for label in labels), pl.col("tail") != "")
    negative = negative.drop_nulls("target")
    most = negative.group_by("target", "category").len().sort("len", "target", descending=[True, False])
    for target in most.unique("category", keep="first", maintain_order=True)["target"].head(2):
        phrases = negative.filter(pl.col("target") == target).group_by(phrase="tail").agg(count=pl.len())
        common = phrases.sort("count", "phrase", descending=[True, False])["phrase"].head(10)
        alt = f"Word cloud. The commonest: {', '.join(common)}."
        yield Picture(f"words-{slug(target)}", "words", target, alt, plots.words(phrases))


def _each(frame: pl.DataFrame, name: str, *columns: str) -> str:
    """Rows in words: "lawyer 12.1 % and 30.0 %; nurse 3.0 % and 41.2 %"."""
    shares = [" and ".join(number(value, 1) + " %" for value in values) for values in frame.select(columns).iter_rows()]
    return "; ".join(f"{word} {share}" for word, share in zip(frame[name], shares, strict=True))


def slug(word: str) -> str:
    """A target or category, which may be a user's own, as part of a file name, cut if it is long."""
    return re.sub(r"\W+", "_", word)[:LONGEST_SLUG]


def firsts(columns: Iterable[str]) -> list[str]:
    """The first label column of each scorer: that of the first template, or the only one."""
    found: dict[str, str] = {}
    for column in columns:
        found.setdefault(column.removesuffix("_neutral"), column)
    return list(found.values())


def _label_name(column: str) -> str:
    scorer = column.removesuffix("_neutral")
    return f"{scorer}, neutral template" if column.endswith("_neutral") else scorer


def _title(column: str) -> str:
    return _label_name(column).capitalize()
