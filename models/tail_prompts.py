"""The prompts of a COMeT, for a head and a relation's phrase, and the tails that follow them (Bosselut et al. 2019), as
tokens and as texts. Nothing here computes, and PyTorch is not loaded."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from mitigate.models.stored_tensors import CONFIG, read_facts

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
