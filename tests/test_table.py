"""One declaration of a table, shown on a page, on the terminal and in a card."""

import polars as pl
from page_elements import Elements

from mitigate.report.html import environment
from mitigate.report.table import Cell, Column, Table, as_markdown, as_text, bounded, text

ROWS = pl.DataFrame(
    {
        "policy": ["none", "both"],
        "share": [7.25, None],
        "share_low": [6.0, None],
        "share_high": [8.5, None],
        "triples": [2100, 900],
    }
)
COLUMNS = [text("Policy", "policy"), bounded("share", "share", better="up"), Column("triples", "triples")]


def html(table: Table) -> str:
    return environment().from_string("{{ table | html }}").render(table=table)


def test_numbers_stand_to_the_right_and_intervals_after_them() -> None:
    assert as_text(Table("", COLUMNS, ROWS)) == (
        "  Policy         share ↑  triples\n  none    7.2 [6.0, 8.5]    2,100\n  both      –                 900"
    )
    assert as_markdown(Table("", COLUMNS, ROWS)) == (
        "| Policy | share ↑ | triples |\n|---|---:|---:|\n| none | 7.2 [6.0, 8.5] | 2,100 |\n| both | – | 900 |"
    )


def test_a_table_that_is_too_wide_loses_its_intervals_then_its_columns_go_below() -> None:
    table = Table("", COLUMNS, ROWS)
    assert as_text(table, width=30).splitlines()[1] == "  none        7.2    2,100"
    first, second = as_text(table, width=18).split("\n\n")
    assert first.splitlines() == ["  Policy  share ↑", "  none        7.2", "  both          –"]
    assert second.splitlines() == ["  Policy  triples", "  none      2,100", "  both        900"]


def test_a_page_trusts_no_text() -> None:
    missing = Column("figure", lambda row: Cell("–", ["no <b>statement</b>"]))
    page = html(Table("A caption. More of it.", [text("Name", "name"), missing], [{"name": "<i>x</i>"}]))
    Elements(page).check()
    assert 'aria-label="A caption"' in page
    assert "<i>" not in page
    assert "– <small>no &lt;b&gt;statement&lt;/b&gt;</small>" in page
