"""Agreement of scorers with people: the harms paper's Tables 2 and 3, beside the paper's own figures and a scorer that
labels everything neutral; and agreement with the majority of raters, with intervals over targets and texts."""

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from mitigate.load.ratings import RESOURCES
from mitigate.measure import agreement, confusion
from mitigate.measure.agreement import classification, fleiss_of, fleiss_sums, vote_counts
from mitigate.measure.base import ENDS
from mitigate.measure.identity import FALSE_POSITIVES
from mitigate.measure.intervals import Bootstrap
from mitigate.package_data import frame_of
from mitigate.score.labels import NOTHING_CACHED, label_column, text_for, with_labels
from mitigate.tasks.identity import identity_key, identity_metrics, identity_summary, mean_false_positives
from mitigate.tasks.ratings.paper_statements import most_say
from mitigate.triples import NEUTRAL, OTHER, ROLES, LabelCache, Scorer, fold_other, label_columns
from models.heads import fold_of

SCORERS = (*ROLES, "keyword")
ALWAYS_NEUTRAL, PEOPLE = "always_neutral", "people"
PER_RATING, BY_MAJORITY = "rating", "majority"
LABEL_FIGURES = [f"{name}/{one}" for name in ("favouritism", "prejudice") for one in ("recall", "precision", "f1")]
FIGURES = {  # measure -> its heading
    **{"accuracy": "acc", "balanced_accuracy": "bal.acc", "macro_f1": "macroF1", "kappa": "kappa"},
    **{name: f"{name[:3]} {name.partition('/')[2][0].upper()}" for name in LABEL_FIGURES},
}
WITH_INTERVALS: dict[str, confusion.Figure] = {
    "kappa": confusion.kappa,
    "macro_f1": confusion.macro_f1,
    "polarised": confusion.polarised,
    "sensitivity": confusion.sensitivity,
    "specificity": confusion.specificity,
}
"""Figures of a scorer's labels against the majority of raters."""
AUC, ABSTAINED = "auc", "abstained"
"""The order of a scorer's strengths (measure.agreement.area), and its share of labels "other"."""
OF_SCORER = (IDENTITY, SPEED) = ("identity_false_positives", "texts_per_second")
"""Figures of a scorer that are not of a source: its mean share of false positives on unseen identity terms, and its
speed."""
OF_PEOPLE: dict[str, confusion.Figure] = {"fleiss": fleiss_of, "polarised": confusion.truly_polarised}
"""Figures of the raters among themselves, and of their majority."""
FEWEST = 20  # statements of a part of a source
RATINGS = "ratings"
"""The source of labels that a scorer is compared with, in `learnt_from` of its configuration."""
SECONDS, FIRST_TEXTS = 1.0, 32  # a scorer labels twice as many texts until this takes so long


def label_rated(crowd: pl.DataFrame, scorers: Sequence[Scorer], *, cache: LabelCache) -> pl.DataFrame:
    """Label rated sentences (resource, sentence, votes, masked): a column of labels for each scorer, and for one that
    labels everything neutral."""
    found = [pl.Series(scorer.name, label_column(text_for(scorer, crowd), scorer, cache).label) for scorer in scorers]
    return _with_always_neutral(crowd.with_columns(*found))


def label_described(rated: pl.DataFrame, scorers: Sequence[Scorer], *, cache: LabelCache) -> pl.DataFrame:
    """Label what describe_rated returns: each scorer's labels and strengths under both templates, and the labels of a
    scorer that labels everything neutral."""
    for scorer in scorers:
        rated = with_labels(rated, scorer, cache)
    return _with_always_neutral(rated)


def measure_speed(rated: pl.DataFrame, scorers: Sequence[Scorer]) -> pl.DataFrame:
    """Measure how many distinct statements a second each scorer labels on this machine, after a first few: scorer,
    texts, texts_per_second. No cached label is used. A scorer that sends texts to an address is left out: answers may
    cost money."""
    rows = []
    for scorer in scorers:
        if getattr(scorer, "sends", False):
            continue
        texts = text_for(scorer, rated).unique(maintain_order=True)
        label_column(texts.head(FIRST_TEXTS), scorer, NOTHING_CACHED)
        size, seconds = 0, 0.0
        while seconds < SECONDS and size < len(texts):
            size, begun = max(FIRST_TEXTS, 2 * size), perf_counter()
            label_column(texts.head(size), scorer, NOTHING_CACHED)
            seconds = perf_counter() - begun
        labelled = min(size, len(texts))
        rows.append((scorer.name, labelled, labelled / seconds))
    return pl.DataFrame(rows, schema={"scorer": pl.String, "texts": pl.Int64, SPEED: pl.Float64}, orient="row")


def measure_agreement(
    labels: pl.DataFrame, scorers: Sequence[str] = SCORERS, intervals: Bootstrap | None = None
) -> dict[str, Any]:
    """{resource}/{scorer}/{rating|majority}/{figure}: against every single rating, and against the majority of a
    sentence's raters; "other" counts as neutral.

    intervals: bounds of WITH_INTERVALS, AUC and ABSTAINED over the columns cluster and masked (statements that differ
    by their target alone are one text, and get one label), and {resource}/people/{polarised|fleiss}: the share of
    sentences that most raters find polarised, and Fleiss' kappa of the raters."""
    found: dict[str, Any] = {}
    for (resource,), rows in labels.group_by("resource", maintain_order=True):
        votes = rows["votes"].to_list()
        sizes = [len(given) for given in votes]
        ratings, most = np.concatenate(votes), most_say(rows["votes"])
        for scorer in (*scorers, ALWAYS_NEUTRAL):
            label = fold_other(rows[scorer].to_numpy())
            for against, figures in (
                (PER_RATING, classification(ratings, np.repeat(label, sizes))),
                (BY_MAJORITY, classification(most, label)),
            ):
                found |= {f"{resource}/{scorer}/{against}/{figure}": value for figure, value in figures.items()}
        found |= {f"{resource}/sentences": len(votes), f"{resource}/ratings": len(ratings)}
        if intervals is not None:
            of = _with_intervals(rows, most, [*scorers, ALWAYS_NEUTRAL], intervals)
            found |= {f"{resource}/{key}": value for key, value in of.items()}
    return found


def with_text_parts(labels: pl.DataFrame) -> pl.DataFrame:
    """Append each source of rated statements once more in two parts, "COMeT, texts seen" and "COMeT, texts not seen".
    Seen texts are those where the crowd classifier that labels a statement, which left out the fold of its target,
    learnt from a rating of the same masked text. It learnt from RESOURCES. Parts of fewer than FEWEST statements are
    left out."""
    numbered = labels.with_columns(fold=pl.Series(map(fold_of, labels["cluster"]), dtype=pl.Int64))
    learnt = numbered.filter(pl.col("resource").is_in(RESOURCES)).select("masked", "fold").unique()
    folds = learnt.join(numbered.select("masked", own="fold").unique(), on="masked").filter(
        pl.col("fold") != pl.col("own")
    )
    seen = folds.select("masked", pl.col("own").alias("fold"), pl.lit(True).alias("seen")).unique()
    marked = numbered.join(seen, on=["masked", "fold"], how="left", maintain_order="left")
    name = pl.when("seen").then(pl.lit("texts seen")).otherwise(pl.lit("texts not seen"))
    parts = marked.with_columns(pl.format("{}, {}", "resource", name).alias("resource")).select(labels.columns)
    return pl.concat([labels, parts.filter(pl.len().over("resource") >= FEWEST)])


def measure_all(
    labels: pl.DataFrame, texts: pl.DataFrame, identity: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap
) -> dict[str, Any]:
    """measure_agreement of with_text_parts, and identity_metrics of what label_identity_terms (texts) and
    measure_identity_terms return."""
    measured = measure_agreement(with_text_parts(labels), scorers, intervals)
    bounded = mean_false_positives(texts, scorers, intervals)
    return measured | identity_metrics(identity_summary(identity)) | bounded


def agreement_table(
    metrics: dict[str, Any], resources: Iterable[str] = RESOURCES, scorers: Sequence[str] = SCORERS
) -> pl.DataFrame:
    """A row for each resource, scorer and kind of comparison, with the paper's rows; a column for each figure."""
    stated, rows = frame_of("paper_agreement.csv"), []  # the paper's sentiment is by VADER, its regard by another
    for resource in resources:
        for scorer in (*scorers, ALWAYS_NEUTRAL):
            about = {"resource": resource, "scorer": scorer}
            for against in (PER_RATING, BY_MAJORITY):
                figures = {name: metrics[f"{resource}/{scorer}/{against}/{name}"] for name in FIGURES}
                rows.append({**about, "against": against, **figures})
            if printed := dict(stated.filter(**about).select("measure", "value").iter_rows()):
                rows.append({**about, "against": "the paper", **{name: printed.get(name) for name in FIGURES}})
    return pl.DataFrame(rows, infer_schema_length=None)


def interval_table(
    metrics: dict[str, Any], resources: Iterable[str], scorers: Sequence[str], speed: Mapping[str, float]
) -> pl.DataFrame:
    """A row for each resource, scorer and figure with an interval, for the raters themselves, and for each scorer and
    figure of OF_SCORER, whose resource is null: resource, scorer, figure, value, low, high; from 0 to 1, but for the
    texts a second of `speed` (scorer -> texts)."""
    figures = (*WITH_INTERVALS, AUC, ABSTAINED)
    names = [(scorer, f"{scorer}/{BY_MAJORITY}", figure) for scorer in scorers for figure in figures]
    names += [(PEOPLE, PEOPLE, figure) for figure in OF_PEOPLE]
    rows: list[tuple[Any, ...]] = [
        (resource, scorer, figure, *(metrics[f"{resource}/{place}/{figure}{end}"] for end in ENDS))
        for resource in resources
        for scorer, place, figure in names
    ]
    for scorer in scorers:
        shares = [metrics[identity_key(scorer, FALSE_POSITIVES + end, "unseen")] for end in ENDS]
        rows.append((None, scorer, IDENTITY, *(None if share is None else share / 100 for share in shares)))
        rows.append((None, scorer, SPEED, speed.get(scorer), None, None))
    texts, numbers = ("resource", "scorer", "figure"), ("value", "low", "high")
    schema: dict[str, Any] = {**dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def sources(configured: Mapping[str, Any]) -> str:
    """The sources of a scorer's labels in words, by `learnt_from` and `cross_fitted` of its configuration; a scorer
    that has learnt from the ratings it is compared with is marked."""
    if not (named := configured.get("learnt_from")):
        return "not stated"
    left_out = configured.get("cross_fitted")
    how = f"cross-fitted by {left_out}" if left_out else "these very ones: its figures are too good"
    return ", ".join(f"{source} ({how})" if source == RATINGS else str(source) for source in named)


def measured_table(metrics: dict[str, Any], names: Mapping[str, str]) -> pl.DataFrame:
    """The table of data/agreement_measured.csv (resource, scorer, measure, value): figures rating by rating, and kappa
    with the majority. names: of the scorers in metrics, with their names in the configuration."""
    figures = {f"{PER_RATING}/{name}": name for name in ("accuracy", *LABEL_FIGURES)}
    figures |= {f"{BY_MAJORITY}/kappa{end}": f"{BY_MAJORITY}/kappa{end}" for end in ENDS}
    wanted = [(name, called, figures) for name, called in names.items()]
    wanted += [(ALWAYS_NEUTRAL, ALWAYS_NEUTRAL, {f"{PER_RATING}/accuracy": "accuracy"})]
    wanted += [(PEOPLE, PEOPLE, {f"fleiss{end}": f"fleiss{end}" for end in ENDS})]
    rows = [
        (resource, called, measure, metrics[f"{resource}/{name}/{key}"])
        for resource in RESOURCES
        for name, called, figures in wanted
        for key, measure in figures.items()
    ]
    schema = {**dict.fromkeys(("resource", "scorer", "measure"), pl.String), "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("value").round(3))


def _with_always_neutral(rated: pl.DataFrame) -> pl.DataFrame:
    return rated.with_columns(pl.lit(NEUTRAL, dtype=pl.Int8).alias(ALWAYS_NEUTRAL))


def _with_intervals(
    rows: pl.DataFrame, most: np.ndarray, scorers: Sequence[str], bootstrap: Bootstrap
) -> dict[str, float | None]:
    crossed, each = words_and_texts(rows), np.arange(rows.height)
    items = np.repeat(each, rows["votes"].list.len().to_numpy()).astype(str).tolist()
    counts = vote_counts(items, rows["votes"].explode().to_numpy())
    sums = {"fleiss": fleiss_sums(counts, each), "polarised": confusion.confusion(most, most, each)}
    found: dict[str, float | None] = {}
    for name, figure in OF_PEOPLE.items():
        found |= confusion.with_intervals(sums[name], {f"{PEOPLE}/{name}": figure}, bootstrap, crossed)
    for scorer in scorers:
        place, labels = f"{scorer}/{BY_MAJORITY}", rows[scorer].to_numpy()
        columns = [confusion.confusion(most, fold_other(labels), each)]
        figures = {name: _of_columns(figure, 0, 9) for name, figure in WITH_INTERVALS.items()}
        if scorer != ALWAYS_NEUTRAL:  # which has no strengths
            strength = rows[label_columns(scorer, "paper")[1]].to_numpy()
            columns += [(labels == OTHER)[:, None], agreement.level_counts(most, strength, agreement.LEVELS)]
            figures[ABSTAINED] = lambda sums: sums[..., 9] / sums[..., :9].sum(axis=-1)
            figures[AUC] = _of_columns(agreement.area, 10)
        named = {f"{place}/{name}": figure for name, figure in figures.items()}
        found |= confusion.with_intervals(np.concatenate(columns, axis=1), named, bootstrap, crossed)
        if found.get(f"{place}/{AUC}") is not None:
            found[f"{place}/{AUC}"] = float(agreement.area(agreement.level_counts(most, strength).sum(axis=0)))
    return found


def _of_columns(figure: confusion.Figure, start: int, end: int | None = None) -> confusion.Figure:
    """The figure of some columns of sums."""
    return lambda sums: figure(sums[..., start:end])


def words_and_texts(rows: pl.DataFrame) -> list[np.ndarray]:
    """Numbers of each rated statement's word and of its masked text. They are crossed: many words share a text."""
    return [np.unique(rows[column].to_list(), return_inverse=True)[1] for column in ("cluster", "masked")]
