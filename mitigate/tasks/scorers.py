"""Scorers for the library: the two of the harms paper, and one's own."""

import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.metrics import harm_key
from mitigate.runs.fingerprints import digest_of, digest_of_values
from mitigate.runs.own_code import Own, is_own, name_of, own, version_of
from mitigate.score.own import OwnScorer, in_short
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, PROBED, ROLES, STATEMENTS, TRIPLES, Labels, Scorer

__all__ = ["default_scorers", "make_scorer"]

LABELS = (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)
OF_LEDGERS = ("weight", "reason", "source_row", "old_tail", "tail_source")
COLUMNS = {*TRIPLES, *STATEMENTS, *PROBED, *OF_LEDGERS, "sentence", "story", "resource", "votes"}
"""Of tables that labels stand in: no scorer's labels can be called so."""
ENDINGS = ("_neutral", "_strength", "_words", "_identity", "_why")  # of the columns beside a column of labels


def default_scorers(roles: Sequence[str] = ROLES) -> list[Scorer]:
    """The scorers of the harms paper's two roles that the main job uses unless told otherwise: "sentiment" by VADER,
    "regard" by the shipped classifier on all-MiniLM-L6-v2. Raises MitigateError for another role, and where that
    encoder is not installed."""
    return [_default_scorer(role) for role in roles]


def make_scorer(labels: Callable[..., Any], name: str, **arguments: Any) -> Scorer:
    """A scorer of one's own, called `name` in tables, metrics and policies.

    labels: a class whose objects are called with texts, built with the arguments; such an object; or a function.
    Classes and objects return Labels for n texts. A function may also return n labels (-1 prejudice, 0 neutral, 1
    favouritism, 2 other), which then are the strengths too.

    A cache keeps its labels for this process alone, since nothing tells how it was made; with a `version` on the class
    or function, which then decides together with the arguments (of an object, its attributes), for others too. Raises
    MitigateError for something that cannot be called or built, and for a name that tables or metrics use for something
    else."""
    check_name(name)
    is_function = inspect.isroutine(labels) or isinstance(labels, partial)
    if not callable(labels) or (arguments and not isinstance(labels, type)):
        what = "neither a function, nor a class, nor an object to be called" if not arguments else "no class"
        given = f", and takes no arguments but texts; given: {', '.join(arguments)}" if arguments else ""
        raise MitigateError(f"make_scorer: {labels!r} is {what}{given}")
    made = _made(labels, arguments) if isinstance(labels, type) else labels
    if not callable(made):
        raise MitigateError(f"make_scorer: objects of {name_of(labels)} cannot be called with texts; give it __call__")
    if not is_own(labels) and not is_function:
        return _called(made if isinstance(labels, type) else copy(made), name)
    known, values = _known(labels, made, arguments)
    return OwnScorer(_FunctionScorer(labels, name) if is_function else made, name, known, *values)


def _made(labels: type, arguments: Mapping[str, Any]) -> Any:
    try:
        return labels(**arguments)
    except MitigateError:
        raise
    except (Exception, SystemExit) as error:
        given = ", ".join(f"{key}={value!r}"[:60] for key, value in arguments.items()) or "no arguments"
        raise MitigateError(f"make_scorer: {name_of(labels)} fails with {in_short(error)}; given: {given}") from error


def _known(labels: Any, made: Any, arguments: Mapping[str, Any]) -> tuple[Own, Sequence[Any]]:
    """What tells labels of the library's own scorers apart, and what they depend on besides."""
    if (alone := _own_fingerprint(made)) is not None:
        return Own((alone,), (), None), ()
    version, name = version_of(made), name_of(labels)
    values = [arguments or getattr(labels, "__dict__", {}), *_bound(labels)] if version else []
    if isinstance(labels, type) and version:
        values = [arguments]
    fault = f"{name} has no version" if version is None else None
    if version and ("<" in name or inspect.ismethod(labels)):
        fault = f"{name} is made inside a function or bound to an object, so that its version does not tell which it is"
    try:
        values = [_content(value) for value in values]
        digest_of_values(*values)
    except TypeError as error:
        fault, values = f"not all it was made of can be compared ({error})", []
    if fault:
        return Own((uuid.uuid4().hex,), (), fault), ()
    return own(made, version=version), values


def _bound(labels: Any) -> list[Any]:
    """The arguments that a partial holds."""
    return [list(labels.args), dict(labels.keywords)] if isinstance(labels, partial) else []


def check_name(name: Any) -> None:
    """Raises MitigateError for a name that a scorer cannot have, since tables or metrics use it for something else."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise MitigateError(f"a scorer cannot be called {name!r}: give it a name that is a text in one line")
    harm_key(name, "mean")  # raises where it begins the keys of other metrics
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending or name in COLUMNS:
        why = f"ends in {ending}, as columns beside a scorer's labels do" if ending else "is another column of tables"
        raise MitigateError(f"a scorer cannot be called {name!r}: the name {why}. Give it another name.")


def identified(scorer: Any, name: str, arguments: Mapping[str, Any], modules: Sequence[str] = ()) -> Scorer:
    """The object, called `name`. One of a user's own code, or made by that of these modules, is known by what its code
    and the arguments are: a version, or the sources and the files that they open; of an argument that names a file or a
    folder, what is in it."""
    if not is_own(scorer) and not modules:
        return _called(scorer, name)
    if not callable(scorer):
        raise MitigateError(f"scorer {name}: {scorer!r} cannot be called with texts; give its class a method __call__")
    alone = _own_fingerprint(scorer)
    known = Own((alone,), (), None) if alone else own(scorer, *modules, version=version_of(scorer))
    values = () if alone else (getattr(scorer, "fingerprint", None), *map(_content, arguments.items()))
    made = OwnScorer(_FunctionScorer(scorer, name) if inspect.isroutine(scorer) else scorer, name, known, *values)
    if alone:
        made.fingerprint = alone
    return made


def _own_fingerprint(scorer: Any) -> str | None:
    """The `fingerprint` that a user's own class gives its objects, and none of the project's classes that it is derived
    from: it decides alone, as a version does. Raises MitigateError where it is not a text."""
    found = getattr(scorer, "fingerprint", None)
    derived = any(base is not object and is_ours_class(base) for base in type(scorer).__mro__)
    if found is None or derived or isinstance(scorer, type):
        return None
    if not isinstance(found, str) or not found:
        raise MitigateError(f"{name_of(scorer)}.fingerprint={found!r} must be a text")
    return found


def is_ours_class(one: type) -> bool:
    """Whether a class is the project's."""
    return one.__module__ != "builtins" and not is_own(one)


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


def _called(scorer: Any, name: str) -> Scorer:
    """One of the project's own, now called `name`."""
    object.__setattr__(scorer, "name", name)  # setattr refuses a frozen dataclass
    return scorer


def _content(value: Any) -> Any:
    """An argument; of one that names a file or a folder, what the file holds, or the folder's files. In lists and
    mappings each part."""
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    if callable(value) and not isinstance(getattr(value, "fingerprint", None), str):
        raise TypeError(f"{value!r} is code")
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
        from mitigate.score.weights import digest_of_folder  # loads PyTorch, which other scorers do without

        return {"folder": digest_of_folder(path)}
    return value
