"""The command line: what Hydra's grammar cannot read as it is typed is quoted, so that a path with a bracket, a word
with an accent or a text with a comma in quotes mean what they say; and the folder that --config-dir names."""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException

from mitigate.errors import MitigateError, did_you_mean
from mitigate.words.outside_text import without_folders
from models.digests import sha256_of

WITH_A_VALUE = {
    "--config-dir": "-cd",
    "--config-path": "-cp",
    "--config-name": "-cn",
    "--package": "-p",
    "--info": "-i",
}
WITHOUT = {
    **{"--help": "-h", "--cfg": "-c", "--run": "-r", "--multirun": "-m", "--shell-completion": "-sc"},
    **dict.fromkeys(("--hydra-help", "--resolve", "--experimental-rerun"), ""),
    **dict.fromkeys(("--version", "--list"), ""),  # answered without Hydra (help.py)
}
"""Long and short names of the flags that Hydra takes: followed by a value, and not."""
LONG = {short: name for name, short in WITH_A_VALUE.items()}
TAKES_NEXT = {*WITH_A_VALUE, *LONG}
WRITTEN = ("paths.", "hydra", "data.output=", "texts=[", "head=")  # settings that name no input
MOST_FILES, MOST_BYTES = 200, 2**31  # of a folder whose content is hashed
FREE_TEXT = ("texts", "head")  # settings whose values are never numbers or words of Hydra's
EMPTY = re.compile(r"\s*(choice|range|interval|shuffle|sort|glob)\(\s*\)\s*")  # Hydra's functions, of nothing
ITEM = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')\s*(?:,|$)|\s*([^,]*?)\s*(?:,|$)""", re.DOTALL)
"""An item of a list: a text in quotes, in which a backslash stands before a quote or a backslash; or all up to the next
comma."""


def readable(arguments: Sequence[str]) -> list[str]:
    """The arguments as Hydra can read them. Raises MitigateError for a list that the shell took apart, for an unknown
    flag, and for a sweep over nothing."""
    pairs = list(zip(["", *arguments], arguments, strict=False))
    for place, argument in pairs:
        if place not in TAKES_NEXT:
            _check(argument)
    return [
        argument if place in TAKES_NEXT or argument.startswith("-") else _readable(argument)
        for place, argument in pairs
    ]


def repeated(arguments: Sequence[str]) -> list[str]:
    """A sentence for each setting or flag that is given twice with different values, of which the last counts."""
    given: dict[str, list[str]] = {}
    for place, argument in zip(["", *arguments], arguments, strict=False):
        if place in TAKES_NEXT:
            given.setdefault(LONG.get(place, place), []).append(argument)
        elif argument not in TAKES_NEXT:
            for key, value in _settings_of(argument):
                given.setdefault(LONG.get(key, key), []).append(value)
    return [
        f"{key} is set {len(values)} times; the last counts: {key}={values[-1]}, not {', '.join(values[:-1])}"
        for key, values in given.items()
        if len(set(values)) > 1
    ]


def _settings_of(argument: str) -> Iterator[tuple[str, str]]:
    """The settings that an argument gives, with their values as typed; of a group given as {...}, its parts."""
    key, sign, value = argument.partition("=")
    key = key.lstrip("+")
    if sign and value.startswith("{"):
        with suppress(HydraException):
            parts = OverridesParser.create().parse_override(argument).value()
            yield from _parts(key, parts)
    elif sign:
        yield key, value


def _parts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _parts(f"{key}.{name}", part)
    else:
        yield key, value.text if isinstance(value, QuotedString) else str(value)


def named_folders(arguments: Sequence[str]) -> list[str]:
    """The folder that --config-dir names, if any."""
    named = [argument.partition("=")[2] for argument in arguments if argument.startswith("--config-dir=")]
    return named + [value for flag, value in pairwise(arguments) if flag in ("--config-dir", "-cd")]


def config_folders(hydra: Any) -> list[str]:
    """The same from Hydra's own settings."""
    return [s.path for s in hydra.runtime.config_sources if s.provider == "command-line" and s.schema == "file"]


def use_folders(hydra: Any, shipped: Path) -> None:
    """Let the modules in the folder of --config-dir be imported, here and in processes started from here.

    Raises MitigateError where that folder has a chosen file that is not read, since the project's own has its name.
    shipped: the project's own folder."""
    for folder in config_folders(hydra):
        for group, option in hydra.runtime.choices.items():
            mine, theirs = (place / str(group) / f"{option}.yaml" for place in (Path(folder), shipped))
            if mine.is_file() and theirs.is_file():
                raise MitigateError(
                    f"{mine} is ignored, because the project has its own {group}={option}; rename the file, for "
                    f"example to my_{option}.yaml, and set {group}=my_{option}"
                )
        if folder not in sys.path:
            sys.path.append(folder)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))


def inputs(arguments: Sequence[str]) -> dict[str, str]:
    """The files and folders that a command reads: by the name that texts.portable leaves of each, the SHA-256 of its
    content, or "" for a folder that is not small. arguments: what stands after `python -m mitigate`."""
    named = [text for argument in arguments if not argument.startswith(WRITTEN) for text in _texts_of(argument)]
    found = {}
    for text in named:
        path = Path(text.removeprefix("@"))
        with suppress(OSError, ValueError):  # a text that can be no name of a file
            if (path.suffix or len(path.parts) > 1) and path.exists():
                found[without_folders(str(path))] = _content(path)
    return found


def _texts_of(argument: str) -> list[str]:
    """The texts in a setting's value; of a word that is no setting, the word."""
    if "=" not in argument:
        return [argument]
    try:
        value = OverridesParser.create().parse_override(argument).value()
    except HydraException:
        return []
    return list(_flat(value))


def _flat(value: Any) -> Iterator[str]:
    if isinstance(value, QuotedString):
        yield value.text
    elif isinstance(value, str):
        yield value
    elif isinstance(value, list | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _flat(part)


def _content(path: Path) -> str:
    if path.is_file():
        return sha256_of(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    if len(files) > MOST_FILES or sum(file.stat().st_size for file in files) > MOST_BYTES:
        return ""
    lines = "".join(f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def quoted(text: str) -> str:
    """A text as Hydra reads it, whatever stands in it."""
    return QuotedString(text, Quote.single).with_quotes()


def literal(text: str) -> str:
    """A text that stays as it is where the configuration is resolved, also if it looks like ${oc.env:HOME}."""
    return re.sub(r"(\\*)\$\{", lambda found: 2 * found[1] + r"\${", text)


def literally(value: Any) -> Any:
    """The same of all texts in lists and mappings."""
    return with_texts(value, literal)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """The value with change(text) in place of each text in lists and mappings."""
    if isinstance(value, list):
        return [with_texts(part, change) for part in value]
    if isinstance(value, Mapping):
        return {key: with_texts(part, change) for key, part in value.items()}
    return change(value) if isinstance(value, str) else value


def _check(argument: str) -> None:
    """Check the flag or the override. Raises MitigateError for an unknown flag (the beginning of a long one is enough),
    and for choice() without values, which Hydra would take for a text."""
    key, _, value = argument.partition("=")
    flags = {**WITHOUT, **WITH_A_VALUE}
    is_long = key.startswith("--")
    known = any(flag.startswith(key) for flag in flags) if is_long else key[:2] in {s[:2] for s in flags.values()}
    if key.startswith("-") and not known:
        raise MitigateError(f"unknown flag {key!r}; allowed: {', '.join(flags)}{did_you_mean(key, flags)}")
    if EMPTY.fullmatch(value) and key not in FREE_TEXT:
        raise MitigateError(f"{argument} has no values, so the sweep has no jobs; give values")


def _readable(argument: str) -> str:
    key, sign, value = argument.partition("=")
    if not sign or (_is_read(argument) and key.lstrip("+") not in FREE_TEXT):
        return argument
    if value.startswith("["):
        if not value.rstrip().endswith("]"):
            raise MitigateError(
                f"{argument} is a list without its closing bracket: the shell split it at a space. Put the whole "
                f"""setting in quotes, as in '{key}=[one text,"another, with a comma"]'"""
            )
        return f"{key}=[{','.join(quoted(literal(item)) for item in _items(value.strip()[1:-1]))}]"
    return argument if value.startswith("{") else f"{key}={quoted(literal(value))}"


def _is_read(argument: str) -> bool:
    try:
        OverridesParser.create().parse_override(argument)
    except HydraException as error:
        return "ConfigLoader" in str(error)  # a glob, which Hydra reads later
    return True


def _items(content: str) -> Iterator[str]:
    """The items of a list as texts: "one, 'two, too', it's" has three."""
    end = 0
    while end < len(content):
        found = ITEM.match(content, end)
        assert found  # the last alternative matches anything
        in_quotes = found[1] if found[1] is not None else found[2]
        yield found[3] if in_quotes is None else re.sub(r"\\(.)", r"\1", in_quotes, flags=re.DOTALL)
        end = found.end()
