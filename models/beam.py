"""COMeT's beam search (Bosselut et al. 2019) with any model that continues texts on a cache of its own.

In each step each live beam of a prompt proposes its best continuations, and an ended beam proposes to stay as it is.
The proposals with the highest log-probability per token (END counted) are kept. Of equal scores, that of the lower beam
comes first, then that of the lower token. Prompts of one length are searched together, so that nothing is padded. A
prompt is read once, whatever the number of its beams, and only live beams are continued."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

import torch
from torch import Tensor

from mitigate.models.tail_prompts import Beam


class Reading(Protocol):
    """A batch of texts that a model has read so far, with its cache of them."""

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length); return the logits (n, vocab_size) of the next token."""
        ...

    def extend(self, rows: Tensor, tokens: Tensor) -> Tensor:
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
    END counted.

    reading: makes a new Reading. rows: the most beams in a batch, which sets memory and speed, not the result.
    Log-probabilities are summed in float64."""
    batch_size = max(1, rows // beams)
    results: list[list[Beam]] = [[] for _ in prompts]
    by_length = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for _, group in groupby(by_length, key=lambda i: len(prompts[i])):
        indices = list(group)
        for start in range(0, len(indices), batch_size):
            batch = indices[start : start + batch_size]
            tokens = torch.tensor([prompts[i] for i in batch], device=device)  # (n, length)
            for i, result in zip(batch, _search(reading(), tokens, end, beams, max_length), strict=True):
                results[i] = result
    return results


def _search(reading: Reading, prompts: Tensor, end: int, beams: int, max_length: int) -> list[list[Beam]]:
    """The beams of prompts (n, length). A beam that does not exist yet has log-probability -inf."""
    live = torch.zeros(len(prompts), beams, dtype=torch.bool, device=prompts.device)  # (n, beams), as the next two
    live[:, 0] = True  # one beam without a token
    log_prob = torch.where(live, 0.0, -torch.inf).double()
    length = torch.zeros_like(live, dtype=torch.long)  # tokens, END counted
    history = length.new_zeros(*live.shape, 0)  # (n, beams, steps); what follows the end of a beam does not count
    logits = reading.begin(prompts)
    for step in range(1, max_length + 1):
        logits = logits.float()  # (live beams, vocab_size)
        # topk leaves the order of equal logits open: sort by token, then, stably, by logit.
        best, tokens = logits.topk(min(2 * beams, logits.shape[1]), dim=1)
        tokens, order = tokens.sort(dim=1)
        best, order = best.gather(1, order).sort(dim=1, descending=True, stable=True)
        best, tokens = best[:, :beams], tokens.gather(1, order[:, :beams])  # (live beams, choices)
        choices = tokens.shape[1]
        proposed = log_prob.new_full((*live.shape, choices), -torch.inf)  # (n, beams, choices)
        proposed[..., 0] = 0  # an ended beam only proposes to stay
        proposed[live] = (best - logits.logsumexp(1, keepdim=True)).double()
        next_tokens = tokens.new_full(proposed.shape, end)
        next_tokens[live] = tokens
        total = log_prob[..., None] + proposed
        row = live.flatten().cumsum(0).view_as(live) - 1  # (n, beams): the row of each live beam in the logits
        length = length + live
        score = (total / length.clamp(min=1)[..., None]).flatten(1)  # (n, beams * choices)
        kept = score.sort(dim=1, descending=True, stable=True).indices[:, :beams]  # (n, beams)
        parent = kept // choices
        log_prob, token = total.flatten(1).gather(1, kept), next_tokens.flatten(1).gather(1, kept)
        length, row = length.gather(1, parent), row.gather(1, parent)
        history = torch.cat([history.take_along_dim(parent[..., None], 1), token[..., None]], 2)
        live = live.gather(1, parent) & (token != end) & (log_prob > -torch.inf)
        if step == max_length or not live.any():
            break
        logits = reading.extend(row[live], token[live])
    fields = zip(*(field.tolist() for field in (history, log_prob, length, ~live)), strict=True)
    return [
        [
            Beam(tuple(tokens[: size - ended]), log_prob, log_prob / size, ended)
            for tokens, log_prob, size, ended in zip(*row, strict=True)
            if log_prob > -torch.inf
        ]
        for row in fields
    ]


def sample_tokens(logits: Tensor, uniforms: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """Sample a token (rows,) from each row of logits (rows, vocab_size) by inverse transform sampling: uniforms (rows,)
    in [0, 1) fix the draws. Only the likeliest top_k tokens are drawn from (0: all), in falling order."""
    top, tokens = logits.topk(min(top_k or logits.shape[1], logits.shape[1]))
    cumulative = (top.double() / temperature).softmax(1).cumsum(1)
    thresholds = uniforms[:, None].to(cumulative.device) * cumulative[:, -1:]
    place = (cumulative <= thresholds).sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)
    return tokens.gather(1, place)[:, 0]
