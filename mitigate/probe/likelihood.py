"""How likely a generator finds the tails that others gave, and what it generates in their place.

Totals are kept triple by triple, so that a subset's perplexity is the exponential of its own tokens' mean."""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

import polars as pl
import torch

from mitigate.probe.generator import Generator
from mitigate.runs.progress import progress
from models.comet import TAIL_TOKENS

BATCH = 128  # triples; about 460 rows of logits, 56 MB at 30,522 words


def likelihood(generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str]) -> pl.DataFrame:
    """The triples (head, relation, tail, and whatever else) with `nll`, minus the log-likelihood in nats of the
    tail and its end token given head and phrase; `tokens`, how many these are, the end counted; and `characters`
    of the tail. A tail longer than a COMeT reads is scored on its first 15 tokens, and its characters are those of the
    words that are read, the last one perhaps in part. nll is NaN of a generator that gives
    no probabilities."""
    tails = generator.tails(triples["tail"].to_list())
    with progress("likelihood", len(tails), "triples") as advance:
        totals = nll_of_tails(generator, triples, phrases, advance)
    return triples.with_columns(
        nll=pl.Series(totals, dtype=pl.Float64),
        tokens=pl.Series([len(tail) for tail in tails], dtype=pl.UInt32),
        characters=pl.Series(
            [_characters(generator, *pair) for pair in zip(triples["tail"], tails, strict=True)], dtype=pl.UInt32
        ),
    )


@torch.inference_mode()
def nll_of_tails(
    generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str], advance: Callable[[int], None]
) -> list[float]:
    """Minus the log-likelihood in nats of each triple's tail and its end token."""
    prompts = generator.prompts(triples["head"].to_list(), [phrases[relation] for relation in triples["relation"]])
    tails = generator.tails(triples["tail"].to_list())
    totals = [math.nan] * len(tails)
    order = sorted(range(len(tails)), key=prompts.__getitem__)  # equal prompts are computed once
    for start in range(0, len(tails), BATCH):
        batch = order[start : start + BATCH]
        nll = generator.nll([prompts[row] for row in batch], [tails[row] for row in batch]).double()
        for row, tokens in zip(batch, nll.split([len(tails[row]) for row in batch]), strict=True):
            totals[row] = tokens.sum().item()
        advance(len(batch))
    return totals


def _characters(generator: Generator, tail: str, tokens: Sequence[int]) -> int:
    """How many characters of a tail are read: all, or of one that is cut those up to the word where more words add no
    token."""
    if len(tokens) <= TAIL_TOKENS:
        return len(tail)
    ends = [word.end() for word in re.finditer(r"\S+", tail)][:-1]
    place = bisect_left(ends, True, key=lambda end: generator.tails([tail[:end]])[0] == tokens)
    return [*ends, len(tail)][place]


@torch.inference_mode()
def completions(
    generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str], *, beams: int = 1
) -> pl.DataFrame:
    """The tail that the generator finds best for each distinct head and relation of the triples: (head, relation,
    generated), the best of so many beams; "" where it has none."""
    asked = triples.select("head", "relation").unique(maintain_order=True)
    prompts = generator.prompts(asked["head"].to_list(), [phrases[relation] for relation in asked["relation"]])
    found = generator.search(prompts, beams=beams)
    tails = [generator.decode(result[0].tokens) if result else "" for result in found]
    return asked.with_columns(generated=pl.Series(tails, dtype=pl.String))
