"""The figures of a run, with a text alternative and the corresponding figure of the harms paper for each."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import polars as pl
from matplotlib.figure import Figure

from mitigate.metrics import PAPER_SCORERS
from mitigate.report import drawing, ledger, plots
from mitigate.report.examples import FEWEST_STATEMENTS, frequent_targets
from mitigate.report.metric_display import ordered
from mitigate.report.prejudice_regions import REGIONS, regions, with_regions
from mitigate.triples import PREJUDICE

GROUPS = {  # group -> the heading and the caption that its figures share
    "boxes": (
        "Spread over targets",
        "Percentage of a target's statements; lower is better. A box is the middle half of a category's targets, its "
        "line is the median, dots are targets more than 1.5 box heights from the box. A tall box is disparity (the "
        "paper's Fig. 1 and 5).",
    ),
    "regions": (
        "Targets with more prejudice or more favouritism than others",
        "One point for each target, both axes in percent of its statements. The dashed lines are the upper quartiles "
        "over all targets: to the right of the first a target has more negative statements than three quarters of "
        "them, above the second more positive ones, however few these are (the paper's Fig. 2 and 8 for regard, Fig. 9 "
        "for sentiment).",
    ),
    "bars": (
        "The most polarised targets",
        "Percentage of a target's statements: prejudice to the left, favouritism to the right; lower is better. Of "
        f"each category the targets with the fewest neutral statements, among those with {FEWEST_STATEMENTS} "
        "statements or more if there are any.",
    ),
    "shown": (
        "Chosen targets",
        "Percentage of a target's statements: prejudice to the left, favouritism to the right; lower is better (the "
        "paper's Fig. 3; recipe.shown=[...] chooses other targets).",
    ),
    "words": (
        "Negative statements",
        "Tails of statements that are labelled as prejudice, for the two targets with the most of them, of "
        "different categories. A larger tail occurs more often (the paper's Fig. 12 shows “british” and “female”).",
    ),
    "counts": (
        "Number of statements about each target",
        "Statements about a target, on a logarithmic scale. A large spread is disparity in representation (the paper's "
        "Fig. 4 and 11).",
    ),
}
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
    return named_apart(
        [
            *boxes(mentioned),
            *_regions(mentioned),
            *_bars(mentioned),
            *_shown(mentioned, shown),
            *_counts(mentioned),
            *_corpus_counts(targets, rows),
            *_words(statements, columns),
            *_kept(rows),
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
    """Write every picture into the folder as PNG and SVG."""
    return [path for picture in pictures for path in drawing.save(picture.figure, folder / picture.name)]


def captions(pictures: Sequence[Picture]) -> pl.DataFrame:
    """A table (picture, group, caption): the caption is the title with the caption of the group, or the text
    alternative."""
    said = [GROUPS[picture.group][1] if picture.group in GROUPS else picture.alt for picture in pictures]
    rows = [(it.name, it.group, f"{it.title}. {words}") for it, words in zip(pictures, said, strict=True)]
    return pl.DataFrame(rows, schema=["picture", "group", "caption"], orient="row")


def boxes(targets: Mapping[str, pl.DataFrame], group: str = "boxes", by: str = "category") -> Iterator[Picture]:
    """Box plots on one scale for each label column. by: the name of the column `category` in captions."""
    highest = pl.max_horizontal(pl.max("prejudice", "favouritism"))
    top = max((frame.select(highest).item() for frame in targets.values()), default=None)
    for column, frame in targets.items():
        medians = frame.group_by("category").agg(pl.median("prejudice", "favouritism"))
        seen = _each(medians.sort("category"), "category", "prejudice", "favouritism")
        yield Picture(
            f"{group}-{column}",
            group,
            _title(column),
            f"Box plots of {_label_name(column)} by {by}. Median over targets, negative and positive: {seen}.",
            plots.boxes(frame, top),
        )


def _regions(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    placed = {column: with_regions(targets[column]) for column in firsts(targets)}
    categories = ordered([name for frame in placed.values() for name in frame["category"]])
    for category in categories:
        for column, frame in placed.items():
            yield Picture(
                f"regions-{column}-{slug(category)}",
                "regions",
                f"{category.capitalize()}, {_label_name(column)}",
                region_alt(frame, category),
                regions(targets[column], category),
            )


def region_alt(placed: pl.DataFrame, category: str) -> str:
    """The text alternative of a category's scatter plot, from targets with their regions."""
    rows = placed.filter(pl.col("category") == category)
    counts = ", ".join(f"{region} {(rows['region'] == region).sum()}" for region in REGIONS)
    worst, best = (
        ", ".join(rows.sort(sign, "target", descending=[True, False])["target"].head(3))
        for sign in ("prejudice", "favouritism")
    )
    return f"Scatter plot of {rows.height} targets. By region: {counts}. Most negative: {worst}. Most positive: {best}."


def _bars(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """The same number of targets for each category."""
    for column in firsts(targets):
        chosen_from, _ = frequent_targets(targets[column])
        polarised = chosen_from.sort(pl.col("prejudice") + pl.col("favouritism"), descending=True, maintain_order=True)
        categories = ordered(polarised["category"].to_list())
        each = max(1, MOST_BARS // len(categories))
        chosen = pl.concat(polarised.filter(pl.col("category") == name).head(each) for name in categories)
        yield _bar_chart("bars", column, chosen)


def _shown(targets: Mapping[str, pl.DataFrame], shown: Sequence[str]) -> Iterator[Picture]:
    """The chosen targets that have statements, in the order they were chosen."""
    wanted = pl.DataFrame({"target": list(shown)}, schema={"target": pl.String})
    for column in firsts(targets):
        chosen = wanted.join(targets[column], on="target", how="inner", maintain_order="left")
        if not chosen.is_empty():
            yield _bar_chart("shown", column, chosen)


def _bar_chart(group: str, column: str, chosen: pl.DataFrame) -> Picture:
    seen = _each(chosen, "target", "prejudice", "favouritism")
    alt = f"Bars of {_label_name(column)}, negative and positive: {seen}."
    return Picture(f"{group}-{column}", group, _title(column), alt, plots.bars(chosen))


def _counts(targets: Mapping[str, pl.DataFrame]) -> Iterator[Picture]:
    """Counts of statements, if targets differ in them: a generator is probed equally often with each."""
    for frame in list(targets.values())[:1]:
        if frame["statements"].n_unique() > 1:
            alt = f"Box plots by category. Over all targets: {_spread(frame['statements'])}."
            yield Picture("counts", "counts", "Statements", alt, plots.counts(frame))


def _corpus_counts(targets: Mapping[str, pl.DataFrame], rows: pl.DataFrame | None) -> Iterator[Picture]:
    """Counts of a filtered corpus: triples about each target, and those kept."""
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
        yield Picture(
            f"words-{slug(target)}",
            "words",
            target,
            f"Word cloud. The commonest: {', '.join(common)}.",
            plots.words(phrases),
        )


def _kept(rows: pl.DataFrame | None) -> Iterator[Picture]:
    """The shares kept of each relation, if something was dropped."""
    if rows is None or rows.filter(~ledger.KEPT).is_empty():
        return
    relations = ledger.summary(rows, "relation")
    hardest = relations.sort("share_dropped", descending=True, maintain_order=True).head(3)
    seen = _each(hardest, "relation", "share_dropped")
    yield Picture(
        "kept",
        "kept",
        "Kept triples of each relation, in percent; the relation with the most triples first",
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
