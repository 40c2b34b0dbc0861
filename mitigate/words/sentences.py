"""Where the sentences of a text end. Knows English abbreviations, and nothing of what is said."""

import re

ENDS = ".!?"
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_SHORTENED = re.compile(r"\b(?:(?i:mr|mrs|ms|dr|prof|jr|sr|vs|e\.g|i\.e)|[A-HJ-Z])\.$")


def whole_sentences(text: str) -> list[str]:
    """The sentences of a text, in one line each. What has no end, as where a generator was cut, is not one, nor is a
    mark without words."""
    found, start = [], 0
    for end in _END.finditer(text):
        sentence = " ".join(text[start : end.end()].split())
        if _SHORTENED.search(sentence):
            continue
        start = end.end()
        if re.search(r"\w", sentence):
            found.append(sentence)
    return found
