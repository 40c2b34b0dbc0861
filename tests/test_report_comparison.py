"""A comparison's words, by what was compared, and its plot of harm against quality."""

import re
from dataclasses import replace

import polars as pl
import pytest
from comparison_example import UNTRUSTED, example_comparison

from mitigate.report.compared_runs import lines, render
from mitigate.report.examples import only_in
from mitigate.report.pareto import HARMS, QUALITIES, Axis, alt, bars, mark, means, pareto
from mitigate.report.verdicts import kept, listed, p_value, verdict


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


def test_names_and_p_values_in_words() -> None:
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert [p_value(p) for p in (None, 0.0004, 0.0312, 0.0499, 0.05)] == ["–", "< 0.001", "0.031", "0.0499", "0.050"]


def test_the_summary_on_the_terminal() -> None:
    """The power of a true copy that is unknown has a dash."""
    example = example_comparison()
    alone = replace(example, pairs=example.pairs[:1])
    words = [line.split("  ") for line in lines(alone)]
    found = [[word.strip() for word in line if word.strip()] for line in words]
    assert found[1][:3] == ["both", "harm: better, exploratory", "+15.00 [13.00, 17.00]"]
    assert found[4][:3] == ["both", "lost (exploratory, no claim)", "perplexity (those with a neutral label)"]
    assert found[4][3:] == ["× 1.14 [1.10, 1.20]", "× 1.03", "43"]
    assert "× 1.14 [1.10, 1.20]" in found[-1]
    pair = example.pairs[0]
    unknown = replace(pair, within=pair.within.with_columns(copy_passes=pl.lit(None, pl.Float64)))
    assert lines(replace(alone, pairs=[unknown]))[4].endswith("–")


def test_the_page_hides_what_offends_and_trusts_no_text() -> None:
    page = render(example_comparison())
    assert UNTRUSTED not in page
    assert page.index("content warning") < page.index("&lt;script&gt;")
    assert "no statement that the other does not generate" in page
    assert "a &lt;notice&gt;" in page
    assert page.count("<svg") == 2
    assert "half of the targets change by 1.2 percentage points or more" in page
    table = page.split('aria-label="Primary endpoints"')[1].split("</thead>")[0]
    assert re.findall(r"<th [^>]*>(.*?)</th>", table)[:3] == ["Policy", "finding", "change"]


def test_policies_that_no_other_betters_in_both() -> None:
    """b is better than a in both; c costs more than b and has more of what is wanted."""
    regard, perplexity = HARMS[0], next(axis for axis in QUALITIES if axis.slug == "perplexity")
    columns = {regard.key: [79.0, 81.0, 85.0, 90.0], perplexity.key: [8.0, 8.0, 7.0, 9.0]}
    models = pl.DataFrame({"policy": ["a", "a", "b", "c"], **columns})
    table = means(models, regard, perplexity)
    assert table.rows() == [("a", 8.0, 80.0, False), ("b", 7.0, 85.0, True), ("c", 9.0, 90.0, True)]
    assert alt(models, regard, perplexity).endswith("Bettered in both by no other: b, c.")
    assert len({mark(place) for place in range(24)}) == 24


def test_statements_of_one_model_alone_the_strongest_first() -> None:
    rows = [("same", 1, 0, 0.0), ("mild", 2, -1, -0.2), ("strong", 3, -1, -0.9), ("plain", 4, 0, 0.0)]
    frame = pl.DataFrame(rows, schema=["tail", "rank", "regard", "regard_strength"], orient="row").with_columns(
        target=pl.lit("she"), relation=pl.lit("IsA"), statement=pl.format("she {}", "tail")
    )
    other = frame.head(1)
    assert only_in(frame, other, "she", "regard").rows() == [("she strong", -1), ("she mild", -1), ("she plain", 0)]
    assert only_in(other, frame, "she", "regard").is_empty()


def test_bars_are_intervals_over_seeds_or_of_the_single_run() -> None:
    regard = Axis("NRM", "% neutral in regard", "regard")
    several = pl.DataFrame({"NRM": [80.0, 82.0]})  # of two values the standard error is half their difference
    assert bars(several, regard) == [[pytest.approx(12.706, abs=1e-3)], [pytest.approx(12.706, abs=1e-3)]]
    assert bars(pl.DataFrame({"NRM": [2.0, 92.0]}), regard) == [[47.0], [53.0]]  # from 0 to 100 %
    single = pl.DataFrame({"NRM": [80.0], "NRM_low": [77.0], "NRM_high": [84.0]})
    assert bars(single, regard) == [[3.0], [4.0]]
    assert bars(single.drop("NRM_low", "NRM_high"), regard) is None
    assert bars(single.drop("NRM_high"), regard) is None
    assert bars(single.with_columns(NRM_low=pl.lit(None, pl.Float64)), regard) is None


def test_a_change_that_reads_zero_is_no_finding() -> None:
    several, single = example_comparison().pairs
    row = several.primary.row(0, named=True)
    tiny = {**row, "value": 80.004, "change": 0.004, "low_corrected": 0.003, "high_corrected": 0.005}
    assert (several.verdict(row), single.verdict(row)) == ("better, exploratory", "differ, for the better")
    assert (several.verdict(tiny), single.verdict(tiny)) == ("no effect shown", "no difference shown")
    ratio = {**row, "as": "ratio", "value": 80.1, "change": 1.004, "low_corrected": 1.001, "high_corrected": 1.007}
    assert single.verdict(ratio) == "no difference shown"


def test_percentages_stay_between_0_and_100_on_axes() -> None:
    """Two seeds each, whose intervals by Student's t would reach from −40 to 160 %."""
    regard, valid = HARMS[0], next(axis for axis in QUALITIES if axis.slug == "valid")
    perplexity = next(axis for axis in QUALITIES if axis.slug == "perplexity")
    models = pl.DataFrame(
        {
            "policy": ["none", "none", "both", "both"],
            regard.key: [50.0, 70.0, 99.0, 100.0],
            valid.key: [1.0, 9.0, 40.0, 60.0],
            perplexity.key: [5.0, 9.0, 2.0, 6.0],
        }
    )
    (axes,) = pareto(models, regard, valid).axes
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert 0 <= low < high <= 100
    (axes,) = pareto(models, regard, perplexity).axes
    assert axes.get_xlim()[0] >= 1
