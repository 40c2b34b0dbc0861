"""The page of knowledge-graph embeddings: state, numbers, tables and texts from outside."""

import polars as pl
import pytest
from page_elements import Elements
from study_examples import example_kge

from mitigate.report.page import OPEN, render
from mitigate.report.table import Table, as_text
from mitigate.studies import kge

KGE = example_kge()


@pytest.mark.parametrize(
    ("low", "high", "state", "hedge"),
    [
        (0.1, 0.4, "Scores of professions follow the graph's counts", "most towards male: profession 0, profession 1,"),
        (-0.4, -0.1, "Scores of professions run against the graph's counts", "Read the order, not the sign"),
        (-0.1, 0.4, OPEN, "The interval of the rank correlation has 0 in it. Train with more seeds"),
        (None, None, OPEN, "One training does not show what is due to chance. Train with more seeds"),
    ],
)
def test_professions_follow_counts_where_the_interval_of_trainings_says_so(
    low: float | None, high: float | None, state: str, hedge: str
) -> None:
    page = example_kge(low, high)
    assert page.state == state
    assert hedge in page.hedge
    assert len(page.state.split()) <= 8


def test_where_all_changes_go_one_way_no_profession_is_called_towards_the_other() -> None:
    assert kge.sides(pl.DataFrame({"change": [0.3, 0.1]}), ["a", "b"]) == ("most towards a", "least towards a")
    assert kge.sides(pl.DataFrame({"change": [-0.1, -0.3]}), ["a", "b"]) == ("least towards b", "most towards b")


def test_three_numbers_stand_with_their_intervals() -> None:
    assert [(one.value, one.note) for one in KGE.numbers] == [
        ("0.25", "[0.10, 0.40]"),
        ("0.80", "[0.10, 0.40]"),
        ("0.250", "[0.100, 0.400]"),
    ]


def test_a_page_is_well_formed_and_trusts_no_text() -> None:
    html = render(KGE)
    Elements(html).check()
    assert html.count("<svg") == len(KGE.pictures) > 0
    assert not [text for text in ("<b>", "<i>", "<thing>") if text in html]


def test_figures_before_and_after_a_mitigation_stand_beside_each_other() -> None:
    *_, table, _ = KGE.sections[-1].parts
    assert isinstance(table, Table)
    assert table.caption.endswith("Published MRR: 0.313 (Ruffinelli et al. 2020).")
    lines = [" ".join(line.split()) for line in as_text(table).splitlines()]
    assert lines[0] == "figure as trained attribute projected out"
    assert "demographic parity distance → chance 40.0 [0.1, 0.4] 20.0 [0.1, 0.4]" in lines
    (front,) = [picture for picture in KGE.pictures if picture.group == "front"]
    assert front.alt.endswith("as trained 0.250 and 40.00; attribute projected out 0.125 and 20.00")
