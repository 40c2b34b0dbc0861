"""The shipped n-gram classifier of regard, trained on the labels and on the teacher's probabilities."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.train.harness import Log
from mitigate.train.regard_ngram import fit_ngram


def train_ngram(
    labelled: pl.DataFrame, taught: pl.DataFrame, settings: Mapping[str, Any], *, seed: int, folder: Path, log: Log
) -> dict[str, int]:
    """Train on the labelled texts (text, label, part) of part train and on those of `taught` (text, probabilities) that
    are not labelled; write ngram/ to the folder; returns the number of parameters.

    settings: of mitigate.train.regard_ngram.fit_ngram."""
    taught = taught.join(labelled, on="text", how="anti", maintain_order="left")
    classifier = fit_ngram(
        labelled, taught["text"].to_list(), taught["probabilities"].to_numpy(), seed=seed, log=log, **settings
    )
    classifier.save(folder / "ngram")
    return {"parameters": classifier.weight.size + classifier.bias.size}
