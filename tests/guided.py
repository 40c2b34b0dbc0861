"""The readers of users' files under atheris: inputs grow towards code that no input has reached yet.

    pip install atheris
    python tests/guided.py [NAME ...] [--seconds 3600] [--folder DIR] [--keep]

Each reader has a process of its own and an equal share of the seconds. Inputs that reach something new are in
DIR/NAME, where a second call goes on. --keep writes the smallest of them that reach as much to reader_inputs.jsonl,
which test_readers.py puts to the readers again."""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

KEPT = Path(__file__).with_name("reader_inputs.jsonl")
FAULT = "FAULT"  # before what is wrong
RUNS = re.compile(r"^#(\d+)\t", re.MULTILINE)  # inputs up to here
LOG = re.compile(r"^(#|INFO:|WARNING:).*\n", re.MULTILINE)
TIMEOUT = 300  # seconds for an input: other work may stop a machine for a minute
LONGEST = 2000  # bytes of an input
MOST = 40  # inputs that are kept of a reader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=3600, help="in all")
    parser.add_argument("--folder", type=Path, help="where inputs lie and stay; default: a temporary one")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    from readers import READERS

    names = given.names or list(READERS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        for name in names:
            corpus = folder / name
            corpus.mkdir(parents=True, exist_ok=True)
            (corpus / "good").write_text(READERS[name].content, encoding="utf-8")
            said = libfuzzer(name, [str(corpus), f"-max_total_time={given.seconds / len(names):.0f}"])
            inputs = max(map(int, RUNS.findall(said)), default=0)
            print(f"{name:<15}{inputs:>9,} inputs, {said.count(FAULT)} kinds of faults")
            print(LOG.sub("", said[said.find(FAULT) :]) if FAULT in said else "", end="", flush=True)
            if given.keep:
                smallest = folder / f"{name}.smallest"
                smallest.mkdir(exist_ok=True)
                libfuzzer(name, ["-merge=1", str(smallest), str(corpus)])
        if given.keep:
            KEPT.write_text("".join(line for name in READERS for line in lines_of(name, folder / f"{name}.smallest")))


def libfuzzer(name: str, arguments: Sequence[str]) -> str:
    """What a process says that puts inputs to a reader."""
    limits = [f"-max_len={LONGEST}", f"-timeout={TIMEOUT}", "-print_final_stats=0"]
    own = [sys.executable, __file__, "--reader", name, *limits]
    done = subprocess.run([*own, *arguments], capture_output=True, cwd=tempfile.gettempdir())
    said = (done.stdout + done.stderr).decode(errors="replace")
    return said if done.returncode == 0 else f"{FAULT} {name}: status {done.returncode}\n{said}"


def lines_of(name: str, folder: Path) -> list[str]:
    """The smallest inputs in a folder, as lines of JSON."""
    found = sorted((path.read_bytes() for path in folder.glob("*")), key=lambda content: (len(content), content))
    return [json.dumps({"reader": name, "content": b64encode(one).decode()}) + "\n" for one in found[:MOST]]


def hunt(name: str, arguments: Sequence[str]) -> None:
    """In a process of its own: inputs until the time is over; each kind of fault is printed once."""
    import atheris

    with atheris.instrument_imports(include=["mitigate"]):
        import readers
    place, kinds = Path(tempfile.mkdtemp()), set()

    def attempt(content: bytes) -> None:
        found = readers.fault(readers.READERS[name], content, place)
        if found is None:
            return
        kind = readers.kind_of(found)
        if kind not in kinds:
            print(f"{FAULT} {name}: {kind}\n{content[:300]!r}\n{found}", flush=True)
        kinds.add(kind)

    itself = shlex.join([sys.executable, __file__, "--reader", name])  # -merge=1 starts it again
    atheris.Setup([itself, *arguments], attempt)
    atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--reader"]:
        hunt(sys.argv[2], sys.argv[3:])
    else:
        main()
