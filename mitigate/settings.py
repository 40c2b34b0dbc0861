"""All settings by type and range, from data/settings.csv, and the check of a configuration.

Only single settings are checked here: those that constrain each other are checked where they are used."""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from mitigate.errors import MitigateError, one_of
from mitigate.package_data import rows_of

LONGEST_NAME = 50  # characters: four names and a seed stand in the name of a folder, which has 255 at most
SHOWN = 60  # characters of a value in a message
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # except tab and line end, which texts to label may have
BOUNDS = {
    ">=": (operator.ge, "at least"),
    ">": (operator.gt, "above"),
    "<=": (operator.le, "at most"),
    "<": (operator.lt, "below"),
}

SURROUNDINGS: dict[str, tuple[str, ...]] = {
    "": ("paths", "tracking", "hydra", "dry_run", "verbose", "optimized_metric", "experiment", "call"),
    "recipe": ("run", "shown", "reads", "prompts"),
    "data": ("root", "path", "relations", "runs", "output", "load", "missing", "published"),
    "compare": ("runs", "baseline", "gate"),
    "humans": ("survey", "anchors_from", "answers", "sentences", "bias_labels", "quality_labels"),
    "kge": ("device", "checkpoint_every"),
    "frames": ("device", "checkpoint_every", "weights"),
    "trainer": ("accelerator", "devices", "strategy", "compile", "checkpoint_every"),
    "model": (
        *("folder.cache", "endpoint", "key", "concurrency", "timeout", "tries"),
        *("folder.revision", "missing.revision"),
    ),
    "probe": ("processes", "device", "published"),
    "score": (
        *("engine", "workers", "address", "networks", "judge.key", "judge.concurrency"),
        *(f"scorers.judge.{name}" for name in ("key", "concurrency", "failures")),
    ),
}
"""Settings of where and with what a run is done, by group; they do not affect results. A dot precedes a setting of a
setting."""

NOT_ARGUMENTS = ("missing", "measures", "learnt_from", "cross_fitted")
"""Keys beside `_target_` that are no arguments of its class: downloads, and a scorer's role and sources of labels."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its allowed types and values."""

    key: str  # "probe.beams"
    types: tuple[str, ...]  # of TYPES; a value must be of one of them
    bounds: tuple[tuple[str, float], ...]  # (">=", 1), ("<=", 1000): of a whole number or a number
    words: tuple[str, ...]  # of the type "word"
    meaning: str

    def fits(self, value: Any) -> bool:
        """Return whether a value is of one of the types, and in range."""
        return any(TYPES[name].holds(value, self) for name in self.types)

    @property
    def allowed(self) -> str:
        """The values allowed: "a whole number from 1 to 512, or null"."""
        return ", or ".join(TYPES[name].wording(self) for name in self.types)

    def within(self, value: float) -> bool:
        """Return whether a number is in range."""
        return all(BOUNDS[sign][0](value, bound) for sign, bound in self.bounds)


@dataclass(frozen=True, slots=True)
class Type:
    """A type of settings: the test of its values, and its description."""

    holds: Callable[[Any, Setting], bool]
    wording: Callable[[Setting], str]


@cache
def settings() -> dict[str, Setting]:
    """All settings that the project's configuration has, by key, in the order of data/settings.csv."""
    return {row["setting"]: _read(row) for row in rows_of("settings.csv")}


def check(given: Mapping[str, Any], written: Mapping[str, Any] | None = None) -> None:
    """Raise MitigateError that names all settings of a wrong type or out of range, a line each. A setting that is not
    given, or not described, is not checked.

    given: the configuration as nested plain dicts; written: the same with its ${...} unresolved, so that a wrong value
    is reported once and not again for each setting that repeats it."""
    wrong = {key: fault for setting in settings().values() for key, fault in _faults(setting, given)}
    repeats = [f"${{{key}}}" for key in wrong]
    repeated = {key for key in wrong if find(written, key) in repeats}
    faults = [fault for key, fault in wrong.items() if key not in repeated]
    if len(faults) == 1:
        raise MitigateError(faults[0])
    if faults:
        raise MitigateError("\n  ".join([f"{len(faults)} settings are wrong:", *faults]))


def with_lists(given: Mapping[str, Any]) -> dict[str, Any]:
    """Lists in place of single words, by key, for settings that must be lists: {"probe.relations": ["CapableOf"]} for
    probe.relations=CapableOf. given: nested plain dicts."""
    found = {}
    for key, setting in settings().items():
        value = find(given, key)
        takes_lists = any(name.startswith("list") for name in setting.types)
        if isinstance(value, str) and value and takes_lists and not setting.fits(value) and setting.fits([value]):
            found[key] = [value]
    return found


def _read(row: Mapping[str, str]) -> Setting:
    bounds = (re.fullmatch(r"([<>]=?)(\S+)", part) for part in row["range"].split())
    return Setting(
        key=row["setting"],
        types=tuple(row["type"].split(" | ")),
        bounds=tuple((found[1], float(found[2])) for found in bounds if found),
        words=tuple(row["words"].split()),
        meaning=row["meaning"],
    )


def _faults(setting: Setting, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fault of a setting under its key, or that of the group that it is in under the group's key."""
    node: Any = given
    *parts, last = setting.key.split(".")
    for depth, part in enumerate(parts):
        if part not in node:
            return
        node = node[part]
        if not isinstance(node, Mapping):
            key = ".".join(parts[: depth + 1])
            if key not in settings():  # else its own description says what it may be
                yield (
                    key,
                    f"{key}={_shown(node)} must be a group of settings; set one of them, such as {setting.key}=...",
                )
            return
    if last in node and not setting.fits(node[last]):
        yield setting.key, _fault(setting, node[last])


def _fault(setting: Setting, value: Any) -> str:
    if isinstance(value, str) and set(setting.types) <= {"word", "true or false", "null"}:
        others = {"true or false": ("true", "false"), "null": ("null",)}
        allowed = [*setting.words, *(word for name in setting.types for word in others.get(name, ()))]
        return f"{one_of(setting.key, value, allowed)} ({setting.meaning})"
    fault = f"{setting.key}={_shown(value)} must be {setting.allowed} ({setting.meaning})"
    if isinstance(value, int) and (setting.types == ("name",) or "path" in setting.types) and setting.fits(str(value)):
        return f"""{fault}; for a name of digits write '{setting.key}="{value}"'"""
    if isinstance(value, float) and value.is_integer() and setting.fits(int(value)):
        return f"{fault}; write {setting.key}={int(value)}"
    return fault


def find(node: Any, key: str) -> Any:
    """The value under a dotted key; None where there is none."""
    for part in key.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _shown(value: Any) -> str:
    """A value in the form of the command line, on one line and at most SHOWN characters."""
    if isinstance(value, str):
        shown = value if value and value.isprintable() else json.dumps(value)
    elif isinstance(value, Mapping):
        shown = f"{{{', '.join(f'{_shown(key)}: {_shown(part)}' for key, part in value.items())}}}"
    elif isinstance(value, list):
        shown = f"[{','.join(map(_shown, value))}]"
    else:
        shown = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def _is_whole(value: Any, setting: Setting) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and setting.within(value)


def _is_number(value: Any, setting: Setting) -> bool:
    return _is_whole(value, setting) or (isinstance(value, float) and math.isfinite(value) and setting.within(value))


def _is_text(value: Any, _: Setting) -> bool:
    return isinstance(value, str) and not CONTROL.search(value)


def _is_path(value: Any, _: Setting) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not re.search(r"[\t\n]", value) and _is_text(value, _)


def _is_name(value: Any, _: Setting) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_NAME and re.fullmatch(r"[\w-][\w.-]*", value) is not None


def _is_function(value: Any, _: Setting) -> bool:
    return isinstance(value, str) and "." in value and all(part.isidentifier() for part in value.split("."))


def _is_mapping(value: Any, setting: Setting) -> bool:
    return isinstance(value, Mapping) and not any(_has_control(part) for part in (*value, *value.values()))


def _has_control(value: Any) -> bool:
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return bool(CONTROL.search(value)) if isinstance(value, str) else any(map(_has_control, parts))


def _list_of(holds: Callable[[Any, Setting], bool]) -> Callable[[Any, Setting], bool]:
    return lambda value, setting: isinstance(value, list) and all(holds(part, setting) for part in value)


def _range(setting: Setting) -> str:
    """ "from 1 to 512", "above 0", "at least 0 and below 1"; "" for all numbers."""
    bounds = [(sign, f"{bound:,.0f}" if bound.is_integer() else f"{bound:g}") for sign, bound in setting.bounds]
    match bounds:
        case [(">=", low), ("<=", high)]:
            return f" from {low} to {high}"
        case _:
            return "".join(
                f"{' and' * bool(place)} {BOUNDS[sign][1]} {bound}" for place, (sign, bound) in enumerate(bounds)
            )


NAME = f"letters, digits, dash, underscore and dot, no dot first, {LONGEST_NAME} characters at most"
TYPES = {
    "whole number": Type(_is_whole, lambda setting: f"a whole number{_range(setting)}"),
    "number": Type(_is_number, lambda setting: f"a number{_range(setting)}"),
    "true or false": Type(lambda value, _: isinstance(value, bool), lambda _: "true or false"),
    "word": Type(lambda value, setting: value in setting.words, lambda setting: " or ".join(setting.words)),
    "text": Type(_is_text, lambda _: "a text, without control characters"),
    "name": Type(_is_name, lambda _: f"a name: {NAME}"),
    "path": Type(_is_path, lambda _: "a path or name that is not empty and has no control characters"),
    "function": Type(_is_function, lambda _: "the dotted name of a function or class, such as module.function"),
    "list of texts": Type(_list_of(_is_text), lambda _: "a list of texts such as [a,b]"),
    "list of names": Type(_list_of(_is_name), lambda _: "a list of names such as [a,b]"),
    "list of paths": Type(_list_of(_is_path), lambda _: "a list of paths such as [a,b]"),
    "list of whole numbers": Type(_list_of(_is_whole), lambda _: "a list of whole numbers such as [0,1]"),
    "mapping": Type(_is_mapping, lambda _: "settings by name such as {a: b}, without control characters"),
    "mapping to numbers": Type(
        lambda value, setting: isinstance(value, Mapping) and all(_is_number(part, setting) for part in value.values()),
        lambda _: "numbers by name such as {a: 1.5}",
    ),
    "null": Type(lambda value, _: value is None, lambda _: "null"),
}


def left_open(node: Any, path: str = "") -> Iterator[str]:
    """The dotted keys of a configuration that have no value yet ("???")."""
    if node == "???":
        yield path
    elif isinstance(node, Mapping):
        for name, part in node.items():
            yield from left_open(part, f"{path}.{name}" if path else name)


def has_key(node: Any, key: str) -> bool:
    """Return whether a configuration, as plain data, has a value at a key such as "probe.top"."""
    for part in key.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return False
        node = node[part]
    return True


def deciding(given: Mapping[str, Any]) -> dict[str, Any]:
    """The nested plain settings that affect results: the groups that the recipe reads (`recipe.reads`; all for a recipe
    without it), without SURROUNDINGS."""
    recipe = given.get("recipe")
    reads = recipe.get("reads") if isinstance(recipe, Mapping) else None
    kept = {
        name: part
        for name, part in given.items()
        if name not in SURROUNDINGS[""] and (reads is None or name in (*reads, "recipe"))
    }
    return {
        name: _without(part, SURROUNDINGS.get(name, ())) if isinstance(part, Mapping) else part
        for name, part in kept.items()
    }


def _without(part: Mapping[str, Any], names: tuple[str, ...], above: str = "") -> dict[str, Any]:
    return {
        key: _without(value, names, f"{above}{key}.") if isinstance(value, Mapping) else value
        for key, value in part.items()
        if f"{above}{key}" not in names
    }
