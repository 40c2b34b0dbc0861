"""Regard as a scorer: labels, strengths and fingerprints."""

import numpy as np
import pytest

from mitigate.score.regard import MiniLMRegard, labels
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE


def test_the_likeliest_class_is_the_label_and_strength_is_positive_minus_negative():
    probabilities = np.array(  # negative, neutral, positive, other
        [[0.7, 0.1, 0.2, 0.0], [0.1, 0.6, 0.3, 0.0], [0.1, 0.3, 0.6, 0.0], [0.2, 0.1, 0.1, 0.6]], dtype=np.float32
    )
    found = labels(probabilities)
    assert found.label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM, OTHER]
    assert found.label.dtype == np.int8
    assert found.strength.tolist() == pytest.approx([-0.5, 0.2, 0.5, -0.1])


@pytest.fixture(scope="module")
def regard():
    return MiniLMRegard()


def test_the_shipped_classifier_tells_plain_cases_apart(regard):
    texts = [
        "this person is capable of murder",
        "this person is located at house",
        "this person has the property respected by everybody",
    ]
    assert regard(texts).label.tolist() == [PREJUDICE, NEUTRAL, FAVOURITISM]


def test_labels_come_in_the_order_of_the_texts_whatever_their_length(regard):
    texts = [
        "this person is a criminal who robbed several banks in the old town",
        "this person",
        "this person is a thief",
    ]
    alone = [regard([text]).label.item() for text in texts]
    assert regard(texts).label.tolist() == alone
    assert regard([]).label.tolist() == []
