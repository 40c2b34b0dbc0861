"""Errors that a user can correct."""

from collections.abc import Iterable
from difflib import get_close_matches

NEAR = 0.65  # how alike two names are at least, from 0 to 1 (difflib), where one may be meant by the other


class MitigateError(Exception):
    """A fault of input, settings or surroundings. Its message says what is wrong, the value given, what is
    allowed and what to do; it is shown without a traceback."""


def one_of(what: str, given: object, allowed: Iterable[object]) -> MitigateError:
    """The error for a value outside a closed list, naming the list and what is nearest in it: "unknown policy 'bohth';
    allowed: none, both; did you mean both?"."""
    names = list(map(str, allowed))
    return MitigateError(f"unknown {what} {given!r}; allowed: {', '.join(names)}{did_you_mean(given, names)}")


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """The end of a sentence about an unknown name: "; did you mean both?"; "" where no known name is near it."""
    name = nearest(str(given), map(str, known))
    return f"; did you mean {name}?" if name else ""


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Of known names the one that is spelt most like the given one, whatever the case; None where none is near."""
    names = {name.casefold(): name for name in known}
    found = get_close_matches(given.casefold(), names, n=1, cutoff=NEAR)
    return names[found[0]] if found else None
