"""The survey in a browser: warned first, answered by keys, left at any time, saved as a file that can be read; and the
page of what people said."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from test_report_page import Elements

from mitigate.load.ratings import read_answers
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes import humans_figures
from mitigate.report import ratings, survey

STATEMENTS = pl.DataFrame(
    {
        "item": ["a1", "b2", "c3", "d4"],
        "target": ["lawyer", "</script>", "she", "he"],
        "statement": ["lawyer is a <b>thief</b>", "</script><script>alert(1)</script>", 'she, and "he"', "he is kind"],
    }
)


@pytest.fixture(scope="module")
def html() -> str:
    return survey.render(
        survey.Survey("5urvey", STATEMENTS, daily=2, pay="20 euros an hour.", contact="ask@example.org")
    )


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
    assert "minimum wage" in survey.render(survey.Survey("s", STATEMENTS, daily=2))


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
def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip("needs Chromium to open the page: apt-get install chromium")
    return found


STEPS = """
const seen = {};
const shown = () => document.querySelector(".screen:not([hidden])").id;
const click = (selector) => document.querySelector(selector).click();
const press = (...keys) => keys.forEach((key) =>
  document.querySelector("h1").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true})));
const saved = [];
URL.createObjectURL = (blob) => { saved.push(blob); return "data:,"; };
HTMLAnchorElement.prototype.click = () => {};
const screens = [shown()];
click("#begin .main"); screens.push(shown());  // without name and consent
click("#invent"); seen.invented = document.querySelector("#rater").value;
document.querySelector("#rater").value = "fox"; click("#begin [type=checkbox]"); click("#begin .main");
screens.push(shown());
seen.statement = document.querySelector("#statement").textContent;
seen.elements = document.querySelectorAll("#statement *").length;
press("1", "Enter"); seen.fault = document.querySelector("#fault").textContent;
press("y", "Enter"); press("s"); press("2", "n", "Enter"); screens.push(shown());  // two answers: enough for a day
click("#rest [data-go]"); screens.push(shown());
click("#shortcuts"); press("3", "y", "Enter"); screens.push(shown()); click("#shortcuts");
click("#back"); seen.before = new FormData(document.querySelector("#judge")).get("label");
press("3", "Enter"); press("3", "y", "Enter"); screens.push(shown());
seen.kept = JSON.parse(localStorage.getItem("5urvey answers of fox"));
click("#stopping"); screens.push(shown());
click("#stop [data-do=save]");
click("#begin .main"); screens.push(shown());  // another day, when nothing is left to judge
click("#stopping"); click("#stop [data-go]"); screens.push(shown());
seen.first = document.querySelector("#statement").textContent;
seen.screens = screens;
saved[0].text().then((text) => {
  seen.csv = text;
  window.confirm = () => true;
  try { click("#stop [data-do=delete]"); } finally { seen.left = localStorage.getItem("5urvey answers of fox"); }
  document.body.textContent = JSON.stringify(seen);
});
"""


def test_a_rater_answers_rests_stops_and_saves(browser: str, html: str, tmp_path: Path) -> None:
    file = tmp_path / "survey.html"
    script = STEPS.replace("</", "<\\/")
    file.write_text(html.replace("location.reload();", "").replace("</body>", f"<script>{script}</script></body>"))
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=2000 --dump-dom"
    command = [browser, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    opened = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in opened.stderr, "an error on the page, or something its policy refused to fetch"
    seen = json.loads(unescape(re.search(r"<body[^>]*>(.*)</body>", opened.stdout, re.DOTALL)[1]))
    assert seen["screens"][:8] == ["welcome", "welcome", "question", "rest", "question", "question", "end", "stop"]
    assert seen["screens"][8:] == ["end", "question"]
    assert seen["first"] == seen["statement"]
    assert re.fullmatch(r"rater-[a-z2-9]{6}", seen["invented"])
    assert (seen["statement"], seen["elements"]) == ("lawyer is a <b>thief</b>", 0)
    assert seen["fault"] == "Please answer both questions, or skip this sentence."
    assert seen["before"] == "0"
    assert seen["kept"]["b2"] == {"skipped": True}
    assert seen["left"] is None
    answers = tmp_path / "answers.csv"
    answers.write_text(seen["csv"])
    loaded = read_answers([answers], STATEMENTS["item"].to_list(), raters=1)
    assert loaded.ratings.select("item", "label", "quality").rows() == [
        ("a1", -1, True),
        ("c3", 1, False),
        ("d4", 1, True),
    ]
    assert loaded.notices == ["1 of 4 items have no rating: b2"]


@pytest.fixture(scope="module")
def results() -> ratings.Results:
    rows = [
        (source, f"{source}{target}", target, "gender", "IsA", "said", f"rater {rater}", label, True)
        for source, labels in (("<none>", (-1, 0, 1)), ("both", (0, 0, 0)))
        for target in ("he", "she", "lady")
        for rater, label in enumerate(labels, start=1)
    ]
    names = ["source", "item", "target", "category", "relation", "statement", "rater", "label", "quality"]
    judged = pl.DataFrame(rows, schema=names, orient="row")
    few = Bootstrap(resamples=100)
    scorers = pl.DataFrame({"resource": ["<none>"], "scorer": ["always_neutral"], "against": ["rating"]})
    return ratings.Results(
        name="humans",
        command="python -m mitigate recipe=humans",
        demonstration=True,
        summary=humans_figures.summary(judged, ["<none>", "both"], few),
        raters=humans_figures.raters(judged),
        differences=humans_figures.differences(judged, ["<none>", "both"], few),
        scorers=scorers.with_columns(pl.lit(0.5).alias(name) for name, *_ in ratings.FIGURES),
        notices=["a <notice>"],
    )


def test_the_page_of_results(results: ratings.Results) -> None:
    html = ratings.render(results)
    parsed = Elements(html)
    assert parsed.faults == []
    assert parsed.open == []
    text = " ".join(parsed.text.split())
    assert (
        "People find the statement neutral in 33.3 % of the ratings of “<none>” and 100.0 % of the ratings of “both”."
        in text
    )
    assert "both against <none>, 3 targets: HNM +66.7 points" in text
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
