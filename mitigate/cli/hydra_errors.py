"""Hydra's messages about a wrong command, in the project's words: the name as it was given, what is allowed, and what
may have been meant."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from mitigate.errors import MitigateError, did_you_mean, nearest, one_of
from mitigate.package_data import rows_of
from mitigate.settings import find, settings

NOT_OVERRIDDEN = re.compile(r"Could not override '([^']+)'")
NOT_CHOSEN = re.compile(r"You must specify '(\w+)'")
NOT_APPENDED = re.compile(r"To append to your config use (\+\S.*)")
ELSEWHERE = ("classifier", "experiment", "hydra")  # what a command can name besides settings
OF_RECIPES = {
    **{name: name for name in ("compare", "kge", "frames", "serve", "share", "classifier")},
    **dict.fromkeys(("texts", "data.output"), "labels"),
    **dict.fromkeys(("humans", "data.runs"), "humans"),
    **dict.fromkeys(("ask", "head", "relation"), "ask"),
    **dict.fromkeys(("measure.match", "measure.template", "measure.texts"), "audit"),
}
"""Groups and settings that a recipe brings along."""
EXTRAS = {"submitit": "slurm", "joblib": "joblib", "optuna": "optuna"}  # by how the names of Hydra's options begin
MOST_MEANT = 4  # keys of other groups that are offered
SEPARATORS = re.compile(r"""[\[\],\s'"]+""")  # between the values of a list or a sweep
FAULTS = (HydraException, OmegaConfBaseException, yaml.YAMLError)


def in_words(error: Exception, folders: Iterable[str] = ()) -> str:
    """A sentence or a few for an error of FAULTS. folders: those that --config-dir names."""
    if isinstance(error, MissingConfigException):
        return _no_option(error, folders)
    if isinstance(error, OverrideParseException):
        return _not_read(error)
    if isinstance(error, yaml.YAMLError):
        return f"a file of the configuration is not valid YAML: {' '.join(str(error).split())}"
    if isinstance(error, ConfigCompositionException) and (found := NOT_OVERRIDDEN.match(str(error))):
        appended = NOT_APPENDED.search(str(error))
        return _no_setting(found[1], appended[1] if appended else None)
    if isinstance(error, ConfigCompositionException) and (found := NOT_CHOSEN.match(str(error))):
        allowed = ", ".join(line.strip() for line in str(error).splitlines() if line.startswith("\t"))
        return f"{found[1]} must be given: {found[1]}=NAME; allowed: {allowed}"
    if isinstance(error, OmegaConfBaseException):
        first = str(error).splitlines()[0]
        if isinstance(error, AttributeError | KeyError) and error.full_key:
            return (
                f"the configuration has no {error.full_key}, which is required; remove the argument ~{error.full_key}"
            )
        return f"{first}{f' ({error.full_key})' if error.full_key and error.full_key not in first else ''}"
    cause = error.__cause__
    return str(error) + (f" ({str(cause).splitlines()[0]})" if cause and str(cause) not in str(error) else "")


def check_gone(arguments: Iterable[str]) -> None:
    """Raise MitigateError for a setting, an option or a group that version 0.2 had, with what took its place."""
    for argument in arguments:
        key, _, value = argument.lstrip("+~").partition("=")
        given = {key, *(f"{key}={option}" for option in SEPARATORS.split(value))}
        for row in sorted(rows_of("gone.csv"), key=lambda row: -len(row["name"])):  # a setting before its group
            if row["name"] in given or key.startswith(f"{row['name']}."):
                instead = row["instead"] or "version 0.2.0 (git tag v0.2.0)"
                raise MitigateError(f"{row['name']} is not in version 1.0; use {instead}")


def check_added(overrides: Iterable[str], groups: Iterable[str], config: Mapping[str, Any]) -> None:
    """Check the keys that a plus adds. Raises MitigateError for a key that nothing reads: it is no setting, and in no
    part of the configuration that a class or function is built from. groups: those of which a file was chosen."""
    known = settings()
    for override in overrides:
        name = override.partition("=")[0].lstrip("+").partition("@")[0]
        parts = name.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        is_read = any("mapping" in known[key].types for key in above if key in known)
        is_read |= any(
            "_target_" in (find(config, key) or ()) for key in above if isinstance(find(config, key), Mapping)
        )
        is_setting = any(key == name or key.startswith(f"{name}.") for key in known)
        if override.startswith("+") and name not in groups and not is_setting and not is_read:
            raise MitigateError(_no_setting(name, None))


def _no_option(error: MissingConfigException, folders: Iterable[str]) -> str:
    """A group has no such option, or a file that another one builds on is not there."""
    group, _, name = (error.missing_cfg_file or "").rpartition("/")
    found = re.match(r"In '([^']+)': ", str(error))
    where = f"{found[1]}.yaml: " if found and found[1] not in ("config", "hydra/config") else ""
    extra = next((extra for start, extra in EXTRAS.items() if name.startswith(start)), None)
    if extra and group.startswith("hydra/"):  # an absent launcher or sweeper
        return f"{where or f'{group}={name}: '}this needs more packages: pip install 'mitigate[{extra}]'"
    if found and error.options is None:
        return f"{found[1]}.yaml builds on {error.missing_cfg_file}, which does not exist"
    if error.options is None or not group:
        return str(error).splitlines()[0]
    if not name:
        return f"{where}{group}= is empty; allowed: {', '.join(error.options)}"
    also = [f"{Path(folder) / group / name}.yaml does not exist" for folder in folders]
    return f"{where}{one_of(group, name, error.options)}{''.join(f'; {fault}' for fault in also)}"


def _no_setting(name: str, appended: str | None) -> str:
    """A key that the configuration does not have."""
    known: list[str] = [*settings(), *ELSEWHERE]
    if name.startswith("hydra."):
        return f"unknown setting of Hydra {name!r}; see --hydra-help"
    if name in settings() or name in OF_RECIPES:
        group = name.split(".")[0]
        what = f"{name}{f' ({settings()[name].meaning})' if name in settings() else ''} is a setting of"
        if recipe := OF_RECIPES.get(name, OF_RECIPES.get(group)):
            return f"{what} another recipe; set recipe={recipe}"
        return f"{what} other options of {group}; choose one of them with {group}=NAME"
    group, _, _ = name.rpartition(".")
    while group and not any(key.startswith(f"{group}.") for key in known):
        group, _, _ = group.rpartition(".")
    here = list(dict.fromkeys(_beside(key, group) for key in known if not group or key.startswith(f"{group}.")))
    meant = _meant(name, group, here)
    is_read = name.startswith("policy.") and appended and not meant  # a policy of one's own takes its settings there
    plus = f". To add a key of your own, write {shlex.quote(str(appended))}" if is_read else ""
    return f"unknown setting {name!r}; allowed{f' in {group}' if group else ''}: {', '.join(here)}{meant}{plus}"


def _meant(name: str, group: str, here: Sequence[str]) -> str:
    """The likeliest intended keys: one that stands in the same group, or one of that name in another."""
    start = f"{group}." if group else ""
    near = nearest(name.removeprefix(start), [key.removeprefix(start) for key in here])
    same = [key for key in settings() if key.rpartition(".")[2] == name.rpartition(".")[2]]
    elsewhere = same if 0 < len(same) <= MOST_MEANT else []
    if near and (group or not elsewhere):  # without a group, the very name in one is nearer than a similar one
        return f"; did you mean {start}{near}?"
    return f"; did you mean {' or '.join(elsewhere)}?" if elsewhere else ""


def _beside(key: str, group: str) -> str:
    """The part of a key that stands directly in a group: "probe.beams" of ("probe.beams", "probe")."""
    start = f"{group}." if group else ""
    return start + key.removeprefix(start).split(".")[0]


def _not_read(error: OverrideParseException) -> str:
    """An argument that is no setting in Hydra's grammar."""
    why = next(iter(str(error.message).splitlines()), "")
    key, sign, _ = error.override.partition("=")
    if not sign:
        meant = "" if key in _names() else did_you_mean(key, _names())
        return f"{error.override!r} is not a setting; write it as KEY=VALUE, and a value with blanks in quotes{meant}"
    return (
        f"{error.override!r} cannot be parsed ({why}). Put a value with commas, brackets, braces, quotes or = "
        f"""in two kinds of quotes, as in {shlex.quote(f'{key}="a, b"')}"""
    )


def _names() -> list[str]:
    return [*dict.fromkeys(key.split(".")[0] for key in settings()), *ELSEWHERE]
