"""The keyword baseline of the harms paper (Section 2.3): a statement that has more words of praise than of blame is
favouritism, one that has more words of blame prejudice, and one with as many of both is of two minds.

Knows no grammar: "not a thief" has a word of blame."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mitigate.runs.fingerprints import fingerprint
from mitigate.score.lexicon import Lexicon, read_dic, read_empath
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
LONGEST = 3  # words of one entry, as in "poor girl"


class Keyword:
    """The scorer. Its strength is (praise - blame) / (praise + blame), in numbers of words.

    dic: a LIWC dictionary of the user's own; None: Empath. lexicon: words given outright, for both."""

    name = "keyword"

    def __init__(self, dic: str | Path | None = None, lexicon: Lexicon | None = None) -> None:
        if lexicon is None:
            lexicon = read_empath() if dic is None else read_dic(Path(dic))
        lexicon = {re.sub("[_-]", " ", entry): label for entry, label in lexicon.items()}
        self._whole = {entry: label for entry, label in lexicon.items() if not entry.endswith("*")}
        self._beginnings = {entry[:-1]: label for entry, label in lexicon.items() if entry.endswith("*")}
        self.fingerprint = fingerprint(self, sorted(lexicon.items()))

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = [[label for _, label in self.words(text)] for text in texts]
        praise = np.array([labels.count(FAVOURITISM) for labels in found], dtype=np.int32)
        blame = np.array([labels.count(PREJUDICE) for labels in found], dtype=np.int32)
        both = (praise > 0) & (praise == blame)
        label = np.select([both, praise > blame, praise < blame], [OTHER, FAVOURITISM, PREJUDICE], NEUTRAL)
        strength = (praise - blame) / np.maximum(praise + blame, 1)
        return Labels(label.astype(np.int8), strength.astype(np.float32))

    def words(self, text: str) -> list[tuple[str, float]]:
        """The entries found in a text, longest first where they overlap, each with 1 for praise or -1 for blame."""
        parts = WORD.findall(text.lower())
        found, start = [], 0
        while start < len(parts):
            for size in range(min(LONGEST, len(parts) - start), 0, -1):
                entry = " ".join(parts[start : start + size])
                if label := self._look_up(entry):
                    found.append((entry, float(label)))
                    break
            start += size
        return found

    def _look_up(self, entry: str) -> int:
        """0 for no entry; a whole entry before a beginning, a longer beginning before a shorter."""
        if entry in self._whole:
            return self._whole[entry]
        last_word = entry.rfind(" ") + 1
        for end in range(len(entry), last_word, -1) if self._beginnings else ():
            if entry[:end] in self._beginnings:
                return self._beginnings[entry[:end]]
        return 0
