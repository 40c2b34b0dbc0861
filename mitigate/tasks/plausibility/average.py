"""The mean of the two plausibility classifiers, as a classifier of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.files import replacing_folder
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
    whole = folder / "average"
    with replacing_folder(whole) as part:
        network.save(part, made_of=folder)
    size = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    return {"seconds": sum(facts["seconds"] for facts in trained.values()), "bytes": size}
