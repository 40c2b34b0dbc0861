"""Intervals of figures whose items are clustered in two ways that cross: by word and by text."""

import math

import numpy as np
import pytest

from mitigate.measure import agreement as confusion
from mitigate.measure.intervals import Bootstrap

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
