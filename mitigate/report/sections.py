"""Sections of the pages of several recipes: figures of the table of results, targets with examples, the harms paper's
figures, and limits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import polars as pl

from mitigate.errors import counted
from mitigate.measure.agreement import FIGURES
from mitigate.measure.base import measure_of, own_measures
from mitigate.report import plots
from mitigate.report.page import Fold, Number, Part, Picture, Section
from mitigate.report.table import Cell, Column, Table, as_text, figures, grouped, number, span, text
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, label_columns
from mitigate.words.targets import named, ordered, targets

Row = Mapping[str, Any]
TEMPLATES = {"neutral": "neutral template", "paper": "paper template"}
"""The templates in the order of pages: that of the headline first."""
LABELS = {PREJUDICE: "−1 prejudice", NEUTRAL: "0 neutral", FAVOURITISM: "+1 favouritism", OTHER: "other"}
FEWEST_STATEMENTS = 20
"""Fewest statements of a target that is an example of an extreme: one of 20 statements is 5 %."""
MOST_TARGETS = 500
"""Most targets in the table of a page: a browser stays fast, and the paper's 329 are all shown."""
MOST_BARS = 12
EXAMPLES = 4  # statements of each target
OF_HARMS = (
    "Percent of a target's statements; variances in squared percentage points, with the standard deviation; in "
    "brackets the 95 % interval over targets."
)
PROXIES = (
    "Labels by classifiers are proxies for harm: they disagree with people on some sentences and have biases of their "
    "own (docs/scorers.md has their agreement with people). Neutral does not mean true, fair or harmless."
)
EQUAL_WEIGHT = (
    "Each target has the same weight, however many people it names. Harms to people who belong to several groups at "
    "once are not measured."
)


def figure(rows: pl.DataFrame, name: str, scorer: str = "", template: str = "", **where: Any) -> dict[str, Any] | None:
    """The row of one figure over all targets, or of where (by, group, variant); None if it was not measured."""
    wanted = {"by": "all", "variant": "", **where, "measure": name, "scorer": scorer}
    found = rows.filter(**wanted, **({"template": template} if template else {})).drop_nulls("value")
    return found.row(0, named=True) if found.height else None


def headline(rows: pl.DataFrame, name: str, scorer: str) -> dict[str, Any] | None:
    """A figure of a scorer's labels over all targets, with the neutral template where that was measured."""
    return figure(rows, name, scorer, "neutral") or figure(rows, name, scorer)


def shown(row: Row | None, decimals: int | None = None, unit: str = "") -> Cell:
    """A figure with its interval; of a variance over targets its root too, which people read more easily."""
    if row is None:
        return Cell("–")
    declared = measure_of(row["measure"], row["scorer"])
    places = declared.decimals if decimals is None else decimals
    value, low, high = row["value"], row.get("low"), row.get("high")
    if declared.unit == "count" and value is not None:
        value, places = int(value), 0
    deviation = f" (sd {number(value**0.5, 1)})" if declared.unit == "%²" and value is not None else ""
    below = [] if low is None and high is None else [f"[{span(low, high, places)}]"]
    return Cell(number(value, places) + unit * (value is not None) + deviation, below)


def title_of(row: Row) -> str:
    """The measure of a row in words, with the arrow to the better direction."""
    return measure_of(row["measure"], row["scorer"]).named


def crossed(
    caption: str,
    rows: pl.DataFrame,
    columns: Mapping[str, str],
    *,
    down: Callable[[Row], str] = title_of,
    across: Callable[[Row], str] = lambda row: row["group"],
    section: Callable[[Row], str] = lambda row: TEMPLATES.get(row["template"], ""),
    first: str = "measure",
    decimals: int | None = None,
) -> Table | None:
    """Figures of the table of results (measure.results.SCHEMA) as a table for readers; None without figures. down: the
    line that a figure is in; across: its column, of those that `columns` names with headings; section: its group, by
    default the template where there are two."""
    rows = rows if "neutral" in rows["template"] else rows.with_columns(template=pl.lit(""))
    lines: dict[str, dict[str, Any]] = {}
    for row in rows.filter(pl.col("variant").is_in(["", None])).rows(named=True):
        if across(row) in columns and row["value"] is not None:
            line = lines.setdefault(f"{section(row)}/{down(row)}", {"section": section(row), "line": down(row)})
            line[across(row)] = row
    given = [name for name in columns if any(name in line for line in lines.values())]

    def column(name: str) -> Column:
        return Column(columns[name], lambda line: shown(line.get(name), decimals))

    order = list(TEMPLATES.values())
    parts = grouped(lines.values(), lambda line: line["section"])
    parts = dict(sorted(parts.items(), key=lambda part: order.index(part[0]) if part[0] in order else -1))
    return Table(caption, [text(first, "line"), *map(column, given)], parts) if lines else None


def by_category(rows: pl.DataFrame) -> dict[str, str]:
    """The columns of a table of measures: all targets, and each category that has statements."""
    empty = rows.filter(by="category", measure="statements", value=0)["group"].to_list()
    known = rows.filter(pl.col("by") == "category", ~pl.col("group").is_in(empty))
    return {"": "all targets", **{name: name for name in ordered(known["group"])}}


def meanings(rows: pl.DataFrame) -> dict[str, str]:
    """The meaning of each measure of these rows, by its name."""
    pairs = rows.select("measure", "scorer").unique(maintain_order=True).iter_rows()
    found = [measure_of(name, scorer) for name, scorer in pairs]
    return {one.named: one.meaning for one in found if one.meaning and one.function is not str}


def target_section(
    frames: Mapping[str, pl.DataFrame], statements: pl.DataFrame | None, labels: Sequence[str], scorers: Sequence[str]
) -> Section:
    """All targets with their shares, and the strongest statements about each. frames: by label column;
    labels: those shown, one for each of the scorers."""
    rows = frames[labels[0]].select("target", "category", "statements").sort("target")
    template = ", neutral template" if any(label.endswith("_neutral") for label in labels) else ""
    columns = [text("target"), text("category"), Column("statements", "statements")]
    for label, scorer in zip(labels, scorers, strict=True):
        shares = {"prejudice": "O−", "neutral": "neutral", "favouritism": "O+"}
        mine = frames[label].select("target", **{f"{label} {share}": share for share in shares})
        rows = rows.join(mine, on="target", how="left", maintain_order="left")
        columns += [Column(f"{scorer} {sign}", f"{label} {share}") for share, sign in shares.items()]
    polarised = pl.max_horizontal([f"{label} {share}" for label in labels for share in ("prejudice", "favouritism")])
    caption = f"{counted(rows.height, 'target')}: percent of a target's statements labelled as prejudice (O−), neutral "
    caption += f"and favouritism (O+){template}"
    if rows.height > MOST_TARGETS:
        caption += f". The {MOST_TARGETS} with the largest shares; all are in tables/targets_{labels[0]}.csv"
        is_seldom = pl.col("statements") < FEWEST_STATEMENTS
        rows = rows.sort(is_seldom, polarised, descending=[False, True], nulls_last=True).head(MOST_TARGETS)
    parts: list[Part] = [Table(caption, columns, rows, kind="tall")]
    if statements is not None:
        signs = [
            pl.when(pl.col(name).is_in([PREJUDICE, FAVOURITISM])).then(pl.col(f"{name}_strength")) for name in labels
        ]
        found = statements.with_columns(strength=pl.max_horizontal(one.abs() for one in signs))
        found = found.drop_nulls(["target", "strength"]).unique(
            ["target", "statement"], keep="first", maintain_order=True
        )
        found = found.sort("target", "strength", "statement", descending=[False, True, False])
        found = found.group_by("target", maintain_order=True).head(EXAMPLES).head(MOST_TARGETS * EXAMPLES)

        def label_column(title: str, name: str) -> Column:
            return text(title, lambda row: LABELS.get(row[name]), "label")

        columns = [text("target"), text("statement", kind="sentence"), *map(label_column, scorers, labels)]
        caption = "The statements with the strongest labels. They are extremes, not a sample" + template
        shown = [Table(caption, columns, found, kind="tall")]
        parts += [Fold("Statements about each target", shown, warning=True)] if found.height else []
    return Section("Targets", parts)


def left_out(words: Sequence[str]) -> list[str]:
    """Sentences about the groups that the measured targets leave out, and those that are not in the paper's list."""
    if not words:
        return []
    own = [word for word in dict.fromkeys(words) if word not in targets()]
    rest = len(targets().keys() - set(words))
    example = "" if own else ", such as non-binary people"
    sentences = [
        "Not every target is a person: some name a place, a religion, a book or a building. No number here describes "
        f"anyone whom the targets do not name{example}."
    ]
    sentences += [f"{rest} of the paper's {len(targets())} targets are left out."] if rest else []
    sentences += [f"{counted(len(own), 'target')} not in the paper's list: {named(own)}."] if own else []
    return sentences


GALLERY = {
    "boxes": (
        "Spread over targets",
        "Percentage of a target's statements; lower is better. A box is the middle half of a category's targets, its "
        "line the median. A tall box is disparity (Fig. 1 and 5 of Mehrabi et al. 2021).",
    ),
    "bars": (
        "The most polarised targets",
        f"The targets of each category with the fewest neutral statements, among those with {FEWEST_STATEMENTS} "
        "statements or more if there are any.",
    ),
    "shown": ("Chosen targets", "As in Fig. 3; recipe.shown=[...] chooses others."),
}
"""Titles and captions of the groups of pictures."""


def gallery(frames: Mapping[str, pl.DataFrame], scorers: Sequence[str], shown: Sequence[str] = ()) -> Section:
    """The harms paper's figures. frames: of targets by label column, one for each scorer; shown: chosen targets, whose
    bars are drawn in their order, beside as many of the most polarised ones of each category."""
    pairs = zip(scorers, (frame.filter(pl.col("statements") > 0) for frame in frames.values()), strict=True)
    mentioned = {scorer: frame for scorer, frame in pairs if frame.height}
    shares, wanted = ("prejudice", "favouritism"), pl.DataFrame({"target": [*shown]}, schema={"target": pl.String})
    top = max((frame.select(pl.max_horizontal(pl.max(*shares))).item() for frame in mentioned.values()), default=None)
    pictures: dict[str, list[Picture]] = {group: [] for group in GALLERY}
    for scorer, frame in mentioned.items():
        medians = frame.group_by("category").agg(pl.median(*shares)).sort("category")
        alt = f"Box plots by category. Median over targets, negative and positive: {each(medians, 'category')}"
        title, drawn = scorer.capitalize(), plots.boxes(frame, top=top)
        pictures["boxes"].append(Picture(f"boxes-{scorer}", "boxes", title, alt, drawn))
        polarised = frequent_targets(frame).sort(pl.sum_horizontal(shares), descending=True, maintain_order=True)
        names = ordered(polarised["category"].to_list())
        most = pl.concat(polarised.filter(category=name).head(max(1, MOST_BARS // len(names))) for name in names)
        own = wanted.join(frame, on="target", how="inner", maintain_order="left")
        for group, rows in {"bars": most, "shown": own}.items():
            if rows.height:
                alt = f"Bars, negative and positive: {each(rows, 'target')}"
                pictures[group].append(Picture(f"{group}-{scorer}", group, title, alt, plots.bars(rows)))
    parts: list[Part] = []
    for group, (title, caption) in GALLERY.items():
        if found := pictures[group]:
            parts += [caption, found] if group == "boxes" else [Fold(title, [caption, found])]
    return Section("Figures", parts)


def frequent_targets(table: pl.DataFrame) -> pl.DataFrame:
    """The targets with FEWEST_STATEMENTS or more; all if there are none."""
    found = table.filter(pl.col("statements") >= FEWEST_STATEMENTS)
    return table if found.is_empty() else found


def shares_picture(rows: pl.DataFrame, scorer: str) -> Picture | None:
    """The first picture of pages about resources and stories: the mean over targets of O− and O+, for all and by
    category. rows: the table of results."""
    lines, template = [], (headline(rows, "O-", scorer) or {"template": ""})["template"]
    for category, name in by_category(rows).items():
        where = {"by": "category", "group": category} if category else {}
        both = [figure(rows, measure, scorer, template, **where) for measure in ("O-", "O+")]
        if None not in both:
            lines.append((name, *(one["value"] for one in both if one)))
    if not lines:
        return None
    frame = pl.DataFrame(lines, schema=["name", "prejudice", "favouritism"], orient="row")
    alt = f"Bars by category, negative and positive: {each(frame, 'name')}"
    drawn = plots.bars(frame, "% of a target's statements, mean over targets")
    wording = ", neutral template" if template == "neutral" else ""
    return Picture("shares", "first", f"Not neutral by {scorer}{wording}", alt, drawn)


def each(frame: pl.DataFrame, name: str) -> str:
    """Rows in words: "lawyer 12.1 % and 30.0 %; nurse 3.0 % and 41.2 %"."""
    rows = frame.select(name, "prejudice", "favouritism").iter_rows()
    return "; ".join(f"{word} {number(left, 1)} % and {number(right, 1)} %" for word, left, right in rows)


def label_names(scorers: Iterable[str], available: Iterable[str]) -> dict[str, str]:
    """The label column of each scorer that pages show: with the neutral template where there is one."""
    given = set(available)
    found: dict[str, str] = {}
    for scorer in scorers:
        columns = [label_columns(scorer, template)[0] for template in TEMPLATES]
        found |= {scorer: next(column for column in columns if column in given)} if given & set(columns) else {}
    return found


def scorers_beside_people(frame: pl.DataFrame) -> Table:
    """Scorers beside people's ratings, from 0 to 1. frame: what measure.agreement.agreement_table returns."""
    columns = [text("scorer"), text("against"), *figures(3, **FIGURES)]
    return Table("", columns, grouped(frame.rows(named=True), itemgetter("resource")))


FIRST = ("neutral_mean", "O-", "O+", "polarised")
MEASURES = ("statements", "targets", "empty_targets", *FIRST, "neutral_variance", "D_O-", "D_O+")
"""The measures of pages of statements that no policy changed: of resources and of stories."""
LIMITS = (
    PROXIES,
    "Percentages of few statements have much sampling noise: a target with one statement has 0 % or 100 %.",
    "Intervals cover the choice of targets. They do not cover the choice of statements or of the classifier.",
    EQUAL_WEIGHT,
)


def neutral_number(rows: pl.DataFrame, scorer: str) -> list[Number]:
    """The neutral mean of the first screen, if it was measured."""
    if not (mean := headline(rows, "neutral_mean", scorer)):
        return []
    cell = shown(mean, 1, " %")
    return [Number(f"neutral by {scorer} ↑", cell.text, ", ".join([*cell.below, "mean over targets"]))]


def measures(rows: pl.DataFrame, more: Sequence[str] = ()) -> Section:
    """The measures over all targets and by category, and what they mean. more: names besides MEASURES."""
    caption = f"{OF_HARMS} O is overgeneralisation, D disparity."
    names = [*MEASURES, *more, *(one.name for one in own_measures())]
    empty = rows.filter(by="category", measure="statements", value=0)["group"].to_list()
    without = f"No statement is about a target of {' or '.join(empty)}." if empty else None
    parts: list[Part] = [measure_table(rows, names, caption, "first"), without]
    if "neutral" in rows["template"]:
        parts.append(Fold("With the paper's template", [measure_table(rows, names, caption, "paper")]))
    said = meanings(rows.filter(pl.col("measure").is_in(names)))
    return Section("Measures", [*parts, Fold("What they mean", [said])])


def measure_table(rows: pl.DataFrame, names: Sequence[str], caption: str = "", template: str = "") -> Table | None:
    """Measures by name, over all targets and the categories that have statements. template: that of their labels;
    "first": the neutral one where labels were measured with it."""
    known = rows.filter(pl.col("measure").is_in(names), pl.col("by").is_in(["all", "category"]))
    if template == "first":
        known = known.filter(pl.col("template") != "paper") if "neutral" in rows["template"] else known
    elif template:
        known = known.filter(template=template)
    return crossed(caption, known, by_category(rows), decimals=1)


def console(
    rows: pl.DataFrame,
    more: Sequence[str] = (),
    *,
    brief: Sequence[str] = ("statements", *FIRST),
    verbose: bool = False,
) -> str:
    """The means for the terminal (brief), with verbose all measures of both templates. more: as `measures` has it."""
    names = [*MEASURES, *more, *(one.name for one in own_measures())] if verbose else brief
    found = measure_table(rows, names, template="" if verbose else "first")
    return "" if found is None else as_text(found, 110)
