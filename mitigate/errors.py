"""Errors that a user can correct, and what messages need: counts in words, and texts from outside without the
characters that control a terminal or reorder a line."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from os import PathLike
from typing import Any

NEAR = 0.65  # the least similarity of two names, from 0 to 1 (difflib), for a suggestion


class MitigateError(Exception):
    """A fault of input, settings or surroundings. Its message has the fault, the value given, the allowed values and
    the remedy; it is shown without a traceback."""


def one_of(what: str, given: object, allowed: Iterable[object]) -> MitigateError:
    """The error for a value outside a closed list, with the nearest name and the list: "unknown policy 'bohth' (did you
    mean both?); allowed: none, both"."""
    names = list(map(str, allowed))
    near = nearest(str(given), names)
    guess = f" (did you mean {near}?)" if near else ""
    return MitigateError(f"unknown {what} {given!r}{guess}; allowed: {', '.join(names)}")


def check_installed(what: str, extra: str, *packages: str) -> None:
    """Raise MitigateError where packages of an extra are not installed: "recipe=serve needs uvicorn: pip install
    'mitigate[serve]'". what: the setting that needs them."""
    if missing := [name for name in packages if find_spec(name) is None]:
        raise MitigateError(f"{what} needs {' and '.join(missing)}: pip install 'mitigate[{extra}]'")


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """The end of a sentence about an unknown name: "; did you mean both?"; "" where no known name is similar."""
    name = nearest(str(given), map(str, known))
    return f"; did you mean {name}?" if name else ""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name with the most similar spelling, whatever the case; None where none is similar."""
    names = {name.casefold(): name for name in known}
    matches = get_close_matches(given.casefold(), names, n=1, cutoff=NEAR)
    return names[matches[0]] if matches else None


# Texts from outside


# The control characters of ASCII except tab and line end, those of Latin-1, and marks that turn the writing direction.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FOLDERS = re.compile(r"(?<![^\s=,\[({'\"])~?/(?:[^,\[\]{}\"/]+/)*(?=[^\s,\[\](){}'\"/])")  # of an absolute path
END_OF_NOUN = re.compile(r"(?=,| of | with | without | that | about |$)")
NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
ENDS = ".!?"
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_SHORTENED = re.compile(r"\b(?:(?i:mr|mrs|ms|dr|prof|jr|sr|vs|e\.g|i\.e)|[A-HJ-Z])\.$")


def escaped(text: str) -> str:
    """The text with control characters escaped as in Python: for a terminal."""
    return STEERING.sub(lambda match: ascii(match.group())[1:-1], text)


def counted(number: int, noun: str) -> str:
    """The number and the noun, with an s unless it is one: "1 column", "1,200 columns". Words may follow the noun: "3
    rows without a sentence"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {END_OF_NOUN.sub('s', noun, count=1)}"


def without_folders(text: str) -> str:
    """A setting or an argument with only the last part of its absolute paths: "data.root=/home/me/data" is
    "data.root=data"."""
    return FOLDERS.sub("", text)


def portable(command: str) -> str:
    """A command for others to read, without the folders of the machine where it was typed."""
    return shlex.join(map(without_folders, shlex.split(command)))


def literal(text: str) -> str:
    """A text that stays as it is where a configuration is resolved, also if it looks like ${oc.env:HOME}."""
    return re.sub(r"(\\*)\$\{", lambda match: 2 * match[1] + r"\${", text)


def spelt(value: Any) -> str:
    """A value as Hydra reads it: texts in quotes, in which a backslash counts before a quote and at the end alone."""
    if value is None or isinstance(value, bool | int | float):
        return "null" if value is None else str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{spelt(part)}' for key, part in value.items())}}}"
    if isinstance(value, str | PathLike):
        inside = re.sub(r"(\\+)(?='|\Z)", r"\1\1", literal(str(value)))
        return "'{}'".format(inside.replace("'", r"\'"))
    return f"[{','.join(map(spelt, value))}]"


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with change(text) in place of each text in lists and mappings."""
    if isinstance(value, list):
        return [with_texts(part, change) for part in value]
    if isinstance(value, Mapping):
        return {key: with_texts(part, change) for key, part in value.items()}
    return change(value) if isinstance(value, str) else value


def readable(text: str) -> str:
    """The text without control characters and without those that XML forbids: for HTML and SVG."""
    return NOT_IN_XML.sub("", STEERING.sub("", text))


def whole_sentences(text: str) -> list[str]:
    """The sentences of a text, in one line each, without an unfinished last one, as where a generator was cut, and
    without marks that have no words."""
    sentences, start = list[str](), 0
    for end in _END.finditer(text):
        sentence = " ".join(text[start : end.end()].split())
        if _SHORTENED.search(sentence):
            continue
        start = end.end()
        if re.search(r"\w", sentence):
            sentences.append(sentence)
    return sentences
