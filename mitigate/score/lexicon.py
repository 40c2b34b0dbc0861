"""Scorers by lists of words: sentiment by VADER (Hutto and Gilbert 2014), where compound >= .05 is favouritism, <=
-.05 prejudice (harms paper, Appendix D), and the keyword baseline of the harms paper (Section 2.3).

VADER is sensitive to case and punctuation; texts are lower-cased first, so that a label does not depend on a
resource's capitals.

By keywords, a statement with more words of praise than of blame is favouritism, one with more words of blame
prejudice, and one with as many of both is ambiguous (other). Grammar is ignored: "not a thief" has a word of blame."""

import csv
import json
import re
import string
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels

THRESHOLD = 0.05


class Vader:
    """The sentiment scorer. Its strength is VADER's compound score."""

    name = "sentiment"

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self, digest_of(json.dumps(analyser().lexicon, sort_keys=True)))

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


# Keywords


WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
LONGEST = 3  # words of one entry, as in "poor girl"
Lexicon = dict[str, int]  # word, or its beginning followed by "*" -> FAVOURITISM or PREJUDICE


class Keyword:
    """The scorer. Its strength is (praise - blame) / (praise + blame), in numbers of words.

    dic: a LIWC dictionary of the user's own; None: Empath. lexicon: the words themselves, in place of both."""

    name = "keyword"

    def __init__(self, dic: str | Path | None = None, lexicon: Lexicon | None = None) -> None:
        if lexicon is None:
            lexicon = read_empath() if dic is None else read_dic(Path(dic))
        lexicon = {re.sub("[_-]", " ", entry): label for entry, label in lexicon.items()}
        self._whole = {entry: label for entry, label in lexicon.items() if not entry.endswith("*")}
        self._beginnings = {entry[:-1]: label for entry, label in lexicon.items() if entry.endswith("*")}
        self.fingerprint = fingerprint(self, sorted(lexicon.items()))

    def __call__(self, texts: Sequence[str]) -> Labels:
        labels_of = [[label for _, label in self.words(text)] for text in texts]
        praise = np.array([labels.count(FAVOURITISM) for labels in labels_of], dtype=np.int32)
        blame = np.array([labels.count(PREJUDICE) for labels in labels_of], dtype=np.int32)
        is_tie = (praise > 0) & (praise == blame)
        label = np.select([is_tie, praise > blame, praise < blame], [OTHER, FAVOURITISM, PREJUDICE], NEUTRAL)
        strength = (praise - blame) / np.maximum(praise + blame, 1)
        return Labels(label.astype(np.int8), strength.astype(np.float32))

    def words(self, text: str) -> list[tuple[str, float]]:
        """The entries that a text has, in order, each with 1 for praise or -1 for blame; at each place the longest."""
        words = WORD.findall(text.lower())
        entries, start = [], 0
        while start < len(words):
            for size in range(min(LONGEST, len(words) - start), 0, -1):
                entry = " ".join(words[start : start + size])
                if label := self._look_up(entry):
                    entries.append((entry, float(label)))
                    break
            start += size  # of the entry; 1 where there is none
        return entries

    def _look_up(self, entry: str) -> int:
        """The label of an entry, 0 for none; a whole entry precedes a beginning, a longer beginning a shorter one."""
        if entry in self._whole:
            return self._whole[entry]
        last_word = entry.rfind(" ") + 1
        for end in range(len(entry), last_word, -1) if self._beginnings else ():
            if entry[:end] in self._beginnings:
                return self._beginnings[entry[:end]]
        return 0


@cache
def categories(lexicon: str) -> dict[str, int]:
    """The categories of "empath" or "liwc" that count, and the meaning of their words: 1 praise, -1 blame."""
    with files("mitigate").joinpath("data/keyword_categories.csv").open(encoding="utf-8") as lines:
        return {row["category"]: int(row["label"]) for row in csv.DictReader(lines) if row["lexicon"] == lexicon}


def read_empath() -> Lexicon:
    """The words of Empath: lines of a category and its words, separated by tabs. The package is found without importing
    it, as that opens a network library. Raises MitigateError when it is not there."""
    package = find_spec("empath")
    if package is None or not package.submodule_search_locations:
        raise MitigateError(
            "the keyword scorer needs the package empath, which is not installed; run pip install empath, or set "
            "score.scorers.keyword.dic=FILE"
        )
    path = Path(package.submodule_search_locations[0]) / "data" / "categories.tsv"
    wanted = categories("empath")
    words: dict[str, set[int]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        category, *members = line.split("\t")
        if category in wanted:
            for word in filter(None, members):
                words.setdefault(word, set()).add(wanted[category])
    return _undisputed(words)


def read_dic(path: Path) -> Lexicon:
    """The words of a LIWC dictionary: between two lines of `%` a number and a name for each category, then a word
    and the numbers of its categories in each line; a `*` after a word stands for any ending. Raises MitigateError for
    another format, and when no category counts."""
    try:
        before, header, body = path.read_text(encoding="utf-8-sig").split("%", maxsplit=2)
        named = {key: name.lower() for key, name, *_ in (line.split() for line in header.strip().splitlines())}
        wanted = {key: categories("liwc")[name] for key, name in named.items() if name in categories("liwc")}
        if before.strip() or not wanted:
            raise ValueError(f"found {', '.join(named.values())}")
    except (OSError, ValueError) as error:
        raise MitigateError(
            f"score.scorers.keyword.dic={path} is not a LIWC dictionary, whose categories come first, a number and a "
            f"name a line, between two lines of '%', some of {', '.join(categories('liwc'))} among them: {error}"
        ) from error
    words: dict[str, set[int]] = {}
    for line in filter(str.strip, body.lower().splitlines()):
        word, *fields = line.split("\t") if "\t" in line else line.split()
        labels = {wanted[key] for field in fields for key in field.split() if key in wanted}
        words.setdefault(word.strip(), set()).update(labels)
    return _undisputed(words)


def _undisputed(words: Mapping[str, set[int]]) -> Lexicon:
    """The words with their one label, without those of two ("surprise", "emotion") and of none."""
    return {word: next(iter(labels)) for word, labels in words.items() if len(labels) == 1}
