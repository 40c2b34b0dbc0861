"""Intervals of figures whose items are clustered in two ways that cross: by word and by text. And the power of a test
whose error grows with the effect."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mitigate.measure import confusion
from mitigate.measure.bootstrap import Bootstrap

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_effects import Effect, corrected_effect
from mitigate.measure.confusion import Accuracy

BOOTSTRAP = Bootstrap(resamples=4000)
FIGURES = {"polarised": confusion.polarised}
WORDS, TEXTS = (way.ravel() for way in np.meshgrid(np.arange(30), np.arange(10), indexing="ij"))


def width(said: np.ndarray, *crossed: np.ndarray) -> float:
    items = confusion.confusion(np.zeros_like(said), said, np.arange(len(said)))
    found = confusion.with_intervals(items, FIGURES, BOOTSTRAP, crossed)
    return found["polarised_high"] - found["polarised_low"]


def grouped(said: np.ndarray, clusters: np.ndarray) -> float:
    found = confusion.with_intervals(confusion.confusion(np.zeros_like(said), said, clusters), FIGURES, BOOTSTRAP)
    return found["polarised_high"] - found["polarised_low"]


def test_texts_that_get_one_label_whatever_the_word_count_once_each() -> None:
    """30 words with the same ten texts, of which three are polarised: by words alone nothing varies."""
    said = np.where(TEXTS < 3, -1, 0)
    assert grouped(said, WORDS) == 0
    both = width(said, WORDS, TEXTS)
    assert both == pytest.approx(grouped(said, TEXTS), rel=0.02)
    assert 0.4 < both < 0.7  # of 10 texts: 3 of 10, an error of about 0.145


def test_variances_of_both_ways_add_up() -> None:
    said = np.where((TEXTS < 4) & (WORDS < 15), -1, 0)
    alone = grouped(said, WORDS), grouped(said, TEXTS)
    assert width(said, WORDS, TEXTS) == pytest.approx(math.hypot(*alone), rel=0.12)  # their common part is small


def test_where_every_text_is_of_one_word_it_is_the_interval_over_words() -> None:
    said = np.where(WORDS < 12, -1, 0)
    assert width(said, WORDS, np.arange(len(said))) == pytest.approx(grouped(said, WORDS), rel=0.02)


def test_bounds_stay_where_shares_can_be_and_a_single_text_has_none() -> None:
    said = np.where((TEXTS < 1) & (WORDS < 2), -1, 0)
    items = confusion.confusion(np.zeros_like(said), said, np.arange(len(said)))
    found = confusion.with_intervals(items, FIGURES, BOOTSTRAP, [WORDS, TEXTS])
    assert 0 <= found["polarised_low"] <= found["polarised"] <= found["polarised_high"] <= 1
    alone = confusion.with_intervals(items, FIGURES, BOOTSTRAP, [WORDS, np.zeros_like(TEXTS)])
    assert (alone["polarised"], alone["polarised_low"]) == (found["polarised"], None)


def test_power_takes_the_error_at_the_effect_it_is_of() -> None:
    """A labelled effect of 10 with an error of 1, by a scorer with a gain of 0.5 and an error of the gain of 0.1: the
    corrected effect is 20 with errors of 2, and of 20 percent of itself."""
    found = corrected_effect(Effect(10.0, 1.0, 20.0), Accuracy(0.75, 0.1, 0.75, 0.0))
    assert (found.value, found.relative) == (20, pytest.approx(0.2))
    assert found.error == pytest.approx(math.hypot(2, 4)) == pytest.approx(found.error_of(20))
    assert found.error_of(5) == pytest.approx(math.hypot(2, 1))
    reach = stats.t.ppf(0.975, 20)
    assert found.power(5) == pytest.approx(stats.t.cdf(5 / math.hypot(2, 1) - reach, 20))
    assert found.power(found.detectable()) == pytest.approx(0.8)
    assert Effect(10.0, 1.0, 20.0).detectable() == pytest.approx(reach + stats.t.ppf(0.8, 20))
    assert corrected_effect(Effect(10.0, 1.0, 20.0), Accuracy(0.75, 0.3, 0.75, 0.0)).detectable() == math.inf
