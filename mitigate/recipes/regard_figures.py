"""How good a classifier of regard is: on texts of targets it has not met, and beside what people say."""

from typing import Any, Protocol

import numpy as np
import polars as pl
from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support

from mitigate.score.regard import labels
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

CLASSES = {"prejudice": PREJUDICE, "neutral": NEUTRAL, "favouritism": FAVOURITISM}


class Classifier(Protocol):
    """What is measured."""

    def probabilities(self, texts: list[str]) -> np.ndarray: ...


def figures(classifier: Classifier, labelled: pl.DataFrame, crowd: pl.DataFrame) -> dict[str, float]:
    """{test|people}/... from labelled texts (text, label, part) and {resource}/{majority|vote}/... from the crowd's
    (resource, masked, votes)."""
    found: dict[str, float] = {}
    for part in ("test", "people"):
        texts = labelled.filter(part=part)
        said = labels(classifier.probabilities(texts["text"].to_list())).label
        found |= {f"{part}/{key}": value for key, value in agreement(texts["label"].to_numpy(), said).items()}
    for (resource,), sentences in crowd.group_by("resource", maintain_order=True):
        said = labels(classifier.probabilities(sentences["masked"].to_list())).label
        votes = sentences["votes"].to_list()
        each = agreement(np.concatenate(votes), np.repeat(said, [len(vote) for vote in votes]))
        whole = agreement(np.array([majority(vote) for vote in votes]), said)
        found |= {f"{resource}/vote/{key}": value for key, value in each.items()}
        found |= {f"{resource}/majority/{key}": value for key, value in whole.items()}
    return found


def agreement(wanted: np.ndarray, said: np.ndarray) -> dict[str, float]:
    """Accuracy, macro-F1, Cohen's kappa, and precision, recall and F1 of each class; `other` counts as neutral."""
    wanted, said = (np.where(label == OTHER, NEUTRAL, label) for label in (wanted, said))
    by_class = precision_recall_fscore_support(wanted, said, labels=list(CLASSES.values()), zero_division=0)
    found: dict[str, Any] = {
        "texts": len(wanted),
        "accuracy": accuracy_score(wanted, said),
        "macro_f1": by_class[2].mean(),
        "kappa": cohen_kappa_score(wanted, said),
        "always_neutral": (wanted == NEUTRAL).mean(),
    }
    for name, values in zip(("precision", "recall", "f1"), by_class[:3], strict=True):
        found |= {f"{name}/{label}": value for label, value in zip(CLASSES, values, strict=True)}
    return {key: round(float(value), 4) for key, value in found.items()}


def majority(votes: list[int]) -> int:
    """What more people said than anything else; neutral when there is no such label."""
    counts = sorted(((votes.count(label), label) for label in CLASSES.values()), reverse=True)
    return NEUTRAL if counts[0][0] == counts[1][0] else counts[0][1]
