"""The library's functions for users: arguments are checked against the annotations first, and a few common alternatives
are converted. Recipes call the functions themselves, without these checks."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import polars as pl

from mitigate.errors import MitigateError, did_you_mean
from mitigate.runs.label_cache import LabelStore
from mitigate.triples import LabelCache, Scorer

SHOWN = 60  # characters of a value


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its arguments are checked. Raises MitigateError for unknown arguments, values of another
    type, and tables without the columns that it needs."""
    signature = inspect.signature(function)
    open_ended = {p.name for p in signature.parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    @functools.wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*values, **named)
        except TypeError as error:
            unknown = next((name for name in named if name not in signature.parameters), "")
            meant = did_you_mean(unknown, signature.parameters) if unknown else ""
            takes = ", ".join(signature.parameters)
            raise MitigateError(f"{function.__name__}: {error}{meant}; it takes {takes}") from error
        hints = get_type_hints(function)
        for name, value in bound.arguments.items():
            if name not in open_ended:
                bound.arguments[name] = _converted(function.__name__, name, value, hints[name])
        try:
            return function(*bound.args, **bound.kwargs)
        except pl.exceptions.PolarsError as error:
            said = " ".join(str(error).split())[:200]
            raise MitigateError(
                f"{function.__name__}: a table does not have the columns or types that are needed ({said}); "
                "see docs/library.md"
            ) from error

    return called


def _converted(function: str, name: str, value: Any, hint: Any) -> Any:
    """The value, converted: a list of texts to a table of statements, one scorer to a list, a path to a label cache
    there."""
    if hint is pl.DataFrame and name == "table" and not isinstance(value, Mapping) and _fits(value, Sequence[str]):
        return pl.DataFrame({"statement": list(value)}, schema={"statement": pl.String})
    if hint == Sequence[Scorer] and _fits(value, Scorer):
        return [value]
    if hint is LabelCache and isinstance(value, str | Path):
        return LabelStore(Path(value))
    if not _fits(value, hint):
        given = f"{type(value).__name__} {' '.join(repr(value).split())[:SHOWN]}"
        raise MitigateError(f"{function}: {name} must be {_in_words(hint)}, not {given}{_remedy(value, hint)}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value has an annotated type, as far as that can be checked."""
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in of)
    if origin is Literal:
        return isinstance(value, str)  # which one is checked where it is used
    if origin in (Sequence, Iterable, list, tuple) or hint in (list, tuple):
        is_many = isinstance(value, Sequence | set | frozenset | pl.Series | Mapping) and not isinstance(
            value, str | bytes
        )
        return is_many and (not of or all(_fits(one, of[0]) for one in value))
    if origin is not None:
        return callable(value) if origin is Callable else isinstance(value, origin)
    if getattr(hint, "_is_protocol", False):
        members = [member for member in vars(hint) if not member.startswith("_") or member == "__call__"]
        return not isinstance(value, type) and all(hasattr(value, member) for member in members)
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _in_words(hint: Any) -> str:
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(_in_words, of))
    if hint is pl.DataFrame:
        return "a table (a polars data frame)"
    if hint is NoneType:
        return "None"
    if origin in (Sequence, Iterable, list, tuple):
        return f"a list ({_in_words(of[0])} each)" if of else "a list"
    if origin is Mapping:
        return "a mapping"
    return "a text" if origin is Literal or hint is str else getattr(hint, "__name__", str(hint))


def _remedy(value: Any, hint: Any) -> str:
    """The remedy for a class or function in place of a scorer, and for a pandas table."""
    parts = value if isinstance(value, list | tuple) else [value]
    wanted = hint is Scorer or get_args(hint) == (Scorer,)
    if wanted and any(callable(part) and not _fits(part, Scorer) for part in parts):
        return "; make a scorer of a class or function: mitigate.make_scorer(CLASS, NAME)"
    if hint is pl.DataFrame and type(value).__module__.startswith("pandas"):
        return "; polars.from_pandas(table) makes one"
    return ""
