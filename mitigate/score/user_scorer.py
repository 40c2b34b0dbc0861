"""Scorers of a user's own: their names, fingerprints, and errors in a sentence."""

import asyncio
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.stages import is_own, name_of
from mitigate.triples import Labels, Scorer

OPTIONAL = ("reads", "each", "explain", "relations", "sends")
"""Optional attributes of a scorer besides its labels."""
ABOVE = Path(__file__).parents[2]
NOT_USERS = (f"{ABOVE}/mitigate/", f"{ABOVE}/models/", "<frozen", sysconfig.get_path("stdlib"))  # sources of others


class OwnScorer:
    """The scorer (the Protocol `Scorer`) of a user's object, called `name`."""

    def __init__(self, labels: Callable[[Sequence[str]], Any], name: str, fingerprint: str) -> None:
        self.labels, self.name, self.fingerprint = labels, name, fingerprint
        self.code = getattr(labels, "function", labels)
        for attribute in OPTIONAL:
            if hasattr(labels, attribute):
                setattr(self, attribute, getattr(labels, attribute))
        if getattr(self, "reads", "masked") not in ("masked", "statement"):
            raise MitigateError(f'scorer {name}: reads={self.reads!r} must be "masked" or "statement"')  # type: ignore[attr-defined]

    def __call__(self, texts: Sequence[str]) -> Labels:
        return self.labels(texts)


@contextmanager
def own_errors_explained(scorer: Scorer, texts: Sequence[str]) -> Iterator[None]:
    """Turn errors of a user's own scorer inside into MitigateError, with the first text at which it fails."""
    try:
        yield
    except MitigateError:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if not isinstance(scorer, OwnScorer) and not is_own(scorer):
            raise
        at = _failing(scorer, texts)
        what = f"the text {at[:60]!r}" if at is not None else f"{len(texts):,} texts, the first {texts[0][:60]!r}"
        raise MitigateError(
            f"scorer {scorer.name}: {described(scorer)} fails with {in_short(error)} for {what}. Correct it, or leave "
            "the scorer out"
        ) from error


def in_short(error: BaseException) -> str:
    """An error in one line, with the place in a user's own code that raised it."""
    places = traceback.extract_tb(error.__traceback__)
    users = (place for place in reversed(places) if not place.filename.startswith(NOT_USERS))
    place = next((place for place in users if "-packages" not in place.filename), places[-1])
    message = " ".join(str(error).split())[:200]
    shown = f": {message}" if message else ""
    return f"{type(error).__name__}{shown} ({Path(place.filename).name}, line {place.lineno})"


def described(scorer: Any) -> str:
    """The name of the class or function that labels."""
    return name_of(getattr(scorer, "code", scorer))


def _failing(scorer: Scorer, texts: Sequence[str]) -> str | None:
    """The first text at which the scorer fails by itself; None where it fails at none alone."""
    for text in () if hasattr(scorer, "each") else texts:
        try:
            scorer([text])
        except KeyboardInterrupt:
            raise
        except BaseException:
            return text
    return None
