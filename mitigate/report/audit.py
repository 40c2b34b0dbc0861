"""The page of an audit: how much of a resource is prejudice or favouritism, and about which targets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from scipy.stats import binomtest

from mitigate.measure.base import own_measures
from mitigate.measure.results import Results
from mitigate.report import sections
from mitigate.report.numbers import number, span
from mitigate.report.page import Fold, Number, Page, Part, Section
from mitigate.report.sections import crossed, headline, shown
from mitigate.report.table import Cell, Column, Table, as_text, figures, text
from mitigate.triples import FAVOURITISM, PREJUDICE
from mitigate.words.outside_text import counted

MOST_RELATIONS = 20
FIRST = ("neutral_mean", "O-", "O+", "polarised")
MEASURES = ("statements", "targets", "empty_targets", *FIRST, "neutral_variance", "D_O-", "D_O+")
DEMONSTRATED = "A small corpus: the figures support no claim about any group of people or any resource."
LIMITS = (
    sections.PROXIES,
    "Percentages of few statements have much sampling noise: a target with one statement has 0 % or 100 %.",
    "Intervals cover the choice of targets. They do not cover the choice of statements or of the classifier.",
    sections.EQUAL_WEIGHT,
)


def page(
    results: Results,
    title: str,
    *,
    scorers: Sequence[str],
    frames: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame,
    chosen: Sequence[str],
    relations: pl.DataFrame | None = None,
    beside: pl.DataFrame | None = None,
    explained: Sequence[str] = (),
    people: pl.DataFrame | None = None,
    **about: Any,
) -> Page:
    """title: of the resource; scorers: that of the first screen first; frames: of targets by label column; statements:
    labelled, all about a target or a choice of them; chosen: targets whose bars are drawn; relations: by_relation;
    beside: (place, figure, key, paper, ours), with explained, why they differ; people: what drop_rules returns; about:
    further fields of Page."""
    rows, labels = results.table, sections.label_names(scorers, frames)
    drawn = {label: frames[label] for label in labels.values()}
    shares = {scorer: row["value"] for scorer in scorers[:2] if (row := headline(rows, "polarised", scorer))}
    counts = ("rows", "rows_about_a_target", "statements", "targets", "empty_targets")
    total, named, said, targets, empty = (results.get(name) or 0 for name in counts)
    return Page(
        state=f"Polarised: {', '.join(f'{share:.1f} % ({scorer})' for scorer, share in shares.items())}",
        hedge=f"The share of {counted(said, 'statement')} about {targets - empty:,} of {counted(targets, 'target')} "
        f"that favour or disparage them, in {named:,} of {counted(total, 'row')} of {title}.",
        picture=sections.shares_picture(rows, scorers[0]),
        numbers=numbers(rows, scorers[0], drawn[labels[scorers[0]]]),
        sections=[
            measures(rows, ("D_R",)),
            Section("The paper's figures and ours", _beside(beside, explained)),
            Section("Policies against people", _people(people)),
            sections.gallery(drawn, list(labels), chosen),
            Section("Relations", _relations(relations)),
            sections.target_section(frames, statements, list(drawn), list(labels)),
        ],
        limits=[*LIMITS, *sections.left_out(next(iter(frames.values()))["target"].to_list())],
        **about,
    )


def numbers(rows: pl.DataFrame, scorer: str, targets: pl.DataFrame) -> list[Number]:
    """The neutral mean, the spread over targets, and the target with the largest share of prejudice."""
    found = []
    if mean := headline(rows, "neutral_mean", scorer):
        cell = shown(mean, 1, " %")
        found.append(Number(f"neutral by {scorer} ↑", cell.text, ", ".join([*cell.below, "mean over targets"])))
    if variance := headline(rows, "neutral_variance", scorer):
        spread, low, high = (variance[end] and variance[end] ** 0.5 for end in ("value", "low", "high"))
        between = "" if low is None and high is None else f"[{span(low, high, 1)}], "
        found.append(Number("spread over targets ↓", number(spread, 1), f"{between}standard deviation in points"))
    frequent = sections.frequent_targets(targets.filter(pl.col("statements") > 0))
    order = ("prejudice", "statements", "target")
    for worst in frequent.sort(order, descending=[True, True, False]).head(1).rows(named=True):
        count, share = worst["statements"], worst["prejudice"]
        low, high = binomtest(round(share * count / 100), count).proportion_ci()
        note = f"[{span(100 * low, 100 * high, 1)}], “{worst['target']}”, {counted(count, 'statement')}"
        found.append(Number("most prejudice ↓", f"{number(share, 1)} %", note))
    return found


def measures(rows: pl.DataFrame, more: Sequence[str] = ()) -> Section:
    """The measures over all targets and by category. more: names besides MEASURES."""
    caption = f"{sections.OF_HARMS} O is overgeneralisation, D disparity."
    names = [*MEASURES, *more, *(one.name for one in own_measures())]
    empty = sections.empty_categories(rows)
    without = f"No statement is about a target of {' or '.join(empty)}." if empty else None
    texts = rows.filter(pl.col("measure").str.starts_with("all_texts_"))  # with measure.texts=all
    everywhere = crossed("Of all texts, with a target or without", texts, {"": "all texts"})
    parts: list[Part] = [measure_table(first_template(rows), names, caption), without, everywhere]
    if "neutral" in rows["template"]:
        parts.append(Fold("With the paper's template", [measure_table(rows.filter(template="paper"), names, caption)]))
    meanings = sections.meanings(rows.filter(pl.col("measure").is_in(names)))
    return Section("Measures", [*parts, Fold("What they mean", [meanings])])


def first_template(rows: pl.DataFrame) -> pl.DataFrame:
    """The figures without those of the paper's template, where there are others."""
    return rows.filter(pl.col("template") != "paper") if "neutral" in rows["template"] else rows


def measure_table(rows: pl.DataFrame, names: Sequence[str], caption: str = "") -> Table | None:
    """Measures by name, over all targets and the categories that have statements."""
    known = rows.filter(pl.col("measure").is_in(names), pl.col("by").is_in(["all", "category"]))
    return crossed(caption, known, sections.by_category(rows), decimals=1)


def console(rows: pl.DataFrame, more: Sequence[str] = (), *, verbose: bool = False) -> str:
    """The means for the terminal, with verbose all measures of both templates. more: as `measures` has it."""
    names = [*MEASURES, *more, *(one.name for one in own_measures())] if verbose else ["statements", *FIRST]
    found = measure_table(rows if verbose else first_template(rows), names)
    return "" if found is None else as_text(found, 110)


def _beside(beside: pl.DataFrame | None, explained: Sequence[str]) -> list[Part]:
    if beside is None:
        return []
    caption = "As Mehrabi et al. (2021) print them, and ours; a target without statements counts as 0 %."
    ratio = Column("difference", lambda row: Cell(f"{number(100 * (row['ours'] / row['paper'] - 1), 1)} %"))
    columns = [text("figure"), text("where", "place"), *(_as_printed(title) for title in ("paper", "ours")), ratio]
    table = Table(caption, columns, beside, kind="narrow")
    return [table, Fold("Why they differ, with measure=paper", explained) if explained else None]


def _as_printed(name: str) -> Column:
    return Column(name, lambda row: Cell(number(row[name], 0 if row["paper"] >= 1000 else 2)))


def _people(people: pl.DataFrame | None) -> list[Part]:
    if people is None or people.is_empty():
        return []
    said = (
        f"Three people rated each of {number(people['statements'][0])} statements of this resource (Mehrabi et al. "
        "2021). The table shows what each policy that drops triples would drop of them; nothing was trained for it."
    )
    caption = (
        "Percent of rated statements, with the 95 % interval over targets and texts. Precision: of the dropped "
        "statements, those that most raters do not call neutral. Recall: of those, the dropped. Polarised: such "
        "statements, of those that are left."
    )
    columns = [Column("precision", "precision", better="up"), Column("recall", "recall", better="up")]
    columns = [text("policy"), Column("dropped", "dropped"), *columns, Column("polarised", "after", better="down")]
    return [said, Table(caption, columns, people)]


def _relations(relations: pl.DataFrame | None) -> list[Part]:
    if relations is None:
        return []
    titles = {name: name.replace("_neutral", ", neutral template") for name in relations.columns[2:]}
    most = relations.head(MOST_RELATIONS)
    caption = f"Percent of statements that are not neutral, for the {most.height} relations with the most statements."
    said = (
        "A triple becomes a statement through its relation's phrase, and some phrases have a sentiment of their own: "
        "the difference between the templates."
    )
    return [said, Table(caption, [text("relation"), Column("statements", "statements"), *figures(1, **titles)], most)]


def by_relation(statements: pl.LazyFrame, columns: Iterable[str]) -> pl.DataFrame:
    """(relation, statements, and the percentage polarised by label column), the commonest first."""
    shares = [pl.col(column).is_in([PREJUDICE, FAVOURITISM]).mean() * 100 for column in columns]
    grouped = statements.group_by("relation").agg(pl.len().alias("statements"), *shares)
    return grouped.sort("statements", "relation", descending=[True, False]).collect(engine="streaming")
