"""Texts from outside, which may hold characters that steer a terminal or reorder a line instead of being read."""

import re
import shlex

# The control characters of ASCII but for tab and line end, those of Latin-1, and what turns the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FOLDERS = re.compile(r"(?<![^\s=,\[({'\"])~?/(?:[^,\[\]{}\"/]+/)*(?=[^\s,\[\](){}'\"/])")  # of an absolute path
END_OF_NOUN = re.compile(r"(?=,| of | with | without | that | about |$)")
NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
ENDS = ".!?"
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_SHORTENED = re.compile(r"\b(?:(?i:mr|mrs|ms|dr|prof|jr|sr|vs|e\.g|i\.e)|[A-HJ-Z])\.$")


def escaped(text: str) -> str:
    """The text with such characters spelt out, as in Python: for a terminal."""
    return STEERING.sub(lambda found: ascii(found.group())[1:-1], text)


def counted(number: int, noun: str) -> str:
    """The number and the noun, which takes an s but for one: "1 column", "1,200 columns". Behind the noun may stand
    what tells which: "3 rows without a sentence"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {END_OF_NOUN.sub('s', noun, count=1)}"


def without_folders(text: str) -> str:
    """A setting or an argument, of its absolute paths only the last part: "data.root=/home/me/data" is
    "data.root=data"."""
    return FOLDERS.sub("", text)


def portable(command: str) -> str:
    """A command for others to read, without the folders of the machine where it was typed."""
    return shlex.join(map(without_folders, shlex.split(command)))


def readable(text: str) -> str:
    """The text without such characters, and without those that XML forbids: for HTML and SVG."""
    return NOT_IN_XML.sub("", STEERING.sub("", text))


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
