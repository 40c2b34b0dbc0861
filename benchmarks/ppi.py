"""Prediction-powered inference, checked on the harms paper's ratings: most ratings are hidden, and the difference
between COMeT and filtered COMeT is recovered from the others and a classifier's labels of all statements.

    python benchmarks/ppi.py [--data ../shared/data]

A unit is a prompt (word and relation) with a statement by each of the two, all rated by three people; the truth is the
difference over all units. VADER and the regard classifier did not learn from these ratings. crowd2 did: each statement
is labelled by the head that left out its text and its target. It takes half a minute on one thread."""

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.library import scorer
from mitigate.load.ratings import FILTERED, RESOURCES, read_rated
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.score.people import Crowd2, plain, polarity
from mitigate.studies.humans import prediction_powered, ratings_needed
from mitigate.triples import NEUTRAL, ROLES
from mitigate.words.relations import parse_sentence

DRAWS, SIZES = 200, (100, 200, 400)
PROMPT = ["head", "relation", "place"]


def units(root: Path) -> pl.DataFrame:
    """The units: the difference, in percentage points of neutral labels, by people and by each classifier."""
    rated = read_rated(root, [RESOURCES[-1], FILTERED])
    parts = [parse_sentence(text) for text in rated["sentence"]]
    sentiment, regard = map(scorer, ROLES)
    crowd = Crowd2()
    texts = rated["masked"].to_list()
    chances = crowd.heads.probabilities(
        crowd.features({"masked": texts}), [plain(text) for text in texts], rated["cluster"].to_list()
    )
    labels = {one.name: label_column(rated["masked"], one, NOTHING_CACHED).label for one in (sentiment, regard)}
    labels["crowd2, cross-fitted"] = polarity(chances, crowd.heads).label
    neutral = {name: 100.0 * np.isin(label, (NEUTRAL, 2)) for name, label in labels.items()}
    people = rated["votes"].list.eval(100 * (pl.element() == NEUTRAL)).list.mean()
    table = rated.select("resource", people=people, **{name: pl.Series(values) for name, values in neutral.items()})
    table = table.with_columns(
        head=pl.Series([part[0] for part in parts if part]),
        relation=pl.Series([part[1].name for part in parts if part]),
    ).with_columns(place=pl.int_range(pl.len()).over("resource", "head", "relation"))
    first, second = (table.filter(resource=name) for name in (RESOURCES[-1], FILTERED))
    both = first.join(second, on=PROMPT, suffix="_other").sort(PROMPT)
    return both.select((pl.col(f"{name}_other") - pl.col(name)).alias(name) for name in ("people", *labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    table, random = units(parser.parse_args().data), np.random.default_rng(1)
    people, truth = table["people"].to_numpy(), float(table["people"].to_numpy().mean())
    draws = {size: [random.choice(table.height, size, replace=False) for _ in range(DRAWS)] for size in SIZES}
    print(f"{table.height} prompts; the difference over all is {truth:+.1f} points of neutral ratings.\n")
    print("| labels by | difference by labels alone | rated | mean error | coverage, % | ± points | rated for ± 5 |")
    print("|---|---|---|---|---|---|---|")
    for name in ("", *table.columns[1:]):
        labels = table[name].to_numpy() if name else np.zeros(table.height)
        alone = f"{labels.mean():+.1f}" if name else "–"
        for size in SIZES:
            found = [prediction_powered(people[one], labels[one], labels) for one in draws[size]]
            covered = 100 * np.mean([each.low <= truth <= each.high for each in found])
            width = np.mean([each.high - each.low for each in found]) / 2
            error = np.mean([each.value for each in found]) - truth
            needed = ratings_needed(5, float(np.mean([each.variance for each in found])), table.height)
            cells = [
                name or "none: ratings alone",
                alone,
                size,
                f"{error:+.1f}",
                f"{covered:.1f}",
                f"{width:.1f}",
                needed,
            ]
            print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
