"""Areas under the ROC curve, by hand."""

import numpy as np
import pytest

from mitigate.measure.ranking import auc, auc_of_a_rater


def test_auc_is_the_chance_that_a_valid_one_ranks_higher():
    assert auc(np.array([3.0, 1.0, 2.0, 0.0]), np.array([True, True, False, False])) == 3 / 4  # 3 of 4 pairs
    assert auc(np.array([1.0, 1.0]), np.array([True, False])) == 1 / 2  # a tie
    assert auc(np.array([1.0, 2.0]), np.array([True, True])) is None
    assert auc(np.array([]), np.array([], dtype=bool)) is None


def test_a_rater_is_compared_with_two_others_that_agree():
    votes = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    # rater 1: of items 1 and 2 the two others agree, and so does it; rater 2 alike; rater 3: also 3 and 4, both wrong
    assert auc_of_a_rater(votes) == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert auc_of_a_rater(votes[:1]) is None
