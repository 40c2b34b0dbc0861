"""The prompts of a COMeT, for a head and a relation's phrase, and the tails that follow them (Bosselut et al. 2019), as
tokens and as texts. Nothing here computes, and PyTorch is not loaded."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from models.encoding import Encoding
from models.stored_tensors import read_facts

CONFIG = "config.json"
HEAD_TOKENS, RELATION_TOKENS, TAIL_TOKENS = 10, 5, 15
"""The most tokens of each part, as in COMeT; the tail's end token is not counted."""

Layout = Literal["packed", "comet"]
"""The positions of a text's parts: one after the other, or in the fixed slots of the original (the relation at 10, the
tail at 15), whose gaps are padding that no row attends to. There, the first token of a tail is predicted from the last
place of the relation's slot, padding or not."""


TAGS = NEUTRAL_TAG, POLARISED_TAG = "<neutral>", "<polarised>"
"""Control tokens before the head of a prompt, for a generator that was trained with them (Korbak et al. 2023)."""


class Regimen(NamedTuple):
    """The layout, wording and control tokens that a COMeT is trained and prompted with."""

    layout: Layout = "packed"
    relation: str = "phrase"  # which wording of relations: known here by its name only
    tags: str | None = None  # regular expression of the heads that have a control token before them; None: no heads


def tagged(heads: Sequence[str], tags: str | None) -> Sequence[str]:
    """Heads as prompts have them: after the neutral control token, unless they have one already, or are none of those
    that were trained with one."""
    if tags is None:
        return heads
    begins = re.compile(tags).search
    return [f"{NEUTRAL_TAG} {head}" if not head.startswith(TAGS) and begins(head) else head for head in heads]


def as_trained(folder: Path, **wanted: str | None) -> dict[str, str | None]:
    """Values that a COMeT was trained with by the config.json of its folder, else what is wanted.

    Raises ValueError where the COMeT was trained with something else."""
    path = folder / CONFIG  # which the folder of a mere tokenizer may lack
    config = read_facts(path) if path.is_file() else {}
    trained = {name: config[f"comet_{name}"] for name in wanted if f"comet_{name}" in config}
    for name, value in trained.items():
        if wanted[name] not in (None, value):
            raise ValueError(
                f"model.{name}={wanted[name]}, but the COMeT in {folder} was trained with model.{name}={value}; give "
                f"that, or null"
            )
    return wanted | trained


def regimen(folder: Path, layout: Layout | None = None, relation: str | None = None) -> Regimen:
    """The layout and wording for prompts to the model of a Hugging Face folder: for a COMeT those of its training, from
    its config.json; for another language model the given ones.

    Raises ValueError for an unknown layout, and for a layout or wording that the COMeT was not trained with."""
    if layout is not None and layout not in get_args(Layout):
        raise ValueError(f"unknown model.layout {layout!r}; allowed: {', '.join(get_args(Layout))}")
    found: dict[str, Any] = as_trained(folder, layout=layout, relation=relation, tags=None)
    return Regimen(**{name: value for name, value in found.items() if value is not None})


class Beam(NamedTuple):
    """One continuation of a prompt."""

    tokens: tuple[int, ...]  # END not included
    log_prob: float  # summed over the tokens, and END if it ended
    score: float  # log_prob / number of tokens, END counted
    ended: bool  # False when it was cut at the length limit


class TailPrompts:
    """Texts to tokens and back, for a generator with an encoding and the layout of its training."""

    encoding: Encoding
    layout: Layout
    tags: str | None = None

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens before a tail: the start token if there is one, the head (of a generator with control tokens the
        neutral one, then the head), the relation's phrase."""
        start = [] if self.encoding.start is None else [self.encoding.start]
        pairs = zip(self.encoding.encode(tagged(heads, self.tags)), self.encoding.encode(phrases), strict=True)
        parts = [(head[:HEAD_TOKENS], phrase[:RELATION_TOKENS]) for head, phrase in pairs]
        if self.layout == "comet":
            return [self._slot(head, HEAD_TOKENS) + self._slot(phrase, RELATION_TOKENS) for head, phrase in parts]
        return [start + head + phrase for head, phrase in parts]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens to generate: the tail and the end token."""
        return [[*tail[:TAIL_TOKENS], self.encoding.end] for tail in self.encoding.encode(tails)]

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        return self.encoding.decode(tail)

    @property
    def unseen(self) -> int | None:
        """The padding token, which no row attends to within a prompt; None with a layout without padding. In a tail it
        is a word like others: the original pads with GPT-1's token 0, a full stop within a word."""
        return self.encoding.pad if self.layout == "comet" else None

    def _slot(self, tokens: list[int], size: int) -> list[int]:
        return tokens + [self.encoding.pad] * (size - len(tokens))


def check_prompts(prompts: Sequence[Sequence[int]], max_length: int, positions: int) -> None:
    """Raise ValueError for an empty prompt, and for one too long for a decoder's positions."""
    if not all(map(len, prompts)):
        raise ValueError("a prompt is empty; it must hold at least one token to be continued")
    longest = max(map(len, prompts), default=0)
    if longest + max_length - 1 > positions:
        raise ValueError(
            f"a prompt of {longest} tokens with tails of {max_length} needs {longest + max_length - 1} positions; "
            f"the decoder has {positions}"
        )
