"""The beams of many prompts: what each step of COMeT's beam search keeps (Bosselut et al. 2019).

In each step a prompt's live beams propose their best continuations and its ended beams stand with the score they have;
those with the highest log-probability per token (END counted) stay. Of equal scores, that of the lower beam, then of
the lower token, comes first. Which network proposes is not known here."""

import torch
from torch import Tensor

from models.tail_prompts import Beam


class Beams:
    """Prompts in slots, each with the same number of beams. A beam's place in its slot is its rank; an empty place has
    log-probability -inf."""

    def __init__(self, slots: int, beams: int, max_length: int, end: int, device: torch.device) -> None:
        self.end = end
        self.steps = torch.zeros(slots, dtype=torch.long, device=device)
        self.live = torch.zeros(slots, beams, dtype=torch.bool, device=device)
        self.log_prob = torch.full((slots, beams), -torch.inf, dtype=torch.float64, device=device)
        self.length = torch.ones(slots, beams, dtype=torch.long, device=device)  # tokens, END counted
        self.token = torch.zeros(slots, beams, dtype=torch.long, device=device)  # the last one
        self.history = torch.zeros(slots, beams, max_length, dtype=torch.long, device=device)

    def begin(self, slots: Tensor) -> None:
        """Begin prompts in slots (n,): each has one live beam without a token."""
        self.steps[slots] = 0
        self.log_prob[slots] = -torch.inf
        self.log_prob[slots, 0] = 0
        self.length[slots] = 0
        self.live[slots, 0] = True

    def advance(self, log_probs: Tensor, tokens: Tensor) -> Tensor:
        """One token further. log_probs and tokens: what the live beams propose, in the order of their slots and ranks,
        each (live beams, choices). Returns the rank (slots, beams) that each beam had before."""
        slot, beam = self.live.nonzero(as_tuple=True)
        count, choices = self.live.shape[1], tokens.shape[1]
        proposed = self.log_prob.new_full((*self.live.shape, choices), -torch.inf)
        proposed[..., 0] = 0  # an ended beam proposes only to stay
        proposed[slot, beam] = log_probs.double()
        words = self.token[..., None].repeat(1, 1, choices)
        words[slot, beam] = tokens
        log_prob = self.log_prob[..., None] + proposed
        length = self.length + self.live
        score = (log_prob / length.clamp(min=1)[..., None]).flatten(1)
        kept = score.sort(dim=1, descending=True, stable=True).indices[:, :count]  # (slots, beams)
        parent = kept // choices
        grown = self.live.gather(1, parent)
        self.log_prob = log_prob.flatten(1).gather(1, kept)
        self.length = length.gather(1, parent)
        self.token = words.flatten(1).gather(1, kept)
        self.history = self.history[torch.arange(len(kept), device=kept.device)[:, None], parent]
        last = (self.length - 1).clamp(min=0)[..., None]
        said = torch.where(grown[..., None], self.token[..., None], self.history.gather(2, last))
        self.history.scatter_(2, last, said)
        self.live = grown & (self.token != self.end) & (self.log_prob > -torch.inf)
        self.steps += 1
        return parent

    @property
    def done(self) -> Tensor:
        """Slots (slots,) whose beams have all ended or are cut at the length limit."""
        return ~self.live.any(1) | (self.steps == self.history.shape[2])

    def take(self, slots: Tensor) -> list[list[Beam]]:
        """The beams of slots (n,), the best first; the slots become free."""
        fields = (self.history, self.log_prob, self.length, ~self.live)
        rows = zip(*(field[slots].tolist() for field in fields), strict=True)
        self.live[slots] = False
        return [[_beam(*beam) for beam in zip(*row, strict=True) if beam[1] > -torch.inf] for row in rows]


def best_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Log-probabilities and tokens, each (rows, count), the best first, by logits (rows, vocab_size); of equal ones the
    lower token first. Fewer than count where the vocabulary is smaller."""
    logits = logits.float()
    found, tokens = logits.topk(min(2 * count, logits.shape[1]), dim=1)  # topk leaves the order of equal ones open
    tokens, order = tokens.sort(dim=1)
    found, order = found.gather(1, order).sort(dim=1, descending=True, stable=True)
    log_probs = found[:, :count] - logits.logsumexp(1, keepdim=True)
    return log_probs, tokens.gather(1, order[:, :count])


def _beam(history: list[int], log_prob: float, length: int, ended: bool) -> Beam:
    return Beam(tuple(history[: length - ended]), log_prob, log_prob / length, ended)
