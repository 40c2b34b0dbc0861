"""COMeT's beam search (models/beam_state.py) with a model of transformers and its own cache, many prompts at a time.

Prompts of one length are worked on together, so that nothing is padded, and what a model makes of padding does not
matter. A prompt is read once, whatever the number of its beams, and only beams that live are continued."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.modeling_outputs import CausalLMOutputWithPast

from models.beam_state import Beams, best_tokens
from models.tail_prompts import Beam

CACHE = next(field.name for field in fields(CausalLMOutputWithPast) if field.name in ("cache", "past_key_values"))
"""The name that models of transformers give their cache, as an argument and in their output. transformers 5.24 warns of
the old name, past_key_values, which ends with 5.40."""


class Reading(Protocol):
    """Some texts that a model has read so far."""

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length); return the logits (n, vocab_size) of the next token."""
        ...

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Replace the texts by these rows (m,) of them, each with one more token (m,); return the logits (m,
        vocab_size) of the next token."""
        ...


class CausalReading:
    """The texts that a causal language model has read. (A `Reading`.)"""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.cache: Any = None

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length) in one batch."""
        return self._read(prompts)

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Append a token to each of the rows."""
        self.cache.batch_select_indices(rows)
        return self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        said = self.model(input_ids=tokens, use_cache=True, **{CACHE: self.cache})
        self.cache = said[CACHE]
        return said.logits[:, -1]


@torch.inference_mode()
def cached_search(
    reading: Callable[[], Reading],
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    device: torch.device,
    beams: int = 10,
    max_length: int = 15,
    rows: int = 680,
) -> list[list[Beam]]:
    """The best continuations of each prompt, the best first: at most `beams` of them, of at most max_length tokens,
    END counted. reading makes a new Reading. rows is the most beams worked on at a time."""
    size = max(1, rows // beams)
    found: list[list[Beam]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for _, alike in groupby(order, key=lambda i: len(prompts[i])):
        places = list(alike)
        for start in range(0, len(places), size):
            batch = places[start : start + size]
            asked = torch.tensor([prompts[i] for i in batch], device=device)
            state = Beams(len(batch), beams, max_length, end, device)
            for place, result in zip(batch, _search(reading(), asked, state), strict=True):
                found[place] = result
    return found


def _search(reading: Reading, prompts: Tensor, state: Beams) -> list[list[Beam]]:
    slots = torch.arange(len(prompts), device=prompts.device)
    state.begin(slots)
    logits = reading.begin(prompts)
    while True:
        place = state.live.flatten().cumsum(0).view_as(state.live) - 1  # of each live beam among the rows just read
        parent = state.advance(*best_tokens(logits, state.live.shape[1]))
        if state.done.all():
            return state.take(slots)
        slot, beam = state.live.nonzero(as_tuple=True)
        logits = reading.go_on(place[slot, parent[slot, beam]], state.token[slot, beam])
