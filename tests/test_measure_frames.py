"""F1, BLEU-2, ROUGE-L and calibration of frames, on numbers that one can check by hand."""

import numpy as np
import pytest

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.frames import (
    calibrated,
    calibration_error,
    classification,
    corpus_bleu2,
    fit_calibration,
    text_figures,
    text_scores,
)

INTERVALS = Bootstrap(resamples=500, seed=1)


def test_f1_is_that_of_the_positive_class() -> None:
    """Two right of three predicted and four positive: precision 2/3, recall 1/2, F1 4/7."""
    truth = np.array([True] * 4 + [False] * 6)
    predicted = np.array([True, True, False, False, True] + [False] * 5)
    found = classification(truth, predicted, INTERVALS)
    assert found["precision"] == pytest.approx(200 / 3)
    assert found["recall"] == pytest.approx(50)
    assert found["f1"] == pytest.approx(400 / 7)
    assert found["f1_low"] < 400 / 7 < found["f1_high"]


def test_intervals_are_as_wide_as_a_resampling_of_posts() -> None:
    chance = np.random.default_rng(5)
    truth, predicted = chance.random(400) < 0.4, chance.random(400) < 0.5
    found = classification(truth, predicted, Bootstrap(resamples=2000, seed=2))
    drawn = chance.integers(400, size=(2000, 400))
    both, either = (truth & predicted)[drawn].sum(1), truth[drawn].sum(1) + predicted[drawn].sum(1)
    low, high = np.percentile(200 * both / either, [2.5, 97.5])
    assert found["f1_low"] == pytest.approx(low, abs=0.8)
    assert found["f1_high"] == pytest.approx(high, abs=0.8)


def test_nothing_predicted_has_no_precision() -> None:
    found = classification(np.array([True, False]), np.array([False, False]), INTERVALS)
    assert (found["precision"], found["recall"], found["f1"]) == (None, 0, 0)


def test_texts_are_compared_with_all_references() -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    scores = text_scores(
        ["women are late", "women", "", "a b"], [["men are late", "Women are late"], ["women"], ["x"], ["c d"]]
    )
    assert scores[0, :2].tolist() == pytest.approx([100, 100])
    assert scores[1, :2].tolist() == pytest.approx([100, 100])  # of one word, words alone
    assert scores[2, :2].tolist() == [0, 0]
    assert scores[3, 1] == 0
    assert scores[0, 2:].tolist() == [3, 2, 3, 2, 3, 3]
    figures = text_figures(scores, INTERVALS)
    assert figures["rouge_l"] == pytest.approx(50)
    assert figures["rouge_l_low"] < 50 < figures["rouge_l_high"]


def test_the_bleu_of_all_texts_is_sacrebleus() -> None:
    sacrebleu = pytest.importorskip("sacrebleu.metrics")
    pytest.importorskip("rouge_score")
    texts = ["women are always late", "men do not cook", "they lie"]
    references = [
        ["women are late", "are never on time"],
        ["men cannot cook", "men do not cook well"],
        ["they lie a lot", "x"],
    ]
    mine = corpus_bleu2(text_scores(texts, references)[:, 2:].sum(0))
    theirs = sacrebleu.BLEU(max_ngram_order=2, lowercase=True).corpus_score(texts, list(zip(*references, strict=True)))
    assert float(mine) == pytest.approx(theirs.score, abs=1e-6)


def test_calibration_finds_scale_and_shift() -> None:
    chance = np.random.default_rng(3)
    log_odds = chance.normal(0, 2, 20_000)
    truth = (chance.random(20_000) < 1 / (1 + np.exp(-(0.5 * log_odds - 1)))).astype(float)
    scale, shift = fit_calibration(log_odds, truth)
    assert (scale, shift) == pytest.approx((0.5, -1), abs=0.06)
    assert calibration_error(calibrated(log_odds, (scale, shift)), truth) < 0.02
    assert calibration_error(calibrated(log_odds, (1, 0)), truth) > 0.1


def test_calibration_of_a_sure_model_is_the_likeliest_of_a_grid() -> None:
    """Nearly all log-odds are at an end, where a plain Newton step leaps to thousands."""
    log_odds = np.array([13.8] * 60 + [5.0, 2.0, -1.0, -4.0] + [-13.8] * 40)
    truth = np.array([1.0] * 45 + [0] * 15 + [1, 0, 1, 0] + [0] * 38 + [1] * 2)

    def loss(scale: float, shift: float) -> float:
        p = calibrated(log_odds, (scale, shift))
        nll = -np.log(np.where(truth == 1, p, 1 - p) + 1e-15).sum()
        return float(nll + ((scale - 1) ** 2 + shift**2) / 2)

    found = fit_calibration(log_odds, truth)
    grid = [(scale, shift) for scale in np.linspace(0, 3, 61) for shift in np.linspace(-3, 3, 61)]
    assert loss(*found) <= min(loss(*pair) for pair in grid) + 1e-6
    assert 0 < found[0] < 1


def test_the_calibration_error_is_a_weighed_mean() -> None:
    """Three posts at .95, two positive (off by .2833), and one at .05, negative (off by .05)."""
    found = calibration_error(np.array([0.95, 0.95, 0.95, 0.05]), np.array([1.0, 1, 0, 0]))
    assert found == pytest.approx((3 * (0.95 - 2 / 3) + 0.05) / 4)
