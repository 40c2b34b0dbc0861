"""The model cards of the classifiers that come with the project: regard, crowd, plausibility, and the measures that
learnt from people's ratings, with the figures of these for W&B."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from mitigate.metrics import keyed
from mitigate.report.card import Figure, model_card
from mitigate.report.scorer_reliability import ERRORS, RESOURCES
from mitigate.report.table import Column, Table, bounded, text

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
ROUNDING = "On another kind of processor sums round otherwise, so that single labels may differ."
BY_SEED = "The same seed gives the same classifier on the same kind of processor."


def _card(
    template: str,
    name: str,
    figures: Iterable[Figure],
    content: Mapping[str, Any],
    again: str,
    metadata: Mapping[str, Any],
) -> str:
    """The card of a classifier. content: title, note (on training it again), and what the template needs; again: the
    arguments that train it; metadata: license, tags and base_model."""
    content = {"again": f"python -m mitigate recipe=classifier classifier={again}", **content}
    return model_card(f"{template}_card.md.jinja", name, "text-classification", figures, content, **metadata)


TITLES = {"minilm": "all-MiniLM-L6-v2", "ngram": "n-grams"}
WHAT = {
    "minilm": "Layers of the encoder all-MiniLM-L6-v2 (config.json says which) with a low-rank change and a linear "
    "head, and before them a gate that passes what is plainly neutral; the encoder (Apache-2.0) is apart.",
    "ngram": "A linear model of hashed word and character n-grams, for tens of millions of texts.",
}
LEARNT = {
    "minilm": "eight of ten for training (one of these held out while settings were chosen), two for testing.",
    "ngram": "seven of ten for training, one to set the offsets of the logits, two for testing.",
}
PARTS = {
    "test": "BERT's labels, unseen targets",
    "people": "Sheng et al., test",
    **{
        f"{source}/{part}": f"crowd on {source}, {said}"
        for source in RESOURCES
        for part, said in (("majority", "majority"), ("vote", "each vote"), ("unseen", "majority, unseen targets"))
    },
}
CELLS = {  # part and number of measure.identity: what it is
    ("unseen", "both"): "unseen terms, unseen frames",
    ("unseen", "singular"): "the same, singular",
    ("unseen", "plural"): "the same, plural",
    ("unseen_terms", "both"): "unseen terms, frames to train with",
    ("unseen_frames", "both"): "terms to train with, unseen frames",
    ("seen", "both"): "terms and frames to train with",
    ("all", "both"): "all",
}
TEST_FRAMES = ("unseen", "unseen_frames")  # parts; of unseen terms, and of those to train with


def regard(
    name: str, metrics: Mapping[str, float], seed: int, terms: pl.DataFrame, summed: pl.DataFrame, checked: pl.DataFrame
) -> str:
    """The card of "minilm" or "ngram". terms, summed: its errors on identity terms (measure.identity.by_term, summary).
    checked: the labels that the gate loses (tasks.regard.figures.GATE)."""
    parts = {part: title for part, title in PARTS.items() if f"{name}/{part}/kappa" in metrics}
    on_test_frames = terms.filter(pl.col("part").is_in(TEST_FRAMES), pl.col("number") == "both")
    named = on_test_frames.filter(pl.col("axis").is_not_null() | (pl.col("part") == TEST_FRAMES[0]))
    content = {
        "title": f"Regard by {TITLES[name]}",
        "note": f"DIR holds regard/, humans/ and conceptnet100k/. {BY_SEED}",
        "name": name,
        "what": WHAT[name],
        "learnt": LEARNT[name],
        "parts": parts,
        "of": lambda part, key: metrics[f"{name}/{part}/{key}"],
        "teacher": lambda key: metrics[f"teacher/test/{key}"],
        "checked": checked.rows(named=True),
        "cells": [
            (title, said, row)
            for cell, title in CELLS.items()
            for error, said in ERRORS.items()
            for row in summed.filter(part=cell[0], number=cell[1], error=error).rows(named=True)
        ],
        "terms": named.sort("axis", "part", nulls_last=True, maintain_order=True).rows(named=True),
    }
    figures = [
        Figure(title, key, said, metrics[f"{name}/{part}/{key}"])
        for part, title in parts.items()
        for key, said in (("accuracy", "accuracy"), ("macro_f1", "macro-F1"), ("kappa", "Cohen's kappa"))
    ]
    metadata = {"license": "cc-by-sa-4.0", "tags": ["regard", "representational-harms"]}
    metadata |= {"base_model": ENCODER} if name == "minilm" else {}
    return _card("regard", f"regard-{name}", figures, content, f"regard data.root=DIR seed={seed}", metadata)


def crowd(
    accuracy: pl.DataFrame, passed: pl.DataFrame, settings: Mapping[str, Any], num_rated: int, num_implied: int
) -> str:
    """The card of the crowd classifier. accuracy: a row for each template, source and category; passed: a row for each
    scorer; both with statements, polarised and figures from 0 to 1 with _low and _high."""
    rows = accuracy.rows(named=True)
    religion = [row["statements"] for row in rows if (row["source"], row["category"]) == ("all", "religion")]
    neutral = [
        row for row in rows if row["template"] == "neutral" and (row["category"] == "all" or row["source"] == "COMeT")
    ]
    note = "Nothing is drawn at random: the same data gives the same classifier on the same kind of processor."
    content = {
        "title": "Crowd: polarity of a statement about a group, learnt from people alone",
        "note": f"DIR holds humans/ and sbic/. {note}",
        "paper_accuracy": _accuracy_table(_with_template(rows, "paper"), people=True),
        "neutral_accuracy": _accuracy_table(neutral, people=False),
        "passed": _passed_table(passed),
        "settings": settings,
        "num_rated": num_rated,
        "num_implied": num_implied,
        "num_religion": religion[0] if religion else 0,
    }
    metadata = {"license": "cc-by-4.0", "base_model": ENCODER, "tags": ["representational-harms"]}
    return _card("crowd", "crowd", _accuracy_figures(rows), content, "crowd data.root=DIR", metadata)


def _with_template(rows: Iterable[Mapping[str, Any]], template: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["template"] == template]


def _accuracy_figures(rows: Iterable[Mapping[str, Any]]) -> Iterator[Figure]:
    """The figures over all categories, by the source of the statements."""
    for row in _with_template(rows, "paper"):
        if row["category"] == "all":
            for name in ("sensitivity", "specificity", "kappa"):
                yield Figure(f"rated statements, {row['source']}", name, name, row[name])


def _in_percent(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its shares from 0 to 1 in percent; kappa is no share."""
    shares = {key: 100 * value for key, value in row.items() if isinstance(value, float) and "kappa" not in key}
    return {**row, **shares}


def _accuracy_table(rows: Iterable[Mapping[str, Any]], *, people: bool) -> Table:
    """Sensitivity and specificity by source and category. people: with the share that people find polarised."""
    columns = [text("source", "source"), text("group", "category"), Column("statements", "statements", show=str)]
    columns += [bounded("polarised by people", "people")] if people else []
    columns += [bounded("labelled polarised", "labelled"), bounded("sensitivity", "sensitivity")]
    columns += [bounded("specificity", "specificity"), bounded("kappa", "kappa", 3)]
    return Table("", columns, map(_in_percent, rows))


def _passed_table(passed: pl.DataFrame) -> Table:
    polarised = "statements or ratings, polarised by people"
    columns = [
        text("scorer", lambda row: row["scorer"] if " " in row["scorer"] else f"`{row['scorer']}`"),
        Column(polarised, lambda row: f"{row['polarised']} of {row['statements']}"),
        bounded("found of these", "recall"),
        bounded("false alarms, of the others", "false_alarms"),
        bounded("precision", "precision"),
    ]
    return Table("", columns, map(_in_percent, passed.rows(named=True)))


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
    is_validity = name == "people_valid"
    accuracy = tables.get("accuracy", ())
    valid = [row for row in tables.get("validity", ()) if row["relation"] == "all"]
    title = f"{name.capitalize()}: polarity of a statement about a group, learnt from people's ratings"
    if is_validity:
        title = "People-valid: whether people would call a statement about a group valid"
    content = {
        "title": title,
        "note": f"The search for each head has at most {settings['steps']} steps. {ROUNDING}",
        "name": name,
        "settings": settings,
        "paper_accuracy": _accuracy_table(_with_template(accuracy, "paper"), people=True),
        **tables,
    }
    auc = "area under the ROC curve"
    figures = [Figure(f"rated statements of COMeT, {row['label']}", "auc", auc, row["auc"]) for row in valid]
    again = f"people data.root=DIR{' recipe.base=FOLDER' if name == 'crowd_lm' else ''}"
    template = name if is_validity else "polarity"
    metadata = {"license": "cc-by-4.0", "tags": ["commonsense" if is_validity else "representational-harms"]}
    metadata |= {} if settings.get("layers") is None else {"base_model": ENCODER}
    return _card(template, name, [*figures, *_accuracy_figures(accuracy)], content, again, metadata)


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
    titles = {"minilm": "Plausibility by all-MiniLM-L6-v2", "words": "Plausibility by words"}
    note = "DIR holds conceptnet100k/; without it the files are downloaded."
    content = {
        "title": titles.get(name, "Plausibility"),
        "note": f"{note} {BY_SEED.replace('classifier', 'network')}",
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
    metadata = {"license": "cc-by-sa-4.0", "base_model": ENCODER, "tags": tags}
    again = f"plausibility data.root=DIR seed={seed}"
    return _card("plausibility", f"plausibility-{name}", figures, content, again, metadata)
