"""Standard errors that leave out one word at a time, by hand and by simulated percentages of targets."""

import numpy as np
import pytest
from test_bootstrap import COMET, RESOURCE, STATEMENTS, coverage, percentages

from mitigate.measure.bootstrap import MOST_VARIANCE, cluster_sums, mean_of
from mitigate.measure.jackknife import jackknife, log_variance, variance_interval, without_each


def true_variance(a: float, b: float) -> float:
    """Of targets and of the statements drawn about them: E[Var] + Var[E] of a beta-binomial."""
    of_targets = a * b / ((a + b) ** 2 * (a + b + 1))
    of_statements = (a * b / ((a + b) * (a + b + 1))) / STATEMENTS
    return 100**2 * (of_targets + of_statements)


def test_the_error_of_a_mean_is_the_textbook_s() -> None:
    """1, 2 and 6: a mean of 3 with the error (14 / 2 / 3) ** .5, whatever the words' order."""
    sums = cluster_sums(np.array([[1.0], [2.0], [6.0]]), np.arange(3), powers=(0, 1))
    without = without_each(sums, mean_of)
    assert without[:, 0].tolist() == [4.0, 3.5, 1.5]
    error = jackknife(without)
    assert error.size.item() == pytest.approx((14 / 2 / 3) ** 0.5)
    assert error.degrees.item() == 2


def test_words_of_one_cluster_are_left_out_together() -> None:
    sums = cluster_sums(np.array([[1.0], [2.0], [6.0]]), np.array([0, 0, 1]), powers=(0, 1))
    assert without_each(sums, mean_of)[:, 0].tolist() == [6.0, 1.5]


def test_where_few_words_decide_there_are_few_degrees_of_freedom() -> None:
    many, few = (np.random.default_rng(1).normal(size=(100, 1)) for _ in range(2))
    few[:2] *= 100
    assert 60 < jackknife(many).degrees.item() <= 99
    assert jackknife(few).degrees.item() < 6


@pytest.mark.parametrize("shape", [COMET, RESOURCE])
@pytest.mark.parametrize("num_targets", [40, 120, 329])
def test_intervals_of_variances_cover(shape: tuple[int, int], num_targets: int) -> None:
    interval = variance_interval(percentages(*shape, num_targets, seed=2), np.arange(num_targets))
    assert 0.92 <= coverage(interval, true_variance(*shape)) <= 0.97


def test_intervals_cover_when_inflections_say_the_same() -> None:
    """160 targets of 120 words: 40 words have two forms that differ by a point or so."""
    values = percentages(*COMET, 120, seed=3)
    clusters = np.concatenate([np.arange(120), np.arange(40)])
    values = np.concatenate([values, values[:40]]) + np.random.default_rng(4).normal(size=(160, values.shape[1]))
    assert 0.93 <= coverage(variance_interval(values, clusters), true_variance(*COMET) + 1) <= 0.97
    assert coverage(variance_interval(values, np.arange(160)), true_variance(*COMET) + 1) < 0.94


def test_nothing_bounds_the_variance_of_words_that_are_alike_but_for_one() -> None:
    alike = np.full((30, 1), 100 / 3)
    assert variance_interval(alike, np.arange(30)) == (0, MOST_VARIANCE)
    alike[0] = 50
    assert variance_interval(alike, np.arange(30)) == (0, MOST_VARIANCE)
    alike[1] = 20
    low, high = variance_interval(alike, np.arange(30))
    assert 0 < low.item() < alike.var() < high.item()


def test_a_single_word_has_no_interval() -> None:
    assert np.isnan(variance_interval(np.array([[50.0], [60.0]]), np.array([0, 0]))).all()


def test_the_logarithm_of_no_variance() -> None:
    sums = cluster_sums(np.array([[5.0, 1.0], [5.0, 3.0]]), np.arange(2), powers=(0, 1, 2)).sum(axis=1)
    assert log_variance(sums).tolist() == [-np.inf, 0.0]


def test_bounds_of_a_variance_are_in_order_for_few_words() -> None:
    few = np.array([[100.0], [0.0], [0.0], [99.0]])  # alone, the lower bound would be 3,389
    assert [bound.item() for bound in variance_interval(few, np.arange(4))] == [0, MOST_VARIANCE]
    drawn = np.random.default_rng(0)
    for _ in range(300):
        values = drawn.choice([0.0, 1.0, 50.0, 99.0, 100.0], size=(drawn.integers(2, 5), 1))
        low, high = variance_interval(values, np.arange(len(values)))
        assert low <= high


def test_an_interval_of_a_variance_holds_the_estimate_or_nothing_bounds_it() -> None:
    halves = np.array([[60.0], [57.5], [60.0], [57.5], [60.0], [57.5]])  # alone, both bounds would be 1.92
    assert [bound.item() for bound in variance_interval(halves, np.arange(6))] == [0, MOST_VARIANCE]
    random = np.random.default_rng(3)
    for size in (4, 6, 12):
        values = random.choice([50.0, 52.5, 60.0], (size, 200))
        low, high = variance_interval(values, np.arange(size))
        assert ((low <= values.var(axis=0) + 1e-9) & (values.var(axis=0) <= high + 1e-9)).all()
