"""A decoder that reads a text and fills in a form: choices, each a single token, and short texts after them.

Fields have parents: below a parent whose choice is negative a field has no value, takes no part in the loss and is not
generated. Knows nothing of what the fields mean."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models import minilm
from models.beam import drawn
from models.decoder import UNSEEN, Cached, Decoder, Padded
from models.encoding import Encoding
from models.stored_tensors import read_facts, write_facts

Reads = Literal["both", "left"]
"""The attention among a text's tokens: in both directions, as in an encoder, or to earlier ones only, as in GPT."""

NO, YES, UNKNOWN = range(3)
FORM = "form.json"


class Field(NamedTuple):
    """One field: a choice has the tokens of its values no, yes and unknown; a text has none."""

    name: str
    parent: str | None = None
    tokens: tuple[str, ...] = ()

    @property
    def is_choice(self) -> bool:
        return bool(self.tokens)


@dataclass(frozen=True)
class Example:
    """One text with what its form holds. Alternatives share the choices before the texts."""

    text: list[int]
    choices: list[int]  # NO, YES or UNKNOWN of each choice before the texts
    learnt: list[bool]  # whether each carries loss
    alternatives: list[tuple[list[list[int]], int, bool]] = field(default_factory=list)
    """The tokens of the texts of each alternative (an empty one carries no loss), the last choice, and whether that is
    learnt."""

    @property
    def size(self) -> int:
        """The approximate number of its rows."""
        branches = sum(len(text) + 1 for texts, *_ in self.alternatives for text in texts)
        return len(self.text) + len(self.choices) + branches + len(self.alternatives)


def padded(
    texts: Sequence[Sequence[int]], prefixes: Sequence[int], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Texts side by side, padded on the right: tokens and positions, (texts * length,) each, and which token looks at
    which, (texts, length, length). prefixes: the number of each text's first tokens, which look at each other."""
    tokens = np.zeros((len(texts), max(map(len, texts))), dtype=np.int64)
    for row, text in enumerate(texts):
        tokens[row, : len(text)] = text
    places = np.arange(tokens.shape[1])
    prefix = places < np.array(prefixes)[:, None]
    seen = (places <= places[:, None]) | (prefix[:, :, None] & prefix[:, None, :])
    every = tokens.ravel(), np.tile(places, len(texts)), seen
    return tuple(torch.from_numpy(part).to(device) for part in every)  # type: ignore[return-value]


class Form(nn.Module):
    """A decoder, its encoding, and the fields: first choices, then texts, then one more choice."""

    allowed: Tensor  # (words,) int

    def __init__(
        self,
        decoder: Decoder,
        encoding: Encoding,
        fields: Sequence[Field],
        reads: Reads = "both",
        known: Sequence[str] = (),
        words: Sequence[int] | None = None,
        longest: int = 128,
        longest_text: int = 24,
    ) -> None:
        super().__init__()
        if reads not in get_args(Reads):
            raise ValueError(f"unknown reading {reads!r}; allowed: {', '.join(get_args(Reads))}")
        self.decoder = decoder
        self.encoding = encoding
        self.fields = list(fields)
        self.reads = reads
        self.known = list(known)  # choices that some example gave a value; others are never asked
        self.longest = longest  # tokens of a text that are read
        self.longest_text = longest_text  # tokens of a text field, its end not counted
        self.first = [f for f in self.fields[:-1] if f.is_choice]
        self.texts = [f for f in self.fields if not f.is_choice]
        self.last = self.fields[-1]
        missing = [t for f in self.fields for t in f.tokens if encoding.tokenizer.token_to_id(t) is None]
        if missing:
            encoding.add(missing)
            decoder.grow(encoding.vocab_size)
        vocabulary = encoding.tokenizer.get_vocab(with_added_tokens=True)
        ids = {f.name: [vocabulary[t] for t in f.tokens] for f in self.fields}
        self.ids = {name: tokens for name, tokens in ids.items() if tokens}
        self.end = encoding.end  # ends the text, the choices and each text field
        every = [
            token for token in range(encoding.vocab_size) if token not in {t for ids in self.ids.values() for t in ids}
        ]
        self.words = sorted({*words, self.end}) if words is not None else every  # that a text field can have
        self.register_buffer("allowed", torch.tensor(self.words), persistent=False)

    def restrict(self, texts: Sequence[str]) -> None:
        """Restrict text fields to the words of these texts: a small part of a vocabulary costs little."""
        self.words = sorted({token for tokens in self.encoding.encode(texts) for token in tokens} | {self.end})
        self.allowed = torch.tensor(self.words, device=self.allowed.device)

    @property
    def start(self) -> int:
        return self.end if self.encoding.start is None else self.encoding.start

    def read(self, texts: Sequence[str]) -> list[list[int]]:
        """The start, the tokens of each text, cut to the longest, and the end."""
        return [[self.start, *tokens[: self.longest], self.end] for tokens in self.encoding.encode(texts)]

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The mean over learnt choices of minus the log-likelihood of the value against the other one, plus the mean
        over learnt tokens of texts of minus theirs."""
        rows, prefixes, learnt = zip(*(row for one in examples for row in self._rows(one)), strict=True)
        device, weight = self.decoder.token_embedding.weight.device, self.decoder.token_embedding.weight
        tokens, positions, seen = padded(rows, prefixes, device)  # seen: (rows, length, length)
        attention = Padded(len(rows), self.decoder.config.dropout if self.training else 0.0, seen)
        hidden = self.decoder(tokens, positions, attention)
        total, length = hidden.new_zeros(()), seen.shape[1]
        targets = [(row * length + at, token) for row, of_row in enumerate(learnt) for at, token in of_row]
        pair_of = {token: ids[:UNKNOWN] for ids in self.ids.values() for token in ids[:UNKNOWN]}
        choices = [(at, token, pair_of[token]) for at, token in targets if token in pair_of]
        texts = [(at, token) for at, token in targets if token not in pair_of]
        if choices:
            at, tokens, pairs = (torch.tensor(part, device=device) for part in zip(*choices, strict=True))
            logits = (hidden[at][:, None] * weight[pairs]).sum(-1)
            if self.decoder.bias is not None:
                logits = logits + self.decoder.bias[pairs]
            total = total + F.cross_entropy(logits.float(), (tokens == pairs[:, YES]).long())
        if texts:
            at, tokens = (torch.tensor(part, device=device) for part in zip(*texts, strict=True))
            logits = self.decoder.logits(hidden[at], self.allowed).float()
            total = total + F.cross_entropy(logits, torch.searchsorted(self.allowed, tokens))
        return total

    def prefix(self, size: int) -> int:
        """The number of tokens that look at each other of a text with so many."""
        return size if self.reads == "both" else 0

    def _rows(self, example: Example) -> list[tuple[list[int], int, list[tuple[int, int]]]]:
        """A row for each alternative: its tokens, the number of those that look at each other, and what is learnt: the
        place that predicts, and the token. The first learns what alternatives share."""
        size = len(example.text)
        chosen = [self.ids[f.name][value] for f, value in zip(self.first, example.choices, strict=True)]
        targets = [(size + at - 1, chosen[at]) for at, learnt in enumerate(example.learnt) if learnt]
        rows = []
        for texts, last, learnt in example.alternatives or [([], UNKNOWN, False)]:
            tokens = [*example.text, *chosen, self.end]
            for text in texts:
                part = [*text[: self.longest_text], self.end]
                targets += [(len(tokens) + at - 1, token) for at, token in enumerate(part) if text]
                tokens += part
            targets += [(len(tokens) - 1, self.ids[self.last.name][last])] * learnt
            rows.append((tokens, self.prefix(size), targets))
            targets = []
        return rows

    def parents(self, name: str) -> list[str]:
        """The parents of a field, the nearest first."""
        by_name = {f.name: f.parent for f in self.fields}
        found = []
        while (parent := by_name[name]) is not None:
            found.append(name := parent)
        return found

    def save(self, folder: Path) -> None:
        """Write the decoder and tokenizer as AutoModelForCausalLM and AutoTokenizer read them, and form.json. With
        reads="left" `generate` continues a text as `fill_in` does; with "both" it does not."""
        self.decoder.save(folder, bos_token_id=self.start, eos_token_id=self.end, pad_token_id=self.encoding.pad)
        self.encoding.save(folder)
        facts = {
            "fields": [f._asdict() for f in self.fields],
            **{name: getattr(self, name) for name in ("reads", "known", "words", "longest", "longest_text")},
        }
        write_facts(folder / FORM, facts)

    @classmethod
    def load(cls, folder: Path) -> "Form":
        """Load a form that `save` wrote."""
        facts = read_facts(folder / FORM)
        fields = [Field(f["name"], f["parent"], tuple(f["tokens"])) for f in facts.pop("fields")]
        return cls(Decoder.load(folder), Encoding.load(folder), fields, **facts).eval()

    @classmethod
    def from_encoder(cls, folder: Path, fields: Sequence[Field], dropout: float = 0.1, **facts: object) -> "Form":
        """An untrained form that knows words from all-MiniLM-L6-v2."""
        return cls(minilm.causal(folder, dropout), Encoding.of_encoder(folder), fields, **facts)  # type: ignore[arg-type]

    @classmethod
    def from_language_model(
        cls, folder: Path, fields: Sequence[Field], dropout: float | None = None, **facts: object
    ) -> "Form":
        """An untrained form that continues from the GPT-1 or GPT-2 of a Hugging Face folder. dropout: that of training;
        None: that of the folder's config."""
        decoder, encoding = Decoder.load(folder, dropout), Encoding.load(folder)
        if encoding.vocab_size > decoder.config.vocab_size:
            decoder.grow(encoding.vocab_size)
        return cls(decoder, encoding, fields, **facts)  # type: ignore[arg-type]


# Completion: many texts are read at once, and each is continued a token at a time


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
        self.device = form.decoder.token_embedding.weight.device
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
        texts = [tuple(map(tuple, said)) for said in self.said]
        fields = self.log_probs, map(tuple, self.choices.tolist()), texts, self.text_log_prob.tolist()
        return [Filled(*parts) for parts in zip(*fields, strict=True)]

    def _read(self) -> None:
        sizes = [len(text) for text in self.texts]
        tokens, positions, seen = padded(self.texts, [self.form.prefix(size) for size in sizes], self.device)
        lengths, bias = torch.tensor(sizes), torch.zeros(seen.shape, device=self.device).masked_fill(~seen, UNSEEN)
        # Filling is looked at by nothing that counts: below, the last row of each text is the one that goes on.
        self.attention = Cached(bias)
        hidden = self.form.decoder(tokens, positions, self.attention).unflatten(0, (len(self.texts), -1))
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
            log_probs = form.decoder.logits(self.hidden, form.allowed).float().log_softmax(1)
            if step == form.longest_text:
                places = torch.full((len(self.rows),), int(torch.searchsorted(form.allowed, form.end)))
            elif self.chances is None:
                places = log_probs.argmax(1)
            else:
                places = drawn(log_probs, torch.from_numpy(self.chances[self.rows.numpy(), self.drawn]))
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
