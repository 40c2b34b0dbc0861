"""Accuracy of classifiers against people, and shares of statements that people would find polarised: corrected by a
classifier's sensitivity and specificity, or by its probabilities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure import confusion
from mitigate.measure.agreement import fold_other
from mitigate.measure.bootstrap import Bootstrap, cluster_numbers
from mitigate.measure.confusion import Accuracy, corrected_share, share_error, standard_error
from mitigate.measure.metric_frame import MetricFrame
from mitigate.measure.quality import share_by_target
from mitigate.measure.uncertainty import mean_over_targets
from mitigate.metrics import TEMPLATE_PREFIX, bounds, harm_key, keyed
from mitigate.policies import Drop
from mitigate.score.crowd import SHIPPED
from mitigate.score.people import POLAR
from mitigate.tasks.ratings.agreement import words_and_texts
from mitigate.triples import NEUTRAL, ROLES, TEMPLATES, label_columns
from mitigate.words.targets import CATEGORIES

FILE = "accuracy.csv"
GENERATED = "COMeT"
"""The source with rated statements most similar to generated ones."""
RELATIONS = ("CapableOf", "HasProperty", "Causes")
"""Relations of the rated statements of GENERATED. Other relations have another accuracy: that of COMeT's statements
would correct ConceptNet's share, 15 % by people, to 0."""
Accuracies = Mapping[tuple[str, str], Mapping[str, Accuracy]]
"""(Scorer, template) -> the result of known_accuracy."""
RATES = ("sensitivity", "specificity")
FEWEST = 20
"""Rated statements, polarised and neutral ones each, for a figure to correct by."""
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


def known_accuracy(source: str, folder: Path | None = None, template: str = TEMPLATES[0]) -> dict[str, Accuracy]:
    """Accuracy of the classifier of a folder (None: the shipped one) on rated statements of a source with a template,
    by category; "" for all of them. Parts with fewer than FEWEST polarised or neutral statements are left out. A folder
    without accuracy.csv has none, and a file without templates, from earlier code, has the paper's alone."""
    path = (folder or SHIPPED) / FILE
    if not path.is_file():
        return {}
    table = pl.read_csv(path, glob=False)
    if "template" not in table.columns:
        table = table.with_columns(template=pl.lit(TEMPLATES[0]))
    enough = pl.min_horizontal("polarised", pl.col("statements") - pl.col("polarised")) >= FEWEST
    found = {}
    for row in table.filter(enough, template=template, source=source).rows(named=True):
        figures = ((row[name], standard_error(*(row[bound] for bound in bounds(name)))) for name in RATES)
        found["" if row["category"] == ALL else row["category"]] = Accuracy(*chain.from_iterable(figures))
    return found


def of_rated_relations(statements: pl.DataFrame) -> pl.DataFrame:
    """Select the generated statements with the relations of rated ones."""
    return statements.filter(pl.col("relation").is_in(RELATIONS))


def corrected_figures(
    tables: Mapping[str, pl.DataFrame], accuracies: Accuracies, clusters: Mapping[str, str]
) -> dict[str, float | None]:
    """Percentages of polarised statements corrected for a scorer's errors, with bounds, overall and for each category
    with an accuracy, by the keys of metrics.json.

    tables: what per_target_tables returns."""
    found: dict[str, float | None] = {}
    for (scorer, template), accuracy in accuracies.items():
        table = tables.get(label_columns(scorer, template)[0])
        for category, part in [] if table is None else MetricFrame.by_category(table):
            if category in accuracy:
                key = harm_key(scorer, "corrected", "polarised", template, category)
                found |= zip((key, *bounds(key)), _corrected(part, accuracy[category], clusters), strict=True)
    return found


def probable_figures(
    statements: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap, clusters: Mapping[str, str]
) -> dict[str, float | None]:
    """Percentages of polarised statements by the probabilities of calibrated scorers, among those of rated relations,
    with bounds over targets, overall and for each category, by the keys of metrics.json. statements: with the labels of
    {scorer}_polar of calibrated scorers (tasks.predicted_ratings.estimates)."""
    rated, found = of_rated_relations(statements), dict[str, float | None]()
    parts = {"": pl.lit(True)} | {name: pl.col("category") == name for name in rated["category"].unique().sort()}
    for scorer, template in product(scorers, TEMPLATES):
        column = label_columns(scorer + POLAR, template)[1]
        if column in statements.columns:
            for category, rows in MetricFrame(rated, parts):
                key = harm_key(scorer, "probable", "polarised", template, category)
                values = mean_over_targets(share_by_target(rows, column), clusters, intervals)
                found |= zip((key, *bounds(key)), values, strict=True)
    return found


def _corrected(table: pl.DataFrame, accuracy: Accuracy, clusters: Mapping[str, str]) -> list[float | None]:
    """The corrected percentage with its bounds; None without statements, and for figures that cannot be given."""
    counts, found = table["statements"].to_numpy().astype(float), None
    shares = (table["prejudice"] + table["favouritism"]).fill_null(0.0).to_numpy() / 100
    if counts.sum():
        error = share_error(counts * shares, counts, cluster_numbers(table, clusters))
        found = corrected_share(float(counts @ shares / counts.sum()), error, accuracy)
    return [None if np.isnan(value) else 100 * value for value in found or [np.nan] * 3]


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
