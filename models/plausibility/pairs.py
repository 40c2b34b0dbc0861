"""Pairs of phrases, heads and tails, as word pieces; and a network's verdict on many of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from models.regard.batching import token_batches

Pieces = Sequence[int]
LONGEST = 32  # word pieces of a phrase that are read; the longest of train100k has 32


class PairNetwork(Protocol):
    """What models.plausibility says of its networks."""

    relations: tuple[str, ...]

    def encode(self, phrases: Sequence[str]) -> list[list[int]]: ...

    def __call__(self, heads: Sequence[Pieces], tails: Sequence[Pieces]) -> Tensor: ...


def read_tokenizer(encoder_folder: Path) -> Tokenizer:
    """The encoder's tokenizer, for one phrase at a time."""
    tokenizer = Tokenizer.from_file(str(encoder_folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    return tokenizer


def special(tokenizer: Tokenizer, *names: str) -> list[int]:
    """The pieces of those names. Raises ValueError when the tokenizer lacks one."""
    found = [tokenizer.token_to_id(name) for name in names]
    if None in found:
        raise ValueError(f"the tokenizer lacks one of {', '.join(names)}: it is not that of a BERT-type encoder")
    return [piece for piece in found if piece is not None]


def encode(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[list[int]]:
    """The word pieces of each phrase, nothing added. A phrase without any is one that is unknown."""
    (unknown,) = special(tokenizer, "[UNK]")
    found = tokenizer.encode_batch_fast(list(phrases), add_special_tokens=False)
    return [encoded.ids or [unknown] for encoded in found]


def in_batches(network: PairNetwork, heads: Sequence[Pieces], tails: Sequence[Pieces]) -> Tensor:
    """The network's logits (n, relations), pairs of like length read together."""
    lengths = [len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)]
    batches = list(token_batches(lengths))
    found = [network([heads[i] for i in batch], [tails[i] for i in batch]) for batch in batches]
    order = torch.tensor(np.concatenate(batches))
    return torch.cat(found)[torch.argsort(order)]


@torch.inference_mode()
def judge(network: PairNetwork, heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> np.ndarray:
    """The logit of each of n triples, (n,) float32. A pair is read once, however many relations are asked about.

    Raises ValueError for a relation that the network does not know."""
    if unknown := sorted(set(relations) - set(network.relations)):
        raise ValueError(f"relations {', '.join(unknown)} are not judged; known are {', '.join(network.relations)}")
    pairs = list(dict.fromkeys(zip(heads, tails, strict=True)))
    if not pairs:
        return np.zeros(0, dtype=np.float32)
    pieces = [network.encode(phrases) for phrases in zip(*pairs, strict=True)]
    logits = in_batches(network, *pieces).float().numpy()  # (pairs, relations)
    place = {pair: i for i, pair in enumerate(pairs)}
    column = {relation: i for i, relation in enumerate(network.relations)}
    asked = zip(heads, tails, strict=True)
    return logits[[place[pair] for pair in asked], [column[relation] for relation in relations]]
