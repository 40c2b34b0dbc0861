"""Do intervals cover what they say? Simulated percentages of targets, as generators and resources have them."""

import tracemalloc

import numpy as np
import pytest

from mitigate.measure.bootstrap import Bootstrap, Interval, cluster_sums, draw

REPETITIONS = 2000
STATEMENTS = 340  # of each target, as in a probe of 34 relations by 10 beams


def percentages(a: float, b: float, num_targets: int, seed: int) -> np.ndarray:
    """(targets, repetitions): counts of neutral statements whose chance is Beta(a, b) over targets."""
    generator = np.random.default_rng(seed)
    chance = generator.beta(a, b, size=(num_targets, REPETITIONS))
    return 100 * generator.binomial(STATEMENTS, chance) / STATEMENTS


def true_mean(a: float, b: float) -> float:
    return 100 * a / (a + b)


def coverage(interval: Interval, truth: float) -> float:
    return float(((interval.low <= truth) & (truth <= interval.high)).mean())


COMET = (36, 22)  # 62 % neutral with a variance of 41, near the paper's NSM and NSV
RESOURCE = (19, 1)  # 95 % neutral with a long tail of targets below, as in ConceptNet: skewness -1.7


@pytest.mark.parametrize("shape", [COMET, RESOURCE])
@pytest.mark.parametrize("num_targets", [40, 120])
def test_intervals_of_means_cover(shape, num_targets):
    values = percentages(*shape, num_targets, seed=1)
    interval = Bootstrap(resamples=1000).mean(values, np.arange(num_targets))
    assert 0.93 <= coverage(interval, true_mean(*shape)) <= 0.97


def test_intervals_cover_when_inflections_say_the_same():
    """160 targets of 120 words: 40 words have two forms that differ by a point or so."""
    values = percentages(*COMET, 120, seed=3)
    clusters = np.concatenate([np.arange(120), np.arange(40)])
    values = np.concatenate([values, values[:40]]) + np.random.default_rng(4).normal(size=(160, REPETITIONS))
    bootstrap = Bootstrap(resamples=1000)
    assert 0.93 <= coverage(bootstrap.mean(values, clusters), true_mean(*COMET)) <= 0.97
    as_if_independent = bootstrap.mean(values, np.arange(160))
    assert coverage(as_if_independent, true_mean(*COMET)) < 0.93


def test_an_interval_holds_its_estimate_and_narrows_with_its_level():
    values = np.array([[50.0], [60.0], [55.0], [80.0], [65.0], [62.0]])
    wide, narrow = (Bootstrap(level=level).mean(values, np.arange(6)) for level in (0.99, 0.8))
    assert wide.low < narrow.low < values.mean() < narrow.high < wide.high


def test_the_same_seed_gives_the_same_bounds_and_another_seed_others():
    values = percentages(*COMET, 40, seed=8)[:, :2]
    first, again, other = (Bootstrap(seed=seed).mean(values, np.arange(40)) for seed in (1, 1, 2))
    assert first.low.tolist() == again.low.tolist()
    assert first.low.tolist() != other.low.tolist()


def test_a_single_word_has_no_interval():
    values = np.array([[50.0], [60.0]])
    assert np.isnan(Bootstrap().mean(values, np.array([0, 0]))).all()


def test_sums_and_draws():
    values, clusters = np.array([[1.0], [2.0], [5.0]]), np.array([0, 1, 0])
    assert cluster_sums(values, clusters, powers=(0, 1, 2))[..., 0].tolist() == [[2, 1], [6, 2], [26, 4]]
    counts = draw(4, 1000, seed=0)
    assert (counts.sum(axis=1) == 4).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(4), abs=0.1)


def test_sums_over_many_clusters_need_no_matrix_of_clusters_and_items() -> None:
    """A test set of 20,000 triples about 10,000 heads, which would be 1.6 GB."""
    tracemalloc.start()
    sums = cluster_sums(np.ones((20_000, 1)), np.arange(20_000) % 10_000, powers=(0, 1))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sums.shape == (2, 10_000, 1)
    assert (sums == 2).all()
    assert most < 10e6
