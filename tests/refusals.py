"""A call that must be refused, in one line: the type of its error and a pattern of its message."""

from collections.abc import Callable
from typing import Any

import pytest


def refuses(error: type[BaseException], message: str, call: Callable[..., object], *given: Any, **named: Any) -> None:
    """Asserts that the call raises the error, with a message in which the pattern is found."""
    with pytest.raises(error, match=message):
        call(*given, **named)
