"""The survey's page, which warns first, and the page of what people said. test_browser.py fills the survey in."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import ASKED, example_ratings, example_survey
from test_report_page import Elements

from mitigate.report import ratings, survey


@pytest.fixture(scope="module")
def html() -> str:
    return survey.render(example_survey())


def test_is_well_formed_and_asks_nothing_of_any_host(html: str) -> None:
    parsed = Elements(html)
    assert parsed.faults == []
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert not [attributes for _, attributes in parsed.elements if {"src", "href", "action"} & set(attributes)]
    assert "default-src 'none'" in html


def test_warns_first_and_says_what_raters_must_know(html: str) -> None:
    body = html.partition("<body>")[2]
    assert body.index("CONTENT WARNING") < body.index("<h1")
    text = " ".join(Elements(body).text.split())
    for told in (
        "You can stop at any time",
        "Not more than 2 a day",
        "20 euros an hour.",
        "ask@example.org",
        "18 or older",
    ):
        assert told in text
    assert "minimum wage" in survey.render(survey.Survey("s", ASKED, daily=2))


def test_screens_and_questions_have_names_and_answers_are_radio_buttons(html: str) -> None:
    parsed = Elements(html)
    controls = [(tag, attributes) for tag, attributes in parsed.elements if tag in ("input", "button")]
    assert [attributes["value"] for _, attributes in controls if attributes.get("type") == "radio"] == [
        "-1",
        "0",
        "1",
        "1",
        "0",
    ]
    sections = [attributes for tag, attributes in parsed.elements if tag == "section"]
    assert all(attributes["aria-labelledby"] for attributes in sections)
    assert sum(tag == "legend" for tag, _ in parsed.elements) == 2


@pytest.fixture(scope="module")
def results() -> ratings.Results:
    return example_ratings()


def test_the_page_of_results(results: ratings.Results) -> None:
    html = ratings.render(results)
    parsed = Elements(html)
    assert parsed.faults == []
    assert parsed.open == []
    text = " ".join(parsed.text.split())
    assert (
        "People rate the statement as neutral in 33.3 % of the ratings of “<none>” and 100.0 % of the ratings of "
        "“both”." in text
    )
    assert "both against <none>, 3 targets: human neutral mean (HNM) +66.7 percentage points" in text
    assert "DEMONSTRATION" in text
    assert "a <notice>" in text
    assert "<none>" not in html
    assert "always neutral, rating" in text
    assert "0.3827" in text  # the paper's


def test_the_terminal_s_tables(results: ratings.Results) -> None:
    lines = ratings.console(results.summary, results.raters, results.differences).splitlines()
    assert lines[0].split()[:3] == ["statements", "ratings", "prejudice"]
    assert lines[1].split()[:6] == ["<none>", "3", "9", "33.3", "33.3", "33.3"]
    assert lines[-2].split()[:4] == ["HNM", "of", "both", "66.67"]


def test_a_small_p_value_is_not_zero(results: ratings.Results) -> None:
    row = results.differences.head(1).with_columns(p=pl.lit(0.0002), difference=pl.lit(-0.04))
    rare = replace(results, differences=row)
    *_, said = ratings.findings(rare)
    assert "human neutral mean (HNM) 0.0 percentage points" in said
    assert said.endswith(", p < 0.001.")
    assert "&lt; 0.001" in ratings.render(rare)
    assert ratings.console(rare.summary, rare.raters, row).splitlines()[-1].endswith("< 0.001")
