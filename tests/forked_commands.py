"""Runs commands in processes forked from one that has imported what they all need, which takes most of a start.

A line of JSON on standard input asks for one: its arguments, its environment and the files for what it prints. The
lines that come back are its process's number, and when it has ended its exit status."""

import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


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
