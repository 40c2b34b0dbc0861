"""The paper's ratings of COMeT and of its filtered COMeT without the drift between their batches of raters,
and what makes ratings vary.

    python benchmarks/people_drift.py figures [--data ../shared/data]
    python benchmarks/people_drift.py variances [--data ../shared/data]

`figures` reads both sets, and writes the change of people's votes, and the drift on the statements that stand in both.
The changes of classifiers beside them are a result of version 0.2 (`git show v0.2.0:benchmarks/people_drift.py`).
`variances` writes mitigate/data/rating_variance.csv, from which a survey computes how precise it will be."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))


from mitigate.load.ratings import FILTERED, RESOURCES, describe_rated, rated_sets
from mitigate.measure.ratings import (
    AS_THEY_ARE,
    EQUALLY,
    FIGURES,
    PARTS,
    REACH,
    Components,
    components,
    drift_table,
    error,
    statements_needed,
    vote_shares,
    within_relations,
)
from mitigate.measure.ratings import described as with_word
from mitigate.studies.humans import POINTS, read_labelled_sentences
from mitigate.words.outside_text import counted

PAIR = (RESOURCES[-1], FILTERED)
VARIANCES = Path(__file__).parents[1] / "mitigate" / "data" / "rating_variance.csv"
RATERS = 3


def shared_by_questions(first: np.ndarray, second: np.ndarray, questions: tuple[np.ndarray, np.ndarray]) -> float:
    """The covariance of questions' mean percentages in two sets, over the questions that both have.

    first, second: the results of within_relations for statements that only one of the sets has: (statements,) each;
    questions: their numbers, the same in both sets."""
    both = np.intersect1d(*questions)
    means = [
        [side[of == question].mean() for question in both] for side, of in zip((first, second), questions, strict=True)
    ]
    return float(np.cov(means)[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("figures", "variances"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    given = parser.parse_args()
    rated = read_labelled_sentences(rated_sets(given.data / "humans")).rated
    print("\n\n".join(figures(rated) if given.part == "figures" else variances(rated)))


# The paper's two sets


def figures(rated: pl.DataFrame) -> Iterator[str]:
    """People's change, drift and what remains, by both weightings."""
    pair = rated.filter(pl.col("source").is_in(PAIR))
    people = drift_table(pair, PAIR)
    yield "## COMeT and filtered COMeT: people's change, and the drift between their batches of raters"
    yield (
        "By `python benchmarks/people_drift.py figures`, on the harms paper's ratings: 999 statements of each, three "
        f"raters a statement. {PAIR[1]} against {PAIR[0]}, percentage points of votes, 95 % intervals over targets "
        "with their inflections (jackknife, Student's t). Anchors are the statements that stand word for word in both "
        f"sets: {', '.join(counts_of_anchors(pair))}."
    )
    yield table(
        ["votes", "relations", "before, %", "after, %", *PARTS],
        [
            [
                row["figure"],
                row["weights"],
                *(f"{row[end]:.1f}" for end in ("before", "after")),
                *map(interval, parts(row)),
            ]
            for row in people.rows(named=True)
        ],
    )
    yield by_relation(pair)
    yield crossed(pair)


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


def crossed(pair: pl.DataFrame) -> str:
    """How much wider the intervals are where masked texts vary too: the variance over targets plus that over texts less
    that over both (Cameron, Gelbach and Miller 2011). Of relations that count alike: each set has as many statements of
    each by design, which texts left out by relation would vary."""
    texts = described(pair).select("statement", "masked", "cluster")
    halves = []
    for way in (pl.col("cluster"), pl.col("masked"), pl.concat_str("cluster", pl.lit(" | "), "masked")):
        named = pair.drop("target").join(texts.select("statement", target=way), on="statement")
        found = drift_table(named, PAIR).filter(weights=EQUALLY)
        halves.append([(found[f"{part}_high"] - found[f"{part}_low"]).to_numpy() / 2 for part in PARTS])
    words, masked, both = np.array(halves)
    wider = np.sqrt(np.maximum(words**2 + masked**2 - both**2, np.maximum(words, masked) ** 2))
    rows = [
        [figure, *(f"±{a:.1f} → ±{b:.1f}" for a, b in zip(words[:, place], wider[:, place], strict=True))]
        for place, figure in enumerate(FIGURES)
    ]
    return (
        f"{texts.height:,} statements are {texts['masked'].n_unique():,} texts once their targets are masked. Half "
        "widths of the intervals over targets alone → over targets and texts, which cross; relations equally:\n\n"
        + table(["votes", *PARTS], rows)
    )


def described(rated: pl.DataFrame) -> pl.DataFrame:
    """Each statement once, as describe_rated has it."""
    votes = rated.group_by("source", "statement", maintain_order=True).agg(votes="label")
    found = describe_rated(votes.rename({"source": "resource", "statement": "sentence"}))
    return found.rename({"sentence": "statement"}).unique("statement", maintain_order=True)


# What makes ratings vary


def variances(rated: pl.DataFrame) -> Iterator[str]:
    """Write VARIANCES; and what they say of the size of a survey."""
    shares = statement_shares(rated)
    sets = dict(shares.group_by("source", "figure", maintain_order=True))
    shared = {figure: shared_between(*(sets[source, figure] for source in PAIR)) for figure in FIGURES}
    raw = {key: of_set(rows) for key, rows in sets.items()}
    found = {
        key: known._replace(statement=max(0.0, known.statement - shared[key[1]])) if key[0] in PAIR else known
        for key, known in raw.items()
    }
    kept = [
        {"source": source, "figure": figure, "statements": sets[source, figure].height, **known._asdict()}
        for (source, figure), known in found.items()
    ]
    VARIANCES.write_text(pl.DataFrame(kept).with_columns(pl.col(pl.Float64).round(1)).write_csv(), encoding="utf-8")
    yield "## Variance of people's ratings, and the size of a survey"
    yield (
        "By `python benchmarks/people_drift.py variances`, in squared percentage points: of statements of one "
        "relation, of single ratings of a statement, and what two models share by the question (word and relation), "
        f"which cancels in their difference. The last is the covariance of statements of {PAIR[0]} and {PAIR[1]} "
        "that stand in one of them alone; of the resources it is not known, and taken as 0."
    )
    rows = [
        [
            *key,
            str(sets[key].height),
            *(f"{value:,.0f}" for value in known),
            f"{shared[key[1]]:,.0f}" * (key[0] in PAIR),
        ]
        for key, known in raw.items()
    ]
    yield table(["set", "votes", "statements", "statement", "rating", "shared by the question"], rows)
    yield (
        f"Statements of each model with which a difference of {POINTS:g} points is detectable (80 % power, 95 % "
        f"interval) where no statement is of both, and what 999 statements of each with {RATERS} raters detect:"
    )
    numbers = (1, RATERS, 5)
    rows = [
        [
            *key,
            *(f"{statements_needed(POINTS, known, raters):,.0f}" for raters in numbers),
            f"{REACH * error(known, 999, RATERS):.1f}",
        ]
        for key, known in found.items()
    ]
    yield table(["set", "votes", *(counted(raters, "rater") for raters in numbers), "detectable, points"], rows)
    yield check_of_error(rated, found, sets)


def check_of_error(
    rated: pl.DataFrame, found: Mapping[tuple[str, str], Components], sets: Mapping[tuple[str, str], pl.DataFrame]
) -> str:
    """The error that the variances say of the two sets beside the jackknife's over targets."""
    table_of = drift_table(rated.filter(pl.col("source").is_in(PAIR)), PAIR).filter(weights=AS_THEY_ARE)
    texts = []
    for row in table_of.rows(named=True):
        known = [found[source, row["figure"]] for source in PAIR]
        mean = Components(*np.mean(known, axis=0))
        said = error(mean, 999, RATERS, row["anchors"] / 999)
        measured = (row["total_high"] - row["total_low"]) / 2 / stats.norm.ppf(0.975)
        texts.append(f"{row['figure']} {said:.2f} by the variances, {measured:.2f} by the jackknife over targets")
    return f"The standard error of the difference of {PAIR[0]} and {PAIR[1]}, points: {'; '.join(texts)}."


def statement_shares(rated: pl.DataFrame) -> pl.DataFrame:
    """vote_shares with the number of the question: the word and the relation."""
    return vote_shares(rated).with_columns(question=pl.struct("word", "relation").rank("dense").cast(pl.Int64))


def of_set(rows: pl.DataFrame) -> Components:
    return components(*(rows[name].to_numpy() for name in ("share", "votes", "relation")))


def shared_between(first: pl.DataFrame, second: pl.DataFrame) -> float:
    alone = [one.join(other, on="statement", how="anti") for one, other in ((first, second), (second, first))]
    apart = [within_relations(rows["share"].to_numpy(), rows["relation"].to_numpy()) for rows in alone]
    return shared_by_questions(*apart, (alone[0]["question"].to_numpy(), alone[1]["question"].to_numpy()))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
