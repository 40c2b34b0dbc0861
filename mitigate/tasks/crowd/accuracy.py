"""Accuracy of classifiers against people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure import confusion
from mitigate.measure.base import TEMPLATE_PREFIX
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import keyed
from mitigate.policies import Drop
from mitigate.tasks.ratings.agreement import words_and_texts
from mitigate.triples import NEUTRAL, ROLES, TEMPLATES, fold_other, label_columns
from mitigate.words.targets import CATEGORIES

FILE = "accuracy.csv"
GENERATED = "COMeT"
"""The source with rated statements most similar to generated ones."""
ALL = "all"
SCORER = "crowd"
RATER = "one rater"
BOTH = Drop("both", ROLES)
FIGURES: dict[str, confusion.Figure] = {
    "sensitivity": confusion.sensitivity,
    "specificity": confusion.specificity,
    "kappa": confusion.kappa,
    "macro_f1": confusion.macro_f1,
    "people": confusion.truly_polarised,
    "labelled": confusion.polarised,
}
"""Figures against the majority of raters, and polarised shares: of the majority (people) and the scorer (labelled)."""
PASSED_FIGURES: dict[str, confusion.Figure] = {
    "recall": confusion.sensitivity,
    "false_alarms": confusion.false_alarms,
    "precision": confusion.precision,
    "kappa": confusion.kappa,
}
"""Figures of statements that a policy passes, against the majority of raters."""


def accuracy_table(
    labels: pl.DataFrame, intervals: Bootstrap, scorer: str = SCORER, *, over_texts: bool = False
) -> pl.DataFrame:
    """A row for each template, source and category, and for all: template, source, category, statements, polarised (the
    number by most raters), and FIGURES with _low and _high over targets, from 0 to 1; with `over_texts` over targets
    and masked texts.

    labels: rated statements (resource, category, cluster, masked, most) with the scorer's labels under both templates.
    Raters read the sentences of the resources, in the paper's wording, whatever wording is labelled."""
    sources = labels["resource"].unique(maintain_order=True)
    rows = [
        {"template": template, **names}
        | _against_people(part, label_columns(scorer, template)[0], FIGURES, intervals, over_texts)
        for template in TEMPLATES
        for names, part in parts_by(labels.rename({"resource": "source"}), source=sources, category=CATEGORIES)
        if part.height
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def passed_table(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """A row for each scorer with PASSED_FIGURES on the statements that the policy `both` passes, all sources together,
    which shows what a scorer finds beyond the filter."""
    passed = labels.filter(~BOTH.polarised())
    rows = [{"scorer": scorer, **_against_people(passed, scorer, PASSED_FIGURES, intervals)} for scorer in scorers]
    rows.append({"scorer": RATER, **_against_people(one_rater(passed), RATER, PASSED_FIGURES, intervals)})
    return pl.DataFrame(rows, infer_schema_length=None)


def one_rater(rated: pl.DataFrame) -> pl.DataFrame:
    """A row for each rating where all other raters of the statement agree: cluster, the label of the others as `most`,
    and the rating as RATER. A scorer can hardly agree more."""
    rows = [
        (cluster, others[0], vote)
        for cluster, votes in rated.select("cluster", "votes").iter_rows()
        for place, vote in enumerate(votes)
        if len(set(others := votes[:place] + votes[place + 1 :])) == 1
    ]
    return pl.DataFrame(rows, schema={"cluster": pl.String, "most": pl.Int8, RATER: pl.Int8}, orient="row")


def as_metrics(accuracy: pl.DataFrame, passed: pl.DataFrame) -> dict[str, Any]:
    """Both tables under keys: {source}/{category}/{figure}, behind neutral_template/ for that one, and
    passed/{scorer}/{figure}."""
    of_templates = accuracy.with_columns(pl.col("template").replace_strict(TEMPLATE_PREFIX))
    found = keyed("{template}{source}/{category}", of_templates.rows(named=True))
    return found | keyed("passed/{scorer}", passed.rows(named=True))


def parts_by(rows: pl.DataFrame, **columns: Iterable[str]) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
    """Yield each combination of values of the columns with its rows; ALL stands for any value."""
    for values in product(*((ALL, *names) for names in columns.values())):
        part = dict(zip(columns, values, strict=True))
        yield part, rows.filter(**{column: value for column, value in part.items() if value != ALL})


def _against_people(
    rows: pl.DataFrame, scorer: str, of: Mapping[str, confusion.Figure], intervals: Bootstrap, over_texts: bool = False
) -> dict[str, Any]:
    clusters, crossed = np.unique(rows["cluster"].to_list(), return_inverse=True)[1], list[np.ndarray]()
    if over_texts:
        clusters, crossed = np.arange(rows.height), words_and_texts(rows)
    table = confusion.confusion(rows["most"].to_numpy(), fold_other(rows[scorer].to_numpy()), clusters)
    num_polarised = int((rows["most"] != NEUTRAL).sum())
    found = confusion.with_intervals(table, of, intervals, crossed)
    return {"statements": rows.height, "polarised": num_polarised, **found}
