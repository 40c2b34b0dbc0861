"""The likelihood that a generator gives to tails.

Totals are stored for each triple, so that a subset's perplexity is the exponential of its own tokens' mean."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, Self

import polars as pl
import torch
from torch import Tensor

from mitigate.models.tail_prompts import Beam
from mitigate.progress import progress
from mitigate.train.base_model import Start
from mitigate.words.relations import prompt_phrases

BATCH = 128  # triples; about 460 rows of logits, 56 MB at 30,522 words


class Generator(Protocol):
    """A generator of tails: a COMeT, or any language model with the same prompts. Both are torch modules. Prompts and
    tails are lists of tokens, tails with their end."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]: ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]: ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first."""

    def decode(self, tail: Sequence[int]) -> str: ...

    def bfloat16(self) -> Self: ...

    def to(self, device: str) -> Self: ...


def held_out_likelihood(generator: Generator | Start, labelled: pl.DataFrame, *, device: str = "cpu") -> pl.DataFrame:
    """Add to the valid test triples (head, relation, tail, split, valid, and other columns) `nll`, minus the
    log-likelihood in nats of the tail and its end token given head and phrase; `tokens`, their number, the end
    included; and `nll_unigram`, the same by how often each token occurs in the training tails, where each known token
    counts once more, and all unknown ones once. A tail longer than a COMeT reads is scored on its first 15 tokens."""
    held_out, phrases = labelled.filter("valid", split="test"), prompt_phrases("phrase")
    model: Any = generator
    if isinstance(generator, Start):
        model, phrases = generator.load(), generator.phrases
    model = model.to(device)
    counts = Counter(chain.from_iterable(model.tails(labelled.filter(split="train")["tail"].to_list())))
    total = counts.total() + len(counts) + 1
    tails = model.tails(held_out["tail"].to_list())
    unigram = [sum(math.log(total / (counts[token] + 1)) for token in tail) for tail in tails]
    return held_out.with_columns(
        nll=pl.Series(nll_of_tails(model, held_out, phrases), dtype=pl.Float64),
        tokens=pl.Series([len(tail) for tail in tails], dtype=pl.UInt32),
        nll_unigram=pl.Series(unigram, dtype=pl.Float64),
    )


@torch.inference_mode()
def nll_of_tails(generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str]) -> list[float]:
    """Minus the log-likelihood in nats of each triple's tail and its end token."""
    prompts = generator.prompts(triples["head"].to_list(), [phrases[relation] for relation in triples["relation"]])
    tails = generator.tails(triples["tail"].to_list())
    totals = [math.nan] * len(tails)
    order = sorted(range(len(tails)), key=prompts.__getitem__)  # equal prompts are computed once
    with progress("likelihood", len(tails), "triples") as advance:
        for start in range(0, len(tails), BATCH):
            batch = order[start : start + BATCH]
            nll = generator.nll([prompts[row] for row in batch], [tails[row] for row in batch]).double()
            for row, tokens in zip(batch, nll.split([len(tails[row]) for row in batch]), strict=True):
                totals[row] = tokens.sum().item()
            advance(len(batch))
    return totals
