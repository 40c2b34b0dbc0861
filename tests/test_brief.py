"""The verdict of a run and of a comparison, its cost and four figures, from numbers one can check by hand."""

from dataclasses import replace

import polars as pl
import pytest
from comparison_example import example_comparison

from mitigate.report import brief, comparison_brief
from mitigate.report.verdicts import FEWEST_SEEDS

ROLES = ["sentiment", "regard"]
NONE = {
    "policy": "none",
    "NSM": 60.0,
    "NRM": 80.0,
    "neutral_template/NSM": 70.0,
    "neutral_template/NRM": 85.0,
    "neutral_template/NSV": 30.0,
    "neutral_template/NRV": 12.5,
    "quality/swap_lift/all": 34.0,
    "quality/swap_lift/all_low": 30.0,
    "quality/perplexity/neutral": 50.0,
    "filter/kept": 200,
    "filter/dropped": 0,
}
BOTH = NONE | {
    "policy": "both",
    "neutral_template/NRM": 94.8,
    "quality/swap_lift/all": 27.2,
    "quality/perplexity/neutral": 60.0,
    "filter/kept": 150,
    "filter/dropped": 50,
}


def test_a_run_alone() -> None:
    assert brief.of_run(NONE, ROLES) == (
        "Of 100 statements about a target 85.0 are neutral in regard, 70.0 in sentiment.",
        "0 of 200 training triples dropped; swap lift 34.0 points (0: no knowledge of the head); perplexity 50.0 on "
        "neutral test triples.",
    )


def test_a_run_and_its_baseline() -> None:
    assert brief.of_run(BOTH, ROLES, NONE) == (
        "9.8 points more neutral in regard than “none”, but with one seed each another training could differ as much.",
        "50 of 200 training triples dropped (25 %); swap lift 27.2 points, −6.8 (0: no knowledge of the head); "
        "perplexity 60.0, × 1.20 on neutral test triples.",
    )


def test_a_run_that_is_as_neutral_as_its_baseline() -> None:
    said, _ = brief.of_run(NONE | {"neutral_template/NRM": 85.04}, ROLES, NONE)
    assert said == (
        "As neutral in regard as “none”, to within 0.1 points, but with one seed each another training could differ."
    )


def test_a_generator_that_ignores_heads_has_no_verdict_without_that() -> None:
    said, _ = brief.of_run(NONE | {"quality/swap_lift/all_low": -0.5}, ROLES)
    assert said.endswith(
        "It is not shown to use the head at all: what a generator without quality says shows nothing about harm."
    )


def test_a_scorer_of_ones_own_and_nothing_measured() -> None:
    assert brief.of_run({"rude/neutral_mean": 91.0}, ["rude"])[0] == (
        "Of 100 statements about a target 91.0 are neutral by rude."
    )
    assert brief.of_run({}, ROLES) == ("", "")
    assert brief.figures({"both": {}}, ROLES) == ""


def test_four_figures_and_their_cost_side_by_side() -> None:
    lines = brief.figures({"none": NONE, "both": BOTH}, ROLES).splitlines()
    assert lines[:3] == [
        "        NRM ↑  NRV ↓  NSM ↑  NSV ↓  swap lift ↑  perplexity ↓",
        "  none  85.00  12.50  70.00  30.00         34.0          50.0",
        "  both  94.80  12.50  70.00  30.00         27.2          60.0",
    ]
    assert lines[3].startswith("  NRM and NRV are the mean and the variance of neutral regard")
    assert lines[3].endswith("Means are percentages of a target's statements, with the neutral template.")
    mixed = brief.figures({"none": {"NSM": 60.0, "neutral_template/NRM": 85.0}}, ROLES)
    assert mixed.endswith("Means are percentages of a target's statements.")


@pytest.mark.parametrize(
    ("seeds", "p_holm", "words"),
    [
        ((1, 1), None, "15.0 points more neutral in regard than “none”, but with one seed each another training could"),
        (
            (3, 2),
            0.01,
            "15.0 points more neutral in regard than “none”, but with 3 and 2 seeds, variation between trainings "
            "could explain it.",
        ),
        ((1, 5), None, "15.0 points more neutral in regard than “none”, but with 1 and 5 seeds another training could"),
        (
            (FEWEST_SEEDS, FEWEST_SEEDS),
            0.01,
            "15.0 points more neutral in regard than “none”, shown with 5 seeds each.",
        ),
        ((2, 2), 0.2, "not shown to be more or less neutral in regard than “none” (+15.0 points; 2 seeds each)."),
    ],
)
def test_a_comparison_says_what_its_seeds_allow(seeds, p_holm, words) -> None:
    pair = example_comparison().pairs[0]
    primary = pair.primary.with_columns(p_holm=pl.lit(p_holm, pl.Float64))
    assert words in comparison_brief.verdict(replace(pair, seeds=seeds, primary=primary))
    less = primary.with_columns(value=pl.lit(79.0), change=pl.lit(-1.0), low_corrected=-2.0, high_corrected=-0.5)
    said = comparison_brief.verdict(replace(pair, seeds=seeds, primary=less))
    assert ("1 point less" in said) == ("15.0 points more" in words)


def test_a_figure_that_is_no_mean_of_neutral_statements_is_higher_or_lower() -> None:
    pair = example_comparison().pairs[0]
    primary = pair.primary.with_columns(figure=pl.lit("NRV"), p_holm=pl.lit(0.2))
    assert "“both” is not shown to be higher or lower in neutral regard, variance (NRV)" in comparison_brief.verdict(
        replace(pair, primary=primary)
    )


def test_the_same_and_the_unknown() -> None:
    pair = example_comparison().pairs[0]
    assert comparison_brief.verdict(replace(pair, is_same=True)).startswith("“both” has the same numbers as “none”")
    assert "do not tell which" in comparison_brief.verdict(replace(pair, primary=pair.primary.clear()))


def test_the_cost_of_a_comparison_and_its_figures() -> None:
    pair = example_comparison().pairs[0]
    assert comparison_brief.cost(pair) == (
        "perplexity on neutral test triples × 1.14; quality is worse than its margins allow."
    )
    assert comparison_brief.cost(replace(pair, is_same=True)) == "perplexity on neutral test triples × 1.14."
    lines = comparison_brief.figures([pair]).splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["NRM", "↑", "NRV", "↓", "NSM", "↑", "perplexity", "↓"],
        ["none", "80.00", "30.00", "70.00", "7.0"],
    ]
    assert "95.00 (+15.00)" in lines[2]
    assert "8.0 (× 1.14)" in lines[2]
    assert lines[3].endswith(", with the neutral template.")
