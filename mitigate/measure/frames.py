"""Measures of predicted frames: precision, recall and F1 of the positive class, BLEU-2 and ROUGE-L against all
references (Sap et al. 2020, Section 4.1), and calibration of probabilities. Intervals are over posts."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from mitigate.measure.base import bounds
from mitigate.measure.intervals import Bootstrap

FIGURES = ("f1", "precision", "recall")
BINS = 10


def classification(truth: np.ndarray, predicted: np.ndarray, intervals: Bootstrap) -> dict[str, float | None]:
    """F1, precision and recall of the positive class in percent, with _low and _high; None where the denominator is 0:
    precision where nothing is predicted positive; F1 is then 0 if there are positives.

    truth, predicted: (posts,) bool. Posts are resampled: their counts in the four cells are multinomial."""
    cells = np.array([(truth & predicted).sum(), (~truth & predicted).sum(), (truth & ~predicted).sum()])
    size = len(truth)
    found = _scores(cells[None])[0]
    drawn = np.random.default_rng(intervals.seed).multinomial(
        size, [*(cells / size), 1 - cells.sum() / size], size=intervals.resamples
    )
    resampled = _scores(drawn[:, :3])
    figures = {name: (found[number], resampled[:, number]) for number, name in enumerate(FIGURES)}
    return _with_bounds(figures, intervals.level)


def _with_bounds(figures: Mapping[str, tuple[float, np.ndarray]], level: float) -> dict[str, float | None]:
    """Figures, each with its values in resamples, by name, with _low and _high; None for NaN."""
    row: dict[str, float | None] = {}
    for name, (value, resampled) in figures.items():
        known = resampled[~np.isnan(resampled)]
        tails = [50 * (1 - level), 100 - 50 * (1 - level)]
        ends = np.percentile(known, tails) if len(known) else [np.nan, np.nan]
        named = zip((name, *bounds(name)), (value, *ends), strict=True)
        row |= {key: None if np.isnan(number) else float(number) for key, number in named}
    return row


def _scores(cells: np.ndarray) -> np.ndarray:
    """FIGURES in percent, (n, 3), from counts of true positives, false positives and false negatives, (n, 3)."""
    both, wrong, missed = cells.T.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return 100 * np.stack(
            [2 * both / (2 * both + wrong + missed), both / (both + wrong), both / (both + missed)], 1
        )


def text_scores(generated: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
    """Scores of each text against all its references, (texts, 8): BLEU-2 and ROUGE-L (F1) in percent, 0 for an empty
    text; then the terms of the BLEU-2 of all texts: matching words and pairs, words and pairs, and the lengths of the
    text and of the reference.

    BLEU-2 is sacrebleu's sentence BLEU with n-grams up to 2 (of a text of one word, up to 1); ROUGE-L is rouge-score's,
    the best reference's. Needs the packages of the extra `frames`."""
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics import BLEU

    bleu, rouge = BLEU(max_ngram_order=2, effective_order=True, lowercase=True), RougeScorer(["rougeL"])
    found = np.zeros((len(generated), 8))
    for row, (text, known) in enumerate(zip(generated, references, strict=True)):
        scored = bleu.sentence_score(text, list(known))
        found[row, 2:] = [*scored.counts, *scored.totals, scored.sys_len, scored.ref_len]
        if text:
            found[row, 0] = scored.score
            found[row, 1] = 100 * rouge.score_multi(list(known), text)["rougeL"].fmeasure
    return found


def corpus_bleu2(sums: np.ndarray) -> np.ndarray:
    """BLEU-2 of all texts together in percent, (...,), from sums over texts of the last six columns, (..., 6)."""
    words, pairs, num_words, num_pairs, length, reference = np.moveaxis(np.maximum(sums, 1e-9), -1, 0)
    brevity = np.exp(np.minimum(0, 1 - reference / length))
    return 100 * brevity * np.sqrt(words / num_words * pairs / num_pairs)


def text_figures(scores: np.ndarray, intervals: Bootstrap) -> dict[str, float | None]:
    """Means over posts of BLEU-2 and ROUGE-L, and BLEU-2 of all posts together, each with _low and _high."""
    drawn = np.random.default_rng(intervals.seed).multinomial(
        len(scores), np.full(len(scores), 1 / len(scores)), size=intervals.resamples
    )
    sums = np.concatenate([part @ scores for part in np.array_split(drawn, 1 + len(drawn) // 500)])
    total = scores.sum(0)
    figures = {
        "bleu2": (total[0] / len(scores), sums[:, 0] / len(scores)),
        "rouge_l": (total[1] / len(scores), sums[:, 1] / len(scores)),
        "corpus_bleu2": (corpus_bleu2(total[2:]), corpus_bleu2(sums[:, 2:])),
    }
    return _with_bounds(figures, intervals.level)


def calibration_error(probability: np.ndarray, truth: np.ndarray) -> float:
    """The expected calibration error (Guo et al. 2017): over BINS of equal width, the mean distance between the mean
    probability and the share of positives, weighed by size. 0 is perfectly calibrated."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    sums = [(np.abs(probability[bins == b].mean() - truth[bins == b].mean()) * (bins == b).sum()) for b in set(bins)]
    return float(sum(sums) / len(truth))


def fit_calibration(log_odds: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Platt's scale and shift: the probability is 1 / (1 + exp(-(scale * log_odds + shift))), by the highest
    log-likelihood with a weak penalty that pulls the scale to 1 and the shift to 0.

    log_odds, truth: (n,)."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = theta[0] * log_odds + theta[1]
        wrong = expit(scaled) - truth
        pull = theta - (1.0, 0.0)
        nll = np.logaddexp(0, scaled).sum() - truth @ scaled
        return float(nll + pull @ pull / 2), np.array([wrong @ log_odds, wrong.sum()]) + pull

    scale, shift = minimize(loss, (1.0, 0.0), jac=True, method="BFGS").x
    return float(scale), float(shift)


def calibrated(log_odds: np.ndarray, scale_and_shift: tuple[float, float]) -> np.ndarray:
    """Probabilities (n,) by fit_calibration's scale and shift."""
    scale, shift = scale_and_shift
    return expit(scale * log_odds + shift)
