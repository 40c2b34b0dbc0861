"""An audit's page: what it says, in words and figures, and what it hides until it is asked for."""

from dataclasses import replace

import polars as pl
import pytest
from page_examples import example_audit
from report_example import UNTRUSTED

from mitigate.report.audit import Audit, other_ends, render, sentences
from mitigate.report.audit_tables import console, measures, rows


@pytest.fixture(scope="module")
def audit() -> Audit:
    return example_audit()


@pytest.fixture(scope="module")
def page(audit: Audit) -> str:
    return render(audit)


def test_the_headline_and_the_extremes_stand_with_the_statements_behind_them(audit: Audit) -> None:
    headline, *more = sentences(audit)
    assert headline == (
        f"Of {audit.statements.height} statements in Mine about {audit.targets['sentiment'].height} targets, 12.3 % by "
        "sentiment are labelled as favouring or disparaging a whole group."
    )
    assert more[0].startswith("By sentiment, at most ")
    assert ", 10 statements)" in more[0]


def test_nobody_is_singled_out_for_a_statement_or_two(audit: Audit) -> None:
    table = (
        audit.targets["sentiment"]
        .head(3)
        .with_columns(
            statements=pl.Series([1, 20, 300]),
            prejudice=pl.Series([100.0, 30.0, 20.0]),
            favouritism=pl.Series([0.0, 0.0, 9.0]),
        )
    )
    names = table["target"].to_list()
    *_, said = sentences(replace(audit, targets={"sentiment": table}))
    assert said == (
        "By sentiment, at most 30 % of the statements about a target with 20 statements or more are prejudice "
        f"(“{names[1]}”, 20 statements), and at most 9 % favouritism (“{names[2]}”, 300 statements)."
    )
    *_, said = sentences(replace(audit, targets={"sentiment": table.head(1)}))
    assert f"statements about a target are prejudice (“{names[0]}”, 1 statement), and none favouritism." in said
    *_, said = sentences(replace(audit, targets={"sentiment": table.head(1).with_columns(prejudice=0.0)}))
    assert said == "By sentiment, no statement about a target is prejudice or favouritism."
    rare = table.head(1).with_columns(statements=4000, prejudice=0.3, favouritism=0.025)
    *_, said = sentences(replace(audit, targets={"sentiment": rare}))
    assert "at most 0.3 % of the statements" in said
    assert "and less than 0.1 % favouritism" in said


def test_an_audit_with_the_neutral_template_alone_has_the_same_sentences_and_figures(audit: Audit) -> None:
    relations = pl.DataFrame({"relation": ["IsA"], "statements": [10], "sentiment_neutral": [40.0]})
    alone = replace(
        audit,
        metrics={
            f"neutral_template/{key}" if "polarised" in key else key: value for key, value in audit.metrics.items()
        },
        labellings={"sentiment_neutral": ("sentiment", "neutral")},
        targets={"sentiment_neutral": audit.targets["sentiment"]},
        relations=relations,
    )
    headline, *more = sentences(alone)
    assert headline.endswith(
        "targets, 12.3 % by sentiment (neutral template) are labelled as favouring or disparaging a whole group."
    )
    assert more[0].startswith("By sentiment (neutral template), at most ")
    names = {picture.name for picture in audit.pictures}
    assert {picture.name.replace("_neutral", "") for picture in alone.pictures} == names
    shown = render(alone)
    assert "Sentiment, neutral template</figcaption>" in shown
    assert "labelled twice" not in shown
    both = {name: getattr(audit, name) | getattr(alone, name) for name in ("metrics", "labellings", "targets")}
    assert "labelled twice" in render(replace(alone, **both))


def test_figures_of_the_paper_are_drawn_and_named(audit: Audit, page: str) -> None:
    names = {picture.name for picture in audit.pictures}
    assert {"boxes-sentiment", "bars-sentiment", "shown-sentiment"} <= names
    assert any(name.startswith("regions-sentiment-") for name in names)
    assert page.count("<svg") == len(audit.pictures)
    assert "the paper's Fig. 3" in page.replace("’", "'").replace("&#39;", "'")


def test_the_page_is_whole_and_trusts_no_text(page: str) -> None:
    assert UNTRUSTED not in page
    assert 'http-equiv="Content-Security-Policy"' in page
    assert "src=" not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")


def test_the_papers_figures_and_why_ours_differ(page: str) -> None:
    assert "<td>2,000</td>" in page
    assert "−50.0 %" in page
    assert "It differs." in page


def test_measures_as_tables(audit: Audit) -> None:
    frame = measures(audit.metrics, [("sentiment", "paper")])
    assert frame.filter(measure="NSM", part="all").select("value", "low", "high").row(0) == (87.66, 80.0, 91.0)
    assert "[80.00, 91.00]" in console(audit.metrics, [("sentiment", "paper")])
    assert [row.key for row in rows([("mine", "paper")])][5:7] == ["mine/neutral_mean", "mine/neutral_variance"]


def test_what_is_said_of_a_target_is_the_other_end() -> None:
    frame = pl.DataFrame({"head": ["thief", "lawyer"], "tail": ["Lawyer", "liar"], "target": ["lawyer", "lawyer"]})
    assert other_ends(frame)["tail"].to_list() == ["thief", "liar"]


def test_policies_stand_beside_people_where_they_rated_statements(audit: Audit, page: str) -> None:
    assert "Policies against people" not in page
    row = {"resource": "ConceptNet", "policy": "both", "statements": 997, "dropped": 26.8, "precision": None}
    row |= {"precision_low": None, "precision_high": None, "recall": 79.1, "recall_low": 72.6, "recall_high": 85.7}
    row |= {"before": 14.8, "before_low": 12.7, "before_high": 17.0, "after": 4.2, "after_low": 2.7, "after_high": 5.9}
    with_people = render(replace(audit, people=pl.DataFrame([row])))
    section = with_people.split('id="people"')[1].split("</section>")[0]
    assert "rated each of 997 statements" in section
    assert "79.1 <small>[72.6, 85.7]</small>" in section
    assert section.count("<td>–</td>") == 1
