"""The survey's page, which warns first, and the page of ratings. test_browser.py fills the survey in."""

from dataclasses import replace

import polars as pl
from page_elements import Elements
from page_examples import ASKED, example_ratings, example_survey

from mitigate.report import ratings, survey


def test_the_survey_warns_first_asks_nothing_of_any_host_and_says_what_raters_must_know() -> None:
    html = survey.render(example_survey())
    parsed = Elements(html)
    parsed.check()
    assert not [attributes for _, attributes in parsed.elements if {"src", "href", "action"} & set(attributes)]
    assert "default-src 'none'" in html
    body = html.partition("<body>")[2]
    assert body.index("CONTENT WARNING") < body.index("<h1")
    text = Elements(body).text
    for shown in ("You can stop at any time", "Not more than 2 a day", "20 euros an hour.", "18 or older"):
        assert shown in text
    assert "ask@example.org" in text
    assert "minimum wage" in survey.render(survey.Survey("s", ASKED, daily=2))
    controls = [attributes for tag, attributes in parsed.elements if tag in ("input", "button")]
    answers = [attributes["value"] for attributes in controls if attributes.get("type") == "radio"]
    assert answers == ["-1", "0", "1", "1", "0"]
    assert all(attributes["aria-labelledby"] for tag, attributes in parsed.elements if tag == "section")
    assert sum(tag == "legend" for tag, _ in parsed.elements) == 2


def test_the_page_and_the_tables_of_results() -> None:
    results = example_ratings()
    html = ratings.render(results)
    parsed = Elements(html)
    parsed.check()
    neutral = "neutral in 33.3 % of the ratings of “<none>” and 100.0 % of the ratings of “both”."
    assert f"People rate the statement as {neutral}" in parsed.text
    change = "both against <none>, 3 targets: human neutral mean (HNM) +66.7 percentage points"
    for shown in (change, "DEMONSTRATION", "a <notice>", "always neutral, rating", "0.3827"):  # the last is the paper's
        assert shown in parsed.text
    assert "<none>" not in html
    lines = ratings.console(results.summary, results.raters, results.differences, results.drift.clear()).splitlines()
    assert lines[0].split()[:3] == ["statements", "ratings", "prejudice"]
    assert lines[1].split()[:6] == ["<none>", "3", "9", "33.3", "33.3", "33.3"]
    assert lines[-2].split()[:4] == ["HNM", "of", "both", "66.67"]


def test_the_page_says_what_drift_leaves_and_where_it_cannot_be_measured() -> None:
    results = example_ratings()
    text = Elements(ratings.render(results)).text
    for shown in (
        "<none> against earlier, rated by other batches of raters: polarised votes −4.0 [−7.0, −1.0] percentage points",
        "On 90 statements that both rated the batches differ by −3.0 [−3.0, −3.0].",
        "Without this drift −1.0 [−4.0, 2.0] (as they are) or −1.0 [−4.0, 2.0] (relations equally) remains.",
        "too few of the same statements: both and earlier (2 statements).",
    ):
        assert shown in text
    lines = ratings.console(results.summary, results.raters, results.differences, results.drift).splitlines()
    assert "<none> against earlier: polarised, relations equally" in lines[-3]
    assert "cannot be told apart" in lines[-1]


def test_a_small_p_value_is_not_zero() -> None:
    results = example_ratings()
    row = results.differences.head(1).with_columns(p=pl.lit(0.0002), difference=pl.lit(-0.04))
    rare = replace(results, differences=row, drift=results.drift.clear())
    *_, said = ratings.findings(rare)
    assert "human neutral mean (HNM) 0.0 percentage points" in said
    assert said.endswith(", p < 0.001.")
    assert "&lt; 0.001" in ratings.render(rare)
    assert ratings.console(rare.summary, rare.raters, row, rare.drift.clear()).splitlines()[-1].endswith("< 0.001")
