"""COMeT's beam search (Bosselut et al. 2019) with any model that continues texts on a cache of its own.

In each step a prompt's live beams propose their best continuations and its ended beams stand with the score they have;
those with the highest log-probability per token (END counted) stay. Of equal scores, that of the lower beam, then of
the lower token, comes first. Prompts of one length are worked on together, so that nothing is padded. A prompt is read
once, whatever the number of its beams, and only live beams are continued."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from mitigate.models.tail_prompts import Beam


class Reading(Protocol):
    """Some texts that a model has read so far."""

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length); return the logits (n, vocab_size) of the next token."""
        ...

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Replace the texts by these rows (m,) of them, each with one more token (m,); return the logits (m,
        vocab_size) of the next token."""
        ...


@torch.inference_mode()
def beam_search(
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
    END counted. reading makes a new Reading. rows is the most beams worked on at a time: it sets memory and speed, not
    the result. Log-probabilities are summed in float64."""
    size = max(1, rows // beams)
    found: list[list[Beam]] = [[] for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for _, of_length in groupby(order, key=lambda i: len(prompts[i])):
        places = list(of_length)
        for start in range(0, len(places), size):
            batch = places[start : start + size]
            texts = torch.tensor([prompts[i] for i in batch], device=device)
            for place, result in zip(batch, _search(reading(), texts, end, beams, max_length), strict=True):
                found[place] = result
    return found


def _search(reading: Reading, prompts: Tensor, end: int, beams: int, max_length: int) -> list[list[Beam]]:
    """The beams of prompts (n, length). An empty place has log-probability -inf."""
    live = torch.zeros(len(prompts), beams, dtype=torch.bool, device=prompts.device)
    live[:, 0] = True  # one beam without a token
    log_prob = torch.where(live, 0.0, -torch.inf).double()  # (n, beams), as the next two
    length = torch.zeros_like(live, dtype=torch.long)  # tokens, END counted
    history = length[..., None][..., :0]  # (n, beams, steps); what follows the end of a beam does not count
    logits = reading.begin(prompts)
    for step in range(1, max_length + 1):
        logits = logits.float()
        # (live beams, choices), the best first, of equal ones the lower token first: topk leaves their order open
        best, tokens = logits.topk(min(2 * beams, logits.shape[1]), dim=1)
        tokens, order = tokens.sort(dim=1)
        best, order = best.gather(1, order).sort(dim=1, descending=True, stable=True)
        log_probs, tokens = best[:, :beams] - logits.logsumexp(1, keepdim=True), tokens.gather(1, order[:, :beams])
        choices = tokens.shape[1]
        proposed = log_prob.new_full((*live.shape, choices), -torch.inf)
        proposed[..., 0] = 0  # an ended beam proposes only to stay
        proposed[live] = log_probs.double()
        words = tokens.new_full(proposed.shape, end)
        words[live] = tokens
        total, row = log_prob[..., None] + proposed, live.flatten().cumsum(0).view_as(live) - 1
        length = length + live
        score = (total / length.clamp(min=1)[..., None]).flatten(1)
        kept = score.sort(dim=1, descending=True, stable=True).indices[:, :beams]  # (n, beams)
        parent = kept // choices
        log_prob, token = total.flatten(1).gather(1, kept), words.flatten(1).gather(1, kept)
        length, row = length.gather(1, parent), row.gather(1, parent)
        history = torch.cat([history.take_along_dim(parent[..., None], 1), token[..., None]], 2)
        live = live.gather(1, parent) & (token != end) & (log_prob > -torch.inf)
        if step == max_length or not live.any():
            break
        logits = reading.go_on(row[live], token[live])
    fields = zip(*(field.tolist() for field in (history, log_prob, length, ~live)), strict=True)
    return [
        [
            Beam(tuple(tokens[: size - ended]), log_prob, log_prob / size, ended)
            for tokens, log_prob, size, ended in zip(*row, strict=True)
            if log_prob > -torch.inf
        ]
        for row in fields
    ]


def drawn(scores: Tensor, chances: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """The token (rows,) that each number in [0, 1) of chances (rows,) stands for, among the likeliest top_k (0: all) by
    scores (rows, vocab_size): logits or log-probabilities. The likeliest come first."""
    likeliest, tokens = scores.topk(min(top_k or scores.shape[1], scores.shape[1]))  # in falling order
    shares = (likeliest.double() / temperature).softmax(1).cumsum(1)
    chance = chances[:, None].to(shares.device) * shares[:, -1:]
    place = (shares <= chance).sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)
    return tokens.gather(1, place)[:, 0]
