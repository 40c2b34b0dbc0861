"""How good a classifier of regard is: on texts of targets it has not met, and beside what people say."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import polars as pl

from mitigate.measure.agreement import classification, fold_other, majority, vote_counts
from mitigate.score.regard import labels
from mitigate.triples import NEUTRAL


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
    """The figures of measure.agreement, and for comparison the accuracy of always saying neutral."""
    wanted, said = fold_other(wanted), fold_other(said)
    found = classification(wanted, said) | {"texts": len(wanted), "always_neutral": float((wanted == NEUTRAL).mean())}
    return {f"{place}/{key}": value if value is None else round(value, 4) for key, value in found.items()}
