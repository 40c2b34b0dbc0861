"""The threshold of a plausibility classifier. It is chosen on dev1; dev2 and test are for measuring only."""

import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.quality import best_threshold
from models.plausibility.average import Average
from models.plausibility.bilinear import Bilinear

FEWEST = 2
"""A threshold lies between two triples."""


def check_dev(triples: pl.DataFrame) -> None:
    """Raises MitigateError for labelled triples of split dev so few that no threshold can be chosen on them."""
    if (number := triples.filter(split="dev").height) < FEWEST:
        raise MitigateError(
            f"the threshold of a plausibility classifier is chosen on labelled triples of split dev: {number} found, "
            f"at least {FEWEST} are needed"
        )


def set_threshold(network: Average | Bilinear, triples: pl.DataFrame) -> None:
    """Shift the logits so that 0 is the threshold with the best accuracy on the split dev of labelled triples. Raises
    MitigateError as check_dev."""
    check_dev(triples)
    dev = triples.filter(split="dev")
    scores = network.logits(*(dev[column].to_list() for column in ("head", "relation", "tail")))
    network.shift(-best_threshold(scores, dev["valid"].to_numpy()))
