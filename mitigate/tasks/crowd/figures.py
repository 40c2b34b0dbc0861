"""How good the crowd classifier is on statements about targets that it has not learnt from: sensitivity and specificity
by source and group, and what it finds among statements that a policy passes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.filter import Policy
from mitigate.filter.findings import polarised
from mitigate.measure import confusion
from mitigate.measure.agreement import fold_other
from mitigate.measure.bootstrap import Bootstrap
from mitigate.metrics import TEMPLATE_PREFIX
from mitigate.tasks.agreement import words_and_texts
from mitigate.triples import NEUTRAL, ROLES, TEMPLATES, label_columns
from mitigate.words.targets import CATEGORIES

ALL = "all"
SCORER = "crowd"
RATER = "one rater"
BOTH = Policy("both", ROLES)
FIGURES: dict[str, confusion.Figure] = {
    "sensitivity": confusion.sensitivity,
    "specificity": confusion.specificity,
    "kappa": confusion.kappa,
    "macro_f1": confusion.macro_f1,
    "people": confusion.truly_polarised,
    "labelled": confusion.polarised,
}
"""Against the majority of raters; people: the share that they find polarised; labelled: that the scorer does."""
PASSED_FIGURES: dict[str, confusion.Figure] = {
    "recall": confusion.sensitivity,
    "false_alarms": confusion.false_alarms,
    "precision": confusion.precision,
    "kappa": confusion.kappa,
}
"""Of statements that a policy passes, against the majority of raters."""


def accuracy_table(
    labels: pl.DataFrame, intervals: Bootstrap, scorer: str = SCORER, *, over_texts: bool = False
) -> pl.DataFrame:
    """A row for each template, source and category, and for all: template, source, category, statements, polarised (how
    many most raters find so), and FIGURES with _low and _high over targets, from 0 to 1; over targets and masked texts
    where `over_texts`.

    labels: rated statements (resource, category, cluster, masked, most) with the scorer's labels under both templates.
    Raters read the sentences of the resources, in the paper's wording, whatever wording is labelled."""
    rows = [
        {"template": template, "source": source, "category": category}
        | _against_people(part, label_columns(scorer, template)[0], FIGURES, intervals, over_texts)
        for template in TEMPLATES
        for source, category, part in _parts(labels)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def passed_table(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """A row for each scorer with PASSED_FIGURES on the statements that the policy `both` passes, all sources together:
    what a scorer finds that the filter does not."""
    passed = labels.filter(~polarised(BOTH))
    rows = [{"scorer": scorer, **_against_people(passed, scorer, PASSED_FIGURES, intervals)} for scorer in scorers]
    rows.append({"scorer": RATER, **_against_people(one_rater(passed), RATER, PASSED_FIGURES, intervals)})
    return pl.DataFrame(rows, infer_schema_length=None)


def one_rater(rated: pl.DataFrame) -> pl.DataFrame:
    """A row for each rating where all other raters of the statement agree: cluster, the label of the others as `most`,
    and the rating as RATER. What a scorer can reach at best, more or less."""
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
    found = {
        f"{TEMPLATE_PREFIX[row['template']]}{row['source']}/{row['category']}/{name}": row[name]
        for row in accuracy.rows(named=True)
        for name in accuracy.columns[3:]
    }
    return found | {
        f"passed/{row['scorer']}/{name}": row[name] for row in passed.rows(named=True) for name in passed.columns[1:]
    }


def _parts(labels: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    sources = labels["resource"].unique(maintain_order=True).to_list()
    for source, rows in [(ALL, labels), *((source, labels.filter(resource=source)) for source in sources)]:
        yield source, ALL, rows
        for category in CATEGORIES:
            if (part := rows.filter(category=category)).height:
                yield source, category, part


def _against_people(
    rows: pl.DataFrame,
    scorer: str,
    of: Mapping[str, confusion.Figure],
    intervals: Bootstrap,
    over_texts: bool = False,
) -> dict[str, Any]:
    clusters, crossed = np.unique(rows["cluster"].to_list(), return_inverse=True)[1], list[np.ndarray]()
    if over_texts:
        clusters, crossed = np.arange(rows.height), words_and_texts(rows)
    table = confusion.confusion(rows["most"].to_numpy(), fold_other(rows[scorer].to_numpy()), clusters)
    num_polarised = int((rows["most"] != NEUTRAL).sum())
    found = confusion.with_intervals(table, of, intervals, crossed)
    return {"statements": rows.height, "polarised": num_polarised, **found}
