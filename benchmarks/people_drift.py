"""The paper's ratings of COMeT and of its filtered COMeT without the drift between their batches of raters,
and what makes ratings vary.

    python benchmarks/people_drift.py figures [--data ../shared/data] [--base FOLDER --heads FOLDER]
    python benchmarks/people_drift.py variances [--data ../shared/data]

`figures` reads both sets, and writes the change of people's votes, the drift on the statements that stand in both, and
the change of each measure beside it; that of crowd_lm if it is given a language model and its heads. `variances`
writes mitigate/data/rating_variance.csv, from which a survey computes how precise it will be. Together they take about
two minutes on one thread."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.people import scorers_of
from mitigate.load.ratings import FILTERED, RESOURCES, rated_sets
from mitigate.measure.human_ratings import (
    Components,
    components,
    detectable,
    error,
    statements_needed,
    within_relations,
)
from mitigate.score.base import default_scorers
from mitigate.score.keyword import Keyword
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.score.people import Crowd2, PeopleValid
from mitigate.score.plausibility import Plausibility, with_plausibility
from mitigate.score.regard import NgramRegard
from mitigate.tasks.crowd.training import label_unseen
from mitigate.tasks.predicted_ratings.figures import label_apart, valid_apart
from mitigate.tasks.ratings.anchors import (
    AS_THEY_ARE,
    EQUALLY,
    FIGURES,
    PARTS,
    drift_table,
    vote_shares,
)
from mitigate.tasks.ratings.anchors import described as with_word
from mitigate.tasks.ratings.answers import read_labelled_sentences
from mitigate.tasks.ratings.paper_statements import describe_rated
from mitigate.tasks.ratings.survey import POINTS
from mitigate.triples import TEMPLATES, label_columns
from mitigate.words.outside_text import counted
from mitigate.words.relations import parse_sentence

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
    parser.add_argument("--base", help="a causal language model, for crowd_lm")
    parser.add_argument("--heads", type=Path, help="crowd_lm/ of classifier=people with this model")
    given = parser.parse_args()
    rated = read_labelled_sentences(rated_sets(given.data / "humans")).rated()
    print("\n\n".join(figures(rated, scorers_of(given)) if given.part == "figures" else variances(rated)))


# The paper's two sets


def figures(rated: pl.DataFrame, scorers: Sequence[Crowd2]) -> Iterator[str]:
    """People's change, drift and what remains, by both weightings; then every measure's change beside it."""
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
    yield from beside_measures(pair, people, scorers)


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


def beside_measures(pair: pl.DataFrame, people: pl.DataFrame, scorers: Sequence[Crowd2]) -> Iterator[str]:
    """Every measure of a statement has no batch: its change is compared with what remains of people's."""
    yield "### Every measure's change beside people's"
    yield (
        "The percentage of statements that a measure labels polarised, or accepts as plausible. A measure labels the "
        "same statement alike in both sets, and so has no drift. `crowd`, `crowd2` and `people_valid` learnt from "
        "COMeT's ratings. `crowd` labels each statement by the part that left out its target, and of its texts it saw "
        "some; the others by heads that left out both. “Drift taken out” is the last column above."
    )
    rows = []
    for figure, measures in labels_of(described(pair), scorers).items():
        mine = people.filter(figure=figure).rows_by_key("weights", named=True, unique=True)
        for name, part in (("people, as rated", 0), ("people, drift taken out", 2)):
            rows.append([figure, name, *(interval(parts(mine[weights])[part]) for weights in (AS_THEY_ARE, EQUALLY))])
        for name, labels in measures.items():
            labelled = (
                pair.unique(["source", "statement"], maintain_order=True)
                .drop("label", "quality")
                .join(labels, on="statement", maintain_order="left")
            )
            found = drift_table(labelled, PAIR).filter(figure=figure).rows_by_key("weights", named=True, unique=True)
            changes = (interval(parts(found[weights])[0]) for weights in (AS_THEY_ARE, EQUALLY))
            rows.append([figure, name, *changes])
    yield table(
        [
            "",
            "measure",
            *(f"relations {w}".replace("relations relations", "relations") for w in (AS_THEY_ARE, EQUALLY)),
        ],
        rows,
    )


def labels_of(texts: pl.DataFrame, crowds: Sequence[Crowd2]) -> dict[str, dict[str, pl.DataFrame]]:
    """Figure -> measure -> its label of each statement, in the columns that people's votes have."""
    sentiment, regard = default_scorers()
    scorers = {"sentiment, `vader`": sentiment, "regard, `minilm`": regard}
    scorers |= {"regard, `ngram`": NgramRegard(), "`keyword`": Keyword()}
    labels = {name: label_column(texts["masked"], each, NOTHING_CACHED).label for name, each in scorers.items()}
    labels["`crowd`"] = label_unseen(texts, cache=NOTHING_CACHED)["crowd"].to_numpy()
    for crowd in crowds:
        column = label_columns(crowd.name, TEMPLATES[0])[0]
        labels[f"`{crowd.name}`"] = label_apart(texts, crowd)[column].to_numpy()
    people_valid = valid_apart(texts.rename({"statement": "sentence"}), PeopleValid()) > 0.5
    triples = [parse_sentence(text, in_comet=True) for text in texts["statement"]]
    named = [
        (head.replace("_", " ").lower(), relation.name, tail.lower()) for head, relation, tail in filter(None, triples)
    ]
    asked = pl.DataFrame(named, schema=["head", "relation", "tail"], orient="row")
    plausible = with_plausibility(asked, Plausibility(), NOTHING_CACHED)["judged_valid"]

    def as_votes(label: Any, quality: Any) -> pl.DataFrame:
        return texts.select("statement", pl.Series("label", label, pl.Int8), pl.Series("quality", quality, pl.Boolean))

    none = [None] * texts.height
    polarised = {name: as_votes(np.where(found == 2, 0, found), none) for name, found in labels.items()}
    valid = {"plausibility classifier": plausible, "`people_valid`": people_valid}
    return {"polarised": polarised, "valid": {name: as_votes(none, found) for name, found in valid.items()}}


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
            f"{detectable(known, 999, RATERS):.1f}",
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
