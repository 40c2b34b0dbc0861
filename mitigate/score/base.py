"""Scorers of a user's own: their names, fingerprints, and errors in a sentence."""

import inspect
import sysconfig
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.stages import PROCESS, digest_of_values, identity_of, is_own, name_of, version_of
from mitigate.triples import NEUTRAL, OTHER, PROBED, STATEMENTS, TRIPLES, Labels, Scorer

LEDGER = ("weight", "reason", "source_row", "token")
COLUMNS = {*TRIPLES, *STATEMENTS, *PROBED, *LEDGER, "sentence", "story", "resource", "votes"}
"""Columns of labelled tables, which no scorer can have as its name."""
IDENTITY = "_identity"
ENDINGS = ("_neutral", "_strength", "_words", IDENTITY, "_why")  # of the columns beside a column of labels
OPTIONAL = ("reads", "each", "explain", "relations")  # attributes that a scorer may have
ABOVE = Path(__file__).parents[2]
NOT_USERS = (f"{ABOVE}/mitigate/", f"{ABOVE}/models/", "<frozen", sysconfig.get_path("stdlib"))  # sources of others


class OwnScorer:
    """The scorer (the Protocol `Scorer`) of a user's object or function, called `name`."""

    def __init__(self, labels: Callable[[Sequence[str]], Any], name: str, fingerprint: str) -> None:
        self.labels, self.name, self.fingerprint = labels, name, fingerprint
        for attribute in OPTIONAL:
            if hasattr(labels, attribute):
                setattr(self, attribute, getattr(labels, attribute))
        if (reads := getattr(self, "reads", "masked")) not in ("masked", "statement"):
            raise MitigateError(f'scorer {name}: reads={reads!r} must be "masked" or "statement"')

    def __call__(self, texts: Sequence[str]) -> Labels:
        answer = self.labels(texts)
        if answer is None or isinstance(answer, tuple):
            return answer  # type: ignore[return-value]  # checked where labels are read
        label = np.asarray(answer)
        return Labels(label, np.where(label == OTHER, NEUTRAL, label))


def make_scorer(labels: Callable[..., Any], name: str, **arguments: Any) -> Scorer:
    """Build a scorer of a user's own, called `name` in tables, metrics and policies.

    labels: a class, built with the arguments; an object; or a function. It is called with n texts and returns Labels,
    or n labels (-1 prejudice, 0 neutral, 1 favouritism, 2 other), which then are the strengths too. With a `version`,
    other processes use its cached labels; without one only this process does. Raises MitigateError for anything that
    cannot be called or built, and for a name that tables already use."""
    check_name(name)
    if isinstance(labels, type):
        try:
            return identified(labels(**arguments), name, arguments, labels)
        except (TypeError, ValueError, OSError) as error:
            raise MitigateError(f"make_scorer: {name_of(labels)} fails with {in_short(error)}") from error
    if not callable(labels) or arguments:
        raise MitigateError(f"make_scorer: {labels!r} is not a class, or a function or object without arguments")
    scorer = labels if inspect.isroutine(labels) or is_own(labels) else copy(labels)  # it gets the name
    return identified(scorer, name, getattr(labels, "__dict__", {}), labels)


def check_name(name: Any) -> None:
    """Raise MitigateError for a name that a scorer cannot have because other columns of tables have it."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "/" in name:
        raise MitigateError(f"scorer name {name!r} must be a text in one line, without '/'")
    if name.endswith(ENDINGS) or name in COLUMNS:
        raise MitigateError(
            f"invalid scorer name {name!r}: it is, or ends as, another column of tables ({', '.join(ENDINGS)}). Choose "
            "another name."
        )


def identified(scorer: Any, name: str, arguments: Mapping[str, Any], made_by: Any) -> Scorer:
    """Return the object, called `name`. If a user's own code made it, its labels are identified by the version of that
    code and by the arguments; an argument that names a file or a folder counts by its content. made_by: the class or
    function that was called."""
    is_function = inspect.isroutine(scorer) or isinstance(scorer, partial)
    if not is_own(scorer) and not is_own(made_by) and not is_function:
        object.__setattr__(scorer, "name", name)  # setattr refuses a frozen dataclass
        return scorer
    if not callable(scorer):
        raise MitigateError(f"scorer {name}: {scorer!r} cannot be called with texts; give its class a method __call__")
    fingerprint, bases = getattr(scorer, "fingerprint", None), type(scorer).__mro__
    if isinstance(fingerprint, str) and all(base is object or is_own(base) for base in bases):
        return OwnScorer(scorer, name, fingerprint)  # as its class gives it
    code = made_by if not is_own(scorer) else scorer if is_function else type(scorer)
    fingerprint = f"{PROCESS}-{uuid.uuid4().hex}"  # of another object in each process
    with suppress(TypeError):  # arguments that cannot be compared
        if (version := version_of(scorer) or version_of(code)) is not None:
            fingerprint = digest_of_values(name_of(code), version, _content(arguments))
        else:
            identity_of(code)  # says that it has no version
    return OwnScorer(scorer, name, fingerprint)


def _content(value: Any) -> Any:
    """Replace a value that names a file or a folder by a hash of its content, also in lists and mappings."""
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    try:
        is_place = isinstance(value, str | Path) and str(value) != "" and Path(value).exists()
    except OSError:  # a text that is too long for a name
        is_place = False
    return {"content": digest_of_folder(Path(value))} if is_place else value


def digest_of_folder(folder: Path) -> str:
    """One hash of the files in a network's folder, without its card, or of a file."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    contents = [digest_of(path.read_bytes()) for path in paths if path.is_file() and path.suffix != ".md"]
    return digest_of(" ".join(contents))


def call_scorer(scorer: Scorer, method: Callable[[list[str]], Any], texts: Sequence[str]) -> Any:
    """Call a scorer, or its method `explain`, with texts. Errors of a user's own scorer become MitigateError."""
    try:
        return method(list(texts))
    except MitigateError:
        raise
    except (Exception, SystemExit) as error:
        if not isinstance(scorer, OwnScorer) and not is_own(scorer):
            raise
        code = name_of(getattr(scorer, "labels", scorer))
        raise MitigateError(
            f"scorer {scorer.name}: {code} fails with {in_short(error)} for {len(texts):,} texts, the first "
            f"{texts[0][:60]!r}. Correct it, or leave the scorer out"
        ) from error


def in_short(error: BaseException) -> str:
    """An error in one line, with the place in a user's own code that raised it."""
    places = traceback.extract_tb(error.__traceback__)
    users = (place for place in reversed(places) if not place.filename.startswith(NOT_USERS))
    place = next((place for place in users if "-packages" not in place.filename), places[-1])
    message = " ".join(str(error).split())[:200]
    shown = f": {message}" if message else ""
    return f"{type(error).__name__}{shown} ({Path(place.filename).name}, line {place.lineno})"
