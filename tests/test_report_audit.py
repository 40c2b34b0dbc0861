"""Sentences of pages, derived from numbers: frames, how reliable labels are, whom figures leave out; and
an audit's page."""

from dataclasses import replace

import polars as pl
import pytest
from page_elements import unlabelled
from page_examples import example_audit, example_frames
from report_example import UNTRUSTED

from mitigate.report.audit import Audit, other_ends, render, sentences
from mitigate.report.audit_tables import console, rows
from mitigate.report.excluded_targets import left_out
from mitigate.report.frames import beside_baselines, findings
from mitigate.report.scorer_reliability import measured, paper, reliability
from mitigate.words.targets import targets

SHIPPED = {"sentiment": "vader", "regard": "minilm"}
PAPER = (
    "Non-binary people are missing from the paper's list, as is everyone whom its words do not name. No number here "
    "describes them."
)


def test_classifications_stand_beside_the_best_baseline_and_not_beside_the_constrained_ones() -> None:
    lines = list(findings(example_frames()))
    assert lines[0].startswith("Offensive: F1 70.0 [70.0, 70.0] on 400 test posts, against 68.0")
    assert lines[0].endswith("by the best baseline (always yes).")
    assert not any("lewd" in line.lower() for line in lines)
    for system in ("model", "nearest"):  # alone, each has no baseline
        assert beside_baselines([{"system": system, "f1": 1.0}], "model", "f1") is None


def test_the_reliability_of_scorers_stands_in_a_line() -> None:
    words = "F1 with people: favouritism 0.43 to 0.56, prejudice 0.47 to 0.81 (minilm)"
    assert reliability("minilm", "regard") == words
    assert reliability("bert", "regard") == "agreement with people not measured (bert)"


def test_f1_follow_from_precision_and_recall() -> None:
    for figures in [*measured().values(), *paper().values()]:
        for name in ("favouritism", "prejudice"):
            if f"{name}/f1" in figures:
                recall, precision = figures[f"{name}/recall"], figures[f"{name}/precision"]
                assert figures[f"{name}/f1"] == pytest.approx(2 * recall * precision / (recall + precision), abs=0.002)


def test_whom_figures_leave_out() -> None:
    assert left_out(list(targets())) == [
        "Not every target is a person: 71 name a place (such as “ethiopia”) and 7 name a religion, a book or a "
        "building (such as “sharia”). Their numbers describe statements about a place or a thing.",
        PAPER,
    ]
    assert left_out([]) == []
    assert left_out(["lawyer", "italy", "lawyer"]) == [
        "Not every target is a person: 1 names a place (such as “italy”). Their numbers describe statements about a "
        "place or a thing.",
        "327 of the paper's 329 targets are left out, among them all of gender and religion.",
        PAPER,
    ]
    assert left_out(["non-binary person", "lawyer"]) == [
        "328 of the paper's 329 targets are left out, among them all of origin, gender and religion.",
        "1 target is not in the paper's list: non-binary person. No number here describes anyone whom the 2 targets do "
        "not name.",
    ]
    assert left_out(["non-binary person", "roma"])[0] == "All of the paper's 329 targets are left out."
    assert left_out(["roma"])[1].endswith("No number here describes anyone whom this target does not name.")
    assert "1 of the paper's 329 targets is left out." in left_out([name for name in targets() if name != "lawyer"])


@pytest.fixture(scope="module")
def audit() -> Audit:
    return example_audit()


@pytest.fixture(scope="module")
def page(audit: Audit) -> str:
    return unlabelled(render(audit))


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
    assert "[80.00, 91.00]" in console(audit.metrics, [("sentiment", "paper")])
    assert [row.key for row in rows([("mine", "paper")])][1:3] == ["mine/neutral_mean", "mine/neutral_variance"]
    frame = pl.DataFrame({"head": ["thief", "lawyer"], "tail": ["Lawyer", "liar"], "target": ["lawyer", "lawyer"]})
    assert other_ends(frame)["tail"].to_list() == ["thief", "liar"]
