"""The page and the tables of people's ratings."""

from typing import Any

import polars as pl
import pytest
from page_elements import Elements
from ratings_example import example_ratings, frames

from mitigate.recipes.rated_scorers import agreement
from mitigate.report.page import OPEN, render
from mitigate.report.ratings import console

ALONE = {"differences": pl.DataFrame()}
AGAINST = "both against <none>, paired over 3 targets: +66.7 points of HNM, p"
OTHERS = "Polarised votes against earlier, rated by others: −4.0 points, without drift between raters −1.0 [−4.0, 2.0]."


def with_p(p: float, difference: float = 200 / 3) -> dict[str, Any]:
    return {"differences": frames()["differences"].with_columns(p=pl.lit(p), difference=pl.lit(difference))}


@pytest.mark.parametrize(
    ("changed", "source", "state", "hedge", "first"),
    [
        ({}, "both", OPEN, f"{AGAINST} 0.", ("HNM against <none>, points", "66.7")),
        (with_p(0.0002), "both", "66.7 points more neutral to people", f"{AGAINST} < 0.001 (Holm).", ()),
        (with_p(0.01, -8.0), "both", "8.0 points less neutral to people", "", ()),
        (ALONE, "both", "both: 100.0 % neutral to people", "9 ratings of 3 statements.", ("HNM ↑, %", "100.0")),
        (
            ALONE,
            "<none>",
            "<none>: 33.3 % neutral to people",
            f"9 ratings of 3 statements. {OTHERS}",
            ("HNM ↑, %", "33.3"),
        ),
    ],
)
def test_the_first_screen(changed: dict, source: str, state: str, hedge: str, first: tuple) -> None:
    page = example_ratings(source, **changed)
    assert page.state == state
    assert page.hedge.startswith(hedge)
    assert tuple(page.numbers[0])[: len(first)] == first
    assert "No difference is shown; rate more statements (humans.size)." in page.hedge or state != OPEN
    assert [number.name.split()[0] for number in page.numbers[1:]][:1] == ["quality"]
    assert page.picture is not None
    assert "<none> 33.3 % and 33.3 %; both 0.0 % and 0.0 %" in page.picture.alt


def test_the_page_has_every_table_and_escapes_names() -> None:
    html = render(example_ratings())
    parsed = Elements(html)
    parsed.check()
    assert "<none>" not in html
    shown = ("DEMONSTRATION", "a <notice>", "always_neutral", "0.3827", "rater 3", "gender", "relations equally")
    assert [words for words in shown if words not in parsed.text] == []  # 0.3827: the paper's
    assert "too few anchors to tell batches and models apart" in parsed.text


def test_the_terminal_has_sources_differences_and_drift_or_with_verbose_everything() -> None:
    tables = frames() | with_p(0.0002)
    brief, verbose = (console(tables, agreement(tables["scorers"]), brief=brief) for brief in (True, False))
    sources, changes, batches = (block.splitlines() for block in brief.split("\n\n"))
    assert sources[1].split()[:6] == ["<none>", "3", "9", "33.3", "33.3", "33.3"]
    assert changes[1].split()[:5] == ["both", "<none>", "HNM", "3", "66.7"]
    assert changes[1].endswith("< 0.001")
    assert [line.split()[0] for line in batches[1:]] == ["<none>", "<none>", "both"]
    assert batches[-1].split()[-2:] == ["–"] * 2  # drift is not measured
    assert "rater 3" in verbose
    assert "rater 3" not in brief
