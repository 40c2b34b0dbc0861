"""The allowed submissions: recipes, options of configuration groups and settings from closed lists; and the command
that a submission becomes.

Hydra composes an accepted submission from the real configuration, and it is checked as the command line checks it. All
faults are reported together.

Knows nothing of the queue, and does not check what a recipe itself refuses: such a job fails with the
recipe's words."""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mitigate.errors import MitigateError, did_you_mean, one_of
from mitigate.settings import Setting, check, has_key, left_open, settings, with_lists

RECIPES = ("mitigate", "filter", "audit", "labels", "stories", "kge", "agreement", "frames")
"""Recipes that read data alone. Jobs that read runs take the names of runs: POST /compare, /generate, /label."""
GROUPS = ("experiment", "policy", "data", "model", "measure")
OF_ANY_MODEL = ("hf", "seq2seq")  # options of the group model whose model.base is one of serve.models
WORD = re.compile(r"\w[\w' -]{0,59}")  # never a path: it has neither a slash nor a dot
KEYWORDS = ("all", "data")  # of settings of targets, where others are lists
SCORERS = ("score.sentiment", "score.regard", "score.extra", "policy.scorers")  # settings that name scorers
TEXTS = "texts"  # the command line takes its value as it stands, quotes too
COLUMN = re.compile(r"[a-z_]{1,30}")  # what a column is for
MOST_WORDS = 1000


class RefusedError(MitigateError):
    """A submission that is not accepted; `faults` are sentences."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)


@dataclass(frozen=True)
class Rules:
    """The submissions that this service allows.

    conf: the project's configuration; given: settings of the service that all jobs get, such as paths.outputs; roots:
    folders that files may be named in; models: the values that model.base may have."""

    conf: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    roots: Sequence[Path] = ()
    models: Sequence[str] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def arguments(self, recipe: str, overrides: Mapping[str, Any], own: Path | None = None) -> list[str]:
        """The arguments of `python -m mitigate` for this submission. own: the folder of the submitter's files. Raises
        RefusedError that names all faults."""
        roots = [*([] if own is None else [own]), *self.roots]
        faults = [] if recipe in RECIPES else [str(one_of("recipe", recipe, RECIPES))]
        chosen, values = {}, {}
        for key, value in overrides.items():
            try:
                if key in GROUPS:
                    chosen[key] = self._option(key, value)
                else:
                    values[key] = self._value(key, value, roots)
            except MitigateError as error:
                faults.append(str(error))
        if recipe in RECIPES:
            try:
                arguments = self.checked(_base(recipe, chosen), values)
            except RefusedError as error:
                faults += error.faults
        if faults:
            raise RefusedError(faults)
        return arguments

    def options(self) -> dict[str, list[str]]:
        """The options of each group. One that leaves a value open, such as the folder of a model, is left out."""
        return {group: self._options(group) for group in GROUPS}

    def checked(self, base: Sequence[str], values: Mapping[str, Any]) -> list[str]:
        """The arguments for these options and values, which need not be in the lists. Raises RefusedError where the
        whole that they make is wrong."""
        config = self._composed(base)
        there: Any = OmegaConf.to_container(config, resolve=False)
        if strange := [key for key in values if not has_key(there, key)]:
            whole = " ".join(base)
            raise RefusedError(
                [f"{key} is not a setting of {whole}; leave it out, or choose another option" for key in strange]
            )
        values = {**values, **{key: value for key, value in self.given.items() if has_key(there, key)}}
        with _refusing():
            _update(config, values)  # as Hydra does it with arguments
            written: Any = OmegaConf.to_container(config, resolve=False)
            if missing := list(left_open(written)):
                remedies = {True: "", False: ", and cannot be here: choose another option"}
                raise RefusedError([f"{key} must be given{remedies[key in allowed()]}" for key in missing])
            _update(config, with_lists(_resolved(config)))
            resolved = _resolved(config)
        try:
            check(resolved, written)
        except MitigateError as error:
            faults = [line.strip() for line in str(error).splitlines() if not line.endswith("are wrong:")]
            raise RefusedError(faults) from error
        return [*base, *(f"{key}={value if key == TEXTS else _spelt(value)}" for key, value in values.items())]

    def _options(self, group: str) -> list[str]:
        """The options of a group whose values are all given, or can be given here."""
        more = [name for name in OF_ANY_MODEL if group == "model" and self.models]
        return sorted([*_options(self.conf, group), *more])

    def _option(self, group: str, value: Any) -> str:
        check_flat(group, value)
        options = self._options(group)
        if not isinstance(value, str) or value not in options:
            raise one_of(group, value, options)
        return value

    def _value(self, key: str, value: Any, roots: Sequence[Path]) -> Any:
        """The value as the command gets it. Raises MitigateError for an unknown key and a value it may not have."""
        takes = allowed().get(key)
        if takes is None or (takes == "model" and not self.models):
            raise MitigateError(
                f"{short(key)} cannot be set in this service; the list of settings has those that can"
                f"{did_you_mean(key, [*GROUPS, *allowed()])}"
            )
        return allowed_value(key, value, roots, self.models)

    def _composed(self, base: Sequence[str]) -> DictConfig:
        """The configuration of these options. Hydra's state is global, so one thread composes at a time; the state of
        the command that started the service has been read by then."""
        with _refusing(), self._lock:
            GlobalHydra.instance().clear()
            with initialize_config_dir(str(self.conf.absolute()), version_base=None):
                return compose("config", list(base))


@contextmanager
def _refusing() -> Iterator[None]:
    """Context that turns errors of Hydra and OmegaConf into RefusedError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise RefusedError([str(error).splitlines()[0]]) from error


@cache
def _options(conf: Path, group: str) -> list[str]:
    open_value = r"\?\?\?" if f"{group}.path" in allowed() else r"\?\?\?|^path: null"
    found = sorted((conf / group).glob("*.yaml"))
    return [path.stem for path in found if not re.search(open_value, path.read_text(encoding="utf-8"), re.MULTILINE)]


def _base(recipe: str, chosen: Mapping[str, str]) -> list[str]:
    return [f"recipe={recipe}", *(f"{group}={option}" for group, option in chosen.items())]


def _update(config: DictConfig, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        OmegaConf.update(config, key, value)


def _resolved(config: DictConfig) -> Any:
    return OmegaConf.to_container(config, resolve=True)


def _spelt(value: Any) -> str:
    """A value as Hydra reads it, texts in quotes."""
    if isinstance(value, list):
        return f"[{','.join(map(_spelt, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_spelt(part)}' for key, part in value.items())}}}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return QuotedString(value, Quote.single).with_quotes() if isinstance(value, str) else repr(value)


@cache
def allowed() -> dict[str, str]:
    """The settings that may be given, and how (settings.setting)."""
    return {key: one.serve for key, one in settings().items() if one.serve}


def allowed_value(key: str, value: Any, roots: Sequence[Path], models: Sequence[str]) -> Any:
    """The value of an allowed setting as the command gets it. Raises MitigateError for one that it may not have."""
    takes, setting = allowed()[key], settings()[key]
    if takes == "columns" and isinstance(value, Mapping):
        return _columns(key, value)
    check_flat(key, value)
    is_file = isinstance(value, str) and "." in value
    if takes == "file" or (takes == "words or file" and is_file):
        path = _file(key, value, roots)
        return f"@{path}" if key == TEXTS else path  # the texts of a file, and not its name
    if takes == "model" and value not in models:
        raise MitigateError(f"{one_of(key, value, models)} (serve.models)")
    if takes in ("words", "words or file", "columns"):
        value = _words(setting, value)
    setting.check(value)
    scorers = value if isinstance(value, list) else [value]
    if key in SCORERS and (asking := [name for name in scorers if _opens_addresses(name)]):
        raise MitigateError(f"{key}: {asking[0]} sends texts to an address, which no job of this service does")
    return value


def check_flat(key: str, value: Any) -> None:
    """Check that a value is plain or a list of plain values; deeper ones cannot be shown. Raises MitigateError for
    others."""
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, list | Mapping) for part in parts):
        raise MitigateError(f"{key} must be a text, a number, true, false, null or a list of these")


def short(text: Any) -> str:
    """A text of a submission in ASCII, cut for a message."""
    shown = ascii(text)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."


def _opens_addresses(scorer: Any) -> bool:
    """Return whether a scorer has settings that are free texts: the address and the key of an endpoint."""
    return any("text" in setting.types for key, setting in settings().items() if key.startswith(f"score.{scorer}."))


def _words(setting: Setting, value: Any) -> Any:
    """Words and lists of words. A single one becomes a list where the setting takes lists, since as a text it would be
    the name of a file."""
    takes_list = "list of texts" in setting.types
    if value is None or (takes_list and value in KEYWORDS):
        return value
    words = value if isinstance(value, list) and takes_list else [value]
    wrong = [word for word in words if not (isinstance(word, str) and WORD.fullmatch(word))]
    if wrong or not words or len(words) > MOST_WORDS:
        kind = f"a list of 1 to {MOST_WORDS:,} words" if takes_list else "a word or a few"
        raise MitigateError(
            f"{setting.key} must be {kind} of letters, digits, spaces, dashes and apostrophes, 60 at most each"
            + (f"; not {short(wrong[0])}" if wrong else "")
        )
    return words if takes_list else value


def _columns(key: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns by what they are for: names, or numbers from 1."""
    for purpose, column in value.items():
        is_name = isinstance(column, str) and WORD.fullmatch(column)
        is_number = isinstance(column, int) and not isinstance(column, bool) and 1 <= column <= MOST_WORDS
        if not (isinstance(purpose, str) and COLUMN.fullmatch(purpose) and (is_name or is_number)):
            raise MitigateError(
                f'{key} must be names of columns, or their numbers from 1, such as {{"head": "subject", "tail": 3}}'
            )
    return dict(value)


def _file(key: str, value: Any, roots: Sequence[Path]) -> str:
    """The path of a file in one of the folders. Raises MitigateError where there is none."""
    if not roots:
        raise MitigateError(f"{key} names a file, and this service was given no folder of files (serve.roots)")
    if not isinstance(value, str) or "$" in value or "\0" in value:
        raise MitigateError(f"{key} must be the name of a file, without $")
    with suppress(OSError, ValueError):  # what can be no name of a file: one too long, half of a character
        for root in roots:
            path = (root / value).resolve()
            if path.is_relative_to(root.resolve()) and path.exists():
                return str(path)
    raise MitigateError(f"{key}: you uploaded no such file, and the folders of this service have none")
