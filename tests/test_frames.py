"""Social Bias Frames: constrained values, and figures that one can check by hand."""

import numpy as np
import polars as pl
import pytest

from mitigate.measure.intervals import Bootstrap
from mitigate.report.page import OPEN
from mitigate.studies.frames import beside_baselines, classification, constrained, text_scores, verdict

INTERVALS = Bootstrap(resamples=500, seed=1)


@pytest.mark.parametrize(
    ("offensive", "targeted", "ingroup", "expected"),
    [
        ((-0.2, -1.7), (-2.3, -0.1), (np.nan, np.nan), (0, np.nan, np.nan)),  # -0.2 against -1.7 - 0.1
        ((-1.0, -0.5), (-0.9, -0.6), (-0.1, -2.0), (0, np.nan, np.nan)),  # -1.0 against -0.5 - 0.6 - 0.1
        ((-1.0, -0.5), (-0.9, -0.2), (-0.1, -2.0), (1, 1, 0)),  # against -0.5 - 0.2 - 0.1
        ((-0.7, -0.5), (-0.1, -2.0), (np.nan, np.nan), (1, 0, np.nan)),  # -0.7 against -0.5 - 0.1
        ((np.nan, np.nan), (-1.0, -0.5), (np.nan, np.nan), (np.nan, 1, np.nan)),  # offensiveness was not learnt
        ((-0.5, -1.0), (np.nan, np.nan), (np.nan, np.nan), (0, np.nan, np.nan)),  # no group was asked for
    ],
)
def test_constrained_values_are_the_most_probable_consistent_ones(offensive, targeted, ingroup, expected) -> None:
    log_probs = np.array([[(-0.3, -1.4), offensive, (-1.4, -0.3), targeted, ingroup]])
    values = np.where(np.isnan(log_probs[:, :, 1]), np.nan, log_probs.argmax(2))
    found = constrained(values, log_probs)[0]
    np.testing.assert_array_equal(found, [0, expected[0], 1, *expected[1:]])


def test_f1_is_that_of_the_positive_class_with_intervals_of_a_resampling_of_posts() -> None:
    """Two right of three predicted and four positive: precision 2/3, recall 1/2, F1 4/7."""
    truth = np.array([True] * 4 + [False] * 6)
    predicted = np.array([True, True, False, False, True] + [False] * 5)
    found = classification(truth, predicted, INTERVALS)
    assert (found["precision"], found["recall"]) == (pytest.approx(200 / 3), pytest.approx(50))
    assert found["f1"] == pytest.approx(400 / 7)
    found = classification(np.array([True, False]), np.array([False, False]), INTERVALS)
    assert (found["precision"], found["recall"], found["f1"]) == (None, 0, 0)
    chance = np.random.default_rng(5)
    truth, predicted = chance.random(400) < 0.4, chance.random(400) < 0.5
    found = classification(truth, predicted, Bootstrap(resamples=2000, seed=2))
    drawn = chance.integers(400, size=(2000, 400))
    both, either = (truth & predicted)[drawn].sum(1), truth[drawn].sum(1) + predicted[drawn].sum(1)
    low, high = np.percentile(200 * both / either, [2.5, 97.5])
    assert (found["f1_low"], found["f1_high"]) == (pytest.approx(low, abs=0.8), pytest.approx(high, abs=0.8))


def test_texts_are_compared_with_all_references() -> None:
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    generated = ["women are late", "women", "", "a b"]
    scores = text_scores(generated, [["men are late", "Women are late"], ["women"], ["x"], ["c d"]])
    assert scores[:2].tolist() == [pytest.approx([100, 100])] * 2  # of one word, words alone
    assert scores[2].tolist() == [0, 0]
    assert scores[3, 1] == 0


@pytest.mark.parametrize(
    ("offensive", "implied", "state", "hedge"),
    [
        (60.0, 40.0, "Beats the best baseline in 1 of 2", "Above it: offensive (F1). Intervals"),
        (80.0, 20.0, "Beats the best baseline in 1 of 2", "Above it: implied statement (BLEU-2). Below it: offensive"),
        (80.0, 40.0, "Below the best baseline in 1 of 2", "Below it: offensive (F1)."),
        (68.5, 39.0, f"{OPEN}: level with the best baseline", "The intervals overlap. Train longer"),
    ],
)
def test_the_model_beats_a_baseline_where_intervals_are_apart(
    offensive: float, implied: float, state: str, hedge: str
) -> None:
    """The model's F1 is 70 and its BLEU-2 is 40; intervals reach one point to either side. Neither the variant with
    constraints nor one without folds is a baseline, or the model."""

    def rows(variable: str, figure: str, values: dict[str, float]) -> pl.DataFrame:
        named = [{"variable": variable, "system": system, figure: value} for system, value in values.items()]
        bounded = {f"{figure}_low": pl.col(figure) - 1, f"{figure}_high": pl.col(figure) + 1}
        return pl.DataFrame(named).with_columns(**bounded)

    classified = rows("offensive", "f1", {"model": 70.0, "model, constrained": 90.0, "tf-idf": offensive})
    said = {"model, given a group": 99.0, "model, five folds, given a group": 40.0, "commonest": implied}
    found, reason = verdict(beside_baselines(classified, rows("implied", "bleu2", said)))
    assert found == state
    assert hedge in reason
    assert len(found.split()) <= 8
