"""Frames: consistent values, the linear form and back, and figures that one can check by hand."""

import itertools

import numpy as np
import pytest

from mitigate.measure.frames import (
    calibrated,
    calibration_error,
    classification,
    corpus_bleu2,
    fit_calibration,
    text_figures,
    text_scores,
)
from mitigate.measure.intervals import Bootstrap
from mitigate.words.frames import (
    CHOICES,
    Frame,
    assignments,
    consistent,
    is_consistent,
    linearise,
    most_probable,
    parse,
)

OFFENSIVE = Frame(offensive=True, intent=False, lewd=None, targeted=True, group="women", implied="women are late")
LINE = "[STR] they hire anyone [SEP] [lewdU] [offY] [intN] [grpY] [SEP] women [SEP] women are late [SEP] [ingU] [END]"


def test_the_linear_form_is_that_of_equation_1_and_assignments_are_counted() -> None:
    assert linearise("they  hire anyone", OFFENSIVE) == LINE
    assert parse(LINE) == ("they hire anyone", OFFENSIVE)
    assert parse("[STR] a [SEP] [offN] [offY] [SEP]")[1].offensive is True
    # lewd and intent are free (4); offensive no, or yes with no group, or yes with a group and both of in-group.
    found = list(assignments(list(CHOICES)))
    assert len(found) == 4 * (1 + 1 + 2)
    assert len({tuple(sorted(one.items(), key=str)) for one in found}) == len(found)
    assert {"offensive": False, "targeted": None} in list(assignments(["offensive", "targeted"]))
    assert list(assignments(["targeted"])) == [{"targeted": False}, {"targeted": True}]


@pytest.mark.parametrize("post", ["", "a [SEP] b", "[offY]", "\\[SEP] x", "[STR] [END] [", "[[offN]]"])
def test_posts_that_look_like_tokens_come_back(post: str) -> None:
    for frame in (
        Frame(),
        OFFENSIVE,
        Frame(offensive=False),
        Frame(True, True, True, True, "[x] men", "are [late]", False),
    ):
        assert parse(linearise(post, frame)) == (post, frame)


def test_every_consistent_frame_comes_back() -> None:
    values = (True, False, None)
    for offensive, intent, lewd, targeted, ingroup in itertools.product(values, repeat=5):
        frame = consistent(Frame(offensive, intent, lewd, targeted, "women", "women are late", ingroup))
        assert is_consistent(frame)
        assert parse(linearise("a post", frame)) == ("a post", frame)
    assert consistent(Frame(offensive=False, targeted=True, group="women", implied="x", ingroup=True)) == Frame(
        offensive=False
    )
    kept = Frame(offensive=None, targeted=True, group="women")
    assert consistent(kept) == kept  # nobody said that it is not offensive


def test_contradictions_are_solved_by_log_probabilities() -> None:
    """offensive no (-0.2) against offensive yes and a group (-1.7 - 0.1), or yes and no group (-1.7 - 2.3)."""
    text = LINE.replace("[offY]", "[offN]")
    assert parse(text, {"offensive": (-0.2, -1.7), "targeted": (-2.3, -0.1)})[1] == Frame(False, False)
    found = parse(text, {"offensive": (-2.0, -0.7), "targeted": (-2.3, -0.1)})[1]
    assert (found.offensive, found.targeted, found.group) == (True, True, "women")
    _, found = parse(LINE.replace("[offY]", "[offN]"))
    assert (found.offensive, found.targeted, found.implied) == (True, True, "women are late")
    _, found = parse("[STR] a post [SEP] [lewdN] [offN] [intN] [grpY] [SEP] [SEP] [SEP] [ingN] [END]")
    assert found == Frame(offensive=False, intent=False, lewd=False)
    log_probs = {"lewd": (-0.3, -1.4), "offensive": (-1.0, -0.5), "targeted": (-0.9, -0.6), "ingroup": (-0.1, -2.0)}
    found = most_probable(Frame(group="women"), log_probs)
    assert found == Frame(offensive=False, lewd=False)  # -1.0 against -0.5 - 0.6 - 0.1
    log_probs["targeted"] = (-0.9, -0.2)
    assert most_probable(Frame(group="women"), log_probs).group == "women"  # -0.5 - 0.2 - 0.1


@pytest.mark.parametrize(
    "text", ["", "[END]", "[SEP] [SEP] [SEP]", "no token at all", "[offN] [grpY] [offN] [ingY]", LINE[: len(LINE) // 2]]
)
def test_whatever_the_text_the_frame_is_consistent(text: str) -> None:
    assert is_consistent(parse(text)[1])


INTERVALS = Bootstrap(resamples=500, seed=1)


def test_f1_is_that_of_the_positive_class_with_intervals_of_a_resampling_of_posts() -> None:
    """Two right of three predicted and four positive: precision 2/3, recall 1/2, F1 4/7."""
    truth = np.array([True] * 4 + [False] * 6)
    predicted = np.array([True, True, False, False, True] + [False] * 5)
    found = classification(truth, predicted, INTERVALS)
    assert (found["precision"], found["recall"]) == (pytest.approx(200 / 3), pytest.approx(50))
    assert found["f1"] == pytest.approx(400 / 7)
    assert found["f1_low"] < 400 / 7 < found["f1_high"]
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


def test_calibration_finds_scale_and_shift_and_its_error_is_a_weighted_mean() -> None:
    chance = np.random.default_rng(3)
    log_odds = chance.normal(0, 2, 20_000)
    truth = (chance.random(20_000) < 1 / (1 + np.exp(-(0.5 * log_odds - 1)))).astype(float)
    scale, shift = fit_calibration(log_odds, truth)
    assert (scale, shift) == pytest.approx((0.5, -1), abs=0.06)
    assert calibration_error(calibrated(log_odds, (scale, shift)), truth) < 0.02
    assert calibration_error(calibrated(log_odds, (1, 0)), truth) > 0.1
    # Three posts at .95, two positive (off by .2833), and one at .05, negative (off by .05).
    found = calibration_error(np.array([0.95, 0.95, 0.95, 0.05]), np.array([1.0, 1, 0, 0]))
    assert found == pytest.approx((3 * (0.95 - 2 / 3) + 0.05) / 4)


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
