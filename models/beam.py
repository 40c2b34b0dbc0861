"""COMeT's beam search (models/beam_state.py) with a network on rows, exact, many prompts at a time.

A prompt works in a slot of its own and does not see the others; when some slots are free, waiting prompts move in,
so that the processor always has many rows to multiply."""

from collections.abc import Sequence

import torch
from torch import Tensor

from models.beam_state import Beams, best_tokens
from models.decoder import Decoder
from models.tail_prompts import Beam, check_prompts
from models.tree_attention import SharedPrefixes, TreeAttention


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
) -> list[list[Beam]]:
    """The best continuations of each prompt, the best first: at most `beams` of them, of at most max_length
    tokens, END counted.

    unseen is a token that nothing looks at where it stands in a prompt: the padding between its parts. rows is the
    most beams worked on at a time: it sets memory and speed, not the result. Computes in the decoder's own precision
    (log-probabilities are summed in float64), so a copy of it in bfloat16 gives an approximate search. Raises
    ValueError for a decoder in training mode, an empty prompt or one too long for the decoder's positions."""
    _check(decoder, prompts, max_length)
    if not prompts:
        return []
    unseen = -1 if unseen is None else unseen  # which is no token
    slots = min(max(1, rows // beams), len(prompts))
    search = _Search(decoder, prompts, end, unseen, beams, max_length, slots)
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
    """The prompts at work, each in a slot."""

    def __init__(
        self,
        decoder: Decoder,
        prompts: Sequence[Sequence[int]],
        end: int,
        unseen: int,
        beams: int,
        max_length: int,
        slots: int,
    ) -> None:
        weight = decoder.words.weight
        device = weight.device
        self.decoder = decoder
        self.unseen, self.slots = unseen, slots
        self.prompts = [_placed(prompt, unseen) for prompt in prompts]
        nodes = max(map(len, self.prompts)) + beams * (max_length - 1)
        self.attention = TreeAttention(decoder.config, slots, like=weight)
        self.beams = Beams(slots, beams, max_length, end, device)
        self.prompt = torch.full((slots,), -1)  # which prompt is in the slot; -1 when it is free
        self.position = torch.zeros(slots, dtype=torch.long, device=device)  # of the tokens that come next
        self.seen = torch.zeros(slots, beams, nodes, dtype=torch.bool, device=device)  # a beam's nodes

    def busy(self) -> bool:
        return bool((self.prompt >= 0).any())

    def free(self) -> list[int]:
        return (self.prompt < 0).nonzero()[:, 0].tolist()

    def admit(self, slots: list[int], prompts: list[int]) -> None:
        """Put prompts into free slots: all tokens but the last become nodes, the last is the only live beam's."""
        device = self.seen.device
        prefixes = [self.prompts[p][:-1] for p in prompts]
        if any(prefixes):
            shared = SharedPrefixes(self.attention, slots, prefixes)
            self.decoder(shared.tokens, shared.positions, shared)
        where = torch.tensor(slots, device=device)
        prefix = torch.tensor([len(prefix) for prefix in prefixes], device=device)
        tokens, positions = torch.tensor([self.prompts[p][-1] for p in prompts], device=device).T
        self.prompt[where.cpu()] = torch.tensor(prompts)
        self.position[where] = positions
        self.beams.begin(where)
        self.beams.token[where, 0] = tokens
        self.seen[where] = torch.arange(self.seen.shape[2], device=device) < prefix[:, None, None]

    def step(self) -> None:
        """Each prompt's beams one token further."""
        live, steps = self.beams.live, self.beams.steps
        slot, beam = live.nonzero(as_tuple=True)
        node = self._unused()[slot, (live.cumsum(1) - 1)[slot, beam]]
        token = self.beams.token[slot, beam]
        self.seen[slot, beam, node] = (token != self.unseen) | (steps[slot] > 0)  # a tail's are all looked at
        self.attention.place(slot, node, self.seen[slot, beam])
        hidden = self.decoder(token, self.position[slot], self.attention)
        parent = self.beams.advance(*best_tokens(self.decoder.logits(hidden), live.shape[1]))
        self.seen = self.seen[torch.arange(self.slots, device=parent.device)[:, None], parent]
        self.position += 1

    def _unused(self) -> Tensor:
        """The first nodes of each slot that no live beam sees, (slots, beams). Nodes of dead branches are used again,
        so that trees stay small."""
        used = (self.seen & self.beams.live[..., None]).any(1)  # (slots, nodes)
        return used.byte().sort(dim=1, stable=True).indices[:, : self.seen.shape[1]]

    def finished(self) -> list[tuple[int, list[Beam]]]:
        """The prompts that are done, with their beams; their slots become free."""
        where = (self.beams.done.cpu() & (self.prompt >= 0)).nonzero()[:, 0]
        prompts = self.prompt[where].tolist()
        self.prompt[where] = -1
        return list(zip(prompts, self.beams.take(where.to(self.seen.device)), strict=True))


def _placed(prompt: Sequence[int], unseen: int) -> list[tuple[int, int]]:
    """The tokens of a prompt that need a row, each with its position: those looked at, and the last one, from which
    the continuation is predicted."""
    return [(token, place) for place, token in enumerate(prompt) if token != unseen or place == len(prompt) - 1]


def _check(decoder: Decoder, prompts: Sequence[Sequence[int]], max_length: int) -> None:
    if decoder.training:
        raise ValueError("the decoder is in training mode, where dropout changes what it says; call eval() first")
    check_prompts(prompts, max_length, decoder.config.positions)
