"""Agreement with people of the measures that learnt from people, by heads that learnt neither from a statement's text
nor about its target, and by heads that did."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure import confusion
from mitigate.measure.agreement import CLASSES, auc, auc_of_a_rater
from mitigate.measure.intervals import Bootstrap
from mitigate.score.people import POLAR, VALID, Crowd2, CrowdLM, FromRatings, PeopleValid, plain, polarity
from mitigate.tasks.crowd.accuracy import ALL, FIGURES, GENERATED, accuracy_table, parts_by
from mitigate.tasks.crowd.training import VOTES, vote_shares
from mitigate.tasks.identity import identity_summary, label_identity_terms, measure_identity_terms
from mitigate.tasks.predicted_ratings.training import half_of, valid_votes
from mitigate.triples import NEUTRAL, TEMPLATES, label_columns
from mitigate.words.relations import RATED, parse_sentence
from models import hub
from models.heads import LABELS

RATERS = 3  # of a statement; three statements have six, and the first three count


def label_apart(rated: pl.DataFrame, crowd: Crowd2) -> pl.DataFrame:
    """Label rated statements (masked, masked_neutral, cluster) by heads that learnt neither from the text nor about the
    target: labels and strengths of a scorer under both templates, and {scorer}_polar, the probability of not being
    neutral."""
    for template, column in zip(TEMPLATES, ("masked", "masked_neutral"), strict=True):
        found = crowd.probabilities(rated[column].to_list(), rated["cluster"].to_list())
        names, labels = label_columns(crowd.name, template), polarity(found, crowd.heads)
        rated = rated.with_columns(pl.Series(name, part) for name, part in zip(names, labels, strict=True))
        if template == TEMPLATES[0]:
            rated = rated.with_columns(pl.Series(crowd.name + POLAR, 1 - found[:, LABELS.index("neutral")]))
    return rated


def valid_apart(rated: pl.DataFrame, people: PeopleValid) -> np.ndarray:
    """The probability of being valid, (n,), of rated statements (sentence, masked, cluster), by heads that learnt
    neither from the text nor about the target."""
    return people.probabilities(*(rated[name].to_list() for name in ("sentence", "masked", "cluster")))


def validity_table(rated: pl.DataFrame, found: np.ndarray, shares: Mapping[int, float]) -> pl.DataFrame:
    """A row for each relation, and for all, and each label of most raters, and all: relation, label, statements; the
    area under the ROC curve against the majority on validity of the probabilities found (n,) (auc), of `shares`, the
    labels alone (polarity; validity_by_label), and of one rater against two others (rater); and in percent the valid
    votes (valid) and the mean probability (found)."""
    label, alone = (pl.col("most").replace_strict(dict(values)) for values in (CLASSES, shares))
    table = rated.with_columns(relation=relations_of(rated), label=label, alone=alone.cast(pl.Float64))
    table = table.with_columns(found=found, valid=valid_votes(rated))
    rows = []
    for names, part in parts_by(table, relation=RATED, label=CLASSES.values()):
        accepted = part["valid"].to_numpy() > 0.5
        votes = np.array([quality[:RATERS] for quality in part["quality"]], dtype=bool).reshape(-1, RATERS)
        row: dict[str, Any] = {**names, "statements": part.height}
        row |= {"auc": auc(part["found"].to_numpy(), accepted), "polarity": auc(part["alone"].to_numpy(), accepted)}
        row |= {"rater": auc_of_a_rater(votes)}
        for name in ("valid", "found"):
            row[name] = 100 * float(part[name].to_numpy().mean()) if part.height else None
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def seen_valid(rated: pl.DataFrame, people: PeopleValid) -> list[dict[str, Any]]:
    """AUC on validity by the heads of by_seen: auc, and neutral (the AUC among statements that most raters call
    neutral)."""
    accepted, neutral = valid_votes(rated) > 0.5, rated["most"].to_numpy() == NEUTRAL
    rows = []
    for names, probabilities in by_seen(rated, people, statement=rated["sentence"].to_list()):
        found = probabilities[:, VALID.index("valid")]
        rows.append(names | {"auc": auc(found, accepted), "neutral": auc(found[neutral], accepted[neutral])})
    return rows


def seen_polarity(rated: pl.DataFrame, crowd: Crowd2) -> list[dict[str, Any]]:
    """Agreement on polarity with the majority of raters by the heads of by_seen: Cohen's kappa, sensitivity,
    specificity."""
    most, together = rated["most"].to_numpy(), np.zeros(rated.height, dtype=int)
    rows = []
    for names, found in by_seen(rated, crowd):
        table = confusion.confusion(most, polarity(found, crowd.heads).label, together)[0]
        rows.append(names | {name: float(FIGURES[name](table)) for name in ("kappa", "sensitivity", "specificity")})
    return rows


def by_seen(
    rated: pl.DataFrame, scorer: FromRatings, **texts: Sequence[str]
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yield the probabilities (n, columns) by heads that have, and have not, learnt from a statement's text or about
    its target, each after its names: text and target, seen or unseen. texts: kinds that the scorer reads besides
    the masked one."""
    read, heads = scorer.features({"masked": rated["masked"].to_list(), **texts}), scorer.heads
    folds = heads.folds_of_texts([plain(text) for text in rated["masked"]])
    subjects = heads.folds_of(rated["cluster"].to_list())
    for text, target in product(("unseen", "seen"), repeat=2):
        chosen = (subjects if target == "unseen" else ~subjects, folds if text == "unseen" else ~folds)
        yield {"text": text, "target": target}, heads.mean(read, *chosen)


def calibration_table(shares: np.ndarray, found: np.ndarray, bins: int = 5) -> pl.DataFrame:
    """A row for each bin of equally many statements, by their probability: statements, and in percent the mean
    probability (found) and the mean share of raters (rated)."""
    parts = np.array_split(np.argsort(found, kind="stable"), min(bins, len(found)))
    rows = [(len(part), 100 * found[part].mean(), 100 * shares[part].mean()) for part in parts]
    return pl.DataFrame(rows, schema=["statements", "found", "rated"], orient="row")


def validity_by_label(rated: pl.DataFrame) -> dict[int, float]:
    """The share of votes that call statements valid, by the label of most raters."""
    table = rated.with_columns(valid=valid_votes(rated)).group_by("most").agg(pl.col("valid").mean())
    return dict(table.sort("most").iter_rows())


def polar_votes(rated: pl.DataFrame) -> np.ndarray:
    """The share of raters who do not call each statement neutral, (n,)."""
    return 1 - vote_shares(rated)[:, VOTES.index(NEUTRAL)]


def relations_of(rated: pl.DataFrame) -> pl.Series:
    """The relation of each rated statement of COMeT's."""
    found = [parse_sentence(sentence, in_comet=True) for sentence in rated["sentence"]]
    return pl.Series("relation", [parts[1].name if parts else None for parts in found], dtype=pl.String)


def measure_validity(rated: pl.DataFrame, *, base: str | None = None, folder: Path) -> dict[str, Any]:
    """Tables of people_valid as lists of rows: validity, seen and calibration. folder: of people_valid/ with the heads,
    which use the language model `base` or MiniLM. Of heads of a half of the targets, `seen` is of that half: no head
    has seen the other."""
    people = PeopleValid(folder / PeopleValid.name, None if base is None else hub.locate(base, seq2seq=False))
    found = valid_apart(rated, people)
    return {
        "validity": validity_table(rated, found, validity_by_label(rated)).to_dicts(),
        "seen": seen_valid(half_of(rated, people.half), people),
        "calibration": calibration_table(valid_votes(rated), found).to_dicts(),
    }


def measure_polarity(
    rated: pl.DataFrame, intervals: Bootstrap, *, scorer: str, base: str | None = None, folder: Path
) -> dict[str, Any]:
    """Tables of a scorer of polarity as lists of rows: accuracy, seen, calibration, shares and identity. folder: of the
    folder `scorer` with the heads."""
    crowd = Crowd2(folder / scorer) if base is None else CrowdLM(folder / scorer, base)
    labels = label_apart(rated, crowd)
    generated = labels.filter(resource=GENERATED)
    terms = measure_identity_terms(label_identity_terms([crowd]), [scorer], intervals)
    accuracy = accuracy_table(labels, intervals, scorer, over_texts=True)
    return {
        "accuracy": accuracy.with_columns(pl.col(pl.Float64).round(4)).to_dicts(),
        "seen": seen_polarity(generated, crowd),
        "calibration": calibration_table(polar_votes(generated), generated[scorer + POLAR].to_numpy()).to_dicts(),
        "shares": share_table(labels, scorer).to_dicts(),
        "identity": identity_summary(terms).filter(pl.col("number") == "both").to_dicts(),
    }


def share_table(labels: pl.DataFrame, name: str) -> pl.DataFrame:
    """Percentages of polarised statements in parts of rated ones: source, part, statements, and the percentages by
    votes (people), by the scorer's labels (counted) and by its mean probability (probable)."""
    table = labels.with_columns(votes=polar_votes(labels), relation=relations_of(labels))
    rows = []
    for (source,), part in table.group_by("resource", maintain_order=True):
        ways = ["category", "relation"] if source == GENERATED else ["category"]
        groups = [(str(one), of) for way in ways for (one,), of in part.group_by(way, maintain_order=True)]
        for of, group in [(ALL, part), *groups]:
            means = (group["votes"], group[name] != NEUTRAL, group[name + POLAR])
            shares = (100 * column.cast(pl.Float64).to_numpy().mean() for column in means)
            rows.append((source, of, group.height, *shares))
    return pl.DataFrame(rows, schema=["source", "part", "statements", "people", "counted", "probable"], orient="row")
