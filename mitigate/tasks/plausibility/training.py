"""Training of one plausibility classifier on ConceptNet's training triples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.quality import best_threshold
from mitigate.runs.files import replacing_folder
from mitigate.score.precision import native_dtype
from mitigate.train import harness
from mitigate.train import plausibility as training
from mitigate.train.harness import Log
from mitigate.train.plausibility import Settings
from models.minilm import locate
from models.plausibility.average import MEMBERS, Average
from models.plausibility.bilinear import Bilinear
from models.plausibility.phrases import MiniLMPhrases

FEWEST = 2
"""A threshold lies between two triples."""


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

    phrases: their encoder, "words" or "minilm"; shape: other arguments of Bilinear. Checkpoints with that fingerprint
    are left in checkpoints/{phrases}/, for a killed training to continue from."""
    learnt = triples.filter(split="train")
    harness.seed(settings.seed)
    network = Bilinear(locate(), sorted(learnt["relation"].unique()), phrases, **shape)
    if isinstance(network.phrases, MiniLMPhrases):
        network.phrases.encode.to(native_dtype())  # as a loaded network reads; it is not trained
    known, checkpoints = training.Known(learnt, network.relations), folder / "checkpoints" / phrases
    found = training.fit(network, known, settings, checkpoints, fingerprint=fingerprint, log=log)
    set_threshold(network, triples)
    with replacing_folder(folder / phrases) as part:  # safetensors leaves a file of its own where it is killed
        network.save(part)
    return found


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


def check_dev(triples: pl.DataFrame) -> None:
    """Raise MitigateError for too few labelled triples of split dev to choose a threshold on."""
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
