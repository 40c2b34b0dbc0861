"""Intervals of means (bootstrap), of variances (jackknife), and of figures whose items are clustered in two ways that
cross: by hand, and whether they cover in simulations of percentages of targets."""

import math

import numpy as np
import pytest

from mitigate.measure import agreement as confusion
from mitigate.measure.intervals import (
    Bootstrap,
    Interval,
    cluster_sums,
    jackknife,
    leave_one_out,
    log_variance,
    mean_of,
    variance_interval,
)

REPETITIONS = 1000
STATEMENTS = 340  # of each target, as in a probe of 34 relations by 10 beams
COMET = (36, 22)  # 62 % neutral with a variance of 41, near the paper's NSM and NSV
RESOURCE = (19, 1)  # 95 % neutral with a long tail of targets below, as in ConceptNet: skewness -1.7
UNBOUNDED = (0, None)


def percentages(a: float, b: float, num_targets: int, seed: int) -> np.ndarray:
    """(targets, repetitions): counts of neutral statements whose chance is Beta(a, b) over targets."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(a, b, size=(num_targets, REPETITIONS))
    return 100 * generator.binomial(STATEMENTS, chance) / STATEMENTS


def true_variance(a: float, b: float) -> float:
    """Of targets and of the statements drawn about them: E[Var] + Var[E] of a beta-binomial."""
    of_targets = a * b / ((a + b) ** 2 * (a + b + 1))
    of_statements = (a * b / ((a + b) * (a + b + 1))) / STATEMENTS
    return 100**2 * (of_targets + of_statements)


def coverage(found: list[Interval], truth: float) -> float:
    return float(np.mean([low <= truth <= (math.inf if high is None else high) for low, high in found]))


def of_means(values: np.ndarray, clusters: np.ndarray) -> list[Interval]:
    return [Bootstrap(resamples=1000).mean(one, clusters) for one in values[:, :200].T]


def of_variances(values: np.ndarray, clusters: np.ndarray) -> list[Interval]:
    return [variance_interval(one, clusters) for one in values.T]


@pytest.mark.parametrize("shape", [COMET, RESOURCE])
@pytest.mark.parametrize("num_targets", [40, 329])
def test_intervals_cover(shape: tuple[int, int], num_targets: int) -> None:
    every = np.arange(num_targets)
    found = of_variances(percentages(*shape, num_targets, seed=2), every)
    assert 0.92 <= coverage(found, true_variance(*shape)) <= 0.97
    if num_targets < 329:  # of which a bootstrap takes long
        found = of_means(percentages(*shape, num_targets, seed=1), every)
        assert 0.92 <= coverage(found, 100 * shape[0] / sum(shape)) <= 0.98


def test_intervals_cover_when_inflections_have_nearly_the_same_values() -> None:
    """160 targets of 120 words: 40 words have two forms that differ by a point or so."""
    values = percentages(*COMET, 120, seed=3)
    clusters = np.concatenate([np.arange(120), np.arange(40)])
    values = np.concatenate([values, values[:40]]) + np.random.default_rng(4).normal(size=(160, REPETITIONS))
    mean, variance = 100 * COMET[0] / sum(COMET), true_variance(*COMET) + 1
    assert 0.93 <= coverage(of_means(values, clusters), mean) <= 0.98
    assert coverage(of_means(values, np.arange(160)), mean) < 0.93  # as if independent
    assert 0.93 <= coverage(of_variances(values, clusters), variance) <= 0.97
    assert coverage(of_variances(values, np.arange(160)), variance) < 0.94


def test_the_level_and_the_seed_of_a_bootstrap_and_a_single_word() -> None:
    values = np.array([50.0, 60.0, 55.0, 80.0, 65.0, 62.0])
    wide, narrow = (Bootstrap(level=level).mean(values, np.arange(6)) for level in (0.99, 0.8))
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]
    values = percentages(*COMET, 40, seed=8)[:, 0]
    first, again, other = (Bootstrap(seed=seed).mean(values, np.arange(40)) for seed in (1, 1, 2))
    assert first == again != other
    one = np.zeros(40, dtype=int)
    assert Bootstrap().mean(values, one) == variance_interval(values, one) == (None, None)
    same = Bootstrap().mean(np.full(7, 12.5), np.array([0, 1, 2, 3, 4, 5, 1]), np.array([1] + 6 * [1 / 6]))
    assert same == pytest.approx((12.5, 12.5))


def test_the_error_of_a_mean_leaves_out_one_word_at_a_time() -> None:
    """1, 2 and 6: a mean of 3 with the error (14 / 2 / 3) ** .5, whatever the words' order; words of one cluster are
    left out together."""
    values = np.array([[1.0], [2.0], [6.0]])
    without = leave_one_out(cluster_sums(values, np.arange(3), powers=(0, 1)), mean_of)
    assert without[:, 0].tolist() == [4.0, 3.5, 1.5]
    error = jackknife(without)
    assert error.size.item() == pytest.approx((14 / 2 / 3) ** 0.5)
    assert error.degrees.item() == 2
    clustered = cluster_sums(values, np.array([0, 0, 1]), powers=(0, 1))
    assert leave_one_out(clustered, mean_of)[:, 0].tolist() == [6.0, 1.5]
    many = np.random.default_rng(1).normal(size=(100, 1))
    assert 60 < jackknife(many).degrees.item() <= 99
    many[:2] *= 100  # a few words decide: few degrees of freedom
    assert jackknife(many).degrees.item() < 6


def test_nothing_bounds_the_variance_of_words_that_are_alike_but_for_one() -> None:
    alike = np.full(30, 100 / 3)
    assert variance_interval(alike, np.arange(30)) == UNBOUNDED
    alike[0] = 50
    assert variance_interval(alike, np.arange(30)) == UNBOUNDED
    alike[1] = 20
    low, high = variance_interval(alike, np.arange(30))
    assert 0 < low < alike.var() < high
    sums = cluster_sums(np.array([[5.0, 1.0], [5.0, 3.0]]), np.arange(2), powers=(0, 1, 2)).sum(axis=1)
    assert log_variance(sums).tolist() == [-np.inf, 0.0]


def test_bounds_of_a_variance_are_in_order_and_hold_the_estimate() -> None:
    few, halves = [100.0, 0.0, 0.0, 99.0], [60.0, 57.5] * 3  # alone, the lower bounds would be 3,389 and 1.92
    for values in (few, halves):
        assert variance_interval(np.array(values), np.arange(len(values))) == UNBOUNDED
    random = np.random.default_rng(3)
    for size in (2, 4, 6, 12):
        for _ in range(200):
            values = random.choice([0.0, 50.0, 52.5, 60.0, 100.0], size)
            low, high = variance_interval(values, np.arange(size))
            assert low <= values.var() + 1e-9
            assert high is None or values.var() <= high + 1e-9


# Items that are clustered by word and by text

WORDS, TEXTS = (way.ravel() for way in np.meshgrid(np.arange(30), np.arange(10), indexing="ij"))


def width(said: np.ndarray, *crossed: np.ndarray, clusters: np.ndarray | None = None) -> float:
    items = confusion.confusion(np.zeros_like(said), said, clusters)
    found = confusion.with_intervals(items, {"polarised": confusion.polarised}, Bootstrap(resamples=4000), crossed)
    assert 0 <= found["polarised_low"] <= found["polarised"] <= found["polarised_high"] <= 1
    return found["polarised_high"] - found["polarised_low"]


def test_texts_that_get_one_label_whatever_the_word_count_once_each() -> None:
    """30 words with the same ten texts, of which three are polarised: by words alone nothing varies."""
    said = np.where(TEXTS < 3, -1, 0)
    assert width(said, clusters=WORDS) == 0
    both = width(said, WORDS, TEXTS)
    assert both == pytest.approx(width(said, clusters=TEXTS), rel=0.02)
    assert 0.4 < both < 0.7  # of 10 texts: 3 of 10, an error of about 0.145


def test_variances_of_both_ways_add_up_and_texts_of_one_word_add_nothing() -> None:
    said = np.where((TEXTS < 4) & (WORDS < 15), -1, 0)
    alone = width(said, clusters=WORDS), width(said, clusters=TEXTS)
    assert width(said, WORDS, TEXTS) == pytest.approx(math.hypot(*alone), rel=0.12)  # their common part is small
    said = np.where(WORDS < 12, -1, 0)
    assert width(said, WORDS, np.arange(len(said))) == pytest.approx(width(said, clusters=WORDS), rel=0.02)
