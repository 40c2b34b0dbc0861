"""Training of one plausibility classifier on ConceptNet's training triples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.files import replacing_folder
from mitigate.score.weights import native_dtype
from mitigate.tasks.plausibility.threshold import set_threshold
from mitigate.train import harness
from mitigate.train import plausibility as training
from mitigate.train.harness import Log
from mitigate.train.plausibility import Settings
from models.minilm import locate
from models.plausibility.bilinear import Bilinear
from models.plausibility.phrases import MiniLMPhrases


def train_plausibility(
    triples: pl.DataFrame,
    phrases: str,
    shape: Mapping[str, Any],
    settings: Settings,
    *,
    folder: Path,
    fingerprint: str,
    log: Log,
) -> dict[str, Any]:
    """Train on the split train of triples (head, relation, tail, valid, split), choose the threshold on dev, and write
    the network to {phrases}/ of the folder; returns steps, seconds, triples_per_second and loss.

    phrases: how they are read, "words" or "minilm"; shape: other arguments of Bilinear. Checkpoints with that
    fingerprint are left in checkpoints/{phrases}/, for a killed training to continue from."""
    learnt = triples.filter(split="train")
    harness.seed(settings.seed)
    network = Bilinear(locate(), sorted(learnt["relation"].unique()), phrases, **shape)
    if isinstance(network.phrases, MiniLMPhrases):
        network.phrases.encode.to(native_dtype())  # as a loaded network reads; it is not trained
    fitted = training.fit(
        network,
        training.Known(learnt, network.relations),
        settings,
        folder / "checkpoints" / phrases,
        fingerprint=fingerprint,
        log=log,
    )
    set_threshold(network, triples)
    with replacing_folder(folder / phrases) as part:  # safetensors leaves a file of its own where it is killed
        network.save(part)
    return fitted._asdict()
