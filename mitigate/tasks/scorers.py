"""Scorers for the library: the two of the harms paper, and one's own."""

import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.fingerprints import digest_of, digest_of_values, fingerprint, reached
from mitigate.metrics import harm_key
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, PROBED, ROLES, STATEMENTS, TRIPLES, Labels, Scorer

__all__ = ["default_scorers", "make_scorer"]

LABELS = (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)
COLUMNS = {*TRIPLES, *STATEMENTS, *PROBED, "sentence", "story", "resource", "votes", "weight", "reason", "source_row"}
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

    The fingerprint, which cached labels belong to, is the object's own; where it has none it follows from the source
    code and the arguments (of an object, its attributes). Labels of a function without a source file, of a lambda or of
    a function inside another are cached for this process only. Raises MitigateError for something that cannot be
    called, for attributes that cannot be compared, and for a name that tables or metrics use for something else."""
    check_name(name)
    if inspect.isroutine(labels):
        if arguments:
            raise MitigateError(f"make_scorer: a function takes no arguments but texts; given: {', '.join(arguments)}")
        return _FunctionScorer(labels, name, _fingerprint_of_function(labels))
    if isinstance(labels, type):
        return identified(labels(**arguments), name, {"class": labels.__qualname__, **arguments})
    if not callable(labels) or arguments:
        raise MitigateError(f"make_scorer: {labels!r} is neither a function, nor a class, nor an object to be called")
    try:
        return identified(copy(labels), name, {"class": type(labels).__qualname__, **vars(labels)})
    except TypeError as error:
        raise MitigateError(
            f"make_scorer: the attributes of {labels!r} cannot be compared ({error}). Give its class and "
            f"arguments, as in make_scorer({type(labels).__name__}, {name!r}, ...), or an attribute `fingerprint`"
        ) from error


def check_name(name: str) -> None:
    """Raises MitigateError for a name that a scorer cannot have, since tables or metrics use it for something else."""
    harm_key(name, "mean")  # raises where it begins the keys of other metrics
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    if ending or name in COLUMNS:
        why = f"ends in {ending}, as columns beside a scorer's labels do" if ending else "is another column of tables"
        raise MitigateError(f"a scorer cannot be called {name!r}: the name {why}. Give it another name.")


def identified(scorer: Any, name: str, arguments: Mapping[str, Any]) -> Scorer:
    """The object, now called `name`. One without a fingerprint gets that of its code and of the arguments it was made
    with; of one that names a file or a folder, what is in it."""
    _set(scorer, "name", name)
    if not hasattr(scorer, "fingerprint"):
        _set(scorer, "fingerprint", fingerprint(scorer, {key: _content(value) for key, value in arguments.items()}))
    return scorer


class _FunctionScorer:
    """A function from texts to labels (the Protocol `Scorer`)."""

    def __init__(self, function: Callable[[Sequence[str]], Any], name: str, fingerprint: str) -> None:
        self.function = function
        self.name = name
        self.fingerprint = fingerprint

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = self.function(texts)
        if isinstance(found, Labels):
            return found
        label = np.asarray(found)
        if label.shape != (len(texts),) or not np.isin(label, LABELS).all():
            raise MitigateError(
                f"scorer {self.name}: expected {len(texts):,} labels, each -1, 0, 1 or 2, one for each text; found "
                f"{str(found)[:60]}"
            )
        return Labels(label.astype(np.int8), np.where(label == OTHER, 0, label).astype(np.float32))


def _fingerprint_of_function(function: Callable[..., Any]) -> str:
    """Of its code, where that can be told from its file."""
    name = getattr(function, "__qualname__", "")
    local = "<" in name or getattr(function, "__self__", None) is not None  # <lambda>, <locals>; a bound method
    if local or not reached(function).sources:
        return digest_of(uuid.uuid4().hex)
    return digest_of_values("function", function)


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


def _set(scorer: Any, attribute: str, value: str) -> None:
    try:
        object.__setattr__(scorer, attribute, value)  # setattr refuses a frozen dataclass
    except AttributeError as error:
        kind = type(scorer).__name__
        raise MitigateError(
            f"{kind}, a scorer, cannot be given its {attribute} {value!r}: it has __slots__ without it; add "
            f"{attribute!r} to them, or leave __slots__ away"
        ) from error


def _content(value: Any) -> Any:
    """An argument; of one that names a file or a folder, what the file holds, or the folder's files. In lists and
    mappings each part."""
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
        from mitigate.score.weights import digest_of_folder  # loads PyTorch, which other scorers do without

        return {"folder": digest_of_folder(path)}
    return value
