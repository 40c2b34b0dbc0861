"""Large jobs: a probe of thousands of targets, a report on millions of statements, hundreds of runs compared.

    python benchmarks/load.py targets MODEL [--targets 10000] [--relations IsA CapableOf UsedFor HasProperty] [--write]
    python benchmarks/load.py statements [--millions 5] [--write]
    python benchmarks/load.py runs [--runs 200] [--write]

MODEL is the folder of a trained generator (outputs/RUN/model). Its targets are made-up names of occupations ("glass
lawyer"). Statements are about the paper's targets, with tails of the sample corpus, nine of ten distinct. Runs are made
up, each as large as one of the paper's grid, 111,860 statements. --write replaces the part's section of RESULTS.md."""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from compared_runs import make_run

from benchmarks.results import machine, processor, write_section
from benchmarks.scale import Measured, launch, vocabulary, watched
from mitigate.targets import targets

POLICIES = ("none", "sentiment", "regard", "both")
GRID = 340  # statements about each target: 34 relations x 10
RELATIONS = ("IsA", "CapableOf", "UsedFor", "HasProperty")
REPEATED = 0.1  # share of statements that repeat another
TITLES = {
    "targets": "Load: a probe of many targets",
    "statements": "Load: a report on many statements",
    "runs": "Load: many runs compared",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=TITLES)
    parser.add_argument("model", nargs="?", type=Path, help="of targets: the folder of a generator")
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--relations", nargs="+", default=RELATIONS, help="of targets")
    parser.add_argument("--millions", type=float, default=5, help="of statements")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.part == "targets" and given.model is None:
        parser.error("targets needs the folder of a trained generator")
    with tempfile.TemporaryDirectory() as place:
        try:
            taken, said = {"targets": probe, "statements": report, "runs": compare}[given.part](Path(place), given)
        finally:
            print((Path(place) / "said.txt").read_text())
    section = f"## {TITLES[given.part]}\n\n{described(taken, said, given)}"
    print(section)
    if given.write:
        write_section(f"load {given.part}", section, processor())


def probe(place: Path, given: argparse.Namespace) -> tuple[Measured, str]:
    """The main job without its training."""
    names = place / "targets.csv"
    names.write_text("target,category\n" + "".join(f"{name},profession\n" for name in people(given.targets)))
    asked = ["policy=none", "train=false", "model=comet", f"model.base={given.model.absolute()}"]
    relations = f"probe.relations=[{','.join(given.relations)}]"
    taken = watched(launch(place, [*asked, f"probe.targets={names}", relations, "measure.resamples=1000"]))
    count = 10 * given.targets * len(given.relations)
    return taken, f"{given.targets:,} targets x {len(given.relations)} relations x 10 tails, {count:,} statements"


def report(place: Path, given: argparse.Namespace) -> tuple[Measured, str]:
    """An audit of a file of statements, by the regard classifier that takes seconds and not hours for millions."""
    rows = round(given.millions * 1e6)
    path = place / "statements.tsv"
    with path.open("w") as file:
        file.writelines(statements(rows))
    taken = watched(launch(place, ["recipe=audit", "data=statements", f"data.path={path}", "score.regard=ngram"]))
    return taken, f"{rows:,} statements, {path.stat().st_size / 2**20:.0f} MiB"


def compare(place: Path, given: argparse.Namespace) -> tuple[Measured, str]:
    """A comparison of runs of four policies."""
    folders = [
        make_run(place / "runs", POLICIES[number % 4], 1 + number // 4, num_targets=329, each=GRID)
        for number in range(given.runs)
    ]
    named = ",".join(map(str, folders))
    taken = watched(launch(place, ["recipe=compare", f"compare.runs=[{named}]"]))
    return taken, f"{given.runs} runs of {len(POLICIES)} policies, {329 * GRID:,} statements each"


def people(count: int) -> list[str]:
    """So many distinct names: a word of the sample corpus and a profession."""
    professions = [name for name, category in targets().items() if category == "profession"]
    words, _ = vocabulary()
    return [f"{word} {profession}" for word in words for profession in professions][:count]


def statements(rows: int) -> Iterator[str]:
    """Lines of a target and a statement about it, the same for the same number."""
    chance, known = random.Random(rows), list(targets())
    words, weights = vocabulary()
    line = ""
    for _ in range(rows):
        if not line or chance.random() >= REPEATED:
            target = chance.choice(known)
            line = f"{target}\tthe {target} is {' '.join(chance.choices(words, cum_weights=weights, k=3))}\n"
        yield line


def described(taken: Measured, said: str, given: argparse.Namespace) -> str:
    """What was done and what it took."""
    return (
        f"Measured on {machine()}, {os.cpu_count()} cores, by `python benchmarks/load.py {given.part}`: {said}. "
        f"{taken.seconds:.0f} seconds, of the processor {taken.processor:.0f}; peak of memory {taken.peak:.2f} GiB. "
        f"GiB at each tenth of the run: {taken.curve}."
    )


if __name__ == "__main__":
    main()
