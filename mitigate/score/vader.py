"""Sentiment by VADER (Hutto and Gilbert 2014): compound >= .05 is favouritism, <= -.05 prejudice (harms paper,
Appendix D).

VADER is sensitive to case and punctuation; texts are lower-cased first, so that a label does not depend on
how a resource happens to write its words."""

import string
from collections.abc import Sequence
from functools import cache

import numpy as np
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer, SentiText

from mitigate.runs.fingerprints import digest_of_values, fingerprint
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

    def words(self, text: str) -> list[tuple[str, float]]:
        """The words of VADER's lexicon in a text with their valence, from -4 to 4, whatever the words around them
        make of it."""
        lexicon = analyser().lexicon
        words = SentiText(text.lower()).words_and_emoticons
        return [(word, lexicon[word]) for word in words if word in lexicon]


def label_of(compound: np.ndarray) -> np.ndarray:
    """Compound scores (n,) as labels (n,) int8."""
    return np.select([compound >= THRESHOLD, compound <= -THRESHOLD], [FAVOURITISM, PREJUDICE], NEUTRAL).astype(np.int8)


def compound_scores(texts: Sequence[str]) -> np.ndarray:
    """VADER's compound score of each text, (n,) float32 in [-1, 1]."""
    score = analyser().polarity_scores
    return np.array(
        [score(text)["compound"] if _may_score(text) else 0.0 for text in map(str.lower, texts)],
        dtype=np.float32,
    )


def _may_score(text: str) -> bool:
    """False only for a text that VADER is sure to give 0: plain ASCII (no emoji to spell out) without a word
    of its lexicon. Looking is cheaper than scoring."""
    lexicon = analyser().lexicon
    return not text.isascii() or any(
        word in lexicon or word.strip(string.punctuation) in lexicon for word in text.split()
    )


@cache
def analyser() -> SentimentIntensityAnalyzer:
    """VADER with its lexicon read, once per process."""
    return SentimentIntensityAnalyzer()


@cache
def _lexicon() -> str:
    """A hash of VADER's words and their valences: 7,500 of them, and the fingerprint is asked for often."""
    return digest_of_values(sorted(analyser().lexicon.items()))
