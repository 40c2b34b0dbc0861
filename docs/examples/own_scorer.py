"""Your own scorer in a policy: triples whose text has one of a list of words are dropped."""

from collections.abc import Sequence

import numpy as np

import mitigate


class Words:
    """Labels a text with any of the words as prejudice, all others as neutral."""

    def __init__(self, words: Sequence[str] = ("lazy", "bossy")) -> None:
        self.words = list(words)

    def __call__(self, texts: Sequence[str]) -> mitigate.Labels:
        has_word = np.array([any(word in text.split() for word in self.words) for text in texts])
        return mitigate.Labels(-has_word.astype(np.int8), -has_word.astype(np.float32))


if __name__ == "__main__":
    scorer = mitigate.make_scorer(Words, "words", words=["lazy", "bossy", "rude"])
    labelled = mitigate.label(mitigate.sample_triples(), [scorer])
    ledger = mitigate.apply_policy(mitigate.Drop("no_such_words", scorers=["words"]), labelled)
    print(ledger.filter(ledger["weight"] == 0).select("head", "relation", "tail", "reason"))
