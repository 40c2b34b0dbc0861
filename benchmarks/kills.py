"""Random kills (-9) of small commands: the same command then resumes to the figures of an unbroken run.

    python benchmarks/kills.py [--kills 20] [--seed 1] [NAME ...]      NAME: mitigate, audit, kge

Each command is run once unbroken. Then, in folders of its own, it is killed after a random share of that time, given
again, and its figures are compared, to 1e-6 relative to their size. A kill that comes too late counts as none."""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from kge_graphs import SMALL, planted, write_graph  # noqa: E402


def commands(place: Path) -> dict[str, list[str]]:
    """The arguments of each command; the graph of kge is written to a folder."""
    graph = write_graph(place / "graph", planted())
    return {
        "mitigate": ["trainer.max_steps=60", "probe.targets=[lawyer,nurse]"],
        "audit": ["recipe=audit"],
        "kge": ["recipe=kge", *graph, *SMALL, "kge.sensitive=gender", "kge.values=[male,female]"],
    }


TOLERANCE = 1e-6
TIMES = ("seconds", "per_second")  # ends of keys of figures that say how fast something was
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"}


class Killed(NamedTuple):
    """One kill: the share of the time of an unbroken run, and what the same command came to."""

    share: float
    outcome: str  # "same figures", or what was wrong


def start(arguments: list[str], place: Path) -> subprocess.Popen[bytes]:
    """Start `python -m mitigate` with its own outputs and cache in a folder."""
    where = [f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}"]
    with (place / "said").open("ab") as said:
        command = [sys.executable, "-m", "mitigate", *arguments, "trainer.checkpoint_every=0.1", *where]
        return subprocess.Popen(command, stdout=said, stderr=said, cwd=ROOT, env=ENVIRONMENT, start_new_session=True)


def figures(place: Path) -> dict[str, Any]:
    """The figures of the only run folder; empty where it is not finished."""
    folders = [path.parent for path in place.glob("out/[!.]*/manifest.json")]
    if len(folders) != 1:
        return {}
    found = json.loads((folders[0] / "metrics.json").read_text(encoding="utf-8"))
    return {name: value for name, value in found.items() if not name.endswith(TIMES)}


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The first difference of two runs' figures; "" where they are the same to TOLERANCE."""
    if one.keys() != other.keys():
        return f"other keys: {sorted(one.keys() ^ other.keys())[:5]}"
    for name, value in one.items():
        is_number = isinstance(value, float) and isinstance(other[name], float)
        near = is_number and math.isclose(value, other[name], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        if not near and value != other[name]:
            return f"{name}: {value} and {other[name]}"
    return ""


def kill(arguments: list[str], place: Path, after: float) -> bool:
    """Kill the command and all its processes after these seconds; returns whether it was still running."""
    process = start(arguments, place)
    try:
        process.wait(after)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def kills(arguments: list[str], place: Path, number: int, draw: random.Random) -> list[Killed]:
    """Kill one command so often, each time resumed."""
    whole = place / "whole"
    whole.mkdir(parents=True)
    started = time.monotonic()
    assert start(arguments, whole).wait() == 0, (whole / "said").read_text()
    seconds, expected = time.monotonic() - started, figures(whole)
    assert expected, f"{arguments} left no figures"
    found: list[Killed] = []
    while len(found) < number:
        here = place / f"kill-{len(found)}-{draw.random()}"
        here.mkdir()
        share = draw.uniform(0.2, 1.0)  # a fifth goes by before anything is written
        if kill(arguments, here, share * seconds):
            status = start(arguments, here).wait()
            wrong = (here / "said").read_text()[-400:] if status else difference(expected, figures(here))
            found.append(Killed(share, wrong or "same figures"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["mitigate", "audit", "kge"], metavar="NAME")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    draw, lost = random.Random(asked.seed), 0
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(asked.names):
            share = asked.kills // len(asked.names) + (number < asked.kills % len(asked.names))
            found = kills(commands(Path(place))[name], Path(place, name), share, draw)
            for one in found:
                print(f"{name:<10} killed after {one.share:4.0%} of its time: {one.outcome}", flush=True)
            lost += sum(one.outcome != "same figures" for one in found)
    print(f"{asked.kills - lost} of {asked.kills} resumed to the same figures")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
