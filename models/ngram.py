"""A linear classifier of regard by hashed word and character n-grams: for tens of millions of texts.

Hashing is done on the bytes of all texts at once, so that no Python code runs per text or n-gram."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.special import softmax

from mitigate.models.heads import REGARD

CHARACTERS, WORDS = (2, 3, 4, 5), (1, 2, 3)  # lengths of n-grams
CHUNK = 8192  # texts hashed at a time, to bound memory
WEIGHTS = "model.safetensors"
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
    found = [*_windows(characters, owners, CHARACTERS), *_windows(words, word_owners, WORDS)]
    hashes = np.concatenate([hashes for _, hashes in found])
    shift = np.uint64(65 - buckets.bit_length())  # the highest bits are the best mixed
    return np.concatenate([owner for owner, _ in found]), ((hashes * STIR) >> shift).astype(np.int64)


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
