"""The threshold of a plausibility classifier. It is chosen on dev1; dev2 and test are for measuring only."""

import polars as pl

from mitigate.measure.quality import best_threshold
from models.plausibility.average import Average
from models.plausibility.bilinear import Bilinear


def set_threshold(network: Average | Bilinear, triples: pl.DataFrame) -> None:
    """Shift the logits so that 0 is the threshold with the best accuracy on the split dev of labelled triples."""
    dev = triples.filter(split="dev")
    scores = network.logits(*(dev[column].to_list() for column in ("head", "relation", "tail")))
    network.shift(-best_threshold(scores, dev["valid"].to_numpy()))
