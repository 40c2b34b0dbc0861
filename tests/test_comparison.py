import numpy as np
import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.comparison import COMPARED, between_runs, holm, mean_change, sign_flip_test, variance_change
from mitigate.measure.seeds import between_policies


def table(neutral, category="gender"):
    return pl.DataFrame(
        {"target": [f"t{i}" for i in range(len(neutral))], "category": category, "neutral": neutral},
        schema_overrides={"neutral": pl.Float64},
    )


def pairs(num_targets: int, repetitions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Percentages of two runs that share their targets' chances and differ by the statements drawn only."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(19, 2, size=(num_targets, repetitions))
    first, second = (100 * generator.binomial(340, chance) / 340 for _ in range(2))
    return first, second


@pytest.mark.parametrize("num_targets", [40, 120])
def test_false_positives_of_the_paired_test_of_means(num_targets):
    first, second = pairs(num_targets, 4000, seed=1)
    p = sign_flip_test(second - first, np.arange(num_targets), permutations=2000)
    assert 0.035 <= (p < 0.05).mean() <= 0.065


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_false_positives_of_the_ratio_of_variances(factor: float) -> None:
    """Also when the second run is more neutral throughout, which is what a filter is for: all deviations are halved,
    and the true ratio is a quarter."""
    first, second = pairs(120, 1000, seed=2)
    second = 100 - factor * (100 - second)
    clusters = np.arange(120)
    changes = (variance_change(first[:, [i]], second[:, [i]], clusters) for i in range(1000))
    bounds = [change.bounds() for change in changes]
    missed = np.mean([not low <= factor**2 <= high for low, high in bounds])
    assert 0.03 <= missed <= 0.08


def test_false_positives_of_means_of_percentages_that_are_nearly_all_the_same() -> None:
    """One word in ten differs at all."""
    generator = np.random.default_rng(3)
    odd = generator.random((60, 1000)) < 0.1
    first, second = (100 - 30 * odd * generator.random((60, 1000)) for _ in range(2))
    p = [mean_change(first[:, [i]], second[:, [i]], np.arange(60)).p for i in range(1000)]
    assert np.mean(np.array(p) < 0.05) <= 0.05


def test_targets_that_are_all_alike_have_no_variance_for_a_ratio_to_divide_by() -> None:
    """By rounding, the variance of twelve times 100 / 3 is 5e-29, and that of others 1e31 times as large."""
    alike, others = np.full((12, 1), 100 / 3), np.arange(12.0)[:, None]
    assert alike.var() > 0
    row = variance_change(alike, others, np.arange(12)).row()
    assert (row["baseline"], row["change"], row["low"], row["high"]) == (0, None, 0, None)
    assert variance_change(others, alike, np.arange(12)).row()["change"] == 0


def test_false_positives_when_inflections_move_together():
    first, second = pairs(80, 4000, seed=3)
    clusters = np.concatenate([np.arange(80), np.arange(40)])
    gains = np.concatenate([second - first, (second - first)[:40]])
    p = sign_flip_test(gains, clusters, permutations=2000)
    assert 0.035 <= (p < 0.05).mean() <= 0.065
    assert (sign_flip_test(gains, np.arange(120), permutations=2000) < 0.05).mean() > 0.065


def test_p_of_three_equal_gains_is_two_of_eight_signs():
    p = sign_flip_test(np.full((3, 1), 0.1), np.arange(3), permutations=100_000)
    assert p.item() == pytest.approx(2 / 8, abs=0.005)


def test_p_is_one_where_nothing_differs_and_small_where_all_gain():
    assert sign_flip_test(np.zeros((30, 1)), np.arange(30)).item() == 1
    assert sign_flip_test(np.ones((30, 1)), np.arange(30), permutations=9999).item() == 1 / 10_000


def test_rows_of_two_runs():
    first, second = pairs(60, 1, seed=4)
    second = 50 + (second - 50) * 0.5
    rows = between_runs(table(first[:, 0]), table(second[:, 0]), "sentiment", {})
    assert rows.schema == COMPARED
    assert rows["figure"].to_list() == ["NSM", "NSV", "NSM/gender", "NSV/gender"]
    mean, variance = rows.rows(named=True)[:2]
    assert (mean["baseline"], mean["value"]) == (pytest.approx(first.mean()), pytest.approx(second.mean()))
    assert (mean["as"], mean["change"]) == ("difference", pytest.approx(second.mean() - first.mean()))
    assert mean["low"] < mean["change"] < mean["high"] < 0
    assert (variance["as"], variance["change"]) == ("ratio", pytest.approx(second.var() / first.var()))
    assert variance["low"] < variance["change"] < variance["high"] < 1
    assert mean["p"] is variance["p"] is None  # one model each: nothing is tested about policies
    assert 0 < mean["detectable"] < abs(mean["change"])
    assert rows["targets"].to_list() == [60] * 4
    assert set(rows["drawn"]) == {"targets"}
    assert rows["fixed_low"].null_count() == 4


def test_a_category_of_few_words_says_nothing_of_one_model_each():
    others = table([float(value) for value in range(40)], "origin").with_columns(target="o" + pl.col("target"))
    whole = pl.concat([table([float(value) for value in range(19)]), others])
    other = whole.with_columns(pl.col("neutral") * 2 + 1)
    rows = {row["figure"]: row for row in between_runs(whole, other, "regard", {}).to_dicts()}
    few, many = rows["NRM/gender"], rows["NRM/origin"]
    assert (few["change"], few["low"], few["p"], few["detectable"]) == (10.0, None, None, None)
    assert many["low"] < many["change"] == 20.5 < many["high"]


def test_only_targets_with_statements_in_both_are_compared():
    first, second = table([10.0, 20.0, 30.0, None]), table([11.0, None, 32.0, 40.0])
    row = between_runs(first, second.reverse(), "regard", {}).row(0, named=True)
    assert (row["figure"], row["targets"], row["baseline"], row["value"]) == ("NRM", 2, 20.0, 21.5)
    with pytest.raises(MitigateError, match="no target has statements in all"):
        between_runs(first.head(1), second.tail(1), "regard", {})


def test_one_word_is_no_comparison():
    rows = between_runs(table([10.0, 20.0]), table([12.0, 22.0]), "regard", {"t0": "t", "t1": "t"})
    row = rows.row(0, named=True)
    assert (row["targets"], row["baseline"], row["value"], row["change"]) == (2, 15.0, 17.0, 2.0)
    assert row["low"] is row["high"] is row["p"] is None


def test_holm_by_hand():
    assert holm([0.01, 0.04, None, 0.03, 0.6]) == pytest.approx([0.04, 0.09, None, 0.09, 0.6])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_detectable_difference_is_found_four_times_out_of_five():
    smallest = mean_change(np.zeros((100, 1)), np.tile([[-1.0], [1.0]], (50, 1)), np.arange(100)).detectable()
    gains = np.random.default_rng(6).normal(smallest, 1, size=(100, 2000))
    found = sign_flip_test(gains, np.arange(100), permutations=1000) < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_a_single_target_has_no_variance_to_compare():
    one = between_runs(table([10.0]), table([30.0]), "regard", {})
    several = between_policies([table([10.0])] * 2, [table([30.0])] * 2, "regard", {})
    for rows in (one, several):
        found = {row["figure"]: row for row in rows.to_dicts()}
        assert (found["NRM"]["baseline"], found["NRM"]["value"]) == (10.0, 30.0)
        statistics = ("baseline", "value", "change", "low", "high", "p", "detectable", "fixed_low")
        assert {found["NRV"][name] for name in statistics} == {None}
