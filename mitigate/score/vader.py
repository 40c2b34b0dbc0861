"""Sentiment by VADER (Hutto and Gilbert 2014): compound >= .05 is favouritism, <= -.05 prejudice (harms paper,
Appendix D).

VADER is sensitive to case and punctuation; texts are lower-cased first, so that a label does not depend on a resource's
capitals."""

import json
import string
from collections.abc import Sequence
from functools import cache

import numpy as np
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.files import digest_of
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, Labels

THRESHOLD = 0.05


class Vader:
    """The sentiment scorer. Its strength is VADER's compound score."""

    name = "sentiment"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self, _lexicon())

    def __call__(self, texts: Sequence[str]) -> Labels:
        strength = compound_scores(texts)
        return Labels(label_of(strength), strength)


def label_of(compound: np.ndarray) -> np.ndarray:
    """Compound scores (n,) as labels (n,) int8."""
    return np.select([compound >= THRESHOLD, compound <= -THRESHOLD], [FAVOURITISM, PREJUDICE], NEUTRAL).astype(np.int8)


def compound_scores(texts: Sequence[str]) -> np.ndarray:
    """VADER's compound score of each text, (n,) float32 in [-1, 1]."""
    score, lexicon = analyser().polarity_scores, analyser().lexicon

    def may_score(text: str) -> bool:  # VADER returns 0 for ASCII (no emoji) without a word of its lexicon
        words = text.split()
        return not text.isascii() or any(word in lexicon or word.strip(string.punctuation) in lexicon for word in words)

    return np.array(
        [score(text)["compound"] if may_score(text) else 0.0 for text in map(str.lower, texts)], dtype=np.float32
    )


@cache
def analyser() -> SentimentIntensityAnalyzer:
    """VADER with its lexicon read, once per process."""
    return SentimentIntensityAnalyzer()


@cache
def _lexicon() -> str:
    """A hash of VADER's 7,500 words and their valences, cached since the fingerprint is read often."""
    return digest_of(json.dumps(analyser().lexicon, sort_keys=True))
