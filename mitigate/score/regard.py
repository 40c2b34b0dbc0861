"""Regard: how a statement makes its subject look (Sheng et al. 2019), by one of three classifiers.

Their columns are told apart by name; here negative, neutral, positive and other become the labels that all
stages share."""

import hashlib
import inspect
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels
from models.minilm import locate
from models.regard import LABELS, batching, minilm
from models.regard.minilm import MiniLMClassifier

SHIPPED = Path(str(files("mitigate").joinpath("data/regard")))
MEANING = {"negative": PREJUDICE, "neutral": NEUTRAL, "positive": FAVOURITISM, "other": OTHER}


class MiniLMRegard:
    """The default: all-MiniLM-L6-v2 with the change that `recipe=regard` trains.

    folder holds that change (None: the one that comes with the project), encoder_folder the encoder (None:
    as models.minilm.locate finds it)."""

    name = "regard"

    def __init__(self, folder: str | Path | None = None, encoder_folder: str | Path | None = None) -> None:
        folder = SHIPPED / "minilm" if folder is None else Path(folder)
        dtype = native_dtype()
        self._classifier = MiniLMClassifier.load(folder, locate(encoder_folder), dtype)
        facts = [str(dtype), self._classifier.encoder_sha256]
        self.fingerprint = fingerprint(folder, facts, code=(minilm, batching))

    def __call__(self, texts: Sequence[str]) -> Labels:
        return labels(self._classifier.probabilities(texts))


def labels(probabilities: np.ndarray) -> Labels:
    """Probabilities (n, 4), columns as in LABELS, to the likeliest label and P(positive) - P(negative)."""
    meaning = np.array([MEANING[label] for label in LABELS], dtype=np.int8)
    positive, negative = LABELS.index("positive"), LABELS.index("negative")
    strength = probabilities[:, positive] - probabilities[:, negative]
    return Labels(meaning[probabilities.argmax(1)], strength.astype(np.float32))


def native_dtype() -> torch.dtype:
    """bfloat16 where the processor computes in it, else float32."""
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if native else torch.float32


def fingerprint(folder: Path, facts: Sequence[str], code: Sequence[ModuleType]) -> str:
    """SHA-256 over all that decides a label: the classifier's files, facts of how it is run, and its source."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix != ".md":
            digest.update(path.name.encode() + path.read_bytes())
    for said in (*facts, *(inspect.getsource(module) for module in code)):
        digest.update(said.encode() + b"\0")
    return digest.hexdigest()
