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


def last_sentence(audit: Audit, rows: pl.DataFrame) -> str:
    *_, said = sentences(replace(audit, targets={"sentiment": rows}))
    return said


def test_the_headline_and_the_extremes_stand_with_the_statements_behind_them(audit: Audit) -> None:
    """No target is singled out for a statement or two."""
    headline, *more = sentences(audit)
    assert headline == (
        f"Of {audit.statements.height} statements in Mine about {audit.targets['sentiment'].height} targets, 12.3 % by "
        "sentiment are labelled as favouring or disparaging a whole group."
    )
    assert more[0].startswith("By sentiment, at most ")
    assert ", 10 statements)" in more[0]
    table = audit.targets["sentiment"].head(3)
    columns = {"statements": [1, 20, 300], "prejudice": [100.0, 30.0, 20.0], "favouritism": [0.0, 0.0, 9.0]}
    table = table.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    names, one = table["target"].to_list(), table.head(1)
    assert last_sentence(audit, table) == (
        "By sentiment, at most 30 % of the statements about a target with 20 statements or more are prejudice "
        f"(“{names[1]}”, 20 statements), and at most 9 % favouritism (“{names[2]}”, 300 statements)."
    )
    single = f"statements about a target are prejudice (“{names[0]}”, 1 statement), and none favouritism."
    assert single in last_sentence(audit, one)
    nothing = "By sentiment, no statement about a target is prejudice or favouritism."
    assert last_sentence(audit, one.with_columns(prejudice=0.0)) == nothing
    said = last_sentence(audit, one.with_columns(statements=4000, prejudice=0.3, favouritism=0.025))
    assert "at most 0.3 % of the statements" in said
    assert "and less than 0.1 % favouritism" in said


def test_an_audit_with_the_neutral_template_alone_has_the_same_sentences_and_figures(audit: Audit) -> None:
    relations = pl.DataFrame({"relation": ["IsA"], "statements": [10], "sentiment_neutral": [40.0]})
    prefixes = {key: "neutral_template/" if "polarised" in key else "" for key in audit.metrics}
    metrics = {prefixes[key] + key: value for key, value in audit.metrics.items()}
    alone = replace(
        audit,
        metrics=metrics,
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


def test_the_page_is_whole_trusts_no_text_and_has_the_papers_figures(audit: Audit, page: str) -> None:
    """And why ours differ from the paper's numbers."""
    names = {picture.name for picture in audit.pictures}
    assert {"boxes-sentiment", "bars-sentiment", "shown-sentiment"} <= names
    assert any(name.startswith("regions-sentiment-") for name in names)
    assert page.count("<svg") == len(audit.pictures)
    assert "the paper's Fig. 3" in page.replace("’", "'").replace("&#39;", "'")
    assert UNTRUSTED not in page
    assert 'http-equiv="Content-Security-Policy"' in page
    assert "src=" not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")
    for shown in ("<td>2,000</td>", "−50.0 %", "It differs."):
        assert shown in page


def test_measures_as_tables_and_the_other_ends_of_triples(audit: Audit) -> None:
    frame = measures(audit.metrics, [("sentiment", "paper")])
    assert frame.filter(measure="NSM", part="all").select("value", "low", "high").row(0) == (87.66, 80.0, 91.0)
    assert "[80.00, 91.00]" in console(audit.metrics, [("sentiment", "paper")])
    assert [row.key for row in rows([("mine", "paper")])][5:7] == ["mine/neutral_mean", "mine/neutral_variance"]
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
