"""The survey's page, which warns first. test_browser.py fills the survey in."""

from page_elements import Elements
from page_examples import ASKED, example_survey

from mitigate.report import survey


def test_the_survey_warns_first_asks_nothing_of_any_host_and_says_what_raters_must_know() -> None:
    html = example_survey()
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
    assert "minimum wage" in survey.render("s", ASKED, daily=2)
    controls = [attributes for tag, attributes in parsed.elements if tag in ("input", "button")]
    answers = [attributes["value"] for attributes in controls if attributes.get("type") == "radio"]
    assert answers == ["-1", "0", "1", "1", "0"]
    assert all(attributes["aria-labelledby"] for tag, attributes in parsed.elements if tag == "section")
    assert sum(tag == "legend" for tag, _ in parsed.elements) == 2
