"""A form that a language model fills in after reading a post: the line of equation 1 of Social Bias Frames (Sap et al.
2020) has four choices, each one token, then the targeted group, the implied statement, and one more choice.

`generate` of transformers fills it in greedily; a logits processor allows the tokens that can stand at each place."""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, LogitsProcessor, LogitsProcessorList

from mitigate.models.hub import load_without_code
from mitigate.models.stored_tensors import read_facts, write_facts
from mitigate.models.tail_prompts import Encoding

CHOICES = ("lewd", "offensive", "intent", "targeted", "ingroup")
"""The classifications in the order of equation 1; the texts stand before the last one."""

TEXTS = ("group", "implied")
NO, YES, UNKNOWN = range(3)  # values of a choice, and their tokens: [offN], [offY], [offU]
TOKENS = [[f"[{name}{value}]" for value in "NYU"] for name in ("lewd", "off", "int", "grp", "ing")]
PARENTS = {"targeted": ["offensive"], "ingroup": ["offensive", "targeted"]}
"""A choice, and so a text, has a value only where no parent is negative (Section 2, Figure 4). The parents of texts are
those of `ingroup`."""

FILE = "form.json"


class Form:
    """The parts of a form besides the network, stored beside the network's files in form.json."""

    def __init__(
        self,
        encoding: Encoding,
        known: Sequence[str],
        words: Iterable[int] = (),
        longest: int = 128,
        longest_text: int = 24,
    ) -> None:
        self.encoding, self.end = encoding, encoding.end  # ends the post, the first choices and each text
        self.known = list(known)  # the choices that the network has learnt; others are unknown
        self.longest, self.longest_text = longest, longest_text  # tokens of a post, and of a text
        missing = [token for token in chain(*TOKENS) if encoding.tokenizer.token_to_id(token) is None]
        encoding.add(missing)
        self.ids = torch.tensor([[encoding.tokenizer.token_to_id(token) for token in row] for row in TOKENS])
        self.words = sorted({*words, self.end})  # tokens that texts can have

    @property
    def start(self) -> int:
        return self.end if self.encoding.start is None else self.encoding.start

    def read(self, posts: Sequence[str]) -> list[list[int]]:
        """The start, the tokens of each post, cut to the longest, and the end."""
        return [[self.start, *tokens[: self.longest], self.end] for tokens in self.encoding.encode(posts)]

    def save(self, folder: Path) -> None:
        """Write the tokenizer and form.json."""
        self.encoding.save(folder)
        names = ("known", "words", "longest", "longest_text")
        write_facts(folder / FILE, {name: getattr(self, name) for name in names})

    @classmethod
    def load(cls, folder: Path) -> "Form":
        """The form that `save` wrote. Raises ValueError for one of version 0.2."""
        facts = read_facts(folder / FILE)
        if "reads" in facts:
            raise ValueError(f"{folder} is of version 0.2, whose models read posts in another way; train it again")
        return cls(Encoding.load(folder), **facts)


class Filled(NamedTuple):
    """Filled forms of n posts."""

    choices: np.ndarray  # (n, 5) NO, YES or UNKNOWN
    log_probs: np.ndarray  # (n, 5, 2) of no and yes; NaN below a negative parent, and for unknown choices
    texts: list[tuple[str, ...]]  # group and implied statement, "" where there is none


class Allowed(LogitsProcessor):
    """Allows the tokens that continue a form, and keeps the log-probabilities of its choices. begin: the length of the
    prompts; always: texts are written whatever the choices are."""

    def __init__(self, form: Form, rows: int, begin: int, always: bool, device: torch.device) -> None:
        self.form, self.begin, self.always = form, begin, always
        self.ids, self.words = form.ids.to(device), torch.tensor(form.words, device=device)
        self.log_probs = torch.full((rows, len(CHOICES), 2), torch.nan, device=device)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # (rows, length), (rows, vocab_size)
        written, end = input_ids[:, self.begin :], self.form.end
        allowed = torch.zeros_like(scores, dtype=torch.bool)
        place, last = written.shape[1], len(CHOICES) - 1
        if place < last:
            self._choose(allowed, scores, written, place, torch.ones_like(allowed[:, 0]))
        elif place == last:
            has_texts = self._is_open(written, last) | self.always
            allowed[:, end] = has_texts
            self._choose(allowed, scores, written, last, ~has_texts)
        else:
            ends = (written == end).sum(1)  # (rows,): the first ends the choices, each of the others a text
            in_text = ends <= len(TEXTS)
            text_length = written.flip(1).eq(end).int().argmax(1)  # tokens after the last end
            allowed[:, self.words] = (in_text & (text_length < self.form.longest_text))[:, None]
            allowed[:, end] = in_text
            done = torch.isin(written, self.ids[last]).any(1)
            self._choose(allowed, scores, written, last, ~in_text & ~done)
        return scores.masked_fill(~allowed, -torch.inf)

    def _is_open(self, written: Tensor, number: int) -> Tensor:
        """A mask (rows,): True where no parent of a choice is negative."""
        parents = [CHOICES.index(name) for name in PARENTS.get(CHOICES[number], [])]
        return ~(written[:, parents] == self.ids[parents, NO]).any(1)

    def _choose(self, allowed: Tensor, scores: Tensor, written: Tensor, number: int, rows: Tensor) -> None:
        """Allow the values of a choice where rows (rows,) is True: no and yes, or no alone below a negative parent."""
        no, yes, unknown = self.ids[number]
        if CHOICES[number] not in self.form.known:
            allowed[rows, unknown] = True
            return
        is_open = rows & self._is_open(written, number)
        allowed[rows, no] = True
        allowed[is_open, yes] = True
        self.log_probs[is_open, number] = scores[is_open][:, [no, yes]].log_softmax(1)


def open_form(folder: Path) -> tuple[Form, Any]:
    """The form of a folder and its network, of transformers."""
    return Form.load(folder), load_without_code(AutoModelForCausalLM, folder).eval()


@torch.inference_mode()
def fill_in(
    form: Form, network: Any, posts: Sequence[str], *, always: bool = False, choices_only: bool = False, rows: int = 128
) -> Filled:
    """Fill in the form of each post greedily. always: texts are written whatever the choices are; choices_only: only
    the choices before the texts are filled in."""
    prompts = form.read(posts)
    filled = Filled(
        np.full((len(posts), len(CHOICES)), UNKNOWN),
        np.full((len(posts), len(CHOICES), 2), np.nan),
        [("",) * len(TEXTS)] * len(posts),
    )
    order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    longest = len(CHOICES) - 1 if choices_only else len(CHOICES) + 1 + len(TEXTS) * (form.longest_text + 1)
    values = {token: value for row in form.ids.tolist() for value, token in enumerate(row)}
    for first in range(0, len(order), rows):
        places = order[first : first + rows]
        batch = [torch.tensor(prompts[place], device=network.device) for place in places]
        mask = pad_sequence([torch.ones_like(prompt) for prompt in batch], True, 0, "left")  # (rows, length)
        allowed = Allowed(form, mask.shape[0], mask.shape[1], always, network.device)
        written = network.generate(
            input_ids=pad_sequence(batch, True, form.encoding.pad, "left"),
            attention_mask=mask,
            logits_processor=LogitsProcessorList([allowed]),
            max_new_tokens=longest,
            do_sample=False,
            eos_token_id=form.ids[-1].tolist(),
            pad_token_id=form.encoding.pad,
        )[:, mask.shape[1] :].tolist()
        filled.log_probs[places] = allowed.log_probs.cpu().numpy()
        for place, line in zip(places, written, strict=True):
            choices = [values[token] for token in line if token in values]
            filled.choices[place, : len(choices)] = choices
            ends = [position for position, token in enumerate(line) if token == form.end][: len(TEXTS) + 1]
            parts = (line[before + 1 : end] for before, end in pairwise(ends))
            filled.texts[place] = tuple(map(form.encoding.decode, parts)) or filled.texts[place]
    return filled
