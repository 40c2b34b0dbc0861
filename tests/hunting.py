"""What the long forms of hostile input share: inputs made up for a number of seconds, and the faults they found."""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple


class Found(NamedTuple):
    """A fault that an input met."""

    kind: str  # faults of a kind are shown once
    told: str  # the input, and what it met


def hunt(
    about: str | None, names: Collection[str], attempt: Callable[[str, random.Random, Path], Found | None]
) -> None:
    """Reads the script's arguments, makes attempts at each name, prints what is found and exits with 1 if anything was.
    attempt: of a name, with chance and an empty folder."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--seconds", type=float, default=600, help="in all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = given.names or list(names)
    faults: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for name in chosen:
            draw = random.Random(f"{given.seed} {name}")
            ends, inputs = time.monotonic() + given.seconds / len(chosen), 0
            while time.monotonic() < ends:
                inputs += 1
                if found := attempt(name, draw, Path(place)):
                    kind = f"{name}: {found.kind}"
                    if kind not in faults:
                        print(f"{kind}\n{found.told}", flush=True)
                    faults[kind] += 1
            print(f"{name:<15}{inputs:>8,} inputs", flush=True)
    for kind, count in faults.most_common():
        print(f"{count:>6} {kind}")
    sys.exit(bool(faults))
