"""Training beside other work on the same cores, by how long threads wait before they give up their core, and by their
number.

    python benchmarks/shared_cores.py [--root DIR] [--steps 40] [--rounds 3]

A neighbour is a process of as many threads as there are cores, each of which computes all the time. Contestants train
`comet_minilm` on batches of 64 of train100k in turns, each in a process of its own, alone and beside one and three
neighbours. Writes its section of RESULTS.md and takes some twenty minutes on two cores."""

import argparse
import hashlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from benchmarks.train import BATCH, SIZES, SMALL, Contestant, Work, begin, ours, read_examples
from mitigate.__main__ import BUSY, CHOSEN_BY, QUIET
from models.decoder import DecoderConfig

SIZE = "comet_minilm"
NEIGHBOURS = (0, 1, 3)
WAITING: dict[str, Mapping[str, str]] = {
    "as OpenMP does": {},
    "mitigate, quiet cores": QUIET,
    "mitigate, cores in use": BUSY,
    "no spinning": {"GOMP_SPINCOUNT": "0"},
    "one thread": BUSY | {"OMP_NUM_THREADS": "1"},
}
WARM_UP = 8  # steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has conceptnet100k/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--steps", type=int, default=40, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="tiny models; prints the section and writes nothing")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the neighbours end too
    shape = SIZES[SIZE] | (SMALL if arguments.small else {})
    work = Work(DecoderConfig("minilm", **shape), read_examples(arguments.root))
    contestants = [entrant(name, variables, work) for name, variables in WAITING.items()]
    speeds: dict[tuple[str, int], list[float]] = {(name, count): [] for name in WAITING for count in NEIGHBOURS}
    for number in range(arguments.rounds):
        for count in NEIGHBOURS:
            with neighbours(count):
                for contestant in contestants:
                    contestant.turn(number + 1, arguments.steps)
                    speeds[contestant.name, count].append(contestant.last)
                    print(f"round {number}: {contestant.name}, {count} beside, {contestant.last:.1f}", flush=True)
    section = "\n\n".join(
        [
            "## Training beside other work on the same cores",
            f"Measured on {machine()}, by `python benchmarks/shared_cores.py`. Examples a second of `{SIZE}`, batches "
            f"of {BATCH}: the median of {arguments.rounds} rounds of {arguments.steps} steps, in brackets the share of "
            "what OpenMP's own way of waiting reaches alone. "
            f"A neighbour computes all the time in {os.cpu_count()} threads.",
            table(speeds),
            by_round(speeds),
        ]
    )
    if not arguments.small:
        write_section("shared_cores", section, processor())
    print(section)


def entrant(name: str, variables: Mapping[str, str], work: Work) -> Contestant:
    """A process that was started with these environment variables, warmed up."""
    for variable in (*CHOSEN_BY, "OMP_NUM_THREADS"):
        os.environ.pop(variable, None)
    os.environ |= variables
    contestant = Contestant(SIZE, name, begin(ours, work))
    contestant.turn(0, WARM_UP)
    return contestant


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that compute meanwhile."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=compute, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def compute() -> None:
    """As many threads as there are cores, without end; hashing a large buffer leaves Python's lock to the others."""
    buffer = bytes(2**20)

    def hash_on() -> None:
        while True:
            hashlib.sha256(buffer)

    threads = [threading.Thread(target=hash_on) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()


def table(speeds: Mapping[tuple[str, int], list[float]]) -> str:
    best = median(speeds[next(iter(WAITING)), 0])
    lines = ["| how threads wait | " + " | ".join(["alone", "beside one", "beside three"]) + " |", "|---|---|---|---|"]
    for name, variables in WAITING.items():
        said = ", ".join(f"`{variable}={value}`" for variable, value in variables.items())
        cells = [median(speeds[name, count]) for count in NEIGHBOURS]
        title = f"{name}: {said}" if said else name
        lines.append(f"| {title} | " + " | ".join(f"{cell:.0f} ({100 * cell / best:.0f} %)" for cell in cells) + " |")
    return "\n".join(lines)


def by_round(speeds: Mapping[tuple[str, int], list[float]]) -> str:
    """How far the rounds differ: without neighbours, each beside the first way of waiting in the same round."""
    first, *others = WAITING
    said = []
    for name in others:
        ratios = [own / best for own, best in zip(speeds[name, 0], speeds[first, 0], strict=True)]
        said.append(f"{name} {', '.join(f'{ratio:.2f}' for ratio in ratios)}")
    return f"Alone, in each round beside '{first}' of the same round: {'; '.join(said)}."


if __name__ == "__main__":
    main()
