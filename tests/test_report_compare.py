"""A comparison's verdicts, by what was compared, and its page."""

from dataclasses import replace

import polars as pl
import pytest
from comparison_example import UNTRUSTED, example_comparison, pairs
from page_elements import Elements

from mitigate.report import compare
from mitigate.report.page import Number, render
from mitigate.tasks.compare.pairs import kept, verdict


def endpoint(change: float, p: float | None, low: float | None = -1.0, high: float | None = 1.0) -> dict[str, object]:
    """A primary endpoint's row."""
    known = {"baseline": 50.0, "value": 50.0 + change, "as": "difference", "p_holm": p}
    return known | {"low_corrected": low, "high_corrected": high}


@pytest.mark.parametrize(
    ("change", "p", "better", "seeds", "words"),
    [
        (2.0, 0.01, "up", 5, "helps"),
        (2.0, 0.01, "down", 5, "makes it worse"),
        (9.0, 0.05, "up", 5, "no effect shown"),
        (9.0, None, "up", 5, "cannot be determined"),
        (2.0, 0.01, "up", 4, "better, exploratory"),
        (2.0, 0.01, "down", 2, "worse, exploratory"),
        (2.0, 0.05, "down", 2, "no effect shown"),
    ],
)
def test_a_claim_takes_five_seeds(change, p, better, seeds, words) -> None:
    assert verdict(endpoint(change, p), better, seeds) == words
    assert verdict(endpoint(change, p), better, seeds, is_same=True) == "the same numbers"


@pytest.mark.parametrize(
    ("change", "bounds", "better", "words"),
    [
        (-2.0, (-3.0, -1.0), "down", "differ, for the better"),
        (-2.0, (-3.0, -1.0), "up", "differ, for the worse"),
        (2.0, (-0.1, 4.0), "up", "no difference shown"),
        (2.0, (None, None), "up", "cannot be determined"),
    ],
)
def test_two_models_are_told_apart_by_the_interval_alone(change, bounds, better, words) -> None:
    assert verdict(endpoint(change, None, *bounds), better, 1) == words
    ratio = endpoint(change, None, 0.5, None) | {"as": "ratio"}  # a ratio that has no upper bound
    assert verdict(ratio, better, 1) == "no difference shown"


@pytest.mark.parametrize(
    ("valid", "perplexity", "word"),
    [
        ((-0.9, 0.4), (0.95, 1.02), "kept"),  # worse, it may be, but by less than the margins
        ((-1.1, 0.4), (0.95, 1.02), "not shown to be kept"),
        ((-0.9, 0.4), (0.95, 1.04), "not shown to be kept"),
        ((-0.9, 0.4), (0.95, None), "not shown to be kept"),
        ((-3.0, -1.2), (0.95, 1.02), "lost"),
        ((-1.1, 0.4), (1.04, 1.20), "lost"),
    ],
)
def test_quality_is_kept_where_the_whole_interval_is_no_worse_than_the_margin(valid, perplexity, word) -> None:
    rows = [{"margin": margin, "low": low, "high": high} for margin, low, high in ((-1.0, *valid), (1.03, *perplexity))]
    assert kept(rows) == word
    assert kept([]) is None


@pytest.mark.parametrize(
    ("changed", "state", "hedge"),
    [
        ({}, "Exploratory: 15.0 points more neutral by regard", "2 seeds each. Variation between trainings"),
        ({"seeds": (5, 6)}, "Shown: 15.0 points more neutral by regard", "5 and 6 seeds. Quality is worse"),
        ({"seeds": (1, 1)}, "Exploratory: 15.0 points more neutral by regard", "one seed each. Another training"),
        ({"is_same": True}, "The same numbers: nothing to compare", "2 seeds each."),
        ({"unlearnt": "No conclusion: 3 training steps."}, "No conclusion", "3 training steps. Train longer"),
    ],
)
def test_the_state_of_a_comparison(changed: dict, state: str, hedge: str) -> None:
    found = replace(pairs()[0], **changed)
    assert found.state == state
    assert len(state.split()) <= 8
    assert hedge in found.hedge


def test_a_change_that_reads_zero_is_no_finding() -> None:
    several, single = pairs()
    row = several.primary.row(0, named=True)
    tiny = {**row, "value": 80.004, "change": 0.004, "low_corrected": 0.003, "high_corrected": 0.005}
    assert (several.verdict(row), single.verdict(row)) == ("better, exploratory", "differ, for the better")
    assert (several.verdict(tiny), single.verdict(tiny)) == ("no effect shown", "no difference shown")
    ratio = {**row, "as": "ratio", "value": 80.1, "change": 1.004, "low_corrected": 1.001, "high_corrected": 1.007}
    assert single.verdict(ratio) == "no difference shown"


def test_the_page_has_claim_size_and_price_first_and_trusts_no_text() -> None:
    made = example_comparison(pairs()[:1])
    assert made.numbers == [
        Number("both − none: neutral by regard ↑", "+15.0", "[13.0, 17.0]"),
        Number("change: perplexity ↓", "× 1.14", "[1.10, 1.20]"),
    ]
    assert made.picture is not None
    assert made.picture.alt == "Means: none 7.1 and 81.0; both 8.1 and 95.5"
    page = render(made)
    Elements(page).check()
    assert UNTRUSTED not in page
    assert "a &lt;notice&gt;" in page
    both = example_comparison()
    assert both.state == "2 of 2 policies more neutral, each below"
    assert [line.split("  ")[0] for line in compare.everything(pairs()).splitlines() if "neutral by regard" in line]


def test_the_terminal_shows_each_policy_and_its_differences() -> None:
    lines = compare.console(pairs()[:1]).splitlines()
    assert [line.split("  ")[1].strip() for line in lines] == ["policy", "none", "both", "both − none"]
    assert "+15.0 [14.0, 16.0]" in lines[3]
    assert "× 1.14 [1.10, 1.20]" in lines[3]


def test_intervals_of_means_are_over_seeds_or_those_of_the_single_run() -> None:
    several = pl.DataFrame({"NRM": [80.0, 82.0]})  # of two values the standard error is half their difference
    assert compare._mean(several, "x", "NRM")["x_low"] == pytest.approx(81 - 12.706, abs=1e-3)
    single = pl.DataFrame({"NRM": [80.0], "NRM_low": [77.0], "NRM_high": [84.0]})
    assert compare._mean(single, "x", "NRM") == {"x": 80.0, "x_low": 77.0, "x_high": 84.0}
    assert compare._mean(single.drop("NRM_low", "NRM_high"), "x", "NRM")["x_low"] is None
