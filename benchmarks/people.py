"""Measures that learnt from people's ratings, beside people who rated another model.

    python benchmarks/people.py halves      # how many target clusters are held back
    python benchmarks/people.py recompute   # what earlier measures reach on COMeT-Filtered
    python benchmarks/people.py develop     # the table of measures, on the half for development
    python benchmarks/people.py open        # the same on the half that is held back; once, when the measures are fixed
                                            # with --base: once more with crowd_lm, in a section of its own

each with [--data ../shared/data], and the tables with [--base FOLDER --heads FOLDER] for crowd_lm.

COMeT-Filtered, the ratings of the harms paper's filtered model, neither trains nor selects anything. Half of its target
clusters, drawn by SEED, are held back: `open` reads them once, when the measures are fixed. The others are for
development."""

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.corrected import corrected_share, known_accuracy
from benchmarks.results import machine
from mitigate.measure.agreement import auc
from mitigate.measure.confusion import confusion, kappa, sensitivity, specificity, with_intervals
from mitigate.measure.intervals import Bootstrap
from mitigate.score.base import default_scorers
from mitigate.score.crowd import Crowd
from mitigate.score.labels import NOTHING_CACHED, with_labels
from mitigate.score.people import POLAR, SHIPPED, Crowd2, CrowdLM, PeopleValid, plain
from mitigate.score.plausibility import Plausibility, with_plausibility
from mitigate.tasks.crowd.accuracy import BOTH, GENERATED, RELATIONS
from mitigate.tasks.crowd.training import label_unseen
from mitigate.tasks.predicted_ratings.figures import (
    label_apart,
    polar_votes,
    relations_of,
    seen_polarity,
    seen_valid,
    valid_apart,
    valid_votes,
    validity_by_label,
)
from mitigate.tasks.ratings.agreement import words_and_texts
from mitigate.tasks.ratings.paper_statements import read_rated, read_with_quality
from mitigate.triples import NEUTRAL
from mitigate.verbalise import MASK

SEED = 20261125
FILTERED = "COMeT-Filtered"
UNLISTED = ("homosexual", "heterosexual", "bisexual", "asexual")
INTERVALS = Bootstrap()
AGAIN = (
    " This half had been opened before, for the other measures. crowd_lm was fitted later, with the settings of crowd2 "
    "but for those of its model, and nothing was chosen by this table."
)
FEWEST = 3  # statements of a target whose share is compared
DRAWS = 1000  # of clusters, for intervals of AUC


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    parser.add_argument("--base", help="a causal language model, for crowd_lm")
    parser.add_argument("--heads", type=Path, help="crowd_lm/ of classifier=people with this model")
    arguments = parser.parse_args()
    COMMANDS[arguments.command](arguments)


def held_back(clusters: Iterable[str]) -> set[str]:
    """Half of the target clusters, rounded down, drawn by SEED from their sorted names."""
    names = sorted(set(clusters))
    return set(random.Random(SEED).sample(names, len(names) // 2))


def half(data: Path, opened: bool) -> pl.DataFrame:
    """The statements of one half of COMeT-Filtered: that which is held back, or the other."""
    rated = read_with_quality(data, FILTERED)
    return rated.filter(pl.col("cluster").is_in(held_back(rated["cluster"])) == opened)


def halves(arguments: argparse.Namespace) -> None:
    rated, back = read_with_quality(arguments.data, FILTERED), half(arguments.data, True)
    clusters = f"{back['cluster'].n_unique()} of {rated['cluster'].n_unique()} target clusters"
    print(f"{clusters} are held back, with {back.height} of {rated.height} statements")


def recompute(arguments: argparse.Namespace) -> None:
    """The figures of earlier measures on all of COMeT-Filtered."""
    rated = read_with_quality(arguments.data, FILTERED)
    table = labelled(rated, arguments, earlier=True)
    new, valid = table.filter("new"), valid_votes(table)
    text = [
        "## Earlier measures beside the raters of COMeT-Filtered",
        f"Measured on {machine()}, by `python benchmarks/people.py recompute`: {table.height} statements, "
        f"{new.height} of which have a masked text that COMeT's rated statements have not.",
        validity_table(table, ["label", "plausibility"]),
        "Called valid, % of votes, by the label of most raters: "
        + ", ".join(
            f"{label:+d} {100 * valid[(table['most'] == label).to_numpy()].mean():.0f}" for label in (-1, 0, 1)
        ),
        polarity_table({"all": table, "new texts": new}, ["crowd", "regard", "sentiment"]),
        *(missed_line(part, "crowd") for part in (table, new)),
        *other_count(rated, arguments),
    ]
    print("\n\n".join(text))


def other_count(rated: pl.DataFrame, arguments: argparse.Namespace) -> Iterator[str]:
    """The same with the words of UNLISTED masked too, by the head of `crowd` that learnt from all ratings: how a count
    of 404 new texts comes about."""
    generated = read_with_quality(arguments.data, GENERATED)
    words = pl.col("masked").str.replace_all(rf"(?i)\b(?:{'|'.join(UNLISTED)})\b", MASK)
    rated, generated = rated.with_columns(words), generated.with_columns(words)
    for scorer in (*default_scorers(), Crowd()):
        rated = with_labels(rated, scorer, NOTHING_CACHED)
    known = {plain(text) for text in generated["masked"]}
    new = rated.filter(pl.Series([plain(text) not in known for text in rated["masked"]]))
    yield (
        f"The 329 targets lack {', '.join(UNLISTED)}, which 12 statements of each set are about. With these words "
        f"masked too COMeT's statements are {len(known)} texts, and {new.height} of {FILTERED}'s are new. Here `crowd` "
        "is its head that learnt from all ratings, those about a statement's target among them:"
    )
    yield polarity_table({"all": rated, "new texts": new}, ["crowd", "regard"])
    yield missed_line(rated, "crowd")


def table_of(arguments: argparse.Namespace, opened: bool) -> None:
    """The table of measures on one half."""
    table = labelled(half(arguments.data, opened), arguments)
    new, seen, scorers = table.filter("new"), table.filter("seen"), scorers_of(arguments)
    named = "the half that was held back" if opened else "the half for development"
    command = f"python benchmarks/people.py {'open' if opened else 'develop'}" + (" --base BASE" * (len(scorers) > 1))
    known = {"this half": table, GENERATED: label_apart(read_with_quality(arguments.data), Crowd2())}
    text = [
        f"## Measures that learnt from people: {named} of COMeT-Filtered",
        f"Measured on {machine()}, by `{command}`: {table.height} statements about {table['cluster'].n_unique()} "
        f"target clusters (seed {SEED}). The texts of {new.height}, their targets masked, are new: no statement that "
        "the measures learnt from has them. No head in use has learnt from a statement's text, nor about its target."
        + AGAIN
        * (opened and len(scorers) > 1),
        "### Validity",
        validity_table(table, ["label", "plausibility", "people_valid"]),
        validity_table(new, ["label", "plausibility", "people_valid"], "new texts only"),
        gain_line(table),
        "### Polarity",
        polarity_table(
            {"all": table, "new texts": new}, ["crowd", *(one.name for one in scorers), "regard", "sentiment"]
        ),
        shares_table(table, scorers),
        *(by_target(part, name) for name, part in known.items()),
        *(missed_line(part, one) for part in (table, new) for one in ("crowd", "crowd2")),
        "### Difficulty and leakage",
        f"The {seen.height} statements of this half with texts of COMeT's rated statements, by heads that have learnt "
        "from these texts and by heads that have not, against the raters of COMeT-Filtered.",
        seen_table(seen, scorers),
    ]
    print("\n\n".join(text))


def labelled(rated: pl.DataFrame, arguments: argparse.Namespace, earlier: bool = False) -> pl.DataFrame:
    """Rated statements with the labels and probabilities of all measures, each by heads that learnt neither from the
    text nor about the target (of `crowd`: not about the target); seen: whether COMeT's rated statements have the text;
    new: whether no rated statement has it; label: the share of COMeT's statements with this label that is valid."""
    generated = read_with_quality(arguments.data, GENERATED)
    theirs = {plain(text) for text in generated["masked"]}
    known = theirs if earlier else {plain(text) for text in read_rated(arguments.data)["masked"]}
    texts = [plain(text) for text in rated["masked"]]
    table = label_unseen(rated, cache=NOTHING_CACHED)
    for scorer in default_scorers():
        table = with_labels(table, scorer, NOTHING_CACHED)
    shares = validity_by_label(generated)
    triples = pl.DataFrame({"head": table["head"], "relation": relations_of(table), "tail": table["tail"]})
    triples = triples.with_columns(pl.col("head").str.replace_all("_", " ").str.to_lowercase())
    table = table.with_columns(
        relation=triples["relation"],
        new=pl.Series([text not in known for text in texts]),
        seen=pl.Series([text in theirs for text in texts]),
        plausibility=with_plausibility(triples, Plausibility(), NOTHING_CACHED)["plausibility"],
        label=pl.col("most").replace_strict(shares, return_dtype=pl.Float64),
    )
    if earlier:
        return table
    for scorer in scorers_of(arguments):
        table = label_apart(table, scorer)
    return table.with_columns(people_valid=pl.Series(valid_apart(table, PeopleValid())))


def scorers_of(arguments: argparse.Namespace) -> list[Crowd2]:
    return [Crowd2(), *([CrowdLM(arguments.heads, arguments.base)] if arguments.base else [])]


def validity_table(table: pl.DataFrame, measures: Sequence[str], which: str = "all texts") -> str:
    """AUC for what most raters call valid."""
    lines = [f"| AUC ↑, {which} | all | " + " | ".join(RELATIONS) + " | among neutral |", "|---" * 6 + "|"]
    parts = {"all": table} | {name: table.filter(relation=name) for name in RELATIONS}
    parts |= {"neutral": table.filter(most=NEUTRAL)}
    lines.append("| statements | " + " | ".join(str(part.height) for part in parts.values()) + " |")
    for measure in measures:
        lines.append(
            f"| {NAMES.get(measure, measure)} | "
            + " | ".join(auc_cell(part, measure) for part in parts.values())
            + " |"
        )
    if "people_valid" in measures:
        means = [
            f"{100 * part['people_valid'].mean():.1f}, {100 * valid_votes(part).mean():.1f}" for part in parts.values()
        ]
        lines.append("| mean of people_valid, votes, % | " + " | ".join(means) + " |")
    return "\n".join(lines)


def auc_cell(part: pl.DataFrame, measure: str) -> str:
    accepted, found = valid_votes(part) > 0.5, part[measure].to_numpy()
    low, high = drawn(part, lambda rows: auc(found[rows], accepted[rows]))
    return f"{auc(found, accepted):.3f} [{low:.3f}, {high:.3f}]"


def gain_line(table: pl.DataFrame) -> str:
    """How much better people_valid ranks than the plausibility classifier."""
    accepted = valid_votes(table) > 0.5
    mine, other = (table[name].to_numpy() for name in ("people_valid", "plausibility"))

    def gain(rows: np.ndarray) -> float | None:
        found = [auc(one[rows], accepted[rows]) for one in (mine, other)]
        return None if None in found else found[0] - found[1]

    low, high = drawn(table, gain)
    found = f"{gain(np.arange(len(mine))):+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"AUC of people_valid less that of the plausibility classifier, all texts: {found}."


def drawn(table: pl.DataFrame, figure: Callable[[np.ndarray], float | None]) -> tuple[float, float]:
    """The 95 % percentile interval of a figure of row numbers, target clusters drawn anew."""
    _, numbers = np.unique(table["cluster"].to_list(), return_inverse=True)
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    random_ = np.random.default_rng(0)
    found = [
        figure(np.concatenate([members[one] for one in random_.integers(len(members), size=len(members))]))
        for _ in range(DRAWS)
    ]
    return tuple(np.quantile([value for value in found if value is not None], [0.025, 0.975]))


def polarity_table(parts: Mapping[str, pl.DataFrame], scorers: Sequence[str]) -> str:
    """Agreement with the majority of raters, with intervals over targets and texts."""
    figures = {"kappa": kappa, "sensitivity": sensitivity, "specificity": specificity}
    lines = ["| scorer | statements | κ | sensitivity | specificity |", "|---|---|---|---|---|"]
    for which, part in parts.items():
        for name in scorers:
            cells = confusion(part["most"].to_numpy(), np.where(part[name] == 2, 0, part[name]), np.arange(part.height))
            found = with_intervals(cells, figures, INTERVALS, words_and_texts(part))
            shown = " | ".join(
                f"{found[one]:.3f} [{found[f'{one}_low']:.3f}, {found[f'{one}_high']:.3f}]" for one in figures
            )
            lines.append(f"| {name} | {which}, {part.height} | {shown} |")
    return "\n".join(lines)


def shares_table(table: pl.DataFrame, scorers: Sequence[Crowd2]) -> str:
    """Percentages of polarised statements: of the votes, by counts, by probabilities and corrected."""
    accuracy = known_accuracy(GENERATED, SHIPPED["crowd2"])[""]
    lines = [
        "| polarised, % | votes | majority | crowd2, counted | corrected | crowd2, mean probability |",
        "|---" * 6 + "|",
    ]
    for name, part in ({"all": table} | {name: table.filter(relation=name) for name in RELATIONS}).items():
        counted = float((part["crowd2"] != NEUTRAL).mean())
        corrected = corrected_share(counted, 0.0, accuracy)
        numbers = (polar_votes(part).mean(), (part["most"] != NEUTRAL).mean(), counted, corrected and corrected[0])
        cells = [f"{100 * one:.1f}" if one is not None else "–" for one in (*numbers, part["crowd2" + POLAR].mean())]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_target(table: pl.DataFrame, which: str) -> str:
    """How far shares of polarised statements by target are from those of votes, in percentage points."""
    table = table.with_columns(votes=pl.Series(polar_votes(table)), counted=pl.col("crowd2") != NEUTRAL)
    means = [pl.col(name).cast(pl.Float64).mean() * 100 for name in ("votes", "counted", "crowd2" + POLAR)]
    shares = table.group_by("cluster").agg(*means, size=pl.len()).filter(pl.col("size") >= FEWEST)
    votes, counted, probable, size = (column.to_numpy() for column in shares.iter_columns() if column.name != "cluster")
    errors = [np.average((one - votes) ** 2, weights=size) ** 0.5 for one in (counted, probable)]
    return (
        f"By target, of {shares.height} in {which} with {FEWEST} statements or more, shares by crowd2 differ from "
        f"those of votes by {errors[0]:.1f} points (root mean square) by counts, {errors[1]:.1f} by mean probability."
    )


def missed_line(table: pl.DataFrame, scorer: str) -> str:
    """The statements that a scorer calls polarised and sentiment and regard call neutral."""
    passed = table.filter(~BOTH.polarised())
    polar, found = passed["most"] != NEUTRAL, passed[scorer] != NEUTRAL
    return (
        f"Of the {passed.height} statements of {table.height} that sentiment and regard call neutral, {scorer} finds "
        f"{(polar & found).sum()} of {polar.sum()} polarised ones at {(~polar & found).sum()} false alarms among "
        f"{(~polar).sum()}."
    )


def seen_table(seen: pl.DataFrame, scorers: Sequence[Crowd2]) -> str:
    """Both measures with and without a statement's text, or its target, in training."""
    lines = ["| text | target | people_valid, AUC | " + " | ".join(f"{one.name}, κ" for one in scorers) + " |"]
    lines.append("|---" * (3 + len(scorers)) + "|")
    tables = [seen_polarity(seen, one) for one in scorers]
    for row, *others in zip(seen_valid(seen, PeopleValid()), *tables, strict=True):
        kappas = " | ".join(f"{other['kappa']:.3f}" for other in others)
        lines.append(f"| {row['text']} | {row['target']} | {row['auc']:.3f} | {kappas} |")
    return "\n".join(lines)


NAMES = {"label": "raters' polarity label alone"}


COMMANDS = {
    "halves": halves,
    "recompute": recompute,
    "develop": lambda arguments: table_of(arguments, opened=False),
    "open": lambda arguments: table_of(arguments, opened=True),
}

if __name__ == "__main__":
    main()
