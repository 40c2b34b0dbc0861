"""`python -m mitigate`: answer a request for help, or run the job; errors are reported in a sentence."""

import os
import signal
import sys
from typing import NoReturn

from mitigate import __version__
from mitigate.cli.output import complain, prepare_output, say
from mitigate.errors import MitigateError
from mitigate.runs.files import disk_fault


def cli() -> None:
    """Run the command with errors reported in a sentence: exit status 2 for those that a user can correct, 130 for
    Ctrl-C."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # Hydra passes exceptions on, and this module words them
    # Threads that wait for each other do not spin: beside another program that makes training 4 to 9 times as slow.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    prepare_output()
    try:
        _main()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # a second Ctrl-C, while Python ends, needs no traceback
        _end("Interrupted. Finished stages are saved; run the same command to resume.", 130)
    except Exception as error:
        if not (sentence := _sentence(error)):
            raise
        _end(sentence, 2)


def _main() -> None:
    """Print the version, or import Hydra and run the command."""
    if "--version" in sys.argv[1:]:
        say(f"mitigate {__version__}")
        return
    from mitigate.recipes.main import run

    run()


def _sentence(error: Exception) -> str | None:
    """The sentence about an error that a user can correct; None for any other."""
    from mitigate.cli import arguments, hydra_errors

    if isinstance(error, MitigateError):
        return str(error)
    if isinstance(error, hydra_errors.FAULTS):
        return hydra_errors.in_words(error, arguments.named_folders(sys.argv))
    if not isinstance(error, OSError):
        return None
    reason = error.strerror if isinstance(error, PermissionError) else disk_fault(error)
    where = f"{error.filename}: {reason}" if error.filename else reason
    return reason and f"{where}; free space, or choose other folders with paths.outputs=DIR and paths.cache=DIR"


def _end(message: str, status: int) -> NoReturn:
    complain(message)
    sys.exit(status)


if __name__ == "__main__":
    cli()
