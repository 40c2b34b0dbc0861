"""Runs commands in processes forked from one that has imported what they all need, which takes most of a start.

A line of JSON on standard input asks for one: its arguments, its environment and the files for what it prints. The
lines that come back are its process's number, and when it has ended its exit status."""

import importlib
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT = 1800  # seconds: a command that takes longer hangs


def main() -> None:
    share_imports()
    for line in sys.stdin:
        asked = json.loads(line)
        process = os.fork()
        if not process:
            become(**asked)
        tell(process)
        tell(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def become(arguments: list[str], environment: dict[str, str], output: str, error: str) -> None:
    """This process runs `python -m mitigate` with these arguments, and ends."""
    from mitigate.__main__ import cli

    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((1, output), (2, error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(ROOT)
    sys.argv = [str(Path("mitigate", "__main__.py")), *arguments]
    cli()
    sys.exit()


def call(arguments: Sequence[str]) -> int:
    """`python -m mitigate` in this process; its exit status."""
    from mitigate.__main__ import cli

    sys.argv = ["mitigate", *arguments]
    os.chdir(ROOT)
    try:
        cli()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def forked(work: Callable[[], int], said: Path) -> int:
    """The exit status of work done in a process that shares what is imported here; that of a signal after LIMIT."""
    process = os.fork()
    if process == 0:
        signal.alarm(LIMIT)  # whose action, to end the process, needs nothing of it
        with said.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            status = 1
            try:
                status = work()
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def share_imports() -> None:
    """Import here what every forked process would; nothing is computed, since threads do not survive a fork."""
    import mitigate

    for module in pkgutil.walk_packages(mitigate.__path__, "mitigate."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    importlib.import_module("transformers.models.bert_generation.modeling_bert_generation")
    importlib.import_module("classifier_data").shrink()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
