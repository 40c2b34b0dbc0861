"""A comparison's words, by what was compared, and its plot of harm against quality."""

import polars as pl
import pytest
from comparison_example import UNTRUSTED, example_comparison

from mitigate.report.before_after import only_in
from mitigate.report.comparison import line, render, sentences
from mitigate.report.pareto import HARMS, QUALITIES, alt, mark, means
from mitigate.report.verdicts import kept, listed, p_value, said_together, verdict


@pytest.mark.parametrize(
    ("difference", "p", "better", "several", "words"),
    [
        (2.0, 0.01, "up", True, "helps"),
        (2.0, 0.01, "down", True, "makes it worse"),
        (-2.0, 0.01, "down", False, "differ, for the better"),
        (-2.0, 0.01, "up", False, "differ, for the worse"),
        (9.0, 0.05, "up", True, "no effect shown"),
        (9.0, 0.05, "up", False, "no difference shown"),
        (9.0, None, "up", True, "cannot be told"),
    ],
)
def test_only_several_seeds_speak_of_a_policy(difference, p, better, several, words) -> None:
    assert verdict(difference, p, better, several) == words
    assert verdict(difference, p, better, several, is_same=True) == "the same numbers"


@pytest.mark.parametrize(
    ("valid", "perplexity", "word"),
    [
        ((-0.9, 0.4), (0.95, 1.02), "kept"),  # worse, it may be, but by less than the margins
        ((-1.1, 0.4), (0.95, 1.02), "not shown to be kept"),
        ((-0.9, 0.4), (0.95, 1.04), "not shown to be kept"),
        ((-3.0, -1.2), (0.95, 1.02), "lost"),
        ((-1.1, 0.4), (1.04, 1.20), "lost"),
        ((None, None), (0.95, 1.02), None),
    ],
)
def test_quality_is_kept_where_the_whole_interval_is_no_worse_than_the_margin(valid, perplexity, word) -> None:
    rows = {"valid": dict(zip(("low", "high"), valid, strict=True))}
    rows |= {"perplexity": dict(zip(("low", "high"), perplexity, strict=True))}
    margins = {"valid": -1.0, "perplexity": 1.03}
    assert kept(rows, margins) == word
    assert kept({"valid": rows["valid"]}, margins) is None


def test_policies_with_one_verdict_are_named_together() -> None:
    said = said_together({"a": "helps", "b": "no effect shown", "c": "helps", "d": "differ, for the worse"})
    assert said == "a and c help; b is not shown to change anything; the model of d differs, for the worse"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert [p_value(p) for p in (None, 0.0004, 0.0312)] == ["–", "< 0.001", "0.031"]


def test_the_headline_names_the_policy_or_the_model() -> None:
    first, second, *cost = sentences(example_comparison())
    assert first == (
        "By regard, against “none”: “both” helps; the model of “sentiment, trainer.max_steps=40, seed 1” differs, for "
        "the better."
    )
    assert second.startswith("By sentiment: “both” is not shown to change anything; the model of ")
    assert cost[0] == (
        "The perplexity of “both” on neutral test triples is 1.14 times that of “none” (95 % interval 1.10 to 1.20): "
        "a cost."
    )


def test_a_contrast_is_one_line_of_the_terminal() -> None:
    assert line(example_comparison().pairs[0]) == (
        "both against none (2 seeds each); NRM 80.00 → 95.00 (+15.00 [13.00, 17.00], p < 0.001: helps); NSM 70.00 → "
        "71.00 (+1.00 [−1.00, 3.00], p 0.500: no effect shown); quality/perplexity/neutral × 1.14 [1.10, 1.20]"
    )


def test_the_page_hides_what_offends_and_trusts_no_text() -> None:
    page = render(example_comparison())
    assert UNTRUSTED not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")
    assert "no statement that the other does not generate" in page
    assert "a &lt;notice&gt;" in page
    assert page.count("<svg") == 2
    assert "half of the targets change by 1.2 percentage points or more" in page


def test_who_is_bettered_by_nobody() -> None:
    """b is better than a in both; c costs more than b and has more of what is wanted."""
    regard, perplexity = HARMS[0], QUALITIES[0]
    models = pl.DataFrame(
        {
            "policy": ["a", "a", "b", "c"],
            regard.key: [79.0, 81.0, 85.0, 90.0],
            perplexity.key: [8.0, 8.0, 7.0, 9.0],
        }
    )
    table = means(models, regard, perplexity)
    assert table.rows() == [("a", 8.0, 80.0, False), ("b", 7.0, 85.0, True), ("c", 9.0, 90.0, True)]
    assert alt(models, regard, perplexity).endswith("Bettered in both by no other: b, c.")


def test_what_only_one_model_says_the_strongest_first() -> None:
    frame = pl.DataFrame(
        {
            "target": ["she"] * 4,
            "relation": ["IsA"] * 4,
            "tail": ["same", "mild", "strong", "plain"],
            "statement": ["she same", "she mild", "she strong", "she plain"],
            "rank": [1, 2, 3, 4],
            "regard": [0, -1, -1, 0],
            "regard_strength": [0.0, -0.2, -0.9, 0.0],
        }
    )
    other = frame.head(1)
    assert only_in(frame, other, "she", "regard").rows() == [("she strong", -1), ("she mild", -1), ("she plain", 0)]
    assert only_in(other, frame, "she", "regard").is_empty()


def test_no_two_policies_have_the_same_mark() -> None:
    marks = [mark(place) for place in range(24)]
    assert len(set(marks)) == 24
