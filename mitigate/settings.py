"""Settings: the fields of frozen dataclasses that the groups of conf/ name by `_target_`, and the check of a
configuration by them.

YAML has the defaults; a field has type, range and meaning, and whether it affects results or may be set in the service.
The classes are in recipes/settings.py and train/settings.py, and load no network."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, dataclass_transform, get_args, get_origin

import pydantic.dataclasses
from annotated_types import Ge, Gt, Le, Lt, MinLen, Predicate
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from mitigate.errors import MitigateError, did_you_mean, one_of

CONF = Path(__file__).parent / "conf"
CLASS = re.compile(r"_target_: (mitigate\.policies\.[A-Z]\w*|[\w.]+\.settings\.[A-Z]\w*)")  # in a file of conf/
LONGEST_NAME = 50  # characters: four names and a seed stand in the name of a folder, which has 255 at most
SHOWN = 60  # characters of a value in a message
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # except tab and line end, which texts to label may have
NAME = f"letters, digits, dash, underscore and dot, no dot first, {LONGEST_NAME} characters at most"
NOT_ARGUMENTS = ("missing", "measures", "learnt_from", "cross_fitted")
"""Keys beside `_target_` that are no arguments of its class: downloads, and a scorer's role and sources of labels."""
NOT_READ = ("paths", "tracking", "hydra", "call", "experiment")
"""Parts of the configuration that never affect results; of other parts these are the fields with `where`."""


@dataclass(frozen=True)
class Kind(Predicate):
    """A kind of texts: its test, its name, and its description in messages."""

    name: str
    description: str


def _has_control(value: Any) -> bool:
    parts = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else []
    return bool(CONTROL.search(value)) if isinstance(value, str) else any(map(_has_control, parts))


TEXT = "a text, without control characters"
PARTS = "settings by name such as {a: b}, without control characters"
Text = Annotated[str, Kind(lambda value: not _has_control(value), "text", TEXT)]
Name = Annotated[str, Kind(re.compile(rf"(?!\.)[\w.-]{{1,{LONGEST_NAME}}}").fullmatch, "name", f"a name: {NAME}")]
Place = Annotated[
    str,
    Kind(
        re.compile(r"(?=.*\S)[^\x00-\x1f\x7f-\x9f]+").fullmatch,
        "path",
        "a path or name that is not empty and has no control characters",
    ),
]
Parts = Annotated[dict[str, Any], Kind(lambda value: not _has_control(value), "mapping", PARTS)]
Numbers = dict[str, float]
Meanings = dict[str | int, str]
Wanted = list[Text] | Text  # targets: words, a file, or "all"
UNIONS = (Union, UnionType)
SIMPLE = {int: "whole number", float: "number", bool: "true or false", NoneType: "null", Any: "value"}
SIGNS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def setting(
    meaning: str = "",
    default: Any = ...,
    *,
    serve: str | None = None,
    where: Any = False,
    fact: bool = False,
    **bounds: Any,
) -> Any:
    """A field of a group. serve: how the service takes it: "value", "words", "file", "words or file" or "columns".
    where: it says where or with what a job runs, and does not affect results; or the keys of it of which that holds.
    fact: it belongs to the option that is chosen, and nobody sets it alone."""
    marks: Any = {"serve": serve, "where": where, "fact": fact}
    return Field(default, description=meaning, json_schema_extra=marks, **bounds)


served, place, fact = partial(setting, serve="value"), partial(setting, where=True), partial(setting, fact=True)


class WrongError(MitigateError):
    """Faults of settings, by their keys."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        head = [f"{len(faults)} settings are wrong:"] if len(faults) > 1 else []
        super().__init__("\n  ".join([*head, *self.faults.values()]))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, served, place, fact))
def group(name: str) -> Callable[[type], Any]:
    """Make a class the frozen dataclass of a group of settings; its constructor raises MitigateError that names all
    wrong ones."""

    def made(cls: type) -> Any:
        config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
        found: Any = pydantic.dataclasses.dataclass(cls, frozen=True, kw_only=True, config=config)
        check = found.__init__

        def checked(self: Any, **given: Any) -> None:
            faults: dict[str, str] = {}
            for key, field in found.__pydantic_fields__.items():
                if hasattr(field.annotation, "group") and isinstance(given.get(key), dict):
                    try:
                        given[key] = field.annotation(**given[key])
                    except WrongError as error:
                        faults |= error.faults
            try:
                check(self, **given)
            except ValidationError as error:
                raise WrongError({**faults_of(found, given, error), **faults}) from None

        found.__init__ = checked
        found.group = name
        found.surroundings = frozenset(
            one.key.rpartition(".")[2] for one in fields_of(found).values() if one.where is True
        )
        return found

    return made


@dataclass(frozen=True)
class Setting:
    """A setting with its allowed types and values."""

    key: str  # "probe.beams"
    kind: Any  # the annotation of the field
    types: Mapping[str, str]  # "whole number" -> "a whole number from 1 to 1,000"
    words: tuple[str, ...]
    meaning: str
    serve: str | None = None
    where: Any = False
    fact: bool = False

    def fits(self, value: Any) -> bool:
        """Return whether a value is of one of the types, and in range."""
        try:
            TypeAdapter(self.kind, config=ConfigDict(strict=True)).validate_python(value)
        except ValidationError:
            return False
        return True

    def check(self, value: Any) -> None:
        """Raise MitigateError for a value of another type or out of range."""
        if not self.fits(value):
            raise MitigateError(_fault(self, value))

    @property
    def allowed(self) -> str:
        """The values allowed: "a whole number from 1 to 512, or null"."""
        return ", or ".join(self.types.values())


def settings() -> dict[str, Setting]:
    """The settings that a user may set, by key, in the order of the classes."""
    return {key: one for key, one in all_settings().items() if not one.fact}


@cache
def all_settings() -> dict[str, Setting]:
    """Every field of every class that conf/ names, by key."""
    files = [CONF / "config.yaml", *sorted(CONF.glob("*/*.yaml"))]
    targets = dict.fromkeys(name for path in files for name in CLASS.findall(path.read_text(encoding="utf-8")))
    found: dict[str, Setting] = {}
    for one in (one for target in targets for one in fields_of(_class(target)).values()):
        if one.key not in found or found[one.key].fact:
            found[one.key] = one
    return found


def _class(target: str) -> Any:
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


@cache
def fields_of(cls: Any) -> dict[str, Setting]:
    """The settings of a class by key, and those of its nested groups."""
    start = f"{cls.group}." if cls.group else ""
    fields: Mapping[str, FieldInfo] = cls.__pydantic_fields__
    return {one.key: one for name, field in fields.items() for one in _described(f"{start}{name}", field)}


def _described(key: str, field: FieldInfo) -> Iterator[Setting]:
    """Yield the setting of a field, or those of a group in it."""
    annotation: Any = field.annotation
    if hasattr(annotation, "group"):
        yield from fields_of(annotation).values()
        return
    kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    parts = get_args(field.annotation) if get_origin(field.annotation) in UNIONS else [field.annotation]
    words = tuple(str(word) for part in parts if get_origin(part) is Literal for word in get_args(part))
    marks: Any = field.json_schema_extra or {"serve": "value"}  # of policies
    yield Setting(key, kind, dict(_types(field.annotation, field.metadata)), words, field.description or "", **marks)


def _types(kind: Any, marks: Iterable[Any] = ()) -> Iterator[tuple[str, str]]:
    """Yield the types of an annotation with their descriptions: ("whole number", "a whole number from 1 to 5")."""
    marks = [part for mark in marks for part in (mark.metadata if isinstance(mark, FieldInfo) else [mark])]
    if known := next((mark for mark in marks if isinstance(mark, Kind)), None):
        yield known.name, known.description
    elif get_origin(kind) is Annotated:
        yield from _types(kind.__origin__, kind.__metadata__)
    elif get_origin(kind) in UNIONS:
        for part in get_args(kind):
            yield from _types(part, marks)
    elif get_origin(kind) is Literal:
        yield "word", " or ".join(map(str, get_args(kind)))
    elif get_origin(kind) in (list, tuple):
        ((name, _),) = _types(get_args(kind)[0])
        names = {"word": "names"}.get(name, f"{name}s")
        least = ", not empty" if any(isinstance(mark, MinLen) for mark in marks) else ""
        yield f"list of {names}", f"a list of {names} such as {'[0,1]' if 'number' in name else '[a,b]'}{least}"
    elif kind == Numbers:
        yield "mapping to numbers", "numbers by name such as {a: 1.5}"
    elif kind in SIMPLE:
        name = SIMPLE[kind]
        yield name, f"a {name}{_range(marks)}" if "number" in name else name
    else:
        yield "mapping", "settings by name such as {a: b}"


def _range(marks: Iterable[Any]) -> str:
    """ "from 1 to 512", "above 0", "at least 0 and below 1"; "" for all numbers."""
    bounds = {}
    for mark in marks:
        if isinstance(mark, Ge | Gt | Le | Lt):
            ((sign, bound),) = dataclasses.asdict(mark).items()
            bounds[sign] = f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
    if list(bounds) == ["ge", "le"]:
        return f" from {bounds['ge']} to {bounds['le']}"
    return " and".join(f" {SIGNS[sign]} {bound}" for sign, bound in bounds.items())


def check(given: Mapping[str, Any], written: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The groups of a configuration as objects of the classes that they name, by the groups' names, those of the top
    under "". Raises MitigateError that names all wrong settings, a line each.

    given: nested plain dicts; written: the same with its ${...} unresolved, so that a wrong value is reported once and
    not again for each setting that repeats it."""
    made: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, node in {"": given, **given}.items():
        if not _is_described(node):
            continue
        fields = _class(node["_target_"]).__pydantic_fields__
        values = node if name else {key: value for key, value in node.items() if key in ("_target_", *fields)}
        try:
            made[name] = _made(values)
        except WrongError as error:
            wrong |= error.faults
        except MitigateError as error:  # of settings that do not go together
            wrong[name] = str(error)
    repeats = [f"${{{key}}}" for key in wrong]
    if wrong := {key: fault for key, fault in wrong.items() if find(written, key) not in repeats}:
        raise WrongError(wrong)
    made.pop("policy", None)  # recipes build it, since users' classes are not described
    return made


def _is_described(node: Any) -> bool:
    return isinstance(node, Mapping) and CLASS.fullmatch(f"_target_: {node.get('_target_')}") is not None


def _made(node: Mapping[str, Any]) -> Any:
    values = {key: _made(value) if _is_described(value) else value for key, value in node.items() if key != "_target_"}
    return _class(node["_target_"])(**values)


def with_lists(given: Mapping[str, Any]) -> dict[str, Any]:
    """Lists in place of single words, by key, for settings that must be lists: {"probe.relations": ["CapableOf"]} for
    probe.relations=CapableOf. given: nested plain dicts."""
    found = {}
    for key, one in all_settings().items():
        value = find(given, key)
        takes_lists = any(name.startswith("list") for name in one.types)
        if isinstance(value, str) and value and takes_lists and not one.fits(value) and one.fits([value]):
            found[key] = [value]
    return found


def faults_of(cls: Any, given: Mapping[str, Any], error: ValidationError) -> dict[str, str]:
    """The sentences about wrong settings of a class, by key."""
    known, start, found = fields_of(cls), f"{cls.group}." if cls.group else "", dict[str, str]()
    for fault in error.errors(include_url=False, include_context=False):
        place = fault["loc"][0]  # the name of a field, or its number
        name = place if isinstance(place, str) else list(cls.__pydantic_fields__)[place]
        key, value = f"{start}{name}", given.get(name)
        if fault["type"] == "unexpected_keyword_argument":
            names = [f"{start}{known}" for known in cls.__pydantic_fields__]
            found[key] = f"unknown setting {key!r}; allowed: {', '.join(names)}{did_you_mean(key, names)}"
        elif fault["type"] == "missing":
            found[key] = f"{key} must be set: {key}=..." + (f" ({known[key].meaning})" if key in known else "")
        elif key in known:
            found[key] = _fault(known[key], value)
        elif not isinstance(value, Mapping):  # else its own settings are wrong
            below = next((name for name in known if name.startswith(f"{key}.")), f"{key}.name")
            found[key] = f"{key}={_shown(value)} must be a group of settings; set one of them, such as {below}=..."
    return found


def _fault(one: Setting, value: Any) -> str:
    if isinstance(value, str) and set(one.types) <= {"word", "true or false", "null"}:
        others = {"true or false": ("true", "false"), "null": ("null",)}
        allowed = [*one.words, *(word for name in one.types for word in others.get(name, ()))]
        return f"{one_of(one.key, value, allowed)} ({one.meaning})"
    return f"{one.key}={_shown(value)} must be {one.allowed} ({one.meaning})"


def find(node: Any, key: str) -> Any:
    """The value under a dotted key; None where there is none."""
    for part in key.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _shown(value: Any) -> str:
    """A value in the form of the command line, on one line and at most SHOWN characters."""
    if isinstance(value, str):
        shown = value if value and value.isprintable() else json.dumps(value)
    elif isinstance(value, list):
        shown = f"[{','.join(map(_shown, value))}]"
    else:
        shown = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def left_open(node: Any, path: str = "") -> Iterator[str]:
    """The dotted keys of a configuration that have no value yet ("???")."""
    if node == "???":
        yield path
    elif isinstance(node, Mapping):
        for name, part in node.items():
            yield from left_open(part, f"{path}.{name}" if path else name)


@cache
def _surroundings() -> frozenset[str]:
    """The keys of settings that do not affect results."""
    marked = {one.key: one.where for one in all_settings().values() if one.where}
    names = [[key] if where is True else [f"{key}.{part}" for part in where] for key, where in marked.items()]
    return frozenset(chain.from_iterable(names))


def deciding(given: Mapping[str, Any]) -> dict[str, Any]:
    """The nested plain settings that affect results: the groups that the recipe reads (`recipe.reads`; all for a recipe
    without it), without the fields marked `where` and the names of the classes."""
    reads = find(given, "recipe.reads")
    read = [name for name in given if name not in NOT_READ and (reads is None or name in (*reads, "recipe"))]
    return _without({name: given[name] for name in read})


def _without(part: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    return {
        key: _without(value, f"{above}{key}.") if isinstance(value, Mapping) else value
        for key, value in part.items()
        if f"{above}{key}" not in _surroundings() and not CLASS.fullmatch(f"{key}: {value}")
    }
