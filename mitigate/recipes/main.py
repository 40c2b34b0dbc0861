"""The command: answer a request for help, or compose the configuration, check it, and call the recipe that it names."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.hydra import Hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf

from mitigate import metrics
from mitigate.cli import arguments, hydra_errors
from mitigate.cli.help import answer
from mitigate.cli.output import complain, say
from mitigate.errors import MitigateError
from mitigate.files import interrupted
from mitigate.recipes import failures, sweep_outcomes
from mitigate.recipes.job import Config
from mitigate.settings import CONF, check, left_open, settings, with_lists

_look_for_mode: Callable[..., Any] = Hydra.get_mode


def _mode(self: Any, config_name: str | None, overrides: list[str]) -> Any:
    """hydra.mode, which nothing in our configuration sets: without a folder or an override that could, Hydra need not
    compose all of it once more to look."""
    can_be_set = arguments.named_folders(sys.argv) or any("hydra" in override for override in overrides)
    return _look_for_mode(self, config_name, overrides) if can_be_set else None


Hydra.get_mode = _mode  # type: ignore[method-assign]


def run() -> None:
    """Answer a request for help, or run main() and raise its errors unchanged."""
    hydra_errors.check_gone(sys.argv[1:])
    folders = [*map(Path, arguments.named_folders(sys.argv)), CONF]
    if text := answer(sys.argv[1:], folders):
        say(text)
        return
    for sentence in arguments.repeated(sys.argv[1:]):
        complain(sentence)
    sys.argv[1:] = arguments.readable(sys.argv[1:])
    try:
        main()
    except Fault as fault:
        raise fault.error from fault.error.__cause__
    except Exception as error:
        failures.end_of_launcher(error)
        raise


class Fault(BaseException):
    """The carrier of an error past Hydra, which catches every Exception and would print all arguments before it."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@hydra.main(version_base=None, config_path=str(CONF), config_name="config")
def main(config: DictConfig) -> float | None:
    """Run the recipe; its return value is the number that a sweep optimises. Raises Fault; in a sweep, whose other jobs
    continue, the error itself; and KeyboardInterrupt also where a library has replaced it by an error of its own."""
    try:
        return _run(config)
    except Exception as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        if HydraConfig.get().mode is RunMode.MULTIRUN:
            raise
        raise Fault(error) from error


def _run(config: DictConfig) -> float | None:
    """Check the configuration and call its recipe. Raises MitigateError for settings that are left open, of a wrong
    type or out of range."""
    arguments.use_folders(HydraConfig.get(), CONF)
    written: Any = OmegaConf.to_container(config, resolve=False)
    hydra_errors.check_added(HydraConfig.get().overrides.task, HydraConfig.get().runtime.choices, written)
    if missing := list(left_open(written)):
        described = {key: f" ({settings()[key].meaning})" for key in missing if key in settings()}
        examples = [f"{key}=...{described.get(key, '')}" for key in missing]
        raise MitigateError(f"{' and '.join(missing)} must be set: {' '.join(examples)}")
    OmegaConf.set_struct(config, False)
    given: Any = OmegaConf.to_container(config, resolve=True)
    for key, value in with_lists(given).items():
        OmegaConf.update(config, key, value)
    given = OmegaConf.to_container(config, resolve=True)
    made = check(given, written)
    if metrics.find(config.optimized_metric) is None:
        raise metrics.unknown(config.optimized_metric, "optimized_metric")
    if any(override.startswith("optimized_metric=") for override in HydraConfig.get().overrides.task):
        from mitigate.recipes.scorers import check_optimised  # loads the scorers' packages, which others do without

        check_optimised(Config(config, made))
    config.call = arguments.literally(sweep_outcomes.call_of(HydraConfig.get()))
    return _recipe(config.recipe.run)(Config(config, made))


def _recipe(name: str) -> Callable[[Config], float | None]:
    """The function that recipe.run names. Raises MitigateError for anything that is not a recipe."""
    wanted = "a function of one argument, `config`, such as mitigate.recipes.mitigate.recipe.run; or set recipe=NAME"
    try:
        found = get_method(name)
    except (ImportError, ValueError) as error:
        raise MitigateError(
            f"recipe.run={name} cannot be imported ({error.__cause__ or error}); expected {wanted}"
        ) from error
    try:
        parameters = list(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # a built-in function without a signature
        parameters = []
    if parameters != ["config"]:
        raise MitigateError(f"recipe.run={name} is not a recipe; expected {wanted}")
    return found
