"""The allowed submissions: recipes, options of configuration groups and settings from closed lists; and the command
that a submission becomes.

Hydra composes an accepted submission from the real configuration, and it is checked as the command line checks it. All
faults are reported together.

Knows nothing of the queue, and does not check what a recipe itself refuses: such a job fails with the
recipe's words."""

import copy
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
from mitigate.serve.allowed_values import TEXTS, allowed, allowed_value, check_flat, short
from mitigate.settings import check, has_key, left_open, settings, with_lists

RECIPES = ("mitigate", "filter", "audit", "labels", "stories", "kge", "agreement", "frames")
"""Recipes that read data alone. Jobs that read runs take the names of runs: POST /compare, /generate, /label."""
GROUPS = ("experiment", "policy", "data", "model", "measure")
ALWAYS = ("probe.targets", TEXTS)  # demographic words of one's own, which all recipes mask, and texts to label
OF_ANY_MODEL = ("hf", "seq2seq")  # options of the group model whose model.base is one of serve.models
MOST_KNOWN = 200  # configurations that stay in memory


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
    _known: dict[tuple[str, ...], DictConfig] = field(default_factory=dict, repr=False, compare=False)
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

    def defaults(self) -> dict[str, str]:
        """The options that the command line chooses by default, by group."""
        chosen: Any = OmegaConf.to_container(OmegaConf.load(self.conf / "config.yaml"))
        pairs = [pair for part in chosen["defaults"] if isinstance(part, dict) for pair in part.items()]
        return {group: option for group, option in pairs if group in (*GROUPS, "recipe") and option is not None}

    def form(self, recipe: str, chosen: Mapping[str, str]) -> dict[str, Any]:
        """The settings that a submission of these options can have, each with its default, type and range; and the
        groups that the recipe reads, each with the default's name. Raises RefusedError for unknown options."""
        if wrong := [group for group in chosen if group not in GROUPS]:
            raise RefusedError([str(one_of("group", group[:60], GROUPS)) for group in wrong])
        groups = {group: self._option(group, option) for group, option in chosen.items()}
        if recipe not in RECIPES:
            raise RefusedError([str(one_of("recipe", recipe, RECIPES))])
        config = self._composed(_base(recipe, groups))
        written: Any = OmegaConf.to_container(config, resolve=False)
        reads = written["recipe"]["reads"]
        groups_read = {*reads, "recipe", *ALWAYS}
        keys = [key for key in allowed() if {key, key.partition(".")[0]} & groups_read and has_key(written, key)]
        names = {group: _selected(config, f"{group}.name") for group in GROUPS if group in reads}
        return {
            "groups": names,
            "settings": [self._field(key, _selected(config, key)) for key in keys if key not in self.given],
        }

    def checked(self, base: Sequence[str], values: Mapping[str, Any]) -> list[str]:
        """The arguments for these options and values, which need not be in the lists. Raises RefusedError where the
        whole that they make is wrong."""
        config = copy.deepcopy(self._composed(base))
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

    def _field(self, key: str, default: Any) -> dict[str, Any]:
        """The description of a setting for a form."""
        setting = settings()[key]
        words = [*self.models] if key == "model.base" else [*setting.words]
        bounds = {"low" if sign.startswith(">") else "high": bound for sign, bound in setting.bounds}
        return {
            **{"setting": key, "takes": allowed()[key], "types": list(setting.types), "words": words, "bounds": bounds},
            **{"allowed": setting.allowed, "meaning": setting.meaning, "default": default},
        }

    def _composed(self, base: Sequence[str]) -> DictConfig:
        """The configuration of these options, composed once, which takes some tenths of a second. Hydra's state is
        global, so one thread composes at a time; the state of the command that started the service has been read by
        then."""
        key = tuple(base)
        with _refusing(), self._lock:
            if key not in self._known:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                GlobalHydra.instance().clear()
                with initialize_config_dir(str(self.conf.absolute()), version_base=None):
                    self._known[key] = compose("config", list(base))
            return self._known[key]


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


def _selected(config: DictConfig, key: str) -> Any:
    """The value of a setting as plain data; None where it is open or depends on one that is."""
    with suppress(OmegaConfBaseException):
        value = OmegaConf.select(config, key)
        return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    return None


def _spelt(value: Any) -> str:
    """A value as Hydra reads it, texts in quotes."""
    if isinstance(value, list):
        return f"[{','.join(map(_spelt, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_spelt(part)}' for key, part in value.items())}}}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return QuotedString(value, Quote.single).with_quotes() if isinstance(value, str) else repr(value)
