"""COMeT's beam search (Bosselut et al. 2019), exact, many prompts at a time.

In each step a prompt's live beams propose their best continuations and its ended beams stand with the score they
have; those with the highest log-probability per token (END counted) stay. It ends when all beams have ended or are
cut at the length limit. Of equal scores, that of the lower beam, then of the lower token, comes first.

A prompt works in a slot of its own and does not see the others; when some slots are free, waiting prompts move in,
so that the processor always has many rows to multiply."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.decoder import Decoder
from models.products import lay_out
from models.top_tokens import TopTokens
from models.tree import SharedPrefixes, TreeAttention

NextTokens = Callable[[Tensor, int], tuple[Tensor, Tensor]]
"""From hidden states (rows, width) and a count, log-probabilities and tokens, each (rows, count), the best first; of
equal ones the lower token first."""

Head = Callable[[Decoder, int], NextTokens]
"""Makes one for a decoder and a largest number of rows."""


class Beam(NamedTuple):
    """One continuation of a prompt."""

    tokens: tuple[int, ...]  # END not included
    log_prob: float  # summed over the tokens, and END if it ended
    score: float  # log_prob / number of tokens, END counted
    ended: bool  # False when it was cut at the length limit


@torch.inference_mode()
def beam_search(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    end: int,
    unseen: int | None = None,
    beams: int = 10,
    max_length: int = 15,
    rows: int = 680,
    head: Head = TopTokens,
) -> list[list[Beam]]:
    """The best continuations of each prompt, the best first: at most `beams` of them, of at most max_length
    tokens, END counted.

    unseen is a token that nothing looks at where it stands in a prompt: the padding between its parts. rows is the
    most beams worked on at a time: it sets memory and speed, not the result. head proposes next tokens; a generator
    that is steered has one of its own. Computes in the decoder's own precision
    (log-probabilities are summed in float64), so a copy of it in bfloat16 gives an approximate search. Raises
    ValueError for a decoder in training mode, an empty prompt or one too long for the decoder's positions."""
    _check(decoder, prompts, max_length)
    if not prompts:
        return []
    unseen = -1 if unseen is None else unseen  # which is no token
    slots = min(max(1, rows // beams), len(prompts))
    search = _Search(decoder, prompts, end, unseen, beams, max_length, slots, head)
    found: list[list[Beam]] = [[] for _ in prompts]
    waiting = list(range(len(prompts)))[::-1]
    while waiting or search.busy():
        free = search.free()
        if waiting and 4 * len(free) >= search.slots:  # few at a time would waste the pass over their prefixes
            search.admit(free[: len(waiting)], [waiting.pop() for _ in free[: len(waiting)]])
        search.step()
        for prompt, result in search.finished():
            found[prompt] = result
    return found


class _Search:
    """The beams of the prompts at work. A beam's place in its slot is its rank; an empty place has
    log-probability -inf."""

    def __init__(
        self,
        decoder: Decoder,
        prompts: Sequence[Sequence[int]],
        end: int,
        unseen: int,
        beams: int,
        max_length: int,
        slots: int,
        head: Head,
    ) -> None:
        weight = decoder.words.weight
        device = weight.device
        self.decoder = lay_out(decoder)
        self.end, self.unseen, self.max_length, self.slots = end, unseen, max_length, slots
        self.prompts = [_placed(prompt, unseen) for prompt in prompts]
        nodes = max(map(len, self.prompts)) + beams * (max_length - 1)
        self.attention = TreeAttention(decoder.config, slots, nodes, like=weight)
        self.top_tokens = head(decoder, slots * beams)
        self.prompt = torch.full((slots,), -1)  # which prompt is in the slot; -1 when it is free
        self.position = torch.zeros(slots, dtype=torch.long, device=device)  # of the tokens that come next
        self.nodes = torch.zeros(slots, dtype=torch.long, device=device)  # used in the attention's slot
        self.steps = torch.zeros(slots, dtype=torch.long, device=device)
        self.live = torch.zeros(slots, beams, dtype=torch.bool, device=device)
        self.log_prob = torch.full((slots, beams), -torch.inf, dtype=torch.float64, device=device)
        self.length = torch.ones(slots, beams, dtype=torch.long, device=device)  # tokens, END counted
        self.token = torch.zeros(slots, beams, dtype=torch.long, device=device)  # the last one
        self.history = torch.zeros(slots, beams, max_length, dtype=torch.long, device=device)
        self.seen = torch.zeros(slots, beams, nodes, dtype=torch.bool, device=device)  # a beam's nodes

    def busy(self) -> bool:
        return bool((self.prompt >= 0).any())

    def free(self) -> list[int]:
        return (self.prompt < 0).nonzero()[:, 0].tolist()

    def admit(self, slots: list[int], prompts: list[int]) -> None:
        """Puts prompts into free slots: all tokens but the last become nodes, the last is the only live beam's."""
        device = self.token.device
        prefixes = [self.prompts[p][:-1] for p in prompts]
        if any(prefixes):
            shared = SharedPrefixes(self.attention, slots, prefixes)
            self.decoder(shared.tokens, shared.positions, shared)
        where = torch.tensor(slots, device=device)
        prefix = torch.tensor([len(prefix) for prefix in prefixes], device=device)
        tokens, positions = torch.tensor([self.prompts[p][-1] for p in prompts], device=device).T
        self.prompt[where.cpu()] = torch.tensor(prompts)
        self.position[where] = positions
        self.nodes[where] = prefix
        self.steps[where] = 0
        self.log_prob[where] = -torch.inf
        self.log_prob[where, 0] = 0
        self.length[where] = 0
        self.live[where, 0] = True
        self.token[where, 0] = tokens
        self.seen[where] = torch.arange(self.seen.shape[2], device=device) < prefix[:, None, None]

    def step(self) -> None:
        """Each prompt's beams one token further."""
        count = self.live.shape[1]
        log_probs, tokens = self._continuations(count)  # (slots, beams, choices)
        choices = tokens.shape[2]
        log_prob = self.log_prob[..., None] + log_probs
        length = self.length + self.live
        score = (log_prob / length.clamp(min=1)[..., None]).flatten(1)
        kept = score.sort(dim=1, descending=True, stable=True).indices[:, :count]  # (slots, beams)
        parent = kept // choices
        grown = self.live.gather(1, parent)
        self.log_prob = log_prob.flatten(1).gather(1, kept)
        self.length = length.gather(1, parent)
        self.token = tokens.flatten(1).gather(1, kept)
        slots = torch.arange(self.slots, device=kept.device)[:, None]
        self.history, self.seen = self.history[slots, parent], self.seen[slots, parent]
        last = (self.length - 1).clamp(min=0)[..., None]
        self.history.scatter_(
            2, last, torch.where(grown[..., None], self.token[..., None], self.history.gather(2, last))
        )
        self.live = grown & (self.token != self.end) & (self.log_prob > -torch.inf)
        self.steps += 1
        self.position += 1

    def _continuations(self, count: int) -> tuple[Tensor, Tensor]:
        """What each beam proposes: log-probabilities and tokens, (slots, beams, choices). A live beam its best
        continuations, an ended one only to stay."""
        slot, beam = self.live.nonzero(as_tuple=True)
        node = (self.nodes[:, None] + self.live.cumsum(1) - 1)[slot, beam]
        self.nodes += self.live.sum(1)
        token = self.token[slot, beam]
        self.seen[slot, beam, node] = (token != self.unseen) | (self.steps[slot] > 0)  # a tail's are all looked at
        self.attention.place(slot, node, self.seen[slot, beam])
        hidden = self.decoder(token, self.position[slot], self.attention)
        best, words = self.top_tokens(hidden, count)
        log_probs = self.log_prob.new_full((*self.live.shape, best.shape[1]), -torch.inf)
        log_probs[..., 0] = 0
        log_probs[slot, beam] = best.double()
        tokens = self.token[..., None].repeat(1, 1, best.shape[1])
        tokens[slot, beam] = words
        return log_probs, tokens

    def finished(self) -> list[tuple[int, list[Beam]]]:
        """The prompts that are done, with their beams; their slots become free."""
        done = (~self.live.any(1) | (self.steps == self.max_length)).cpu() & (self.prompt >= 0)
        where = done.nonzero()[:, 0]
        fields = (self.history, self.log_prob, self.length, ~self.live)
        rows = zip(*(field[where.to(field.device)].tolist() for field in fields), strict=True)
        results = [[_beam(*beam) for beam in zip(*row, strict=True) if beam[1] > -torch.inf] for row in rows]
        prompts = self.prompt[where].tolist()
        self.prompt[where] = -1
        self.live[where.to(self.live.device)] = False
        return list(zip(prompts, results, strict=True))


def _placed(prompt: Sequence[int], unseen: int) -> list[tuple[int, int]]:
    """The tokens of a prompt that need a row, each with its position: those looked at, and the last one, from which
    the continuation is predicted."""
    return [(token, place) for place, token in enumerate(prompt) if token != unseen or place == len(prompt) - 1]


def _beam(history: list[int], log_prob: float, length: int, ended: bool) -> Beam:
    return Beam(tuple(history[: length - ended]), log_prob, log_prob / length, ended)


def _check(decoder: Decoder, prompts: Sequence[Sequence[int]], max_length: int) -> None:
    if decoder.training:
        raise ValueError("the decoder is in training mode, where dropout changes what it says; call eval() first")
    if not all(map(len, prompts)):
        raise ValueError("a prompt is empty; it must hold at least one token to be continued")
    longest, positions = max(map(len, prompts), default=0), decoder.config.positions
    if longest + max_length - 1 > positions:
        raise ValueError(
            f"a prompt of {longest} tokens with tails of {max_length} needs {longest + max_length - 1} positions; "
            f"the decoder has {positions}"
        )
