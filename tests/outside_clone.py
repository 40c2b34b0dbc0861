"""A first visit with the installed package, in a folder outside a clone: python outside_clone.py FOLDER

Labels, filter, the main job for one training step, a question, and the service. The command line is called in this
process, since every start takes seconds; the service runs in one of its own. The first fault is an error."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import mitigate
from mitigate.__main__ import cli

TRIPLES = "head,relation,tail\n" + "".join(
    f"{head},{relation},{tail}\n"
    for head in ("lawyer", "nurse", "teacher", "farmer", "clerk", "smith")
    for relation, tail in (("CapableOf", "explain a contract"), ("IsA", "person"), ("HasProperty", "kind"))
)
OWN = ["data=triples", "data.path=mine.csv"]
FAST = ["trainer.max_steps=1", "trainer.batch_size=4", "probe.max_length=4", "measure.resamples=100", "tracking=none"]


def main(folder: Path) -> None:
    os.chdir(folder)
    assert not Path(mitigate.__file__).is_relative_to(Path(__file__).parents[1]), "this is the clone's package"
    Path("mine.csv").write_text(TRIPLES)
    run("recipe=labels", "texts=[nurses are kind,the clerk is a liar]", "data.output=labels.csv")
    assert len(Path("labels.csv").read_text().splitlines()) == 3
    run("recipe=filter", "policy=both_neutral", "tracking=none", *OWN)
    assert len(only("filter-*/kept.tsv").read_text().splitlines()) > 1
    run("policy=none", "probe.targets=[lawyer,nurse]", "probe.relations=[CapableOf,IsA]", *OWN, *FAST)
    assert "perplexity" in only("mitigate-none-*/report.html").read_text()
    made = only("mitigate-none-*/report.html").parent
    run("recipe=ask", f"ask.run={made}", "head=clerk", "relation=CapableOf")
    with service() as address:
        with urlopen(f"{address}/runs/{made.name}") as answer:
            assert "report.html" in json.load(answer)["files"]
        with urlopen(f"{address}/") as page:
            assert b"<!doctype html>" in page.read(1000).lower()
    print("labels, filter, main job, ask, serve: as they should be")


def run(*arguments: str) -> None:
    """Run a command of the installed package in this process. Raises SystemExit where it fails."""
    sys.argv = ["mitigate", *arguments]
    print("$", *sys.argv, flush=True)
    cli()


def only(pattern: str) -> Path:
    """The one file of a pattern below outputs/."""
    (found,) = Path("outputs").glob(pattern)
    return found


@contextmanager
def service() -> Iterator[str]:
    """The address of a running service, as soon as it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mitigate", "recipe=serve", f"serve.port={port}", "tracking=none"]
    with subprocess.Popen(command) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            while not _answers(address):
                assert process.poll() is None, "the service ended"
                time.sleep(0.2)
            yield address
        finally:
            process.terminate()


def _answers(address: str) -> bool:
    with suppress(OSError), urlopen(f"{address}/jobs"):
        return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
