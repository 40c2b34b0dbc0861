"""Scorers of a user's own: their names, the identity of their code, and their errors in a sentence."""

import asyncio
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from mitigate.errors import MitigateError
from mitigate.runs import file_tracking
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.import_tracing import is_users_file
from mitigate.runs.user_code import Own, is_own, name_of, say_fault
from mitigate.triples import LabelCache, Labels, Scorer

OPTIONAL = ("reads", "each", "explain", "words", "relations", "sends")
"""Optional attributes of a scorer besides its labels."""


@runtime_checkable
class KeepsOpened(Protocol):
    """A label cache that also stores the files and folders that a user's own scorer has opened."""

    def opened(self, fingerprint: str) -> Sequence[str]: ...

    def note_opened(self, fingerprint: str, paths: Sequence[str]) -> None: ...


class OwnScorer:
    """The scorer (the Protocol `Scorer`) of a user's object, called `name`.

    known: the identity of its code. values: other values that affect its labels, such as its arguments."""

    def __init__(self, labels: Callable[[Sequence[str]], Any], name: str, known: Own, *values: Any) -> None:
        self.labels, self.name = labels, name
        self.fingerprint = digest_of_values(*known.known_by, *values)
        self.own_sources, self.fault = known.sources, known.fault
        self.code = getattr(labels, "function", labels)  # the object that may have a version
        for attribute in OPTIONAL:
            if hasattr(labels, attribute):
                setattr(self, attribute, getattr(labels, attribute))
        if getattr(self, "reads", "masked") not in ("masked", "statement"):
            raise MitigateError(f'scorer {name}: reads={self.reads!r} must be "masked" or "statement"')  # type: ignore[attr-defined]

    def __call__(self, texts: Sequence[str]) -> Labels:
        return self.labels(texts)

    def key(self, cache: LabelCache) -> str:
        """The key of cached labels: the fingerprint, and the content of the files that the scorer has opened, in this
        process or, by the paths in the cache, in an earlier one."""
        if not self.own_sources or not isinstance(cache, KeepsOpened):
            return self.fingerprint
        for path in cache.opened(self.fingerprint):
            file_tracking.note(str(self.own_sources[0]), path)
        files = file_tracking.opened(self.own_sources)
        cache.note_opened(self.fingerprint, list(files))
        return digest_of_values(self.fingerprint, sorted(files.items()))


class InProcess:
    """A label cache in memory, for this process (the Protocol `LabelCache`)."""

    def __init__(self) -> None:
        self._labels: dict[str, dict[str, tuple[int, float]]] = {}

    def get(self, fingerprint: str, texts: Sequence[str]) -> tuple[np.ndarray, Labels]:
        """The mask of texts with labels, and their labels."""
        stored = self._labels.get(fingerprint, {})
        found = [stored.get(text, (0, 0.0)) for text in texts]
        labels = Labels(np.array([row[0] for row in found], np.int8), np.array([row[1] for row in found], np.float32))
        return np.array([text in stored for text in texts], dtype=bool), labels

    def put(self, fingerprint: str, texts: Sequence[str], labels: Labels) -> None:
        """Store the labels."""
        rows = zip(texts, labels.label.tolist(), labels.strength.tolist(), strict=True)
        self._labels.setdefault(fingerprint, {}).update({text: (label, strength) for text, label, strength in rows})


IN_PROCESS = InProcess()


def kept_by(scorer: Scorer, cache: LabelCache) -> LabelCache:
    """The cache of a scorer's labels: the given one, or memory with a notice to the user if its code cannot be
    followed."""
    if not isinstance(scorer, OwnScorer) or scorer.fault is None:
        return cache
    say_fault(f"the result of the scorer {scorer.name}", scorer.fault, scorer.code)
    return IN_PROCESS


def key_of(scorer: Scorer, cache: LabelCache) -> str:
    """The key of the scorer's cached labels."""
    return scorer.key(cache) if isinstance(scorer, OwnScorer) else scorer.fingerprint


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
    place = next((place for place in reversed(places) if is_users_file(place.filename)), places[-1])
    message = " ".join(str(error).split())[:200]
    shown = f": {message}" if message else ""
    return f"{type(error).__name__}{shown} ({Path(place.filename).name}, line {place.lineno})"


def described(scorer: Any) -> str:
    """The name of the class or function that labels."""
    return name_of(getattr(scorer, "code", scorer))


def _failing(scorer: Scorer, texts: Sequence[str]) -> str | None:
    """The first text at which the scorer fails by itself, found by halving; None where it fails at none alone."""
    if not texts or hasattr(scorer, "each"):
        return None
    left = list(texts)
    while True:
        half = left[: max(1, len(left) // 2)]
        try:
            scorer(half)
        except KeyboardInterrupt:
            raise
        except BaseException:
            if len(half) == 1:
                return half[0]
            left = half
        else:
            if len(left) == 1:
                return None
            left = left[len(half) :]
