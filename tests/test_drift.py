"""Drift between batches of raters, and what makes ratings vary, by hand."""

import math

import numpy as np
import pytest

from mitigate.measure import human_ratings
from mitigate.measure.human_ratings import Components, Votes, components, detectable, statements_needed, without_drift


def votes(shares: list[float], relations: list[int] | None = None, words: list[int] | None = None) -> Votes:
    """One statement a word, one vote each, of one relation, if nothing else is given."""
    size = len(shares)
    numbers = np.array(words if words is not None else range(size)), np.array(relations or [0] * size)
    return Votes(np.array(shares, dtype=float), np.ones(size), *numbers)


def test_what_remains_is_the_change_less_that_of_the_anchors() -> None:
    sets, anchors = (votes([100, 50, 0, 50]), votes([50, 0, 0, 10])), (votes([100, 0, 50]), votes([70, 0, 20]))
    found = without_drift(sets, anchors, equally=False)
    assert (found.total.baseline, found.total.value, found.total.gain) == (50, 15, -35)
    assert (found.drift.baseline, found.drift.value, found.drift.gain) == (50, 30, -20)
    assert found.remaining.gain == -15
    # one statement a word: the jackknife's error of a mean is that of its words
    assert found.total.error == pytest.approx(np.std([-50, -50, 0, -40], ddof=1) / 2)
    # statements count by their votes
    first = votes([100, 0])._replace(weights=np.array([3.0, 1.0]))
    assert without_drift((first, votes([0, 0])), anchors, equally=False).total.baseline == 75


def test_a_set_rated_again_as_a_whole_has_drift_and_nothing_else() -> None:
    """Change and drift vary together: their difference has no error."""
    both = votes([100, 50, 0, 50]), votes([70, 20, 0, 40])
    found = without_drift(both, both, equally=False)
    assert found.total.gain == found.drift.gain == -17.5
    assert (found.remaining.gain, found.remaining.error) == (0, pytest.approx(0, abs=1e-12))


def test_relations_that_count_alike() -> None:
    """Anchors of relation 0 drift by -40, the many of relation 1 not at all."""
    relations = [0, 0, 1, 1, 1, 1, 1, 1]
    anchors = votes([50] * 8, relations), votes([10, 10, *[50] * 6], relations)
    sets = votes([50] * 8, [0, 0, 0, 0, 1, 1, 1, 1]), votes([10] * 4 + [50] * 4, [0, 0, 0, 0, 1, 1, 1, 1])
    assert without_drift(sets, anchors, equally=False).drift.gain == pytest.approx(-10)
    found = without_drift(sets, anchors, equally=True)
    assert (found.drift.gain, found.total.gain, found.remaining.gain) == pytest.approx((-20, -20, 0))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        # 4 * 25 ** 2 / (4 - 2), less than half of what single ratings vary; of these 2 * 2 * 50 ** 2 / 4
        ([100.0, 50.0, 50.0, 0.0], (0, 2500)),
        ([100.0, 0.0, 100.0, 0.0], (4 * 50**2 / 2, 0)),
    ],
)
def test_variance_components_by_hand(shares: list[float], expected: tuple) -> None:
    """Two statements of each relation lie 25 from its mean, and half of their votes differ; then 50, and none."""
    assert components(np.array(shares), np.full(4, 2), np.array([0, 0, 1, 1])) == expected


def test_components_are_found_again_in_what_was_drawn_with_them() -> None:
    random = np.random.default_rng(3)
    relations = np.arange(6000) % 3
    chance = np.clip(40 + 10 * relations + random.normal(0, 15, 6000), 0, 100)
    shares = 100 * random.binomial(3, chance / 100) / 3
    found = components(shares, np.full(6000, 3), relations)
    assert found.statement == pytest.approx(225, rel=0.2)
    assert found.rating == pytest.approx((chance * (100 - chance)).mean(), rel=0.05)


def test_the_error_of_a_difference_and_what_shows_it() -> None:
    """Shared statements have one rating for both models, and differ by nothing."""
    known, reach, error = Components(statement=900.0, rating=600.0), human_ratings.REACH, human_ratings.error
    assert error(known, 100, 3) == pytest.approx(math.sqrt(2 * (900 + 600 / 3) / 100))
    assert error(known, 100, 3, shared=0.75) == pytest.approx(error(known, 100, 3) / 2)
    assert pytest.approx(1.959964 + 0.841621) == reach
    assert detectable(known, 100, 3) == pytest.approx(reach * error(known, 100, 3))
    points = detectable(known, 400, 3, shared=0.2)
    assert statements_needed(points, known, 3, shared=0.2) == pytest.approx(400)
