"""The model cards of the classifiers that come with the project: regard, crowd, plausibility, and the measures that
learnt from people's ratings, with the figures of these for W&B."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl
import polars.selectors as cs

from mitigate.measure.results import keyed
from mitigate.report.card import Figure, model_card
from mitigate.report.scorer_reliability import ERRORS, RESOURCES
from mitigate.report.table import Column, Table, bounded, text

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
HARMS = "representational-harms"


def _card(
    template: str, name: str, figures: Iterable[Figure], train: str, content: Mapping[str, Any], **metadata: Any
) -> str:
    """The card of a classifier. train: the arguments that train it again; content: the template's variables; metadata:
    license, tags and base_model where they are not those of the crowd classifier."""
    content = {"name": name, "again": f"python -m mitigate recipe=classifier classifier={train}", **content}
    metadata = {"license": "cc-by-4.0", "tags": [HARMS], "base_model": ENCODER, **metadata}
    return model_card(f"{template}_card.md.jinja", name, "text-classification", figures, content, **metadata)


PARTS = {"test": "BERT's labels, unseen targets", "people": "Sheng et al., test"} | {
    f"{source}/{part}": f"crowd on {source}, {truth}"
    for source in RESOURCES
    for part, truth in (("majority", "majority"), ("vote", "each vote"), ("unseen", "majority, unseen targets"))
}
"""The parts that regard is measured on, in words."""


def regard(name: str, metrics: Mapping[str, float], seed: int, terms: pl.DataFrame, **tables: pl.DataFrame) -> str:
    """The card of "minilm" or "ngram". terms: its errors by identity term (measure.identity.by_term); tables: their
    summary (measure.identity.summary), and as `checked` the labels that the gate loses (tasks.regard.figures.GATE)."""
    parts = {part: title for part, title in PARTS.items() if f"{name}/{part}/kappa" in metrics}
    is_shown = (pl.col("part") == "unseen") | ((pl.col("part") == "unseen_frames") & pl.col("axis").is_not_null())
    terms = terms.filter(is_shown, number="both").sort("axis", "part", nulls_last=True, maintain_order=True)
    content = {"name": name, "parts": parts, "metrics": metrics, "errors": ERRORS, "terms": terms, **tables}
    figures = [
        Figure(title, key, words, metrics[f"{name}/{part}/{key}"])
        for part, title in parts.items()
        for key, words in (("accuracy", "accuracy"), ("macro_f1", "macro-F1"), ("kappa", "Cohen's kappa"))
    ]
    again = f"regard data.root=DIR seed={seed}"
    metadata = {"license": "cc-by-sa-4.0", "base_model": ENCODER if name == "minilm" else None}
    return _card("regard", f"regard-{name}", figures, again, content, tags=["regard", HARMS], **metadata)


def crowd(accuracy: pl.DataFrame, passed: pl.DataFrame, **content: Any) -> str:
    """The card of the crowd classifier. accuracy: a row for each template, source and category; passed: a row for each
    scorer; both with statements, polarised and figures from 0 to 1 with _low and _high. content: further variables of
    the template: settings, num_rated and num_implied, the numbers of its texts."""
    is_shown = (pl.col("category") == "all") | (pl.col("source") == "COMeT")
    content |= {
        "paper_accuracy": _accuracy_table(accuracy.filter(template="paper"), people=True),
        "neutral_accuracy": _accuracy_table(accuracy.filter(is_shown, template="neutral")),
        "passed": _passed_table(passed),
        "num_religion": accuracy.filter(source="all", category="religion", template="paper")["statements"].sum(),
    }
    return _card("crowd", "crowd", _accuracy_figures(accuracy), "crowd data.root=DIR", content)


def _accuracy_figures(accuracy: pl.DataFrame) -> Iterator[Figure]:
    """The figures over all categories, by the source of the statements."""
    for row in accuracy.filter(template="paper", category="all").iter_rows(named=True):
        for name in ("sensitivity", "specificity", "kappa"):
            yield Figure(f"rated statements, {row['source']}", name, name, row[name])


def _in_percent(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their shares from 0 to 1 in percent; kappa is no share."""
    return rows.with_columns((cs.float() - cs.contains("kappa")) * 100)


def _accuracy_table(rows: pl.DataFrame, *, people: bool = False) -> Table:
    """Sensitivity and specificity by source and category. people: with the share that people find polarised."""
    columns = [text("source", "source"), text("group", "category"), Column("statements", "statements", show=str)]
    columns += [bounded("polarised by people", "people")] if people else []
    columns += [bounded("labelled polarised", "labelled"), bounded("sensitivity", "sensitivity")]
    columns += [bounded("specificity", "specificity"), bounded("kappa", "kappa", 3)]
    return Table("", columns, _in_percent(rows))


def _passed_table(passed: pl.DataFrame) -> Table:
    polarised = "statements or ratings, polarised by people"
    columns = [
        text("scorer", lambda row: row["scorer"] if " " in row["scorer"] else f"`{row['scorer']}`"),
        Column(polarised, "{polarised} of {statements}".format_map),
        bounded("found of these", "recall"),
        bounded("false alarms, of the others", "false_alarms"),
        bounded("precision", "precision"),
    ]
    return Table("", columns, _in_percent(passed))


KEYS = {
    "validity": "{relation}/{label}",
    "seen": "seen/{text}/{target}",
    "accuracy": "accuracy/{template}/{source}/{category}",
    "shares": "shares/{source}/{part}",
    "identity": "identity/{part}/{error}",
}
"""The beginnings of the keys of each table's figures."""


def people(name: str, tables: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """The card of people_valid, or of a scorer of polarity. tables: lists of rows, as tasks.predicted_ratings.figures
    .measure_validity and measure_polarity return them."""
    content: dict[str, Any] = {"settings": settings, **tables}
    base = None if settings.get("layers") is None else ENCODER
    again = f"people data.root=DIR{' recipe.base=FOLDER' if name == 'crowd_lm' else ''}"
    if name == "people_valid":
        auc = "area under the ROC curve"
        rows = [row for row in tables["validity"] if row["relation"] == "all"]
        figures = [Figure(f"rated statements of COMeT, {row['label']}", "auc", auc, row["auc"]) for row in rows]
        return _card(name, name, figures, again, content, tags=["commonsense"], base_model=base)
    accuracy = pl.DataFrame(tables["accuracy"], infer_schema_length=None)
    content["paper_accuracy"] = _accuracy_table(accuracy.filter(template="paper"), people=True)
    return _card("polarity", name, _accuracy_figures(accuracy), again, content, base_model=base)


def figures(name: str, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Each number of the tables under a key that begins with the name."""
    found = [keyed(f"{name}/{place}", tables.get(table, ())) for table, place in KEYS.items()]
    return {key: value for part in found for key, value in part.items() if isinstance(value, int | float)}


TRIPLES = {"dev1": "dev1, on which the threshold was chosen", "dev2": "dev2", "test": "test"}


def plausibility(name: str, metrics: Mapping[str, Any], seed: int) -> str:
    """The card of a plausibility classifier, "words", "minilm" or "average"."""
    labelled = [key.split("/")[2] for key in metrics if key.startswith(f"{name}/valid/") and key.endswith("/neutral")]
    content = {"name": name, "metrics": metrics, "parts": TRIPLES, "scorers": sorted(labelled)}
    shares = [(part, metrics.get(f"{name}/{part}/accuracy")) for part in TRIPLES]
    figures = [Figure(f"ConceptNet, {part}", "accuracy", "accuracy, %", share) for part, share in shares]
    tags = ["commonsense", "conceptnet", "knowledge-base-completion"]
    again = f"plausibility data.root=DIR seed={seed}"
    return _card("plausibility", f"plausibility-{name}", figures, again, content, tags=tags, license="cc-by-sa-4.0")
