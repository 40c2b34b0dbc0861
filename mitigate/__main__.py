"""`python -m mitigate`: compose the configuration and hand it to the recipe it names."""

import inspect
import os
import signal
import sys
from collections.abc import Callable
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf

from mitigate import metrics
from mitigate.cli import arguments, faults
from mitigate.cli import help as helping
from mitigate.cli.output import say
from mitigate.cli.threads import set_waiting
from mitigate.errors import MitigateError
from mitigate.recipes import failures
from mitigate.recipes import sweep_notes as notes
from mitigate.recipes.instantiate import watch_modules
from mitigate.runs.files import disk_fault, interrupted
from mitigate.settings import check, left_open, settings, with_lists
from mitigate.words.texts import escaped

HERE = Path(__file__).parent
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
    faults.check_added(HydraConfig.get().overrides.task, HydraConfig.get().runtime.choices, written)
    if missing := list(left_open(written)):
        described = {key: f" ({settings()[key].meaning})" for key in missing if key in settings()}
        examples = [f"{key}=...{described.get(key, '')}" for key in missing]
        raise MitigateError(f"{' and '.join(missing)} must be given: {' '.join(examples)}")
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
    wanted = "a function of one argument, `config`, such as mitigate.recipes.mitigate.recipe.run; or say recipe=NAME"
    watch_modules({"_target_": name})
    try:
        found = get_method(name)
    except (ImportError, ValueError) as error:
        raise MitigateError(
            f"recipe.run={name} cannot be imported ({error.__cause__ or error}); name {wanted}"
        ) from error
    try:
        parameters = list(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # a built-in function without a signature
        parameters = []
    if parameters != ["config"]:
        raise MitigateError(f"recipe.run={name} is not a recipe; name {wanted}")
    return found


def cli() -> None:
    """Run main() with errors reported in a sentence: exit status 2 for those that a user can correct, 130 for
    Ctrl-C."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # Hydra passes exceptions on, and this module words them
    set_waiting()
    _prepare_output()
    try:
        _main()
    except MitigateError as error:
        sys.exit(_say(str(error), 2))
    except faults.FAULTS as error:
        sys.exit(_say(faults.in_words(error, arguments.named_folders(sys.argv)), 2))
    except OSError as error:
        reason = error.strerror if isinstance(error, PermissionError) else disk_fault(error)
        if not reason:
            raise
        where = f"{error.filename}: {reason}" if error.filename else reason
        sys.exit(_say(f"{where}; free space, or choose other places with paths.outputs=DIR and paths.cache=DIR", 2))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second Ctrl-C, while Python ends, needs no traceback
        sys.exit(_say("interrupted. Finished stages are saved; run the same command to resume.", 130))


def _main() -> None:
    """Answer a request for help, or run main() and raise its errors unchanged."""
    folders = [*map(Path, arguments.named_folders(sys.argv)), CONF]
    if text := helping.answer(sys.argv[1:], folders):
        say(text)
        return
    for sentence in arguments.repeated(sys.argv[1:]):
        _say(sentence, 0)
    sys.argv[1:] = arguments.readable(sys.argv[1:])
    try:
        main()
    except Fault as fault:
        raise fault.error from fault.error.__cause__
    except Exception as error:
        failures.end_of_launcher(error)
        raise


class _Output(FileIO):
    """Standard output or error. When its reader is gone (`| head -1`), or it cannot be written to for another reason,
    nothing more is shown, and the work continues."""

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if not isinstance(error, BrokenPipeError) and self.fileno() != 2:
                _say(f"standard output cannot be written to ({error.strerror}); nothing more is shown there", 0)
            return memoryview(content).nbytes


def _prepare_output() -> None:
    """Let work continue where the output's reader is gone, and escape characters that its encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        if isinstance(stream, TextIOWrapper) and stream is getattr(sys, f"__{name}__"):
            stream.flush()
            output = BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
            lines = name == "stderr" or stream.line_buffering
            setattr(sys, name, TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=lines))
    if sys.stdout and sys.stdout.encoding:  # for the processes started from here
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:backslashreplace"


def _say(message: str, status: int) -> int:
    sys.stderr.write(f"mitigate: {escaped(message)}\n")
    return status


if __name__ == "__main__":
    cli()
