"""What a user can put right."""

from collections.abc import Iterable


class MitigateError(Exception):
    """A fault of input, settings or surroundings. Its message says what is wrong, the value given, what is
    allowed and what to do; it is shown without a traceback."""


def one_of(what: str, given: object, allowed: Iterable[object]) -> MitigateError:
    """The error for a value outside a closed list, naming the list: "unknown policy 'foo'; allowed: ..."."""
    return MitigateError(f"unknown {what} {given!r}; allowed: {', '.join(map(str, allowed))}")
