"""Hashes of everything a result depends on: the code that a function reaches (sources), its arguments, and the identity
of a user's own code (user_code)."""

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import partial
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl

from mitigate.runs import file_tracking
from mitigate.runs.import_tracing import DATA as DATA
from mitigate.runs.import_tracing import PACKAGE as PACKAGE
from mitigate.runs.import_tracing import Reached as Reached
from mitigate.runs.import_tracing import digest_of_reached, module_of
from mitigate.runs.import_tracing import reached as reached
from mitigate.runs.user_code import forget as forget
from mitigate.runs.user_code import is_own, own, version_of

SEAL = "sha256"  # in a manifest and in the record of a stage: the hash of all other entries
SURROUNDING = {"surrounding": True}
"""Metadata of a dataclass field that says how or where something is done and never what comes of it:
`checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)`."""


def digest_of(content: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the hash of all its entries added, by which `is_intact` finds damage."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    return {**rest, SEAL: digest_of(json.dumps(rest, sort_keys=True, ensure_ascii=False))}


def is_intact(content: Mapping[str, Any]) -> bool:
    """Return whether the object is as it was sealed. An object without a hash, as earlier code wrote it, counts as
    intact. If the last entry is the hash of all others, the hash's own name is damaged."""
    if SEAL in content or not content:
        return not content or sealed(content)[SEAL] == content[SEAL]
    *others, last = content
    return sealed({name: content[name] for name in others})[SEAL] != content[last]


def digest_of_values(*values: object) -> str:
    """One hash of values that `plain` accepts."""
    return digest_of(json.dumps(plain(values), sort_keys=True, ensure_ascii=False))


def digest_of_code(of: object) -> str:
    """One hash of the code and data files that a function, a class, an object's class or a module reaches."""
    return digest_of_reached(reached(of))


def digest_of_stage(function: object, values: object) -> str:
    """One hash of the code that `reached_by_stage` finds, the function's name, the object that a method is bound to,
    and the identity of a user's own code."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    bound = getattr(function, "__self__", None) if inspect.isroutine(function) else function
    of_module = inspect.isbuiltin(function) or isinstance(bound, ModuleType)
    state = digest_of_values(None if of_module else bound)
    users = [digest_of_values(*own(code).known_by) for code in codes_of(function, values) if is_own(code)]
    code = digest_of_reached(reached_by_stage(function, values))
    return digest_of(" ".join([module_of(function), name, state, code, *users]))


def reached_by_stage(function: object, values: object) -> Reached:
    """The code that a function reaches, with that of modules among its values, such as a kind of comparison, and the
    code that objects among them name by an attribute `code`: a model's start names its loader. Code with a version
    reaches nothing."""
    return reached(*(code for code in codes_of(function, values) if version_of(code) is None))


def codes_of(function: object, values: object) -> Iterator[object]:
    """Yield the function, modules among its values, and the code of objects among them."""
    yield function
    for part in parts_of(values):
        if isinstance(part, ModuleType):
            yield part
        elif callable(code := getattr(part, "code", None)):
            yield code


def parts_of(value: object) -> Iterator[object]:
    """Yield the values in lists and mappings; after a dataclass also the values of its fields that affect results."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from parts_of(part)
        return
    yield value
    if is_dataclass(value) and not isinstance(value, type) and not _identity(value):
        for name in _result_fields(value):
            yield from parts_of(getattr(value, name))


def _result_fields(value: Any) -> list[str]:
    """The names of a dataclass's fields that are not marked SURROUNDING."""
    return [field.name for field in fields(value) if "surrounding" not in field.metadata]


def _identity(value: object) -> dict[str, str]:
    """The digest or the fingerprint of an object; empty where it has none."""
    named = ((name, getattr(value, name, None)) for name in ("digest", "fingerprint"))
    return next(({name: known} for name, known in named if isinstance(known, str)), {})


def read_by_own_code(function: object, values: object) -> dict[str, str]:
    """The files and folders that a user's own code in the function and its values has opened so far, with their
    hashes."""
    sources = list(reached_by_stage(function, values).users)
    return file_tracking.opened(
        [*sources, *(path for part in parts_of(values) for path in getattr(part, "own_sources", ()))]
    )


def fingerprint(made: object, *facts: object) -> str:
    """The fingerprint of an object such as a scorer, from the code its class reaches and facts such as hashes of
    weights and settings."""
    return digest_of(digest_of_code(made) + digest_of_values(*facts))


def plain(value: object) -> Any:
    """A value as JSON, with hashes in place of tables, arrays and code: equal for equal values only. An object with a
    `digest` or a `fingerprint` is represented by it; a dataclass by its fields without those marked SURROUNDING. Raises
    TypeError for a path, which does not determine the file's content, and for any other type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, pl.DataFrame | pl.Series):
        frame = value if isinstance(value, pl.DataFrame) else value.to_frame()
        return {"table": digest_of(as_parquet(frame))}
    if isinstance(value, np.ndarray):
        return {"array": digest_of(np.ascontiguousarray(value).tobytes()), "as": [str(value.dtype), *value.shape]}
    if isinstance(value, np.generic):
        return value.item()
    if known := _identity(value):
        called = getattr(value, "name", None)  # a scorer's columns are called by its name
        return known | ({"name": called} if isinstance(called, str) else {})
    if is_dataclass(value) and not isinstance(value, type):
        kept = {name: plain(getattr(value, name)) for name in _result_fields(value)}
        return {"object": type(value).__qualname__, **kept}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(part)] for key, part in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(plain(part), sort_keys=True) for part in value)}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return {"bytes": digest_of(value)}
    if isinstance(value, partial):
        return {"partial": plain(value.func), "args": plain(value.args), "with": plain(value.keywords)}
    if isinstance(value, ModuleType | type) or inspect.isroutine(value):
        return {"code": digest_of_code(value), "name": getattr(value, "__qualname__", getattr(value, "__name__", ""))}
    raise TypeError(
        f"a result cannot depend on {value!r} ({type(value).__name__}): give plain values, tables, dataclasses or "
        "objects with a `fingerprint`; paths and what only says where or how goes into `using`"
    )


def as_parquet(frame: pl.DataFrame) -> bytes:
    """The bytes of the table as a Parquet file: the same for the same rows, in whatever chunks they are."""
    buffer = BytesIO()
    frame.rechunk().write_parquet(buffer, row_group_size=2**18)
    return buffer.getvalue()
