"""Intervals of means (bootstrap) and of variances (jackknife): by hand, and whether they cover in simulations of
percentages of targets, as generators and resources have them."""

import numpy as np
import pytest

from mitigate.measure.intervals import (
    MOST_VARIANCE,
    Bootstrap,
    Interval,
    cluster_sums,
    jackknife,
    log_variance,
    mean_of,
    resampled_sums,
    variance_interval,
    without_each,
)

REPETITIONS = 2000
FEWER = 500  # of a bootstrap
STATEMENTS = 340  # of each target, as in a probe of 34 relations by 10 beams
COMET = (36, 22)  # 62 % neutral with a variance of 41, near the paper's NSM and NSV
RESOURCE = (19, 1)  # 95 % neutral with a long tail of targets below, as in ConceptNet: skewness -1.7
UNBOUNDED = (0, MOST_VARIANCE)


def percentages(a: float, b: float, num_targets: int, seed: int) -> np.ndarray:
    """(targets, repetitions): counts of neutral statements whose chance is Beta(a, b) over targets."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(a, b, size=(num_targets, REPETITIONS))
    return 100 * generator.binomial(STATEMENTS, chance) / STATEMENTS


def true_mean(a: float, b: float) -> float:
    return 100 * a / (a + b)


def true_variance(a: float, b: float) -> float:
    """Of targets and of the statements drawn about them: E[Var] + Var[E] of a beta-binomial."""
    of_targets = a * b / ((a + b) ** 2 * (a + b + 1))
    of_statements = (a * b / ((a + b) * (a + b + 1))) / STATEMENTS
    return 100**2 * (of_targets + of_statements)


def coverage(interval: Interval, truth: float) -> float:
    return float(((interval.low <= truth) & (truth <= interval.high)).mean())


@pytest.mark.parametrize("shape", [COMET, RESOURCE])
@pytest.mark.parametrize("num_targets", [40, 120, 329])
def test_intervals_cover(shape: tuple[int, int], num_targets: int) -> None:
    interval = variance_interval(percentages(*shape, num_targets, seed=2), np.arange(num_targets))
    assert 0.92 <= coverage(interval, true_variance(*shape)) <= 0.97
    if num_targets < 329:  # of which a bootstrap takes long
        values = percentages(*shape, num_targets, seed=1)[:, :FEWER]
        interval = Bootstrap(resamples=1000).mean(values, np.arange(num_targets))
        assert 0.93 <= coverage(interval, true_mean(*shape)) <= 0.97


def test_intervals_cover_when_inflections_have_nearly_the_same_values() -> None:
    """160 targets of 120 words: 40 words have two forms that differ by a point or so."""
    values = percentages(*COMET, 120, seed=3)
    clusters = np.concatenate([np.arange(120), np.arange(40)])
    values = np.concatenate([values, values[:40]]) + np.random.default_rng(4).normal(size=(160, REPETITIONS))
    bootstrap, variance = Bootstrap(resamples=1000), true_variance(*COMET) + 1
    few = values[:, :FEWER]
    assert 0.93 <= coverage(bootstrap.mean(few, clusters), true_mean(*COMET)) <= 0.97
    assert coverage(bootstrap.mean(few, np.arange(160)), true_mean(*COMET)) < 0.93  # as if independent
    assert 0.93 <= coverage(variance_interval(values, clusters), variance) <= 0.97
    assert coverage(variance_interval(values, np.arange(160)), variance) < 0.94


def test_the_level_and_the_seed_of_a_bootstrap() -> None:
    values = np.array([[50.0], [60.0], [55.0], [80.0], [65.0], [62.0]])
    wide, narrow = (Bootstrap(level=level).mean(values, np.arange(6)) for level in (0.99, 0.8))
    assert wide.low < narrow.low < values.mean() < narrow.high < wide.high
    values = percentages(*COMET, 40, seed=8)[:, :2]
    first, again, other = (Bootstrap(seed=seed).mean(values, np.arange(40)) for seed in (1, 1, 2))
    assert first.low.tolist() == again.low.tolist()
    assert first.low.tolist() != other.low.tolist()


def test_a_single_word_has_no_interval() -> None:
    values, one = np.array([[50.0], [60.0]]), np.array([0, 0])
    assert np.isnan(Bootstrap().mean(values, one)).all()
    assert np.isnan(variance_interval(values, one)).all()


def test_sums_and_draws() -> None:
    values, clusters = np.array([[1.0], [2.0], [5.0]]), np.array([0, 1, 0])
    assert cluster_sums(values, clusters, powers=(0, 1, 2))[..., 0].tolist() == [[2, 1], [6, 2], [26, 4]]
    counts = resampled_sums(np.eye(4), Bootstrap(resamples=1000))  # how often each resample has each cluster
    assert (counts.sum(axis=1) == 4).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(4), abs=0.1)


def test_the_error_of_a_mean_leaves_out_one_word_at_a_time() -> None:
    """1, 2 and 6: a mean of 3 with the error (14 / 2 / 3) ** .5, whatever the words' order; words of one cluster are
    left out together."""
    values = np.array([[1.0], [2.0], [6.0]])
    without = without_each(cluster_sums(values, np.arange(3), powers=(0, 1)), mean_of)
    assert without[:, 0].tolist() == [4.0, 3.5, 1.5]
    error = jackknife(without)
    assert error.size.item() == pytest.approx((14 / 2 / 3) ** 0.5)
    assert error.degrees.item() == 2
    clustered = cluster_sums(values, np.array([0, 0, 1]), powers=(0, 1))
    assert without_each(clustered, mean_of)[:, 0].tolist() == [6.0, 1.5]
    many, few = (np.random.default_rng(1).normal(size=(100, 1)) for _ in range(2))
    few[:2] *= 100  # a few words decide: few degrees of freedom
    assert 60 < jackknife(many).degrees.item() <= 99
    assert jackknife(few).degrees.item() < 6


def test_nothing_bounds_the_variance_of_words_that_are_alike_but_for_one() -> None:
    alike = np.full((30, 1), 100 / 3)
    assert variance_interval(alike, np.arange(30)) == UNBOUNDED
    alike[0] = 50
    assert variance_interval(alike, np.arange(30)) == UNBOUNDED
    alike[1] = 20
    low, high = variance_interval(alike, np.arange(30))
    assert 0 < low.item() < alike.var() < high.item()
    sums = cluster_sums(np.array([[5.0, 1.0], [5.0, 3.0]]), np.arange(2), powers=(0, 1, 2)).sum(axis=1)
    assert log_variance(sums).tolist() == [-np.inf, 0.0]


def test_bounds_of_a_variance_are_in_order_and_hold_the_estimate() -> None:
    few = np.array([[100.0], [0.0], [0.0], [99.0]])  # alone, the lower bound would be 3,389
    halves = np.array([[60.0], [57.5]] * 3)  # alone, both bounds would be 1.92
    for values in (few, halves):
        assert tuple(bound.item() for bound in variance_interval(values, np.arange(len(values)))) == UNBOUNDED
    drawn = np.random.default_rng(0)
    for _ in range(300):
        values = drawn.choice([0.0, 1.0, 50.0, 99.0, 100.0], size=(drawn.integers(2, 5), 1))
        low, high = variance_interval(values, np.arange(len(values)))
        assert low <= high
    random = np.random.default_rng(3)
    for size in (4, 6, 12):
        values = random.choice([50.0, 52.5, 60.0], (size, 200))
        low, high = variance_interval(values, np.arange(size))
        assert ((low <= values.var(axis=0) + 1e-9) & (values.var(axis=0) <= high + 1e-9)).all()
