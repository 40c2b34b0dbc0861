"""Choosing among rated statements, beside people's own votes: half of each relation kept, by the order of `critic`.

    python benchmarks/people_abstain.py [--data ../shared/data]

No classifier is among the figures. Statements that sentiment and regard call neutral come first, and of these the ones
that people would most probably call valid; people_valid learnt from COMeT's ratings alone, here by heads that learnt
neither from the statement's text nor about its target. The second table has the valid votes of neutral statements under
the paper's filter, without the drift between the two batches of raters. It takes two minutes."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.experiment_tables import markdown
from mitigate.library import scorer as scorer_of
from mitigate.load.ratings import read_rated
from mitigate.measure.intervals import Bootstrap, resampled_sums
from mitigate.policies import Drop
from mitigate.score.labels import NOTHING_CACHED, with_labels
from mitigate.score.people import PeopleValid
from mitigate.studies.classifier import valid_votes
from mitigate.triples import NEUTRAL, ROLES
from mitigate.words.relations import RATED as RELATIONS
from mitigate.words.relations import parse_sentence

GENERATED = "COMeT"
FILTERED = "COMeT-Filtered"
BOTH = Drop("both_neutral", scorers=["sentiment", "regard"], template="neutral")
TEXTS = ("sentence", "masked", "cluster")
DRAWS, RANDOM = 2000, 200  # resamples of targets; random halves
FIGURES = ("polarised", "valid")
EXPLORATORY = (
    "Exploratory: statements are chosen across prompts and among first beams, where a policy chooses among the tails "
    f"of one prompt; and {FILTERED} had been opened before."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    data = parser.parse_args().data
    sets = {name: rated(data, name) for name in (GENERATED, FILTERED)}
    text = [
        "## Half of the rated statements, chosen as `critic` chooses",
        EXPLORATORY,
        "People's votes in percent, [95 % intervals over clusters of targets, the choice fixed]. *Random*: the mean of "
        f"{RANDOM} random halves of each relation. *Standardised*: each category of targets weighs as much as among "
        "all statements.",
        markdown(
            ["set", "votes", "all", "chosen", "change", "random", "standardised, change"],
            [row for name, rows in sets.items() for row in chosen_rows(name, rows)],
        ),
        "Share of each category's statements that is kept, %:",
        category_table(sets),
        "### Valid votes of neutral statements under the paper's filter",
        "Neutral statements of each set, each relation a third. *Drift*: the change on those whose statement "
        f"stands in both sets, which filtering did not change. From {GENERATED} to {FILTERED}, points.",
        filter_table(sets),
    ]
    print("\n\n".join(text))


def rated(data: Path, name: str) -> pl.DataFrame:
    """A set's statements: relation, category, cluster, polarised and valid (shares of votes), neutral by both scorers,
    probable (that people call it valid), and kept."""
    rows = read_rated(data, [name])
    for scorer in map(scorer_of, ROLES):
        rows = with_labels(rows, scorer, NOTHING_CACHED)
    rows = rows.with_columns(
        relation_of(rows),
        neutral=~BOTH.polarised(),
        polarised=pl.Series([np.mean([vote != NEUTRAL for vote in votes]) for votes in rows["votes"]]),
        valid=pl.Series(valid_votes(rows)),
        probable=pl.Series(PeopleValid().probabilities(*(rows[name].to_list() for name in TEXTS))),
    )
    order = pl.struct(~pl.col("neutral"), -pl.col("probable")).rank("ordinal").over("relation")
    return rows.with_columns(kept=order <= pl.len().over("relation") // 2, category=pl.col("category").fill_null("–"))


def relation_of(rows: pl.DataFrame) -> pl.Series:
    """The relation of each rated statement of COMeT's."""
    found = [parse_sentence(sentence) for sentence in rows["sentence"]]
    return pl.Series("relation", [parts[1].name if parts else None for parts in found], dtype=pl.String)


def chosen_rows(name: str, rows: pl.DataFrame) -> list[list[str]]:
    kept = rows["kept"].to_numpy()
    found = []
    for figure in FIGURES:
        votes = rows[figure].to_numpy() * 100
        everything, ours = (drawn(rows, weighted(votes, part)) for part in (np.ones(len(votes)), kept))
        change = drawn(rows, lambda w, v=votes: weighted(v, kept)(w) - weighted(v, np.ones(len(v)))(w))
        level = drawn(rows, standardised(rows, votes, kept))
        found.append([name, figure, *map(interval, (everything, ours, change))])
        found[-1] += [f"{at_random(rows, votes):.1f}", interval(level)]
    return found


Figure = Callable[[np.ndarray], float]
"""A figure of rows' weights (rows,)."""


def weighted(votes: np.ndarray, part: np.ndarray) -> Figure:
    return lambda weights: float(np.average(votes, weights=weights * part))


def standardised(rows: pl.DataFrame, votes: np.ndarray, kept: np.ndarray) -> Figure:
    """The change of a choice if it kept the same share of each category."""
    codes = rows["category"].rank("dense").to_numpy() - 1

    def change(weights: np.ndarray) -> float:
        sums = [np.bincount(codes, weights * part) for part in (np.ones(len(votes)), kept, kept * votes)]
        there = sums[1] > 0  # a resample may keep none of a category
        level = np.average(sums[2][there] / sums[1][there], weights=sums[0][there])
        return float(level - np.average(votes, weights=weights))

    return change


def at_random(rows: pl.DataFrame, votes: np.ndarray) -> float:
    """The mean figure of random halves of each relation."""
    chance, codes = np.random.default_rng(0), rows["relation"].to_numpy()
    found = []
    for _ in range(RANDOM):
        halves = [np.flatnonzero(codes == name) for name in RELATIONS]
        found.append(votes[np.concatenate([chance.choice(part, len(part) // 2, replace=False) for part in halves])])
    return float(np.mean(np.concatenate(found)))


def drawn(rows: pl.DataFrame, figure: Figure) -> tuple[float, float, float]:
    """A figure and its 95 % percentile interval over clusters of targets."""
    codes = rows["cluster"].rank("dense").to_numpy() - 1
    found = [figure(counts[codes]) for counts in resampled_sums(np.eye(codes.max() + 1), Bootstrap(resamples=DRAWS))]
    low, high = np.nanquantile(found, [0.025, 0.975])
    return figure(np.ones(len(codes))), float(low), float(high)


def interval(found: tuple[float, float, float]) -> str:
    value, low, high = found
    return f"{value:.1f} [{low:.1f}, {high:.1f}]".replace("-", "−")


def category_table(sets: dict[str, pl.DataFrame]) -> str:
    lines = []
    for name, rows in sets.items():
        shares = rows.group_by("category").agg(pl.len(), kept=100 * pl.col("kept").mean()).sort("category")
        lines += [[name, one, str(size), f"{kept:.1f}"] for one, size, kept in shares.iter_rows()]
    return markdown(["set", "category", "statements", "kept, %"], lines)


def filter_table(sets: dict[str, pl.DataFrame]) -> str:
    """The change of valid votes, and of the classifier's probabilities, among neutral statements, by both ways to call
    a statement neutral."""
    shared = set.intersection(*(set(rows["sentence"]) for rows in sets.values()))
    columns = ["sentence", "relation", "cluster", "valid", "probable"]
    lines = []
    for way, neutral in {"most raters": pl.col("most") == NEUTRAL, "sentiment and regard": pl.col("neutral")}.items():
        sides = [rows.filter(neutral).select(columns) for rows in sets.values()]
        both = pl.concat([side.with_columns(side=pl.lit(place)) for place, side in enumerate(sides)])
        codes = both.select(pl.struct("side", "relation").rank("dense")).to_series().to_numpy() - 1
        anchor = both["sentence"].is_in(list(shared)).to_numpy().astype(float)
        for column, name in (("valid", "people's votes"), ("probable", "people_valid, mean probability")):
            change = by_relation(both[column].to_numpy() * 100, codes)
            parts: list[Figure] = [
                change,
                lambda w, of=change, a=anchor: of(w * a),
                lambda w, of=change, a=anchor: of(w) - of(w * a),
            ]
            cells = [interval(drawn(both, part)) for part in parts]
            lines.append([name, way, " and ".join(str(side.height) for side in sides), *cells])
    return markdown(["valid", "neutral by", "statements", "as rated", "drift", "beyond drift"], lines)


def by_relation(votes: np.ndarray, codes: np.ndarray) -> Figure:
    """The change from the first set to the second, each relation a third; codes: 0 to 2 of the first, 3 to 5."""

    def change(weights: np.ndarray) -> float:
        with np.errstate(invalid="ignore"):  # a resample may have no anchor of a relation
            means = np.bincount(codes, weights * votes, 6) / np.bincount(codes, weights, 6)
        return float((means[3:] - means[:3]).mean())

    return change


if __name__ == "__main__":
    main()
