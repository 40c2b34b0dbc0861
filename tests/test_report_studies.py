"""The pages of knowledge-graph embeddings and of Social Bias Frames: state, numbers, tables and texts from outside."""

import polars as pl
import pytest
from page_elements import Elements
from study_examples import bounded, example_frames, example_kge

from mitigate.report import frames, kge
from mitigate.report.page import OPEN, Page, render
from mitigate.report.table import Table, as_text

KGE, FRAMES = example_kge(), example_frames()


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


@pytest.mark.parametrize(
    ("offensive", "implied", "state", "hedge"),
    [
        (60.0, 40.0, "Beats the best baseline in 1 of 2", "Above it: offensive (F1). Intervals"),
        (80.0, 20.0, "Beats the best baseline in 1 of 2", "Above it: implied statement (BLEU-2). Below it: offensive"),
        (80.0, 40.0, "Below the best baseline in 1 of 2", "Below it: offensive (F1)."),
        (68.5, 39.0, f"{OPEN}: level with the best baseline", "The intervals overlap. Train longer"),
    ],
)
def test_the_model_beats_a_baseline_where_intervals_are_apart(
    offensive: float, implied: float, state: str, hedge: str
) -> None:
    """The model's F1 is 70 and its BLEU-2 is 40; intervals reach one point to either side. Neither the
    variant with constraints nor one without folds is a baseline, or the model."""
    values = {"model": 70.0, "model, constrained": 90.0, "tf-idf": offensive}
    rows = [{"variable": "offensive", "system": name, **bounded(["f1"], value)} for name, value in values.items()]
    said = {"model, given a group": 99.0, "model, five folds, given a group": 40.0, "nearest": implied}
    texts = [{"variable": "implied", "system": name, **bounded(["bleu2"], value)} for name, value in said.items()]
    pairs = frames.beside_baselines(pl.DataFrame(rows), pl.DataFrame(texts))
    found, reason = frames.verdict(pairs)
    assert found == state
    assert hedge in reason
    assert len(found.split()) <= 8


def test_where_all_changes_go_one_way_no_profession_is_called_towards_the_other() -> None:
    assert kge.sides(pl.DataFrame({"change": [0.3, 0.1]}), ["a", "b"]) == ("most towards a", "least towards a")
    assert kge.sides(pl.DataFrame({"change": [-0.1, -0.3]}), ["a", "b"]) == ("least towards b", "most towards b")


def test_three_numbers_stand_with_their_intervals() -> None:
    assert [(one.value, one.note) for one in KGE.numbers] == [
        ("0.25", "[0.10, 0.40]"),
        ("0.80", "[0.10, 0.40]"),
        ("0.250", "[0.100, 0.400]"),
    ]
    assert [(one.name, one.value, one.note) for one in FRAMES.numbers] == [
        ("offensive (F1) ↑", "70.0 %", "[69.0, 71.0], baseline 60.0"),
        ("group targeted (F1) ↑", "70.0 %", "[69.0, 71.0], baseline 69.5"),
        ("implied statement (BLEU-2) ↑", "40.0 %", "[39.0, 41.0], baseline 40.0"),
    ]


@pytest.mark.parametrize("page", [KGE, FRAMES], ids=["kge", "frames"])
def test_a_page_is_well_formed_and_trusts_no_text(page: Page) -> None:
    html = render(page)
    Elements(html).check()
    assert html.count("<svg") == len(page.pictures) > 0
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


def test_published_figures_stand_below_each_system_and_what_is_not_measured_is_left_out() -> None:
    html = render(FRAMES)
    order = (
        "Offensive: 400 test posts",
        "published: SBF-GPT2-gdy",
        "Group targeted",
        "content warning",
        "&lt;b&gt;late",
    )
    assert sorted(order, key=html.index) == list(order)
    assert "Lewd" not in html
