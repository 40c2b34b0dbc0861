"""Trains the crowd classifier's heads on frozen features."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.files import replacing_folder, write
from mitigate.score.weights import native_dtype
from mitigate.tasks.crowd.texts import VOTES
from mitigate.tasks.crowd.unseen import FOLDS_FILE, folds_of_targets
from mitigate.train.crowd import Learnt, fit_heads
from mitigate.triples import NEUTRAL, PREJUDICE
from models.heads import LABELS
from models.minilm import locate
from models.states import Encoder

assert dict(zip(LABELS, VOTES, strict=True)) == {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": -PREJUDICE}


def train_crowd(
    rated: pl.DataFrame, implied: list[str], settings: Mapping[str, Any], *, folder: Path
) -> dict[str, int]:
    """Train on rated statements (masked, shares, most, fold) and implied ones, all of them prejudice, and write crowd/
    to the folder; returns the number of parameters.

    settings: implied_weight, decay and false_alarms of mitigate.train.crowd.Learnt."""
    encoder = Encoder(locate(), native_dtype())
    learnt = Learnt(
        features=encoder.features(rated["masked"].to_list()),
        shares=rated["shares"].list.to_array(len(VOTES)).to_numpy(),
        neutral=rated["most"].to_numpy() == NEUTRAL,
        fold=rated["fold"].to_numpy(),
        texts=rated["masked"].to_numpy(),
        negative=encoder.features(implied),
        negative_weight=settings["implied_weight"],
        decay=settings["decay"],
        false_alarms=settings["false_alarms"],
    )
    heads = fit_heads(learnt)
    with replacing_folder(folder / "crowd") as part:
        heads.save(part)
        write(part / FOLDS_FILE, folds_of_targets().write_csv())
    return {"parameters": heads.weight.size + heads.bias.size + heads.threshold.size}
