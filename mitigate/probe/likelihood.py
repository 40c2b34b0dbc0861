"""The likelihood that a generator gives to tails, and the tails that it generates in their place.

Totals are stored for each triple, so that a subset's perplexity is the exponential of its own tokens' mean."""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import polars as pl
import torch

from mitigate.probe.comet import Generator
from mitigate.progress import progress
from models.tail_prompts import TAIL_TOKENS

BATCH = 128  # triples; about 460 rows of logits, 56 MB at 30,522 words
TRIPLE = ["head", "relation", "tail"]


def likelihood(generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str]) -> pl.DataFrame:
    """The triples (head, relation, tail, and any other columns) with `nll`, minus the log-likelihood in nats of the
    tail and its end token given head and phrase; `tokens`, their number, the end included; and `characters` of the
    tail. A tail longer than a COMeT reads is scored on its first 15 tokens, and its characters are those of the words
    that are read, the last one perhaps in part. nll is NaN for a generator without probabilities."""
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


def unigram_nll(generator: Generator, training: Sequence[str], tails: Sequence[str]) -> list[float]:
    """Minus the log-likelihood in nats of each tail's tokens, the end included, by how often they occur in the training
    tails; each known token counts once more, and all unknown ones once."""
    counts = Counter(chain.from_iterable(generator.tails(training)))
    total = counts.total() + len(counts) + 1
    return [sum(math.log(total / (counts[token] + 1)) for token in tail) for tail in generator.tails(tails)]


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
    """The number of characters of a tail that are read: all, or for a cut tail those up to the word after which further
    words add no token."""
    if len(tokens) <= TAIL_TOKENS:
        return len(tail)
    ends = [word.end() for word in re.finditer(r"\S+", tail)][:-1]
    place = bisect_left(ends, True, key=lambda end: generator.tails([tail[:end]])[0] == tokens)
    return [*ends, len(tail)][place]


@torch.inference_mode()
def completions(
    generator: Generator, triples: pl.DataFrame, phrases: Mapping[str, str], *, beams: int = 1
) -> pl.DataFrame:
    """The generator's best tail for each distinct head and relation of the triples: (head, relation, generated), the
    best of so many beams; "" where it has none."""
    distinct = triples.select("head", "relation").unique(maintain_order=True)
    prompts = generator.prompts(distinct["head"].to_list(), [phrases[relation] for relation in distinct["relation"]])
    found = generator.search(prompts, beams=beams)
    tails = [generator.decode(result[0].tokens) if result else "" for result in found]
    return distinct.with_columns(generated=pl.Series(tails, dtype=pl.String))
