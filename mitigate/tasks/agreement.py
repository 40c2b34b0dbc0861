"""How far scorers agree with people: the harms paper's Tables 2 and 3, beside the paper's own figures and a scorer
that always says neutral."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.agreement import classification, fold_other, majority, vote_counts
from mitigate.report.proxies import ALWAYS_NEUTRAL, RESOURCES, paper
from mitigate.score.labels import label_column
from mitigate.triples import NEUTRAL, ROLES, LabelCache, Scorer
from mitigate.verbalise import mask_column

SCORERS = (*ROLES, "keyword")
PER_RATING, BY_MAJORITY = "rating", "majority"
FIGURES = {  # measure -> its heading
    "accuracy": "acc",
    "balanced_accuracy": "bal.acc",
    "macro_f1": "macroF1",
    "kappa": "kappa",
    **{
        f"{name}/{figure}": f"{name[:3]} {figure[0].upper()}"
        for name in ("favouritism", "prejudice")
        for figure in ("recall", "precision", "f1")
    },
}


def mask_rated(crowd: pl.DataFrame) -> pl.DataFrame:
    """Rated sentences (sentence) with their demographic words replaced, as column masked."""
    return crowd.with_columns(mask_column("sentence", "token").alias("masked"))


def label_rated(crowd: pl.DataFrame, scorers: Sequence[Scorer], *, cache: LabelCache) -> pl.DataFrame:
    """Rated sentences (resource, sentence, votes, masked) with a column of labels for each scorer, and for one that
    always says neutral."""
    found = [pl.Series(scorer.name, label_column(crowd["masked"], scorer, cache).label) for scorer in scorers]
    return crowd.with_columns(*found, pl.lit(NEUTRAL, dtype=pl.Int8).alias(ALWAYS_NEUTRAL))


def measure_agreement(labels: pl.DataFrame) -> dict[str, Any]:
    """{resource}/{scorer}/{rating|majority}/{figure}: against every single rating, and against the majority of a
    sentence's raters; "other" counts as neutral."""
    found: dict[str, Any] = {}
    for (resource,), rows in labels.group_by("resource", maintain_order=True):
        votes = rows["votes"].to_list()
        sizes = [len(given) for given in votes]
        ratings = np.concatenate(votes)
        most = majority(vote_counts(np.repeat(rows["sentence"].to_list(), sizes).tolist(), ratings))
        for scorer in (*SCORERS, ALWAYS_NEUTRAL):
            said = fold_other(rows[scorer].to_numpy())
            for against, figures in (
                (PER_RATING, classification(ratings, np.repeat(said, sizes))),
                (BY_MAJORITY, classification(most, said)),
            ):
                found |= {f"{resource}/{scorer}/{against}/{figure}": value for figure, value in figures.items()}
        found |= {f"{resource}/sentences": len(votes), f"{resource}/ratings": len(ratings)}
    return found


def agreement_table(metrics: dict[str, Any], resources: Iterable[str] = RESOURCES) -> pl.DataFrame:
    """A row for each resource, scorer and way of comparing, the paper's rows among them; a column for each figure."""
    stated = paper()
    rows = []
    for resource in resources:
        for scorer in (*SCORERS, ALWAYS_NEUTRAL):
            for against in (PER_RATING, BY_MAJORITY):
                figures = {name: metrics[f"{resource}/{scorer}/{against}/{name}"] for name in FIGURES}
                rows.append({"resource": resource, "scorer": scorer, "against": against, **figures})
            if (resource, scorer) in stated:
                figures = {name: stated[resource, scorer].get(name) for name in FIGURES}
                rows.append({"resource": resource, "scorer": scorer, "against": "the paper", **figures})
    return pl.DataFrame(rows, infer_schema_length=None)
