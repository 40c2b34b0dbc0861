"""The shares of statements that people would find polarised: corrected by the sensitivity and specificity of a crowd
classifier, or by its probabilities."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.correction import Accuracy, corrected_share, share_error, standard_error
from mitigate.measure.harms import overall_and_categories
from mitigate.measure.uncertainty import cluster_numbers
from mitigate.measure.validity import valid_metrics
from mitigate.metrics import ENDS, harm_key
from mitigate.score.crowd import SHIPPED
from mitigate.score.people import POLAR
from mitigate.triples import TEMPLATES, label_columns

FILE = "accuracy.csv"
GENERATED = "COMeT"
"""The source whose rated statements generated ones are most like."""
RELATIONS = ("CapableOf", "HasProperty", "Causes")
"""Those that the rated statements of GENERATED have. For other relations the accuracy is another: by that of COMeT's
statements ConceptNet's share, 15 % by people, would be corrected to 0."""
Accuracies = Mapping[tuple[str, str], Mapping[str, Accuracy]]
"""(Scorer, template) -> what known_accuracy returns."""
FEWEST = 20
"""Rated statements, polarised and neutral ones each, for a figure to correct by."""


def known_accuracy(source: str, folder: Path | None = None, template: str = TEMPLATES[0]) -> dict[str, Accuracy]:
    """What the classifier of a folder (None: the shipped one) reached on rated statements of a source with a template,
    by category; "" for all of them. Parts with fewer than FEWEST polarised or neutral statements are left out. A folder
    without accuracy.csv has none, and one from before the file had templates has them for the paper's alone."""
    path = (folder or SHIPPED) / FILE
    if not path.is_file():
        return {}
    table = pl.read_csv(path, glob=False)
    if "template" not in table.columns:
        table = table.with_columns(template=pl.lit(TEMPLATES[0]))
    rows = table.filter(
        pl.col("template") == template,
        pl.col("source") == source,
        pl.col("polarised") >= FEWEST,
        pl.col("statements") - pl.col("polarised") >= FEWEST,
    )
    return {row["category"].replace("all", ""): _accuracy(row) for row in rows.rows(named=True)}


def alike(statements: pl.DataFrame) -> pl.DataFrame:
    """The generated statements that are like the rated ones of GENERATED: of the same relations."""
    return statements.filter(pl.col("relation").is_in(RELATIONS))


def corrected_figures(
    tables: Mapping[str, pl.DataFrame], accuracies: Accuracies, clusters: Mapping[str, str]
) -> dict[str, float | None]:
    """The percentage of polarised statements corrected for a scorer's errors, with its bounds, overall and for each
    category whose accuracy is known, by the keys of metrics.json.

    tables: what per_target_tables returns."""
    found: dict[str, float | None] = {}
    for (scorer, template), accuracy in accuracies.items():
        table = tables.get(label_columns(scorer, template)[0])
        for category, part in [] if table is None else overall_and_categories(table):
            if category in accuracy:
                key = harm_key(scorer, "corrected", "polarised", template, category)
                found |= _with_bounds(key, _corrected(part, accuracy[category], clusters))
    return found


def probable_figures(
    statements: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap, clusters: Mapping[str, str]
) -> dict[str, float | None]:
    """The percentage of polarised statements by the probabilities of calibrated scorers, of those that are like the
    rated ones, with its bounds over targets, overall and for each category, by the keys of metrics.json. statements:
    with the labels of {scorer}_polar where a scorer is calibrated (tasks.people.validity)."""
    rated, found = alike(statements), dict[str, float | None]()
    parts = {"": pl.lit(True)} | {name: pl.col("category") == name for name in rated["category"].unique().sort()}
    for scorer, template in product(scorers, TEMPLATES):
        column = label_columns(scorer + POLAR, template)[1]
        if column in statements.columns:
            key = partial(harm_key, scorer, "probable", "polarised", template)
            found |= valid_metrics(rated, parts, clusters, intervals, key, column)
    return found


def _corrected(
    table: pl.DataFrame, accuracy: Accuracy, clusters: Mapping[str, str]
) -> tuple[float, float, float] | None:
    counts = table["statements"].to_numpy().astype(float)
    shares = (table["prejudice"] + table["favouritism"]).fill_null(0.0).to_numpy() / 100
    if not counts.sum():
        return None
    error = share_error(counts * shares, counts, cluster_numbers(table, clusters))
    return corrected_share(float(counts @ shares / counts.sum()), error, accuracy)


def _with_bounds(key: str, values: tuple[float, float, float] | None) -> dict[str, Any]:
    percent = [None] * len(ENDS) if values is None else [100 * value for value in values]
    return {
        key + end: None if value is None or np.isnan(value) else value for end, value in zip(ENDS, percent, strict=True)
    }


def _accuracy(row: Mapping[str, Any]) -> Accuracy:
    return Accuracy(
        row["sensitivity"],
        standard_error(row["sensitivity_low"], row["sensitivity_high"]),
        row["specificity"],
        standard_error(row["specificity_low"], row["specificity_high"]),
    )
