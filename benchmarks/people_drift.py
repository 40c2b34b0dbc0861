"""The paper's ratings of COMeT and of its filtered COMeT without the drift between their batches of raters: the change
of people's votes, and the drift on the statements that stand in both. Relations counted equally, and the variance of
ratings, are results of version 0.2 (`git show v0.2.0:benchmarks/people_drift.py`).

    python benchmarks/people_drift.py [--data ../shared/data]"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))


from mitigate.load.ratings import FILTERED, RESOURCES, rated_sets
from mitigate.measure.ratings import PARTS, drift_table
from mitigate.measure.ratings import described as with_word
from mitigate.studies.humans import read_labelled_sentences

PAIR = (RESOURCES[-1], FILTERED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    given = parser.parse_args()
    print("\n\n".join(figures(read_labelled_sentences(rated_sets(given.data / "humans")).rated)))


def figures(rated: pl.DataFrame) -> Iterator[str]:
    """People's change, drift and what remains."""
    pair = rated.filter(pl.col("source").is_in(PAIR))
    people = drift_table(pair, PAIR)
    yield "## COMeT and filtered COMeT: people's change, and the drift between their batches of raters"
    yield (
        "By `python benchmarks/people_drift.py`, on the harms paper's ratings: 999 statements of each, three "
        f"raters a statement. {PAIR[1]} against {PAIR[0]}, percentage points of votes, 95 % intervals over targets "
        "with their inflections (jackknife, Student's t). Anchors are the statements that stand word for word in both "
        f"sets: {', '.join(counts_of_anchors(pair))}."
    )
    yield table(
        ["votes", "before, %", "after, %", *PARTS],
        [
            [
                row["figure"],
                *(f"{row[end]:.1f}" for end in ("before", "after")),
                *map(interval, parts(row)),
            ]
            for row in people.rows(named=True)
        ],
    )
    yield by_relation(pair)


def by_relation(pair: pl.DataFrame) -> str:
    """The same of each relation alone."""
    texts = described_relations(pair)
    rows = []
    for relation in texts["relation"].unique().sort():
        alone = pair.join(texts.filter(relation=relation).select("statement"), on="statement", how="semi")
        for row in drift_table(alone, PAIR).rows(named=True):
            rows.append([relation, row["figure"], str(row["anchors"]), *map(interval, parts(row))])
    return "Of each relation alone:\n\n" + table(["relation", "votes", "anchors", *PARTS], rows)


def described_relations(rated: pl.DataFrame) -> pl.DataFrame:
    """Each statement once, with its relation."""
    return with_word(rated.select("statement", "target", "relation").unique("statement", maintain_order=True))


def counts_of_anchors(pair: pl.DataFrame) -> list[str]:
    """How many shared statements each relation has."""
    shared = pair.unique(["source", "statement"]).filter(pl.len().over("statement") == len(PAIR))
    counts = described_relations(shared)["relation"].value_counts().sort("relation")
    return [f"{count} {name}" for name, count in counts.iter_rows()]


def parts(row: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    return [(row[part], row[f"{part}_low"], row[f"{part}_high"]) for part in PARTS]


def interval(bounds: tuple[float, float, float]) -> str:
    value, low, high = map(signed, bounds)
    return f"{value} [{low}, {high}]"


def signed(value: float) -> str:
    """With its sign, to a tenth."""
    return f"{round(value, 1) + 0.0:+.1f}".replace("-", "−")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
