"""Scorers for the library: the two of the harms paper, and users' own."""

import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.files import digest_of
from mitigate.score.user_scorer import OwnScorer, in_short
from mitigate.stages import PROCESS, digest_of_values, identity_of, is_own, name_of, version_of
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, PROBED, ROLES, STATEMENTS, TRIPLES, Labels, Scorer

__all__ = ["default_scorers", "make_scorer"]

LABELS = (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)
LEDGER_COLUMNS = ("weight", "reason", "source_row", "token")
COLUMNS = {*TRIPLES, *STATEMENTS, *PROBED, *LEDGER_COLUMNS, "sentence", "story", "resource", "votes"}
"""Columns of labelled tables, which no scorer can have as its name."""
IDENTITY = "_identity"
ENDINGS = ("_neutral", "_strength", "_words", IDENTITY, "_why")  # of the columns beside a column of labels


def default_scorers(roles: Sequence[str] = ROLES) -> list[Scorer]:
    """Build the default scorers of the harms paper's two roles: VADER for "sentiment", the shipped classifier on
    all-MiniLM-L6-v2 for "regard". Raises MitigateError for another role, and where that encoder is not installed."""
    return [_default_scorer(role) for role in roles]


def make_scorer(labels: Callable[..., Any], name: str, **arguments: Any) -> Scorer:
    """Build a scorer of a user's own, called `name` in tables, metrics and policies.

    labels: a class whose objects are called with texts, built with the arguments; such an object; or a function.
    Classes and objects return Labels for n texts. A function may also return n labels (-1 prejudice, 0 neutral, 1
    favouritism, 2 other), which then are the strengths too.

    A `version` on the class or function makes its labels valid for other processes, for the same arguments (of an
    object, its attributes). Without one a cache keeps them for this process alone, since the code may change. Raises
    MitigateError for anything that cannot be called or built, and for a name that tables or metrics use otherwise."""
    check_name(name)
    if not callable(labels) or (arguments and not isinstance(labels, type)):
        what = "neither a function, nor a class, nor a callable object" if not arguments else "not a class"
        given = f", and takes no arguments but texts; given: {', '.join(arguments)}" if arguments else ""
        raise MitigateError(f"make_scorer: {labels!r} is {what}{given}")
    if isinstance(labels, type):
        return identified(_made(labels, arguments), name, arguments, labels)
    if _is_function(labels):
        return identified(labels, name, {}, labels)
    return identified(labels if is_own(labels) else copy(labels), name, getattr(labels, "__dict__", {}), labels)


def _made(labels: type, arguments: Mapping[str, Any]) -> Any:
    try:
        return labels(**arguments)
    except MitigateError:
        raise
    except (Exception, SystemExit) as error:
        given = ", ".join(f"{key}={value!r}"[:60] for key, value in arguments.items()) or "no arguments"
        raise MitigateError(f"make_scorer: {name_of(labels)} fails with {in_short(error)}; given: {given}") from error


def _fingerprint(scorer: Any, code: Any, arguments: Mapping[str, Any]) -> str:
    """The fingerprint of a scorer of a user's own: the one that its class gives, or else version and arguments; without
    a version another for each object."""
    if (alone := _own_fingerprint(scorer)) is not None:
        return alone
    version = version_of(scorer) or version_of(code)
    try:
        if version is not None:
            return digest_of_values(name_of(code), version, _content(arguments))
        identity_of(code)  # says that it has no version
    except TypeError:  # arguments that cannot be compared
        pass
    return f"{PROCESS}-{uuid.uuid4().hex}"


def check_name(name: Any) -> None:
    """Raise MitigateError for a name that a scorer cannot have because tables or metrics use it otherwise."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "/" in name:
        raise MitigateError(f"scorer name {name!r} must be a text in one line, without '/'")
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending or name in COLUMNS:
        reserved = f"ends in {ending}, which is reserved for other columns of scorers"
        why = reserved if ending else "is another column of tables"
        raise MitigateError(f"invalid scorer name {name!r}: it {why}. Choose another name.")


def identified(scorer: Any, name: str, arguments: Mapping[str, Any], made_by: Any) -> Scorer:
    """Return the object, called `name`. If a user's own code made it, its labels are identified by the version of that
    code and by the arguments; an argument that names a file or a folder counts by its content. made_by: the class or
    function that was called."""
    is_function = _is_function(scorer)
    if not is_own(scorer) and not is_own(made_by) and not is_function:
        return _renamed(scorer, name)
    if not callable(scorer):
        raise MitigateError(f"scorer {name}: {scorer!r} cannot be called with texts; give its class a method __call__")
    code = made_by if not is_own(scorer) else scorer if is_function else type(scorer)
    labels = _FunctionScorer(scorer, name) if is_function else scorer
    return OwnScorer(labels, name, _fingerprint(scorer, code, arguments))


def _is_function(labels: Any) -> bool:
    return inspect.isroutine(labels) or isinstance(labels, partial)


def _own_fingerprint(scorer: Any) -> str | None:
    """The `fingerprint` that a user's own class gives its objects, if it is not derived from the project's classes: it
    decides alone, as a version does. Raises MitigateError where it is not a text."""
    found = getattr(scorer, "fingerprint", None)
    is_derived = any(base.__module__ != "builtins" and not is_own(base) for base in type(scorer).__mro__)
    if found is None or is_derived or isinstance(scorer, type):
        return None
    if not isinstance(found, str) or not found:
        raise MitigateError(f"{name_of(scorer)}.fingerprint={found!r} must be a text")
    return found


class _FunctionScorer:
    """A function from texts to labels (the Protocol `Scorer`, but for a fingerprint)."""

    def __init__(self, function: Callable[[Sequence[str]], Any], name: str) -> None:
        self.function = function
        self.name = name

    def __call__(self, texts: Sequence[str]) -> Any:
        found = self.function(texts)
        if isinstance(found, Labels) or (isinstance(found, tuple) and len(found) == 2 and np.ndim(found[0]) == 1):
            return found
        try:
            label = np.asarray(found)
        except (TypeError, ValueError, RuntimeError):
            label = np.zeros(0)
        if np.ma.is_masked(found) or label.dtype.kind not in "iuf" or label.shape != (len(texts),):
            label = np.full(len(texts), np.nan)
        if not np.isin(label, LABELS).all():
            raise MitigateError(
                f"scorer {self.name}: expected {len(texts):,} labels, each -1, 0, 1 or 2, one for each text; found "
                f"{' '.join(str(found).split())[:60]}. Correct {name_of(self.function)}, or leave the scorer out"
            )
        return Labels(label.astype(np.int8), np.where(label == OTHER, 0, label).astype(np.float32))


def _default_scorer(role: str) -> Scorer:
    if role == "sentiment":
        from mitigate.score.vader import Vader

        return Vader()
    if role != "regard":
        raise one_of("role of a scorer", role, ROLES)
    from mitigate.score.regard import MiniLMRegard  # loads PyTorch, which other scorers do without

    try:
        return MiniLMRegard()
    except (OSError, ValueError) as error:
        raise MitigateError(str(error)) from error


def _renamed(scorer: Any, name: str) -> Scorer:
    """Rename a scorer of the project's."""
    object.__setattr__(scorer, "name", name)  # setattr refuses a frozen dataclass
    return scorer


def _content(value: Any) -> Any:
    """Replace a value that names a file or a folder by hashes of its content, also in lists and mappings."""
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    if not isinstance(value, str | Path) or not str(value):
        return value
    path = Path(value)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError:  # a text that is too long for a name
        return value
    if is_file:
        return {"file": digest_of(path.read_bytes())}
    if is_folder:
        from mitigate.score.precision import digest_of_folder  # loads PyTorch, which other scorers do without

        return {"folder": digest_of_folder(path)}
    return value
