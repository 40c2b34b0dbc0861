import numpy as np
import polars as pl
import pytest
from scipy import stats

from mitigate.errors import MitigateError
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.comparison import DIFFERENCES
from mitigate.measure.seeds import between_policies, of_seeds


def tables(values: np.ndarray) -> list[pl.DataFrame]:
    """One table a column of (targets, seeds)."""
    names = [f"t{i}" for i in range(len(values))]
    return [pl.DataFrame({"target": names, "category": "gender", "neutral": column}) for column in values.T]


def trained(generator, base: np.ndarray, num_seeds: int, luck: float) -> np.ndarray:
    """Percentages of models whose seed moves all targets together by `luck` and each by 3 points."""
    shared = generator.normal(0, luck, size=(1, num_seeds))
    return base + shared + generator.normal(0, 3, size=(len(base), num_seeds))


@pytest.mark.parametrize(("num_seeds", "repetitions"), [(2, 1000), (4, 300)])
def test_the_luck_of_training_is_seldom_called_an_effect_of_policy(num_seeds, repetitions):
    """None against none, each seed some 4 points luckier or unluckier than another."""
    generator = np.random.default_rng(num_seeds)
    base = 60 + 6 * generator.normal(size=(60, 1))
    claims, corrected = np.zeros(2), np.zeros(2)
    for _ in range(repetitions):
        first, second = (tables(trained(generator, base, num_seeds, luck=4)) for _ in range(2))
        rows = between_policies(first, second, "sentiment", {}, Bootstrap(resamples=200))
        claims += rows["p"].to_numpy()[:2] < 0.05
        corrected += rows["p"].to_numpy()[:2] < 0.05 / 24  # where a claim begins, of 24 figures together
    assert (claims / repetitions <= 0.065).all()
    assert (corrected / repetitions <= 0.005).all()


def test_an_effect_beyond_luck_is_found():
    generator = np.random.default_rng(1)
    base = 60 + 6 * generator.normal(size=(60, 1))
    first, second = trained(generator, base, 3, luck=0.5), trained(generator, base + 6, 3, luck=0.5)
    rows = between_policies(tables(first), tables(second), "regard", {})
    assert rows.schema == DIFFERENCES
    row = rows.row(0, named=True)
    assert row["figure"] == "NRM"
    assert row["difference"] == pytest.approx(second.mean() - first.mean())
    assert 0 < row["low"] < row["difference"] < row["high"]
    assert row["p"] < 0.05


def test_standard_error_by_hand_when_targets_agree():
    """Every target gains alike, so only seeds vary: 50, 52 against 60, 64 is 11 with error (1 + 4) ** .5."""
    first = np.tile([50.0, 52.0], (30, 1))
    second = np.tile([60.0, 64.0], (30, 1))
    row = between_policies(tables(first), tables(second), "regard", {}).row(0, named=True)
    assert row["difference"] == pytest.approx(11)
    degrees = 25 / (1 + 16)  # Satterthwaite: (1 + 4) ** 2 / (1 ** 2 / 1 + 4 ** 2 / 1)
    assert row["high"] - 11 == pytest.approx(stats.t.ppf(0.975, degrees) * 5**0.5, rel=0.03)


def test_nothing_differs():
    same = np.tile([[50.0], [60.0], [70.0]], (1, 2))
    row = between_policies(tables(same), tables(same), "regard", {}).row(0, named=True)
    assert (row["difference"], row["low"], row["high"], row["p"]) == (0, 0, 0, 1)


def test_one_seed_is_too_few():
    one, two = tables(np.ones((5, 1))), tables(np.ones((5, 2)))
    with pytest.raises(MitigateError, match="2 seeds of the baseline and 1 of the other policy"):
        between_policies(two, one, "regard", {})


def test_a_figure_of_each_seed_has_welchs_interval():
    first, second = [20.0, 21.0, 22.0], [23.0, 25.0, 24.0]
    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert of_seeds(first, second) == pytest.approx((3.0, *expected))
    gain, low, high = of_seeds([1.0], [2.0, 4.0])
    assert gain == 2
    assert np.isnan([low, high]).all()
    with pytest.raises(MitigateError, match="0 and 1 seeds"):
        of_seeds([], [1.0])
