"""`python -m mitigate`: compose the configuration and hand it to the recipe it names."""

import inspect
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf

from mitigate import metrics
from mitigate.cli import arguments, hydra_errors
from mitigate.cli import help as helping
from mitigate.cli.output import complain, prepare_output, say
from mitigate.errors import MitigateError
from mitigate.recipes import failures
from mitigate.recipes import sweep_notes as notes
from mitigate.recipes.instantiate import watch_modules
from mitigate.runs.files import disk_fault, interrupted
from mitigate.settings import check, left_open, settings, with_lists

HERE = Path(__file__).parent
CHOSEN_BY = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
"""Variables that say how long a thread of OpenMP waits for another before it gives up its core. They are read when
PyTorch is loaded. By default it spins for milliseconds; where another program wants the same cores, the thread that is
waited for cannot run meanwhile, and training becomes many times slower (benchmarks/RESULTS.md, "Training beside other
work on the same cores")."""
QUIET = {
    "GOMP_SPINCOUNT": "10000",  # turns of GNU's waiting loop
    "KMP_BLOCKTIME": "1",  # milliseconds, of LLVM's and Intel's
}
BUSY = {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}
BUSY_FROM = 0.25  # load of a core, mean over the last minute, before this program has begun
CONF = HERE / "_conf" if (HERE / "_conf").is_dir() else HERE.parent / "conf"  # in a wheel, in a checkout


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
    check(given, written)
    if metrics.find(config.optimized_metric) is None:
        raise metrics.unknown(config.optimized_metric, "optimized_metric")
    if any(override.startswith("optimized_metric=") for override in HydraConfig.get().overrides.task):
        from mitigate.recipes.scorers import check_optimised  # loads the scorers' packages, which others do without

        check_optimised(config)
    config.call = arguments.literally(notes.call_of(HydraConfig.get()))
    return _recipe(config.recipe.run)(config)


def _recipe(name: str) -> Callable[[DictConfig], float | None]:
    """The function that recipe.run names. Raises MitigateError for anything that is not a recipe."""
    wanted = "a function of one argument, `config`, such as mitigate.recipes.mitigate.recipe.run; or set recipe=NAME"
    watch_modules({"_target_": name})
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


def cli() -> None:
    """Run main() with errors reported in a sentence: exit status 2 for those that a user can correct, 130 for
    Ctrl-C."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # Hydra passes exceptions on, and this module words them
    set_waiting()
    prepare_output()
    try:
        _main()
    except MitigateError as error:
        _end(str(error), 2)
    except hydra_errors.FAULTS as error:
        _end(hydra_errors.in_words(error, arguments.named_folders(sys.argv)), 2)
    except OSError as error:
        reason = error.strerror if isinstance(error, PermissionError) else disk_fault(error)
        if not reason:
            raise
        where = f"{error.filename}: {reason}" if error.filename else reason
        _end(f"{where}; free space, or choose other folders with paths.outputs=DIR and paths.cache=DIR", 2)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second Ctrl-C, while Python ends, needs no traceback
        _end("Interrupted. Finished stages are saved; run the same command to resume.", 130)


def _main() -> None:
    """Answer a request for help, or run main() and raise its errors unchanged."""
    folders = [*map(Path, arguments.named_folders(sys.argv)), CONF]
    if text := helping.answer(sys.argv[1:], folders):
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


def set_waiting() -> None:
    """Set for this process and those it starts how long their threads wait, shorter where the cores are in use. A
    variable that the user has set stays."""
    if not any(name in os.environ for name in CHOSEN_BY):
        os.environ |= BUSY if load() > BUSY_FROM else QUIET


def load() -> float:
    """Processes that wanted to run in the last minute, for each core; 0 where the system does not say."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows has none
        return 0.0


def _end(message: str, status: int) -> NoReturn:
    complain(message)
    sys.exit(status)


if __name__ == "__main__":
    cli()
