import numpy as np
import polars as pl
import pytest
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.comparison import COMPARED
from mitigate.measure.seeds import between_policies, of_seeds


def tables(values: np.ndarray) -> list[pl.DataFrame]:
    """One table a column of (targets, seeds)."""
    names = [f"t{i}" for i in range(len(values))]
    return [pl.DataFrame({"target": names, "category": "gender", "neutral": column}) for column in values.T]


def trained(generator, base: np.ndarray, num_seeds: int, between: float) -> np.ndarray:
    """Percentages of models whose seed moves all targets together by `between` and each by 3 points."""
    shared = generator.normal(0, between, size=(1, num_seeds))
    return base + shared + generator.normal(0, 3, size=(len(base), num_seeds))


@pytest.mark.parametrize(("num_seeds", "repetitions"), [(2, 400), (4, 150)])
def test_the_variation_between_trainings_is_seldom_called_an_effect_of_policy(num_seeds, repetitions):
    """None against none, seeds some 4 points apart."""
    generator = np.random.default_rng(num_seeds)
    base = 60 + 6 * generator.normal(size=(60, 1))
    claims, corrected = np.zeros(2), np.zeros(2)
    for _ in range(repetitions):
        first, second = (tables(trained(generator, base, num_seeds, between=4)) for _ in range(2))
        rows = between_policies(first, second, "sentiment", {})
        claims += rows["p"].to_numpy()[:2] < 0.05
        corrected += rows["p"].to_numpy()[:2] < 0.05 / 24  # where a claim begins, of 24 figures together
    assert (claims / repetitions <= 0.065).all()
    assert (corrected / repetitions <= 0.005).all()


def test_an_effect_beyond_that_variation_is_found():
    generator = np.random.default_rng(1)
    base = 60 + 6 * generator.normal(size=(60, 1))
    first, second = trained(generator, base, 3, between=0.5), trained(generator, base + 6, 3, between=0.5)
    rows = between_policies(tables(first), tables(second), "regard", {})
    assert rows.schema == COMPARED
    row = rows.row(0, named=True)
    assert row["figure"] == "NRM"
    assert row["change"] == pytest.approx(second.mean() - first.mean())
    assert 0 < row["low"] < row["change"] < row["high"]
    assert row["p"] < 0.05


def test_standard_error_by_hand_when_targets_agree():
    """Every target gains alike, so only seeds vary: 50, 52 against 60, 64 is 11 with error (1 + 4) ** .5."""
    first = np.tile([50.0, 52.0], (30, 1))
    second = np.tile([60.0, 64.0], (30, 1))
    row = between_policies(tables(first), tables(second), "regard", {}).row(0, named=True)
    assert row["change"] == pytest.approx(11)
    degrees = 25 / (1 + 16)  # Satterthwaite: (1 + 4) ** 2 / (1 ** 2 / 1 + 4 ** 2 / 1)
    assert row["high"] - 11 == pytest.approx(stats.t.ppf(0.975, degrees) * 5**0.5, rel=0.03)


def test_with_targets_fixed_only_training_is_left_to_chance():
    """The second policy adds 5 to 40 words and takes 5 from 20, in all seeds alike: surely so for these words, and for
    others who knows."""
    generator = np.random.default_rng(2)
    base = 60 + generator.normal(size=(60, 1))
    shift = np.where(np.arange(60)[:, None] < 40, 5, -5)
    first, second = (trained(generator, arm, 3, between=0.1) for arm in (base, base + shift))
    row = between_policies(tables(first), tables(second), "regard", {}).row(0, named=True)
    assert row["drawn"] == "seeds and targets"
    assert row["low"] < row["fixed_low"] < row["change"] < row["fixed_high"] < row["high"]
    assert row["fixed_p"] < row["p"]


def test_a_category_of_few_words_is_compared_with_its_words_fixed():
    generator = np.random.default_rng(3)
    first, second = (trained(generator, 60 + generator.normal(size=(19, 1)), 5, between=1) for _ in range(2))
    row = between_policies(tables(first), tables(second), "regard", {}).row(0, named=True)
    assert row["drawn"] == "seeds"
    assert (row["low"], row["high"], row["p"]) == (row["fixed_low"], row["fixed_high"], row["fixed_p"])
    expected = stats.ttest_ind(second.mean(axis=0), first.mean(axis=0), equal_var=False).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected))


def test_variances_are_compared_by_their_ratio():
    """All deviations are halved, whatever the seed: a quarter of the variance, of which only words are uncertain."""
    values = 50 + 10 * np.random.default_rng(4).normal(size=(200, 1)) + np.array([[0.0, 1.0, 2.0]])
    rows = between_policies(tables(values), tables(50 + (values - 50) / 2), "regard", {})
    row = rows.row(1, named=True)
    assert (row["figure"], row["as"], row["change"]) == ("NRV", "ratio", pytest.approx(0.25))
    assert row["error"] < 1e-6


def test_nothing_differs():
    same = np.tile([[50.0], [60.0], [70.0]], (1, 2))
    row = between_policies(tables(same), tables(same), "regard", {}).row(0, named=True)
    assert (row["change"], row["low"], row["p"]) == (0, None, None)


def test_one_seed_is_too_few():
    one, two = tables(np.ones((5, 1))), tables(np.ones((5, 2)))
    with pytest.raises(MitigateError, match="2 seeds of the baseline and 1 of the other policy"):
        between_policies(two, one, "regard", {})


def test_a_figure_of_each_seed_has_welchs_interval():
    first, second = [20.0, 21.0, 22.0], [23.0, 25.0, 24.0]
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    found = of_seeds(first, second)
    assert (found.size, *found.bounds()) == pytest.approx((3.0, *expected))
    single = of_seeds([1.0], [2.0, 4.0])
    assert single.size == 2
    assert np.isnan(single.bounds()).all()
    with pytest.raises(MitigateError, match="0 and 1 seeds"):
        of_seeds([], [1.0])
