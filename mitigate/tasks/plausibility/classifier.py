"""What is measured of a plausibility classifier: its logits, and whether it accepts a triple."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import polars as pl


class Classifier(Protocol):
    """Logits of triples, (n,): above 0 is accepted as plausible."""

    @property
    def relations(self) -> Sequence[str]: ...

    def logits(self, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray: ...


def logits_of(network: Classifier, triples: pl.DataFrame) -> np.ndarray:
    """The logits of a table (head, relation, tail), (n,)."""
    return network.logits(*(triples[column].to_list() for column in ("head", "relation", "tail")))


def accepted(network: Classifier, triples: pl.DataFrame) -> pl.Series:
    """Whether each triple is accepted as plausible."""
    return pl.Series("accepted", logits_of(network, triples) > 0)
