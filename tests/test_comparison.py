"""Two runs compared target by target, and two policies by their seeds: rows by hand, and false positives of the tests
in simulations."""

import numpy as np
import polars as pl
import pytest
from refusals import refuses
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.comparison import COMPARED, holm, mean_change, sign_flip_test, variance_change
from mitigate.measure.seeds import neutral_changes, of_seeds


def table(neutral, category: str = "gender") -> pl.DataFrame:
    names = [f"t{i}" for i in range(len(neutral))]
    columns = {"target": names, "category": category, "neutral": neutral}
    return pl.DataFrame(columns, schema_overrides={"neutral": pl.Float64})


def tables(values: np.ndarray) -> list[pl.DataFrame]:
    """One table a column of (targets, seeds)."""
    return [table(column) for column in values.T]


def pairs(num_targets: int, repetitions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Percentages of two runs that share their targets' chances and differ by the statements drawn only."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(19, 2, size=(num_targets, repetitions))
    first, second = (100 * generator.binomial(340, chance) / 340 for _ in range(2))
    return first, second


def trained(generator, base: np.ndarray, num_seeds: int, between: float) -> np.ndarray:
    """Percentages of models whose seed moves all targets together by `between` and each by 3 points."""
    shared = generator.normal(0, between, size=(1, num_seeds))
    return base + shared + generator.normal(0, 3, size=(len(base), num_seeds))


def test_false_positives_of_the_paired_test_of_means_also_when_inflections_move_together() -> None:
    first, second = pairs(80, 4000, seed=3)
    p = sign_flip_test(second - first, np.arange(80), permutations=2000)
    assert 0.035 <= (p < 0.05).mean() <= 0.065
    clusters = np.concatenate([np.arange(80), np.arange(40)])
    gains = np.concatenate([second - first, (second - first)[:40]])
    p = sign_flip_test(gains, clusters, permutations=2000)
    assert 0.035 <= (p < 0.05).mean() <= 0.065
    assert (sign_flip_test(gains, np.arange(120), permutations=2000) < 0.05).mean() > 0.065


def test_targets_that_are_all_alike_have_no_variance_for_a_ratio_to_divide_by() -> None:
    """By rounding, the variance of twelve times 100 / 3 is 5e-29, and that of others 1e31 times as large."""
    alike, others = np.full((12, 1), 100 / 3), np.arange(12.0)[:, None]
    assert alike.var() > 0
    row = variance_change(alike, others, np.arange(12)).row()
    assert (row["baseline"], row["change"], row["low"], row["high"]) == (0, None, 0, None)
    assert variance_change(others, alike, np.arange(12)).row()["change"] == 0


def test_p_values_by_hand() -> None:
    """Of three equal gains p is two of eight signs."""
    p = sign_flip_test(np.full((3, 1), 0.1), np.arange(3), permutations=100_000)
    assert p.item() == pytest.approx(2 / 8, abs=0.005)
    assert sign_flip_test(np.zeros((30, 1)), np.arange(30)).item() == 1
    assert sign_flip_test(np.ones((30, 1)), np.arange(30), permutations=9999).item() == 1 / 10_000
    assert holm([0.01, 0.04, None, 0.03, 0.6]) == pytest.approx([0.04, 0.09, None, 0.09, 0.6])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_rows_of_two_runs() -> None:
    first, second = pairs(60, 1, seed=4)
    second = 50 + (second - 50) * 0.5
    rows = neutral_changes([table(first[:, 0])], [table(second[:, 0])], "sentiment", {})
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


def test_a_category_of_few_words_has_no_interval_for_one_model_each() -> None:
    others = table(np.arange(40), "origin").with_columns(target="o" + pl.col("target"))
    whole = pl.concat([table(np.arange(19)), others])
    rows = neutral_changes([whole], [whole.with_columns(pl.col("neutral") * 2 + 1)], "regard", {})
    few, many = (rows.filter(figure=f"NRM/{category}").row(0, named=True) for category in ("gender", "origin"))
    assert (few["change"], few["low"], few["p"], few["detectable"]) == (10.0, None, None, None)
    assert many["low"] < many["change"] == 20.5 < many["high"]


def test_only_targets_with_statements_in_both_are_compared() -> None:
    first, second = table([10.0, 20.0, 30.0, None]), table([11.0, None, 32.0, 40.0])
    row = neutral_changes([first], [second.reverse()], "regard", {}).row(0, named=True)
    assert (row["figure"], row["targets"], row["baseline"], row["value"]) == ("NRM", 2, 20.0, 21.5)
    with pytest.raises(MitigateError, match="no target has statements in all"):
        neutral_changes([first.head(1)], [second.tail(1)], "regard", {})


def test_a_single_target_has_no_variance_to_compare() -> None:
    one = neutral_changes([table([10.0])], [table([30.0])], "regard", {})
    several = neutral_changes([table([10.0])] * 2, [table([30.0])] * 2, "regard", {})
    for rows in (one, several):
        found = {row["figure"]: row for row in rows.to_dicts()}
        assert (found["NRM"]["baseline"], found["NRM"]["value"]) == (10.0, 30.0)
        statistics = ("baseline", "value", "change", "low", "high", "p", "detectable", "fixed_low")
        assert {found["NRV"][name] for name in statistics} == {None}


def test_the_detectable_difference_is_found_four_times_out_of_five() -> None:
    smallest = mean_change(np.zeros((100, 1)), np.tile([[-1.0], [1.0]], (50, 1)), np.arange(100)).detectable()
    gains = np.random.default_rng(6).normal(smallest, 1, size=(100, 2000))
    found = sign_flip_test(gains, np.arange(100), permutations=1000) < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("num_seeds", "repetitions"), [(2, 400), (4, 150)])
def test_the_variation_between_trainings_is_seldom_called_an_effect_of_policy(num_seeds: int, repetitions: int) -> None:
    """None against none, seeds some 4 points apart."""
    generator = np.random.default_rng(num_seeds)
    base = 60 + 6 * generator.normal(size=(60, 1))
    claims, corrected = np.zeros(2), np.zeros(2)
    for _ in range(repetitions):
        first, second = (tables(trained(generator, base, num_seeds, between=4)) for _ in range(2))
        p = neutral_changes(first, second, "sentiment", {})["p"].to_numpy()[:2]
        claims += p < 0.05
        corrected += p < 0.05 / 24  # where a claim begins, of 24 figures together
    assert (claims / repetitions <= 0.065).all()
    assert (corrected / repetitions <= 0.005).all()


def of_policies(first: np.ndarray, second: np.ndarray, place: int = 0) -> dict:
    """A row of the comparison of two policies by regard."""
    rows = neutral_changes(tables(first), tables(second), "regard", {})
    assert rows.schema == COMPARED
    return rows.row(place, named=True)


def test_standard_error_by_hand_when_targets_agree() -> None:
    """Every target gains alike, so only seeds vary: 50, 51, 52 against 60, 62, 64 is 11 with error (5 / 3) ** .5. Two
    seeds give no interval."""
    row = of_policies(np.tile([50.0, 51.0, 52.0], (30, 1)), np.tile([60.0, 62.0, 64.0], (30, 1)))
    assert row["change"] == pytest.approx(11)
    degrees = 25 / (1 / 2 + 16 / 2)  # Satterthwaite: (1 + 4) ** 2 / (1 ** 2 / 2 + 4 ** 2 / 2)
    assert row["high"] - 11 == pytest.approx(stats.t.ppf(0.975, degrees) * (5 / 3) ** 0.5, rel=0.03)
    assert of_policies(np.tile([50.0, 52.0], (30, 1)), np.tile([60.0, 64.0], (30, 1)))["high"] is None
    same = np.tile([[50.0], [60.0], [70.0]], (1, 3))
    row = of_policies(same, same)
    assert (row["change"], row["low"], row["p"]) == (0, None, None)


def test_with_targets_fixed_only_training_is_left_to_chance() -> None:
    """The second policy adds 5 to 40 words and takes 5 from 20, in all seeds alike: surely so for these words, and
    unknown for others."""
    generator = np.random.default_rng(2)
    base = 60 + generator.normal(size=(60, 1))
    shift = np.where(np.arange(60)[:, None] < 40, 5, -5)
    row = of_policies(*(trained(generator, arm, 3, between=0.1) for arm in (base, base + shift)))
    assert row["drawn"] == "seeds and targets"
    assert row["low"] < row["fixed_low"] < row["change"] < row["fixed_high"] < row["high"]
    assert row["fixed_p"] < row["p"]


def test_a_category_of_few_words_is_compared_with_its_words_fixed() -> None:
    generator = np.random.default_rng(3)
    first, second = (trained(generator, 60 + generator.normal(size=(19, 1)), 5, between=1) for _ in range(2))
    row = of_policies(first, second)
    assert row["drawn"] == "seeds"
    assert (row["low"], row["high"], row["p"]) == (row["fixed_low"], row["fixed_high"], row["fixed_p"])
    expected = stats.ttest_ind(second.mean(axis=0), first.mean(axis=0), equal_var=False).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))


def test_variances_are_compared_by_their_ratio() -> None:
    """All deviations are halved, whatever the seed: a quarter of the variance, of which only words are uncertain."""
    values = 50 + 10 * np.random.default_rng(4).normal(size=(200, 1)) + np.array([[0.0, 1.0, 2.0]])
    row = of_policies(values, 50 + (values - 50) / 2, place=1)
    assert (row["figure"], row["as"], row["change"]) == ("NRV", "ratio", pytest.approx(0.25))
    assert row["error"] < 1e-6


def test_a_figure_of_each_seed_has_welchs_interval_and_one_seed_is_too_few() -> None:
    first, second = [20.0, 21.0, 22.0], [23.0, 25.0, 24.0]
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    found = of_seeds(first, second)
    assert (found.size, *found.bounds()) == pytest.approx((3.0, *expected))
    single = of_seeds([1.0], [2.0, 4.0])
    assert single.size == 2
    assert np.isnan(single.bounds()).all()
    refuses(MitigateError, "0 and 1 seeds", of_seeds, [], [1.0])
    unequal = "2 seeds of the baseline and 1 of the other policy"
    refuses(MitigateError, unequal, of_policies, np.ones((5, 2)), np.ones((5, 1)))
