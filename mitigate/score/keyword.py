"""The keyword baseline of the harms paper (Section 2.3): a statement with more words of praise than of blame is
favouritism, one with more words of blame prejudice, and one with as many of both is ambiguous (other).

    It ignores grammar: "not a thief" has a word of blame."""

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mitigate.errors import MitigateError
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels

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


def read_empath(path: Path | None = None) -> Lexicon:
    """The words of Empath: lines of a category and its words, separated by tabs.

    path: None for the file of the installed package, which is found without importing it, as that opens a
    network library. Raises MitigateError when it is not there."""
    if path is None:
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
    and the numbers of its categories in each line; a `*` after a word stands for any ending.

    Raises MitigateError with file and line for another format, and when no category counts."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MitigateError(f"score.scorers.keyword.dic={path} cannot be read: {error}") from error
    marks = [number for number, line in enumerate(lines) if line.strip() == "%"]
    if len(marks) != 2 or any(line.strip() for line in lines[: marks[0]]):
        raise MitigateError(
            f"{path} is not a LIWC dictionary: its categories must come first, between two lines of '%'"
        )
    named: dict[str, str] = {}
    for number in range(marks[0] + 1, marks[1]):
        match lines[number].split():
            case [key, name, *_]:
                named[key] = name.lower()
            case [_]:
                raise MitigateError(f"{path}:{number + 1}: {lines[number]!r}, expected a category's number and name")
    counting = categories("liwc")
    wanted = {key: counting[name] for key, name in named.items() if name in counting}
    if not wanted:
        raise MitigateError(
            f"{path} has none of the categories {', '.join(counting)} (found: {', '.join(named.values())}); rename "
            "those of praise and blame in a copy of it"
        )
    words: dict[str, set[int]] = {}
    for number in range(marks[1] + 1, len(lines)):
        fields = lines[number].lower().split("\t") if "\t" in lines[number] else lines[number].lower().split()
        if not lines[number].strip():
            continue
        word, keys = fields[0].strip(), [key for field in fields[1:] for key in field.split()]
        if unknown := [key for key in keys if key not in named]:
            raise MitigateError(
                f"{path}:{number + 1}: {word!r} is in category {unknown[0]!r}, which its header does not name"
            )
        if not word or not keys:
            raise MitigateError(f"{path}:{number + 1}: {lines[number]!r}, expected a word and its categories' numbers")
        words.setdefault(word, set()).update(wanted[key] for key in keys if key in wanted)
    return _undisputed(words)


def _undisputed(words: Mapping[str, set[int]]) -> Lexicon:
    """Drop words that praise by one category and blame by another ("surprise", "emotion")."""
    return {word: next(iter(found)) for word, found in words.items() if len(found) == 1}
