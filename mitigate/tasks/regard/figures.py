"""How good a classifier of regard is: on texts of targets that were not in training, and against the crowd's labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from mitigate.measure.agreement import classification, fold_other, majority, vote_counts
from mitigate.score.regard import labels
from mitigate.score.weights import native_dtype
from mitigate.tasks.regard.teacher import load_teacher
from mitigate.triples import NEUTRAL
from models.minilm import locate
from models.regard.minilm import MiniLMClassifier
from models.regard.ngram import NgramClassifier


class Classifier(Protocol):
    """What is measured."""

    def probabilities(self, texts: Sequence[str]) -> np.ndarray: ...


def figures(classifier: Classifier, labelled: pl.DataFrame, crowd: pl.DataFrame) -> dict[str, float | None]:
    """{test|people}/... from labelled texts (text, label, part), {resource}/{majority|vote}/... from the crowd's
    (resource, masked, votes)."""
    found: dict[str, float | None] = {}
    for part in ("test", "people"):
        texts = labelled.filter(part=part)
        found |= _under(part, texts["label"].to_numpy(), _say(classifier, texts["text"]))
    for (resource,), sentences in crowd.group_by("resource", maintain_order=True):
        sentences = sentences.with_row_index("item").with_columns(said=pl.Series(_say(classifier, sentences["masked"])))
        votes = sentences.explode("votes")
        most = majority(vote_counts(votes["item"].to_list(), votes["votes"].to_numpy()))
        found |= _under(f"{resource}/vote", votes["votes"].to_numpy(), votes["said"].to_numpy())
        found |= _under(f"{resource}/majority", most, sentences["said"].to_numpy())
    return found


def _say(classifier: Classifier, texts: pl.Series) -> np.ndarray:
    return labels(classifier.probabilities(texts.to_list())).label


def _under(place: str, wanted: np.ndarray, said: np.ndarray) -> dict[str, float | None]:
    """The figures of measure.agreement, and for comparison the accuracy of labelling every text neutral."""
    wanted, said = fold_other(wanted), fold_other(said)
    found = classification(wanted, said) | {"texts": len(wanted), "always_neutral": float((wanted == NEUTRAL).mean())}
    return {f"{place}/{key}": value if value is None else round(value, 4) for key, value in found.items()}


def measure_regard(labelled: pl.DataFrame, crowd: pl.DataFrame, *, folder: Path) -> dict[str, float | None]:
    """The figures of the teacher and of both classifiers of a folder, in the precision that scorers use."""
    saved: dict[str, Classifier] = {
        "teacher": load_teacher(folder).to(native_dtype()),
        "minilm": MiniLMClassifier.load(folder / "minilm", locate(), native_dtype()),
        "ngram": NgramClassifier.load(folder / "ngram"),
    }
    return {
        f"{name}/{key}": value
        for name, classifier in saved.items()
        for key, value in figures(classifier, labelled, crowd).items()
    }
