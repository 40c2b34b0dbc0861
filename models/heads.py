"""Linear classifiers: heads on the states of a network that is not trained (models/encoder.py), and regard by hashed
word and character n-grams for tens of millions of texts.

Several heads share one encoding of a text: each has left out a part of what the others learnt from. The network is
identified by the SHA-256 of its files; what is stored is the heads alone.

N-grams are hashed on the bytes of all texts at once, so that no Python code runs per text or n-gram."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.special import softmax

from mitigate.models.stored_tensors import CONFIG, WEIGHTS, read_facts, write_facts

LABELS = ("negative", "neutral", "positive")
"""The meaning of the columns."""
REGARD = (*LABELS, "other")
"""The columns of a classifier of regard. "other" is a text with both polarities, or one that no other label fits."""
FOLDS = 10


@dataclass(frozen=True)
class CrossFitted:
    """FOLDS x FOLDS heads: that at (s, t) learnt nothing about subjects of fold s and no text of fold t.

    weight (FOLDS, FOLDS, width, columns), bias (FOLDS, FOLDS, columns), threshold (): a text is polar where its
    probability of being neutral is below 1 - threshold. marks (texts,): hash_of each text that heads learnt from, and
    of the same text in other words; marked (texts,): the text's fold.
    facts: what config.json holds: labels, the columns' names; sha256 and layers of the network
    (models.encoder.States); and reads, the kinds of texts whose features stand side by side."""

    weight: np.ndarray
    bias: np.ndarray
    threshold: np.ndarray
    marks: np.ndarray
    marked: np.ndarray
    facts: Mapping[str, Any]

    def probabilities(
        self, features: np.ndarray, texts: Sequence[str], subjects: Sequence[str | None] | None = None
    ) -> np.ndarray:
        """(n, columns): the mean over the heads that learnt neither from a text nor about its subject; over heads of
        all folds of texts for one that none learnt from, and of all folds of subjects where none is given."""
        known = dict(zip(self.marks.tolist(), self.marked.tolist(), strict=True))
        named = [None] * len(texts) if subjects is None else subjects
        of_subjects = _folds([-1 if subject is None else fold_of(subject) for subject in named])
        of_texts = _folds([known.get(hash_of(text), -1) for text in texts])
        weight = self.weight.transpose(2, 0, 1, 3).reshape(features.shape[1], -1)
        kept = (of_subjects[:, :, None] & of_texts[:, None, :])[..., None]
        each = softmax((features @ weight).reshape(-1, *self.bias.shape) + self.bias, axis=-1)
        return (each * kept).sum((1, 2)) / kept.sum((1, 2))

    def save(self, folder: Path) -> None:
        """Write the heads in half precision, and their facts."""
        write_facts(folder / CONFIG, self.facts)
        halves = {name: np.asarray(getattr(self, name), dtype=np.float16) for name in ("weight", "bias", "threshold")}
        save_file({**halves, "marks": self.marks, "marked": self.marked}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "CrossFitted":
        """The heads of a folder. Raises OSError, ValueError or SafetensorError for absent or damaged files."""
        facts = read_facts(folder / CONFIG, ["labels", "sha256", "layers", "reads"])
        stored = load_file(folder / WEIGHTS)
        halves = {name: stored[name].astype(np.float32) for name in ("weight", "bias", "threshold")}
        return cls(**halves, marks=stored["marks"], marked=stored["marked"], facts=facts)


def _folds(numbers: Sequence[int]) -> np.ndarray:
    """The folds that may be used for each number of a fold, (n, FOLDS) bool; all for -1."""
    folds = np.array(numbers, dtype=int)
    return (folds[:, None] == np.arange(FOLDS)) | (folds < 0)[:, None]


def polar_columns(probabilities: np.ndarray, threshold: float) -> np.ndarray:
    """The column of LABELS of each text, (n,): neutral, unless 1 - P(neutral) is above the threshold."""
    negative, neutral, positive = range(len(LABELS))
    sign = np.where(probabilities[:, positive] > probabilities[:, negative], positive, negative)
    return np.where(1 - probabilities[:, neutral] > threshold, sign, neutral)


def fold_of(name: str) -> int:
    """The fold of a text or of its subject, by its letters alone."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % FOLDS


def hash_of(text: str) -> int:
    """A hash of a text, 63 bits."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


# N-grams


CHARACTERS, WORDS = (2, 3, 4, 5), (1, 2, 3)  # lengths of n-grams
CHUNK = 8192  # texts hashed at a time, to bound memory
BASE, STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)  # odd, with well spread bits
END, SPACE = 10, 32  # bytes


class NgramClassifier:
    """weight (buckets, 4), a power of two buckets; bias (4,)."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray) -> None:
        self.weight = weight.astype(np.float32)
        self.bias = bias.astype(np.float32)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in REGARD."""
        result = np.empty((len(texts), len(REGARD)), dtype=np.float32)
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            owners, buckets = ngrams(chunk, len(self.weight))
            shares = per_text(owners, len(chunk))
            for label in range(len(REGARD)):
                sums = np.bincount(owners, self.weight[buckets, label], minlength=len(chunk))
                result[start : start + len(chunk), label] = sums * shares + self.bias[label]
        return softmax(result, axis=1)

    def save(self, folder: Path) -> None:
        """Write the weights in half precision."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({"weight": np.asarray(self.weight, dtype=np.float16), "bias": self.bias}, folder / WEIGHTS)

    @classmethod
    def load(cls, folder: Path) -> "NgramClassifier":
        """The classifier of a folder."""
        return cls(**load_file(folder / WEIGHTS))


def per_text(owners: np.ndarray, num_texts: int) -> np.ndarray:
    """The weight of each n-gram of a text, 1 / sqrt(number of its n-grams), so that long texts do not dominate."""
    return 1 / np.sqrt(np.maximum(np.bincount(owners, minlength=num_texts), 1)).astype(np.float32)


def ngrams(texts: Sequence[str], buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """The index of the text and the bucket of each n-gram of the lower-cased texts, in no special order."""
    joined = "".join(f" {' '.join(text.lower().split())} \n" for text in texts)
    characters = np.frombuffer(joined.encode(), dtype=np.uint8).astype(np.uint64)
    ends = characters == END
    owners = np.cumsum(ends) - ends
    words, word_owners = _words(characters, owners)
    windows = [*_windows(characters, owners, CHARACTERS), *_windows(words, word_owners, WORDS)]
    hashes = np.concatenate([hashes for _, hashes in windows])
    shift = np.uint64(65 - buckets.bit_length())  # the highest bits are the best mixed
    return np.concatenate([owner for owner, _ in windows]), ((hashes * STIR) >> shift).astype(np.int64)


def _windows(values: np.ndarray, owners: np.ndarray, lengths: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The owner and the hash of each run of this many values within one text."""
    hashes = np.zeros_like(values)
    for length in range(1, min(max(lengths), len(values)) + 1):
        windows = len(values) - length + 1
        hashes = hashes[:windows] * BASE + values[length - 1 :]
        if length in lengths:
            inside = owners[:windows] == owners[length - 1 :]
            yield owners[:windows][inside], hashes[inside] ^ (hashes[inside] >> np.uint64(32))


def _words(characters: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hash of each word, and the text it is in."""
    letters = np.flatnonzero(characters > SPACE)
    first = np.flatnonzero(np.diff(letters, prepend=-1) > 1)  # a space precedes every word
    if not len(first):
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    sizes = np.diff(first, append=len(letters))
    places = np.arange(len(letters)) - np.repeat(first, sizes)
    powers = np.cumprod(np.full(sizes.max(), STIR))
    return np.add.reduceat(characters[letters] * powers[places], first), owners[letters[first]]
