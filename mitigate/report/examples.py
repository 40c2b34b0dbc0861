"""Statements and targets that a page names as examples: extremes, not a sample."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from markupsafe import Markup, escape

from mitigate.report.table import Column, Table, text
from mitigate.report.table_declarations import declared
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

FEWEST_STATEMENTS = 20
"""Fewest statements of a target that is an example of an extreme: one of 20 statements is 5 %."""
MOST_TARGETS = 500
"""Most targets in the table of a page: a browser stays fast, and the paper's 329 are all shown."""
LABELS = {PREJUDICE: "−1 prejudice", NEUTRAL: "0 neutral", FAVOURITISM: "+1 favouritism", OTHER: "other"}


def label_column(title: str, name: str) -> Column:
    """A column of labels in words; a dash for a text without a label."""
    return text(title, lambda row: LABELS.get(row[name]), "label")


def statement_table(
    caption: str, statements: pl.DataFrame, scorers: Mapping[str, str], *, label: str = "", empty: str = ""
) -> Table:
    """Statements with their labels. scorers: headings of the label columns, by column name."""
    columns = [label_column(title, name) for name, title in scorers.items()]
    statement = text("Statement", "statement", "sentence")
    return Table(caption, [statement, *columns], statements, label=label, headed=False, empty=empty)


def statement_tables(
    said: Mapping[str, Sequence[pl.DataFrame]], titles: Sequence[str], caption: str, scorer: str, empty: str
) -> dict[str, list[Table]]:
    """Tables of statements by target, one for each side. titles: of the sides; caption: with the placeholders target
    and title; empty: stands in place of statements."""
    return {
        target: [
            statement_table(caption.format(target=target, title=title), rows, {"label": scorer}, empty=empty)
            for title, rows in zip(titles, sides, strict=True)
        ]
        for target, sides in said.items()
    }


def target_table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[Any, Any]],
    size: Callable[[Mapping[Any, Any]], Any],
    *,
    largest: str,
    file: str,
) -> Table:
    """All targets, which a reader sorts and searches; of more than MOST_TARGETS those of the largest size first, with
    a link to the file that has all. largest: the size in words, after "those with"."""
    table = declared("targets", rows, more=columns, caption=caption)
    if len(rows) > MOST_TARGETS:
        shown = sorted(rows, key=size, reverse=True)[:MOST_TARGETS]
        those = f" Shown are {MOST_TARGETS} of {len(rows):,} targets: those with {largest}. "
        note = Markup('{}<a href="{}">{}</a> has all.').format(those, file, file)
        table = replace(table, rows=shown, caption=escape(table.caption) + note, total=len(rows))
    return replace(table, search="{target} {category}".format_map)


def frequent_targets(targets: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """The targets with FEWEST_STATEMENTS or more and True; all targets and False if there are none."""
    found = targets.filter(pl.col("statements") >= FEWEST_STATEMENTS)
    return (targets, False) if found.is_empty() else (found, True)


def examples(
    statements: pl.DataFrame, per_target: int = 6, scorers: Sequence[str] = ("sentiment", "regard")
) -> pl.DataFrame:
    """The strongest polarised statements (target, category, statement, labels of the available scorers), by target, at
    most `per_target` distinct ones of each."""
    scorers = [name for name in scorers if name in statements.columns]
    strengths = [
        pl.when(pl.col(name).is_in([PREJUDICE, FAVOURITISM])).then(pl.col(f"{name}_strength").abs()) for name in scorers
    ]
    return (
        statements.with_columns(strength=pl.max_horizontal(strengths))
        .drop_nulls(["target", "strength"])
        .unique(["target", "statement"], keep="first", maintain_order=True)
        .sort("target", "strength", "statement", descending=[False, True, False])
        .group_by("target", maintain_order=True)
        .head(per_target)
        .select("target", "category", "statement", *scorers)
    )


def only_in(mine: pl.DataFrame, other: pl.DataFrame, target: str, column: str, most: int = 6) -> pl.DataFrame:
    """Up to `most` statements (statement, label) about the target that `mine` has and `other` lacks: first those that
    are polarised by `column`, by strength, then the others by rank."""
    key = ["relation", "tail"]
    polarised = pl.col(column).is_in([PREJUDICE, FAVOURITISM])
    return (
        mine.filter(target=target)
        .join(other.filter(target=target), on=key, how="anti", maintain_order="left")
        .sort(
            ~polarised,
            pl.when(polarised).then(-pl.col(f"{column}_strength").abs()).otherwise(0.0),
            "rank",
            maintain_order=True,
        )
        .head(most)
        .select("statement", label=column)
    )
