"""The settings that a submission may give, from data/service.csv, and the check of each value.

A setting outside this list is refused, so nobody needs a list of dangerous ones: no key in it names code, a run folder
or a place to write to. A file has to be in the folders that the service was given."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError, one_of
from mitigate.package_data import rows_of
from mitigate.settings import Setting, check, settings

WORD = re.compile(r"\w[\w' -]{0,59}")  # never a path: it has neither a slash nor a dot
KEYWORDS = ("all", "data")  # of settings of targets, where others are lists
SCORERS = ("score.sentiment", "score.regard", "score.extra", "policy.scorers")  # settings that name scorers
TEXTS = "texts"  # the command line takes its value as it stands, quotes too
COLUMN = re.compile(r"[a-z_]{1,30}")  # what a column is for
MOST_WORDS = 1000


@cache
def allowed() -> dict[str, str]:
    """The settings that may be given: "value" of the type that data/settings.csv says, "words", "file",
    "words or file", "columns" or "model"."""
    return {row["setting"]: row["takes"] for row in rows_of("service.csv")}


def allowed_value(key: str, value: Any, roots: Sequence[Path], models: Sequence[str]) -> Any:
    """The value of an allowed setting as the command gets it. Raises MitigateError for one that it may not have."""
    takes, setting = allowed()[key], settings()[key]
    if takes == "columns" and isinstance(value, Mapping):
        return _columns(key, value)
    check_flat(key, value)
    is_file = isinstance(value, str) and "." in value
    if takes == "file" or (takes == "words or file" and is_file):
        path = _file(key, value, roots)
        return f"@{path}" if key == TEXTS else path  # the texts of a file, and not its name
    if takes == "model" and value not in models:
        raise MitigateError(f"{one_of(key, value, models)} (serve.models)")
    if takes in ("words", "words or file", "columns"):
        value = _words(setting, value)
    nested = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    check(nested)
    scorers = value if isinstance(value, list) else [value]
    if key in SCORERS and (asking := [name for name in scorers if _opens_addresses(name)]):
        raise MitigateError(f"{key}: {asking[0]} sends texts to an address, which no job of this service does")
    return value


def check_flat(key: str, value: Any) -> None:
    """Check that a value is plain or a list of plain values; deeper ones cannot be shown. Raises MitigateError for
    others."""
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, list | Mapping) for part in parts):
        raise MitigateError(f"{key} must be a text, a number, true, false, null or a list of these")


def short(text: Any) -> str:
    """A text of a submission in ASCII, cut for a message."""
    shown = ascii(text)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def _opens_addresses(scorer: Any) -> bool:
    """Return whether a scorer has settings that are free texts: the address and the key of an endpoint."""
    return any("text" in setting.types for key, setting in settings().items() if key.startswith(f"score.{scorer}."))


def _words(setting: Setting, value: Any) -> Any:
    """Words and lists of words. A single one becomes a list where the setting takes lists, since as a text it would be
    the name of a file."""
    takes_list = "list of texts" in setting.types
    if value is None or (takes_list and value in KEYWORDS):
        return value
    words = value if isinstance(value, list) and takes_list else [value]
    wrong = [word for word in words if not (isinstance(word, str) and WORD.fullmatch(word))]
    if wrong or not words or len(words) > MOST_WORDS:
        kind = f"a list of 1 to {MOST_WORDS:,} words" if takes_list else "a word or a few"
        raise MitigateError(
            f"{setting.key} must be {kind} of letters, digits, spaces, dashes and apostrophes, 60 at most each"
            + (f"; not {short(wrong[0])}" if wrong else "")
        )
    return words if takes_list else value


def _columns(key: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns by what they are for: names, or numbers from 1."""
    for purpose, column in value.items():
        is_name = isinstance(column, str) and WORD.fullmatch(column)
        is_number = isinstance(column, int) and not isinstance(column, bool) and 1 <= column <= MOST_WORDS
        if not (isinstance(purpose, str) and COLUMN.fullmatch(purpose) and (is_name or is_number)):
            raise MitigateError(
                f'{key} must be names of columns, or their numbers from 1, such as {{"head": "subject", "tail": 3}}'
            )
    return dict(value)


def _file(key: str, value: Any, roots: Sequence[Path]) -> str:
    """The path of a file in one of the folders. Raises MitigateError where there is none."""
    if not roots:
        raise MitigateError(f"{key} names a file, and this service was given no folder of files (serve.roots)")
    if not isinstance(value, str) or "$" in value or "\0" in value:
        raise MitigateError(f"{key} must be the name of a file, without $")
    with suppress(OSError, ValueError):  # what can be no name of a file: one too long, half of a character
        for root in roots:
            path = (root / value).resolve()
            if path.is_relative_to(root.resolve()) and path.exists():
                return str(path)
    raise MitigateError(f"{key}: you uploaded no such file, and the folders of this service have none")
