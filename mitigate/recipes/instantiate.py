"""Objects of the configuration: a class or function that `_target_` names, called with the keys beside it; faults are
reported with the setting."""

import inspect
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import OmegaConf

from mitigate.errors import MitigateError, did_you_mean
from mitigate.score.user_scorer import in_short
from mitigate.settings import NOT_ARGUMENTS


def use_folders(given: Any, conf: Path) -> None:
    """Let the modules in the current folder and that of --config-dir be imported, of the latter also in processes
    started from here. Raises MitigateError where a chosen file there is not read, since the project's own has its name.

    given: Hydra's own settings; conf: the project's folder."""
    sys.path += [] if (current := str(Path.cwd())) in sys.path else [current]
    for folder in (source.path for source in given.runtime.config_sources if source.provider == "command-line"):
        for group, option in given.runtime.choices.items():
            if all((Path(place) / group / f"{option}.yaml").is_file() for place in (folder, conf)):
                own = f"the project has its own {group}={option}; rename the file, for example to my_{option}.yaml"
                raise MitigateError(f"{folder}/{group}/{option}.yaml is ignored, because {own}")
        if folder not in sys.path:
            sys.path.append(folder)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), folder]))


def build(node: Any, setting: str = "", /, **more: Any) -> Any:
    """The object of a part of the configuration: what its `_target_` names, called with its other keys and with `more`.
    Raises MitigateError for its faults. setting: the name of the part, where the part does not contain it."""
    try:
        given: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        given = {key: value for key, value in given.items() if key not in NOT_ARGUMENTS}
        return instantiate(given, _convert_="all", **more)
    except InstantiationException as error:
        fault = _fault(error.__cause__, node, setting or node._get_full_key(""), set(more))
        raise fault or error from error.__cause__
    except SystemExit as error:
        target = node.get("_target_")
        raise MitigateError(f"{setting or node._get_full_key('')}: {target} fails with {in_short(error)}") from error


def named(node: Mapping[str, Any], setting: str, *more: str) -> Any:
    """The class or function that a part of the configuration names by `_target_`, not called. setting: the name of the
    part; more: names of arguments in addition to the part's other keys.

    Raises MitigateError for a part without `_target_`, and for a target that cannot be imported, or cannot be called
    with these arguments."""
    if not (target := node.get("_target_")):
        raise MitigateError(
            f"{setting}._target_ is not set; set it to MODULE.FUNCTION, MODULE.CLASS or a method of a class"
        )
    try:
        found = _object(str(target))
    except Exception as error:
        raise _not_imported(str(target), setting, error) from error
    if not callable(found):
        raise MitigateError(f"{setting}._target_={target} is neither a class nor a function")
    keys = {str(key) for key in node if not str(key).startswith("_") and key not in NOT_ARGUMENTS}
    if wrong := _wrong_arguments(found, {*keys, *more}):
        raise MitigateError(f"{setting}: {target} {wrong}")
    return found


def _fault(cause: BaseException | None, node: Mapping[str, Any], setting: str, more: set[str]) -> MitigateError | None:
    """The error for a target that cannot be imported, does not take these arguments, or fails with them; None for an
    error of the project's own."""
    target = str(node.get("_target_"))
    is_ours = target.startswith(("mitigate.", "models."))
    if isinstance(cause, MitigateError) or (is_ours and isinstance(cause, ValueError | OSError)):
        return MitigateError(str(cause))
    try:
        named(node, setting, *more)
    except MitigateError as error:
        return error
    return None if is_ours or cause is None else MitigateError(f"{setting}: {target} fails with {in_short(cause)}")


def _object(target: str) -> Any:
    """The object of a dotted name. hydra.utils.get_object would print the errors that it raises."""
    module, *names = target.split(".")
    found: Any = import_module(module)
    for name in names:
        module += f".{name}"
        found = getattr(found, name) if hasattr(found, name) else import_module(module)
    return found


def _not_imported(target: str, setting: str, why: Exception) -> MitigateError:
    where = f" in {Path(str(why.filename)).name}, line {why.lineno}" if isinstance(why, SyntaxError) else ""
    module, _, name = target.rpartition(".")
    try:
        names = [name for name in dir(import_module(module)) if not name.startswith("_")]
    except Exception:
        names = []
    meant = did_you_mean(name, names)
    return MitigateError(
        f"{setting}._target_={target} cannot be imported ({type(why).__name__}: {why}{where}){meant or '.'} Set it to "
        "MODULE.CLASS of a module that is installed or is in the current folder or that of --config-dir"
    )


def _wrong_arguments(found: Any, given: set[str]) -> str | None:
    """The fault in the names of arguments by the signature of a class or function, if any."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):  # a built-in function
        return None
    if any(one.kind in (one.VAR_KEYWORD, one.POSITIONAL_ONLY) for one in parameters.values()):
        return None
    takes = ", ".join(parameters) or "none"
    if unknown := sorted(given - set(parameters)):
        return f"takes no argument {unknown[0]!r}; it takes: {takes}{did_you_mean(unknown[0], parameters)}"
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    lacking = [name for name in needed if name not in given]
    return f"needs the argument {lacking[0]!r}; it takes: {takes}" if lacking else None
