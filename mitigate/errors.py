"""Errors that a user can correct."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec

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
    found = get_close_matches(given.casefold(), names, n=1, cutoff=NEAR)
    return names[found[0]] if found else None
