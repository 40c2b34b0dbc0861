"""Completion of forms: many texts are read at once, and each is continued a token at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.decoder import UNSEEN, Cached
from models.form import NO, UNKNOWN, YES, Field, Form, LaidOut, Rows


class Filled(NamedTuple):
    """A form as it was generated."""

    log_probs: np.ndarray  # (choices, 2) of no and yes; NaN where not asked
    choices: tuple[int, ...]  # greedy, NO, YES or UNKNOWN, in the order of the fields
    texts: tuple[tuple[int, ...], ...]
    text_log_prob: float  # of all tokens of the texts, their ends counted


@torch.inference_mode()
def fill_in(
    form: Form,
    texts: Sequence[Sequence[int]],
    *,
    chances: np.ndarray | None = None,
    always: bool = False,
    choices_only: bool = False,
    rows: int = 128,
) -> list[Filled]:
    """The form of each text (as `read` returns them), greedily; with chances, (texts, texts' tokens) in [0, 1), the
    text fields are drawn. always: text fields are generated whatever the choices are; choices_only: they never are.

    A choice that is not known is taken as unknown, and no other is than yes or no: no form is malformed."""
    if form.training:
        raise ValueError("the form is in training mode, where dropout changes what it says; call eval() first")
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    found: list[Filled | None] = [None] * len(texts)
    for begin in range(0, len(order), rows):
        places = order[begin : begin + rows]
        drawn = None if chances is None else chances[places]
        filling = _Filling(form, [texts[i] for i in places], drawn, always)
        for place, filled in zip(places, filling.run(choices_only), strict=True):
            found[place] = filled
    return [filled for filled in found if filled is not None]


class _Filling:
    """One batch of forms on their way."""

    def __init__(self, form: Form, texts: Sequence[Sequence[int]], chances: np.ndarray | None, always: bool) -> None:
        self.form, self.texts, self.chances, self.always = form, texts, chances, always
        self.device = form.decoder.words.weight.device
        self.rows = torch.arange(len(texts))  # which texts go on
        self.log_probs = np.full((len(texts), len(form.ids), 2), np.nan)
        self.choices = np.full((len(texts), len(form.ids)), UNKNOWN)
        self.said: list[list[list[int]]] = [[[] for _ in form.texts] for _ in texts]
        self.text_log_prob = np.zeros(len(texts))
        self.drawn = 0

    def run(self, choices_only: bool) -> list[Filled]:
        self._read()
        for number, f in enumerate(self.form.first):
            self._choose(number, f, put=not choices_only or number + 1 < len(self.form.first))
        self._keep(
            torch.zeros(len(self.rows), dtype=torch.bool) if choices_only else self._open(self.form.texts[0].name)
        )
        if len(self.rows):
            self._put(np.full(len(self.rows), self.form.end))
            for number in range(len(self.form.texts)):
                self._write(number)
            self._choose(len(self.form.first), self.form.last, put=False)
        return [
            Filled(*parts)
            for parts in zip(
                self.log_probs,
                map(tuple, self.choices.tolist()),
                [tuple(map(tuple, said)) for said in self.said],
                self.text_log_prob.tolist(),
                strict=True,
            )
        ]

    def _read(self) -> None:
        laid = []
        for text in self.texts:
            one = LaidOut(prefix=len(text))
            one.add(text, -1)
            laid.append(one)
        rows = Rows(laid, self.device, self.form.reads)
        lengths = torch.tensor([len(text) for text in self.texts])
        bias = torch.zeros(rows.seen.shape, device=self.device).masked_fill(~rows.seen, UNSEEN)
        # Filling is looked at by nothing that counts: below, the last row of each text is the one that goes on.
        self.attention = Cached(bias)
        hidden = self.form.decoder(rows.tokens, rows.positions, self.attention).unflatten(0, (len(self.texts), -1))
        ends = torch.arange(len(self.texts)), lengths - 1
        self.hidden = hidden[ends]
        self.attention.bias = bias[ends][:, None]
        self.place = lengths.to(self.device)

    def _choose(self, number: int, f: Field, put: bool = True) -> None:
        form = self.form
        ids = torch.tensor(form.ids[f.name], device=self.device)
        logits = form.decoder.logits(self.hidden, ids).float()
        pair = logits[:, [NO, YES]].log_softmax(1).cpu().numpy()
        rows = self.rows.numpy()
        value = pair.argmax(1)
        is_open = self._open(f.name).numpy()
        if f.name in form.known:
            self.log_probs[rows[is_open], number] = pair[is_open]
            self.choices[rows, number] = np.where(is_open, value, NO)
        else:
            self.choices[rows, number] = UNKNOWN
        if put:
            self._put(ids.cpu().numpy()[self.choices[rows, number]])

    def _open(self, name: str) -> Tensor:
        """A mask (rows,) of the continued texts: True where no parent of the field is negative."""
        number = {name: at for at, name in enumerate(self.form.ids)}
        if self.always and name in [f.name for f in self.form.texts]:
            return torch.ones(len(self.rows), dtype=torch.bool)
        values = self.choices[self.rows.numpy()]
        closed = [values[:, number[parent]] == NO for parent in self.form.parents(name)]
        return torch.from_numpy(~np.any(closed, 0)) if closed else torch.ones(len(self.rows), dtype=torch.bool)

    def _put(self, tokens: np.ndarray) -> None:
        """Append one token to every text that is continued."""
        self.attention.grow()
        given = torch.from_numpy(tokens).to(self.device)
        self.hidden = self.form.decoder(given, self.place, self.attention)
        self.place = self.place + 1

    def _keep(self, kept: Tensor) -> None:
        where = kept.nonzero()[:, 0]
        self.rows, self.hidden, self.place = self.rows[where], self.hidden[where], self.place[where]
        self.attention.keep(where)

    def _write(self, number: int) -> None:
        """Write one text field of all continued texts. Texts that have ended wait, and read an end that counts once."""
        form = self.form
        waiting = np.zeros(len(self.rows), bool)
        for step in range(form.longest_text + 1):
            log_probs = form.word_logits(self.hidden).log_softmax(1)
            if step == form.longest_text:
                places = torch.full((len(self.rows),), int(torch.searchsorted(form.allowed, form.end)))
            elif self.chances is None:
                places = log_probs.argmax(1)
            else:
                places = _drawn(log_probs, self.chances[self.rows.numpy(), self.drawn])
            self.drawn += 1
            places = places.to(self.device)
            tokens = form.allowed[places].cpu().numpy()
            chosen = log_probs.gather(1, places[:, None])[:, 0].cpu().numpy()
            live = ~waiting
            self.text_log_prob[self.rows.numpy()[live]] += chosen[live]
            for row in np.flatnonzero(live & (tokens != form.end)):
                self.said[self.rows[row]][number].append(int(tokens[row]))
            waiting |= tokens == form.end
            self._step(tokens, live)
            if waiting.all():
                return

    def _step(self, tokens: np.ndarray, live: np.ndarray) -> None:
        """One more token for those that are live; for the others nothing that anyone will look at."""
        before, place = self.hidden, self.place
        self._put(tokens)
        if not live.all():
            still = torch.from_numpy(live).to(self.device)
            self.hidden = torch.where(still[:, None], self.hidden, before)
            self.place = torch.where(still, self.place, place)
            self.attention.bias = self.attention.bias.clone()
            self.attention.bias[~still, :, -1] = UNSEEN


def _drawn(log_probs: Tensor, chances: np.ndarray) -> Tensor:
    """The token that each chance stands for, the likeliest first."""
    likeliest, tokens = log_probs.double().sort(dim=1, descending=True)
    shares = likeliest.exp().cumsum(1)
    chance = torch.from_numpy(chances).to(shares.device)[:, None] * shares[:, -1:]
    place = (shares <= chance).sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)
    return tokens.gather(1, place)[:, 0]
