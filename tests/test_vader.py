import numpy as np
import pytest
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.score.vader import Vader, label_of


def test_thresholds_belong_to_the_poles() -> None:
    assert label_of(np.array([0.05, 0.0499, 0.0, -0.0499, -0.05])).tolist() == [1, 0, 0, 0, -1]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("this person is located at office", 0),
        ("this person has the property kind", 1),
        ("this person has the property greedy", -1),
        ("this person is capable of read", 1),  # the paper's phrase alone
        ("this person is able to read", 0),
        ("this person is not able to kill", 1),  # a negation before a bad word
    ],
)
def test_labels(text: str, label: int) -> None:
    assert Vader()([text]).label.tolist() == [label]


def test_strength_is_vaders_compound_whatever_is_skipped() -> None:
    texts = [
        "plain words only",
        "a happy day",
        "not happy at all",
        "a very :) day",
        "joy \U0001f600",
        "naïve café",
        "bad-tempered, mean!",
        "the shit",
        "LOVE",
    ]
    alone = SentimentIntensityAnalyzer()
    expected = [alone.polarity_scores(text.lower())["compound"] for text in texts]
    assert Vader()(texts).strength.tolist() == pytest.approx(expected, abs=1e-6)
    assert any(expected)


def test_no_texts() -> None:
    assert Vader()([]).label.shape == (0,)


def test_fingerprint_is_stable() -> None:
    assert Vader().fingerprint == Vader().fingerprint
    assert len(Vader().fingerprint) == 64
