"""The model cards of the classifiers that come with the project: regard, crowd, plausibility, and the measures that
learnt from people's ratings, with the figures of these for W&B."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl
import polars.selectors as cs

from mitigate.metrics import keyed
from mitigate.report.card import Figure, model_card
from mitigate.report.scorer_reliability import ERRORS, RESOURCES
from mitigate.report.table import Column, Table, bounded, text

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"


def _card(
    template: str, name: str, figures: Iterable[Figure], train: str, content: Mapping[str, Any], **metadata: Any
) -> str:
    """The card of a classifier. train: the arguments that train it again; metadata: license, tags and base_model."""
    content = {"again": f"python -m mitigate recipe=classifier classifier={train}", **content}
    return model_card(f"{template}_card.md.jinja", name, "text-classification", figures, content, **metadata)


PARTS = {
    "test": "BERT's labels, unseen targets",
    "people": "Sheng et al., test",
    **{
        f"{source}/{part}": f"crowd on {source}, {truth}"
        for source in RESOURCES
        for part, truth in (("majority", "majority"), ("vote", "each vote"), ("unseen", "majority, unseen targets"))
    },
}
CELLS = {  # part and number of measure.identity, in words
    ("unseen", "both"): "unseen terms, unseen frames",
    ("unseen", "singular"): "the same, singular",
    ("unseen", "plural"): "the same, plural",
    ("unseen_terms", "both"): "unseen terms, frames to train with",
    ("unseen_frames", "both"): "terms to train with, unseen frames",
    ("seen", "both"): "terms and frames to train with",
    ("all", "both"): "all",
}


def regard(
    name: str, metrics: Mapping[str, float], seed: int, terms: pl.DataFrame, summed: pl.DataFrame, checked: pl.DataFrame
) -> str:
    """The card of "minilm" or "ngram". terms, summed: its errors on identity terms (measure.identity.by_term, summary).
    checked: the labels that the gate loses (tasks.regard.figures.GATE)."""
    parts = {part: title for part, title in PARTS.items() if f"{name}/{part}/kappa" in metrics}
    is_shown = (pl.col("part") == "unseen") | ((pl.col("part") == "unseen_frames") & pl.col("axis").is_not_null())
    content = {
        "name": name,
        "parts": parts,
        "of": lambda part, key: metrics[f"{name}/{part}/{key}"],
        "teacher": lambda key: metrics[f"teacher/test/{key}"],
        "checked": checked.rows(named=True),
        "cells": [
            (title, words, row)
            for (part, number), title in CELLS.items()
            for error, words in ERRORS.items()
            for row in summed.filter(part=part, number=number, error=error).rows(named=True)
        ],
        "terms": terms.filter(is_shown, number="both")
        .sort("axis", "part", nulls_last=True, maintain_order=True)
        .to_dicts(),
    }
    figures = [
        Figure(title, key, words, metrics[f"{name}/{part}/{key}"])
        for part, title in parts.items()
        for key, words in (("accuracy", "accuracy"), ("macro_f1", "macro-F1"), ("kappa", "Cohen's kappa"))
    ]
    return _card(
        "regard",
        f"regard-{name}",
        figures,
        f"regard data.root=DIR seed={seed}",
        content,
        license="cc-by-sa-4.0",
        tags=["regard", "representational-harms"],
        base_model=ENCODER if name == "minilm" else None,
    )


def crowd(
    accuracy: pl.DataFrame, passed: pl.DataFrame, settings: Mapping[str, Any], num_rated: int, num_implied: int
) -> str:
    """The card of the crowd classifier. accuracy: a row for each template, source and category; passed: a row for each
    scorer; both with statements, polarised and figures from 0 to 1 with _low and _high."""
    is_shown = (pl.col("category") == "all") | (pl.col("source") == "COMeT")
    content = {
        "paper_accuracy": _accuracy_table(accuracy.filter(template="paper"), people=True),
        "neutral_accuracy": _accuracy_table(accuracy.filter(is_shown, template="neutral")),
        "passed": _passed_table(passed),
        "settings": settings,
        "num_rated": num_rated,
        "num_implied": num_implied,
        "num_religion": accuracy.filter(source="all", category="religion", template="paper")["statements"].sum(),
    }
    metadata = {"license": "cc-by-4.0", "base_model": ENCODER, "tags": ["representational-harms"]}
    return _card("crowd", "crowd", _accuracy_figures(accuracy), "crowd data.root=DIR", content, **metadata)


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
    content: dict[str, Any] = {"name": name, "settings": settings, **tables}
    base = None if settings.get("layers") is None else ENCODER
    metadata: dict[str, Any] = {"license": "cc-by-4.0", "base_model": base}
    again = f"people data.root=DIR{' recipe.base=FOLDER' if name == 'crowd_lm' else ''}"
    if name == "people_valid":
        auc = "area under the ROC curve"
        rows = [row for row in tables["validity"] if row["relation"] == "all"]
        figures = [Figure(f"rated statements of COMeT, {row['label']}", "auc", auc, row["auc"]) for row in rows]
        return _card(name, name, figures, again, content, tags=["commonsense"], **metadata)
    accuracy = pl.DataFrame(tables["accuracy"], infer_schema_length=None)
    content["paper_accuracy"] = _accuracy_table(accuracy.filter(template="paper"), people=True)
    tags = ["representational-harms"]
    return _card("polarity", name, _accuracy_figures(accuracy), again, content, tags=tags, **metadata)


def figures(name: str, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Each number of the tables under a key that begins with the name."""
    found = [keyed(f"{name}/{place}", tables.get(table, ())) for table, place in KEYS.items()]
    return {key: value for part in found for key, value in part.items() if isinstance(value, int | float)}


TRIPLES = {"dev1": "dev1, on which the threshold was chosen", "dev2": "dev2", "test": "test"}
SHARES = {
    "true": "true test triples",
    "shuffled": "the same, their tails shuffled",
    "shuffled_within_relation": "the same, their tails shuffled within each relation",
    "turned_round": "the same, head and tail exchanged",
    "echo": "each of the 329 targets as head and tail at once, in every relation",
    "target": "true test triples about one of the 329 targets",
}


def plausibility(name: str, metrics: Mapping[str, Any], seed: int) -> str:
    """The card of a plausibility classifier, "words", "minilm" or "average"."""
    labelled = [key.split("/")[2] for key in metrics if key.startswith(f"{name}/valid/") and key.endswith("/neutral")]
    content = {
        "name": name,
        "classifiers": list(dict.fromkeys(key.partition("/")[0] for key in metrics)),
        "metrics": metrics,
        "parts": TRIPLES,
        "shares": SHARES,
        "polarities": ("prejudice", "neutral", "favouritism"),
        "scorers": sorted(labelled),
    }
    figures = [
        Figure(f"ConceptNet, {part}", "accuracy", "accuracy, %", metrics.get(f"{name}/{part}/accuracy"))
        for part in TRIPLES
    ]
    tags = ["commonsense", "conceptnet", "knowledge-base-completion"]
    again = f"plausibility data.root=DIR seed={seed}"
    metadata = {"license": "cc-by-sa-4.0", "base_model": ENCODER, "tags": tags}
    return _card("plausibility", f"plausibility-{name}", figures, again, content, **metadata)
