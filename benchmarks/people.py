"""Measures that learnt from people's ratings, beside people who rated another model.

    python benchmarks/people.py halves [--data ../shared/data]

COMeT-Filtered, the ratings of the harms paper's filtered model, neither trains nor selects anything. Half of its target
clusters, drawn by SEED, are held back: `open` reads them once, when the measures are fixed. The others are for
development."""

import argparse
import random
import sys
from collections.abc import Iterable
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.load.crowd import read_beside
from mitigate.tasks.rated import describe_rated

SEED = 20261125
FILTERED = "COMeT-Filtered"
FILES = ("sentences", "bias_labels", "quality_labels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["halves"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    arguments = parser.parse_args()
    statements = read(arguments.data, FILTERED)
    back = held_back(statements["cluster"])
    size = statements.filter(pl.col("cluster").is_in(back)).height
    print(f"{statements['cluster'].n_unique()} target clusters; {len(back)} with {size} statements are held back")


def read(data: Path, name: str) -> pl.DataFrame:
    """A rated set as describe_rated has it, with the raters' answers on validity (quality)."""
    rated = read_beside(*(data / "humans" / f"{name}_{kind}.txt" for kind in FILES))
    lists = rated.group_by("item", maintain_order=True).agg(votes="label", quality="quality")
    return describe_rated(lists.select(pl.lit(name).alias("resource"), "votes", "quality", sentence="item"))


def held_back(clusters: Iterable[str]) -> set[str]:
    """Half of the target clusters, rounded down, drawn by SEED from their sorted names."""
    names = sorted(set(clusters))
    return set(random.Random(SEED).sample(names, len(names) // 2))


if __name__ == "__main__":
    main()
