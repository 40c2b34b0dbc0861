"""The skeleton of all pages, tables and plots; and the page of the main job: whole, honest, safe with other people's
texts, and free of the network."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
import report_example
from markupsafe import Markup
from page_elements import Elements

from mitigate.report import cards, mitigate, plots, sections
from mitigate.report.page import Fold, Number, Page, Picture, Section, environment, latex, render, write
from mitigate.report.table import Cell, Column, Table, as_markdown, as_text, text

FOREIGN, READABLE = "a\x00b\x1b[31m\x7f\x9b\u202ec", "ab[31mc"
PAGE: dict[str, Any] = {"name": "a-run", "command": "python -m mitigate", "state": "Nothing"}
ROWS = pl.DataFrame(
    {"policy": ["none", "both"], "share": [7.25, None], "share_low": [6.0, None], "share_high": [8.5, None]}
).with_columns(triples=pl.Series([2100, 900]), empty=pl.lit(None, pl.Float64))
COLUMNS = [text("policy"), Column("share ↑", "share"), Column("triples", "triples")]


def html(part: Any) -> str:
    """A part of a page."""
    return str(environment().get_template("parts.html.jinja").module.show(part))


def test_a_table_as_text_and_as_markdown() -> None:
    shown = Table("", COLUMNS, ROWS)
    lines = ["policy         share ↑  triples", "none    7.2 [6.0, 8.5]    2,100", "both                 –      900"]
    assert as_text(shown) == "\n".join(f"  {line}" for line in lines)
    assert as_text(shown, width=30).splitlines()[1] == "  none        7.2    2,100"
    assert as_markdown(shown).splitlines()[1:3] == ["|---|---:|---:|", "| none | 7.2 [6.0, 8.5] | 2,100 |"]
    grouped = Table("", COLUMNS, {"title": ROWS.rows(named=True)})
    assert as_text(grouped).splitlines()[1] == "title"
    with_empty = Table("", [*COLUMNS, Column("empty", "empty")], ROWS).present()
    assert [column.title for column in with_empty.columns] == ["policy", "share ↑", "triples"]
    assert Table("", COLUMNS, []).present() is None


def test_a_table_of_a_page_trusts_no_text() -> None:
    missing = Column("figure", lambda row: Cell("–", ["no <b>statement</b>"]))
    page = html(Table("A caption. More of it.", [text("Name", "name"), missing], [{"name": "<i>x</i>"}]))
    Elements(page).check()
    assert 'aria-label="A caption"' in page
    assert "<i>" not in page
    assert "–<small>no &lt;b&gt;statement&lt;/b&gt;</small>" in page.replace("\n", "")


def test_latex() -> None:
    frame = pl.DataFrame({"name_of": ["a & b", "50 %"], "NSM ↑": [61.234, None], "p": [0.04996, None]})
    written = latex(frame, "run_1")
    for line in (r"\caption{run\_1}", r"{lrl}", r"name\_of & NSM $\uparrow$ & p \\", r"a \& b & 61.23 & 0.0499 \\"):
        assert line in written
    assert r"50 \% & -- & -- \\" in written


def test_a_page_has_what_it_is_given_in_its_order_and_stores_its_tables_and_pictures(tmp_path: Path) -> None:
    figure, _ = plots.panel(1)
    page = Page(
        **PAGE,
        hedge="Perhaps.",
        picture=Picture("first", "first", "A picture", "a dot", figure),
        numbers=[Number("share ↑", "7 %", "[6, 8]")],
        sections=[
            Section("Long title", ["text", Fold("more", [Picture("second", "g", "t", "b", figure)], warning=True)]),
            Section("Empty", [None]),
        ],
        notices=["notice 1", "notice 2", "notice 3", "notice 4"],
        limits=["A limit."],
        tables={"rows": ROWS, "none": ROWS.clear()},
    )
    write(page, tmp_path)
    parsed = Elements((tmp_path / "report.html").read_text())
    parsed.check()
    words = ["Nothing", "Perhaps.", "7 %", "A picture", "notice 1", "Long title", "A limit.", "notice 4"]
    places = [parsed.text.index(word) for word in words]
    assert places == sorted(places)
    assert "Empty" not in parsed.text
    assert "content warning" in parsed.text
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == ["rows.csv", "rows.tex"]
    captions = pl.read_csv(tmp_path / "plots" / "captions.csv")
    assert captions["caption"].to_list() == ["A picture. a dot", "t. b"]
    assert 'class="open"' not in render(page)
    assert 'class="open"' in render(Page(**{**PAGE, "state": "No conclusion"}))


def test_no_control_character_in_html_and_figures(tmp_path: Path) -> None:
    template = "{{ text }}|{{ text | e }}|{{ markup }}"
    found = environment().from_string(template).render(text=FOREIGN + "<", markup=Markup(f"<i>{FOREIGN}</i>"))
    assert found == f"{READABLE}&lt;|{READABLE}&lt;|<i>{READABLE}</i>"
    made, axes = plots.panel(1)
    axes.annotate(FOREIGN, (0.5, 0.5))
    picture = Picture("name", "group", "title", FOREIGN, made)
    drawn = plots.svg(picture)
    assert f'aria-label="{READABLE}"' in drawn
    plots.save_figure(made, tmp_path / "name")
    for root in (ElementTree.fromstring(drawn), ElementTree.parse(tmp_path / "name.svg").getroot()):
        assert READABLE in "".join(root.itertext())
    assert (tmp_path / "name.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def run() -> Page:
    return report_example.report()


@pytest.fixture(scope="module")
def page(run: Page) -> str:
    return render(run)


@pytest.fixture(scope="module")
def parsed(page: str) -> Elements:
    return Elements(page)


def test_asks_nothing_of_any_host(page: str, parsed: Elements) -> None:
    for tag, attributes in parsed.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
        assert tag not in {"link", "iframe", "object", "img"}
    assert not re.search(r"@import|url\((?!#)", page)
    policies = [a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_escapes_what_others_wrote_and_warns_of_offensive_examples(page: str, parsed: Elements) -> None:
    assert "script" not in {tag for tag, _ in parsed.elements}
    assert report_example.UNTRUSTED not in page
    assert report_example.UNTRUSTED in parsed.text
    assert page.count("content warning") == 1
    _, after = page.split("<summary>Statements about each target", 1)
    assert report_example.UNTRUSTED in Elements(after).text
    assert "content warning" in after.split("</summary>")[0]
    assert "<details open" not in page


HARM = "neutral_template/NRM"


@pytest.mark.parametrize(
    ("mine", "other", "state", "hedge"),
    [
        ({HARM: 70.0}, {HARM: 60.4}, "Exploratory: 9.6 points more neutral", "There is one run of each"),
        ({HARM: 70.0}, {HARM: 71.0}, "Exploratory: 1.0 point less neutral", "There is one run of each"),
        ({HARM: 70.0}, {HARM: 70.04}, "It is as neutral as without a policy", "There is one run of each"),
        ({HARM: 70.0}, None, "70.0 % neutral by regard, nothing compared", "Run policy=none"),
    ],
)
def test_the_state_of_a_run(mine: dict, other: dict | None, state: str, hedge: str) -> None:
    others = {} if other is None else {"none": report_example.results(**other)}
    found = mitigate.verdict(report_example.results(**mine), others, report_example.SCORERS)
    assert found.state == state
    assert len(state.split()) <= 8
    assert hedge in found.hedge
    assert found.cost.startswith("30.0 % of the training triples dropped; swap lift, points ↑ 20.0")


SQUARE = pl.DataFrame(
    {
        "target": ["nurse", "lawyer", "nun", "thief", "$x^{"],
        "category": ["profession"] * 5,
        "statements": [10] * 5,
        "prejudice": [10.0, 30.0, 20.0, 80.0, 40.0],
        "favouritism": [30.0, 30.0, 60.0, 10.0, 50.0],
        "neutral": [60.0, 40.0, 20.0, 10.0, 10.0],
    }
)


def test_the_papers_figures_with_their_numbers_in_words() -> None:
    """Chosen targets stand in their order; nothing is drawn of nothing."""
    found = sections.gallery({"regard_neutral": SQUARE}, ["regard"], shown=["thief", "nobody", "nurse"])
    pictures = {one.name: one for one in Page(**PAGE, sections=[found]).pictures}
    assert set(pictures) == {"boxes-regard", "bars-regard", "shown-regard"}
    assert "profession 30.0 % and 30.0 %" in pictures["boxes-regard"].alt
    assert pictures["shown-regard"].alt.endswith("thief 80.0 % and 10.0 %; nurse 10.0 % and 30.0 %")
    empty = SQUARE.with_columns(statements=pl.lit(0), prejudice=None, favouritism=None, neutral=None)
    assert sections.gallery({"regard": empty}, ["regard"]).parts == []


def test_intervals_are_drawn_where_both_bounds_are_known_and_series_have_a_legend() -> None:
    rows = pl.DataFrame({"name": ["a", "b"], "value": [1.0, 2.0], "low": [0.5, None], "high": [1.5, 3.0]})
    axes = plots.intervals(rows, "points").axes[0]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[0.5, 1.5]]
    assert axes.get_legend() is None
    assert plots.intervals(rows.with_columns(series=pl.col("name")), "points").axes[0].get_legend() is not None


LEDGER = pl.DataFrame(
    {
        "row": [1, 2, 3, 4, 5, None],
        "source_row": [None] * 5 + [4],
        "relation": ["IsA", "IsA", "IsA", "HasA", "IsA", "HasA"],
        "target": ["nurse", None, "nurse", "lawyer", None, "judge"],
        "statement": ["s1", "s2", "s3", "s4", "s5", "s6"],
        "weight": pl.Series([1.0, 0.0, 0.0, 0.5, 0.0, 0.5], dtype=pl.Float32),
        "reason": ["kept", "regard -1", "sentiment +1", "regard +1, swapped", "sentiment +1", "regard +1, swapped"],
    }
)


def test_the_ledger_by_relation_target_and_reason() -> None:
    """Triples about no target are left out."""
    assert cards.summary(LEDGER, "relation").rows() == [("IsA", 4, 1, 3, 0, 1.0, 75.0), ("HasA", 1, 1, 0, 1, 1.0, 0.0)]
    by_target = [("nurse", 2, 0, 1.0), ("lawyer", 1, 0, 0.5), ("judge", 0, 1, 0.5)]
    assert cards.summary(LEDGER, "target").select("target", "input", "added", "weight").rows() == by_target
    by_reason = [("sentiment +1", 2, 2), ("kept", 1, 0), ("regard +1, swapped", 1, 0), ("regard -1", 1, 1)]
    assert cards.summary(LEDGER, "reason").select("reason", "input", "dropped").rows() == by_reason
