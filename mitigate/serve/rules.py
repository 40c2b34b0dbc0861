"""The allowed submissions: recipes, options of configuration groups and settings from closed lists; and the command
that a submission becomes.

The list of settings is that of the fields with `serve=` in the classes of settings (mitigate.settings). Hydra composes
an accepted submission from the real configuration, whose classes check it. All faults are reported together."""

import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from mitigate.errors import MitigateError, did_you_mean, one_of, spelt
from mitigate.settings import Setting, WrongError, check, left_open, settings

RECIPES = ("mitigate", "labels", "audit", "filter", "stories", "kge", "agreement", "frames", "compare")
GROUPS = ("experiment", "policy", "data", "model", "measure")
WORD = re.compile(r"\w[\w' -]{0,59}")  # never a path: it has neither a slash nor a dot
KEYWORDS = ("all", "data")  # of settings of targets, where others are lists
SCORERS = ("score.sentiment", "score.regard", "score.extra", "policy.scorers")  # settings that name scorers
RUNS = ("compare.runs", "compare.baseline")  # settings that name finished runs
TEXTS = "texts"  # the command line takes its value as it stands, quotes too
MOST_WORDS = 1000
_COMPOSING = threading.Lock()  # Hydra's state is global


@dataclass(frozen=True)
class Rules:
    """The submissions that this service allows. conf: the project's configuration; outputs: the folder of run folders;
    given: settings that all jobs get; roots: folders that files may be named in."""

    conf: Path
    outputs: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    roots: Sequence[Path] = ()

    def arguments(self, recipe: str, overrides: Mapping[str, Any], own: Path) -> list[str]:
        """The arguments of `python -m mitigate` for this submission. own: the folder of the submitter's files. Raises
        WrongError that names all faults."""
        faults = {} if recipe in RECIPES else {"recipe": str(one_of("recipe", recipe, RECIPES))}
        chosen, values = [f"recipe={recipe}"], {}
        for key, value in overrides.items():
            try:
                if key in GROUPS and value not in self.options()[key]:
                    raise one_of(key, str(value)[:60], self.options()[key])
                if key in GROUPS:
                    chosen.append(f"{key}={value}")
                else:
                    values[key] = self._value(key, value, [own, *self.roots])
            except MitigateError as error:
                faults[key] = str(error)
        values |= {**self.given, "paths.outputs": str(self.outputs)}
        if faults := faults or self._faults([*chosen, *(f"{key}={spelt(value)}" for key, value in values.items())]):
            raise WrongError(faults)
        return [*chosen, *(f"{key}={value if key == TEXTS else spelt(value)}" for key, value in values.items())]

    def options(self) -> dict[str, list[str]]:
        """The options of each group. One that leaves a value open that cannot be given here is left out."""
        return {group: _options(self.conf, group) for group in GROUPS}

    def _value(self, key: str, value: Any, roots: Sequence[Path]) -> Any:
        """The value of an allowed setting as the command gets it. Raises MitigateError for an unknown key and a value
        it may not have."""
        parts = value if isinstance(value, list) else [value]
        if key in RUNS:
            folders = [run_of(self.outputs, name) for name in parts]
            if not folders or None in folders:
                raise MitigateError(f"{key} must be names of finished runs, as the jobs show them")
            return [str(folder) for folder in folders] if isinstance(value, list) else str(folders[0])
        takes = allowed().get(key)
        if takes is None:
            guess = did_you_mean(key, [*GROUPS, *allowed()])
            raise MitigateError(f"{key[:60]!r} cannot be set in this service; see its list of settings{guess}")
        setting = settings()[key]
        if takes == "columns" and isinstance(value, Mapping):
            return _columns(key, value)
        if any(isinstance(part, list | Mapping) for part in parts):
            raise MitigateError(f"{key} must be a text, a number, true, false, null or a list of these")
        if takes == "file" or (takes == "words or file" and isinstance(value, str) and "." in value):
            path = _file(key, value, roots)
            return f"@{path}" if key == TEXTS else path  # the texts of a file, and not its name
        if takes in ("words", "words or file", "columns"):
            value = _words(setting, value)
        setting.check(value)
        for name in parts if key in SCORERS else ():
            if f"score.{name}.url" in settings():
                raise MitigateError(f"{key}: {name} sends texts to an address, which no job of this service does")
        return value

    def _faults(self, arguments: Sequence[str]) -> dict[str, str]:
        """The faults of the configuration that the arguments compose to, by setting."""
        try:
            with _COMPOSING:
                GlobalHydra.instance().clear()
                with initialize_config_dir(str(self.conf.absolute()), version_base=None):
                    config = compose("config", list(arguments))
            written: Any = OmegaConf.to_container(config, resolve=False)
            if missing := list(left_open(written)):
                return {key: f"{key} must be given" for key in missing}
            plain: Any = OmegaConf.to_container(config, resolve=True)
            check(plain, written)
        except WrongError as error:
            return error.faults
        except (MitigateError, HydraException, OmegaConfBaseException) as error:
            return {"": str(error).splitlines()[0]}
        return {}


def run_of(outputs: Path, name: Any) -> Path | None:
    """The folder of a finished run; None for what is no name of one."""
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.,=+-]{0,254}", name):
        return None
    with suppress(OSError):  # of a name that is too long
        return outputs / name if (outputs / name / "manifest.json").is_file() else None
    return None


@cache
def allowed() -> dict[str, str]:
    """The settings that may be given, and how (settings.setting)."""
    return {key: one.serve for key, one in settings().items() if one.serve}


@cache
def _options(conf: Path, group: str) -> list[str]:
    open_value = r"\?\?\?|/model: hf$" + ("" if f"{group}.path" in allowed() else "|^path: null")  # hf: base: ???
    paths = sorted((conf / group).glob("*.yaml"))
    return [path.stem for path in paths if not re.search(open_value, path.read_text(encoding="utf-8"), re.MULTILINE)]


def _words(setting: Setting, value: Any) -> Any:
    """Words and lists of words. A single one becomes a list where the setting takes lists."""
    takes_list = "list of texts" in setting.types
    if value is None or (takes_list and value in KEYWORDS):
        return value
    words = value if isinstance(value, list) and takes_list else [value]
    wrong = [word for word in words if not (isinstance(word, str) and WORD.fullmatch(word))]
    if wrong or not words or len(words) > MOST_WORDS:
        kind = f"a list of 1 to {MOST_WORDS:,} texts" if takes_list else "a text"
        raise MitigateError(
            f"{setting.key} must be {kind} of at most 60 letters, digits, spaces, dashes and apostrophes"
            + (f"; not {str(wrong[0])[:60]!r}" if wrong else "")
        )
    return words if takes_list else value


def _columns(key: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    """Columns by what they are for: names, or numbers from 1."""
    if not all(
        re.fullmatch("[a-z_]{1,30}", str(purpose)) and type(column) in (str, int) and WORD.fullmatch(str(column))
        for purpose, column in value.items()
    ):
        raise MitigateError(f'{key} must be names or numbers of columns, such as {{"head": "subject", "tail": 3}}')
    return dict(value)


def _file(key: str, value: Any, roots: Sequence[Path]) -> str:
    """The path of a file in one of the folders. Raises MitigateError for a name of no file in them."""
    if not isinstance(value, str) or "$" in value or "\0" in value:
        raise MitigateError(f"{key} must be the name of a file, without $")
    with suppress(OSError, ValueError):  # of a name that is too long, or has a lone surrogate
        for root in roots:
            path = (root / value).resolve()
            if path.is_relative_to(root.resolve()) and path.exists():
                return str(path)
    raise MitigateError(f"{key}: you uploaded no such file, and the folders of this service have none")
