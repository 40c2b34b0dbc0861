"""The most probable next tokens, in one pass over a vocabulary that is never turned into probabilities.

Logits are computed a tile of words at a time, so that a tile is still in the processor's cache when it is summed
and searched; only the blocks of words with the largest maxima are looked at again."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from models.decoder import Network
from models.products import Product, filled, lay_out

TILE = 2048  # words; 512 to 4096 are equally fast for 384 x 30,522, all of it at once a third slower
BLOCK = 64  # words; divides TILE
LOG2_E = math.log2(math.e)


class TopTokens:
    """A decoder's head, with the memory it works in, used again in each call (fresh memory of this size would
    cost as much time as a quarter of the multiplications)."""

    def __init__(self, decoder: Network, rows: int) -> None:
        weight = decoder.words.weight
        self.vocab_size = len(weight)
        self.products = getattr(decoder, "tiles", None) or _products(decoder)
        self.logits = weight.new_empty(len(self.products), rows, TILE)
        self.exact = weight.new_empty(rows, TILE, dtype=torch.float32)

    @torch.no_grad()
    def __call__(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """hidden (rows, width) -> log-probabilities and tokens, each (rows, count), the best first; of equal
        logits the lower token comes first. Fewer than count where the vocabulary is smaller."""
        rows = torch.arange(len(hidden), device=hidden.device)[:, None]
        maxima, normalisers = zip(*self._tiles(filled(hidden), len(hidden)), strict=True)
        blocks = largest(torch.cat(maxima, dim=1), count)  # (rows, count)
        per_tile = TILE // BLOCK
        candidates = self.logits.unflatten(2, (per_tile, BLOCK))[blocks // per_tile, rows, blocks % per_tile]
        tokens = blocks[..., None] * BLOCK + torch.arange(BLOCK, device=hidden.device)
        values, tokens = candidates.flatten(1).float(), tokens.flatten(1)
        best = largest(values, min(count, self.vocab_size), tokens)
        normaliser = torch.stack(normalisers).logsumexp(0)
        return values.gather(1, best) - normaliser[:, None], tokens.gather(1, best)

    def _tiles(self, hidden: Tensor, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield for each tile the maxima of its blocks (rows, blocks) and its log-sum-exp (rows,), of the first
        rows."""
        for kept, product in zip(self.logits, self.products, strict=True):
            logits = product(hidden)[:rows]
            kept[:rows] = logits
            if logits.dtype != torch.float32:  # the maxima of bfloat16 would take six times as long
                logits = self.exact[:rows].copy_(logits)
            maxima = logits.unflatten(1, (-1, BLOCK)).amax(2)
            largest = maxima.amax(1, keepdim=True).clamp(min=torch.finfo(torch.float32).min)
            powers = logits.sub_(largest).mul_(LOG2_E).exp2_()  # exp2 takes a third of exp's time
            yield maxima, powers.sum(1).log() + largest[:, 0]


@torch.no_grad()
def ready(decoder: Any) -> Any:
    """A copy of a network for many searches, whose layers and head are laid out once and not by each search. It cannot
    be trained."""
    laid_out = lay_out(decoder)
    laid_out.tiles = _products(decoder)
    return laid_out


def _products(decoder: Network) -> list[Product]:
    weight = decoder.words.weight
    bias = weight.new_zeros(len(weight)) if decoder.bias is None else decoder.bias
    return [Product(*_filled(*tile)) for tile in zip(weight.split(TILE), bias.split(TILE), strict=True)]


def _filled(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A tile's weight and bias with words past the last, which are never the most probable."""
    past = TILE - len(weight)
    if not past:
        return weight, bias
    return F.pad(weight, (0, 0, 0, past)), F.pad(bias, (0, past), value=-torch.inf)


def largest(values: Tensor, count: int, ids: Tensor | None = None) -> Tensor:
    """The places of the largest values of each row, the largest first; of equal ones, that with the lower id (its
    place, unless given). torch.topk alone leaves the order of equal values open."""
    if ids is None and values.shape[1] > count * BLOCK:
        return _of_best_blocks(values, count)
    ids = torch.arange(values.shape[1], device=values.device) if ids is None else ids
    bits = (values + 0.0).view(torch.int32)  # + 0.0 makes -0.0 the same as 0.0
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()  # integers in the order of the floats
    return ((ordered << 32) - ids).topk(min(count, values.shape[1]), dim=1).indices


def _of_best_blocks(values: Tensor, count: int) -> Tensor:
    """The same, looking at all values only for the maxima of blocks: the largest stand in the blocks with the largest
    maxima, and of blocks with equal maxima in the first."""
    width = values.shape[1]
    whole, rest = values.split([width - width % BLOCK, width % BLOCK], dim=1)
    maxima = [whole.unflatten(1, (-1, BLOCK)).amax(2), *([rest.amax(1, keepdim=True)] if rest.shape[1] else [])]
    blocks = largest(torch.cat(maxima, dim=1), count).sort(1).values
    places = (blocks[..., None] * BLOCK + torch.arange(BLOCK, device=values.device)).flatten(1)
    candidates = values.gather(1, places.clamp(max=width - 1)).masked_fill(places >= width, -torch.inf)
    return places.gather(1, largest(candidates, count, torch.arange(places.shape[1], device=values.device)))
