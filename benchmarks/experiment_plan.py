"""The arms of the first two plans (experiment_arms.csv, plan2_arms.csv). Version 0.2.0, commit 368c7b80, has the
policies of all arms, the settings of the runs and the program that ran them (`experiment.py`)."""

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent
HEADS = "benchmarks/plan2_heads"
"""Of people's ratings of one half of the targets each, by the network that they read (plan2.md, "Before the first
run")."""
RELATIONS2 = (
    *("IsA", "AtLocation", "UsedFor", "CapableOf", "HasProperty", "HasSubevent", "HasPrerequisite", "Causes", "HasA"),
    *("ReceivesAction", "MotivatedByGoal", "DefinedAs"),
)
"""The twelve with most triples in train100k."""


@dataclass(frozen=True)
class Arm:
    """A row of the file of arms."""

    name: str
    part: str
    seeds: range
    control: str | None  # arm that it is compared with


def arms(path: Path = HERE / "experiment_arms.csv") -> dict[str, Arm]:
    """The arms by name, in the order of the file. `seeds` are a number, from 1 on, or a first and a last one, 11-13."""
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {row["arm"]: Arm(row["arm"], row["part"], _seeds(row["seeds"]), row["control"] or None) for row in rows}


def third_of(name: str) -> int:
    """The part of plan2.md that a cluster of targets or a group of heads is in: 0 for screening, 1 and 2 for the
    endpoints."""
    return int.from_bytes(hashlib.sha256(f"plan2 {name}".encode()).digest()) % 3


def _seeds(written: str) -> range:
    first, _, last = written.rpartition("-")
    return range(int(first or 1), int(last) + 1)
