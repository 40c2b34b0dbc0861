"""The mean of the two plausibility classifiers, as a classifier of its own."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.files import writing
from mitigate.tasks.plausibility.threshold import set_threshold
from models.minilm import locate
from models.plausibility.average import MEMBERS, Average
from models.plausibility.bilinear import Bilinear


def average_networks(
    triples: pl.DataFrame, trained: Mapping[str, Mapping[str, Any]], *, folder: Path
) -> dict[str, float]:
    """Average the two networks of the folder, choose the threshold on the split dev, and replace average/; returns the
    seconds that training both took, and the size in bytes.

    trained: what train_plausibility returned for each."""
    network = Average([Bilinear.load(folder / name, locate()) for name in MEMBERS])
    set_threshold(network, triples)
    whole, part = folder / "average", folder / ".average.part"
    with writing(whole):
        shutil.rmtree(part, ignore_errors=True)
        network.save(part, made_of=folder)
        shutil.rmtree(whole, ignore_errors=True)
        part.rename(whole)
    size = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    return {"seconds": sum(facts["seconds"] for facts in trained.values()), "bytes": size}
