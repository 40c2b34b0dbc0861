"""The prompts of a COMeT, for a head and a relation's phrase, and the tails that follow them (Bosselut et al. 2019),
as texts and as token ids. Nothing here computes, and PyTorch is not loaded."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tokenizers import AddedToken, Tokenizer
from tokenizers.processors import TemplateProcessing

from mitigate.models.stored_tensors import ANEW, CONFIG, TOKENIZER, read_facts, write_facts

HEAD_TOKENS, RELATION_TOKENS, TAIL_TOKENS = 10, 5, 15
"""The most tokens of each part, as in COMeT; the tail's end token is not counted."""

Layout = Literal["packed", "comet"]
"""The positions of a text's parts: one after the other, or in the fixed slots of the original (the relation at 10, the
tail at 15), whose gaps are padding that no row attends to. There, the first token of a tail is predicted from the last
position of the relation's slot, padding or not."""

TAGS = NEUTRAL_TAG, POLARISED_TAG = "<neutral>", "<polarised>"
"""Control tokens before the head of a prompt, for a generator that was trained with them (Korbak et al. 2023)."""


class PromptFormat(NamedTuple):
    """The layout, wording and control tokens of the prompts that a COMeT is trained and probed with."""

    layout: Layout = "packed"
    relation: str = "phrase"  # which wording of relations: known here by its name only
    tags: str | None = None  # regular expression of the heads with a control token before them; None: no heads


def tagged(heads: Sequence[str], tags: str | None) -> Sequence[str]:
    """Heads as prompts have them: those that match `tags` after the neutral control token, unless they have one."""
    if tags is None:
        return heads
    matches = re.compile(tags).search
    return [f"{NEUTRAL_TAG} {head}" if not head.startswith(TAGS) and matches(head) else head for head in heads]


def as_trained(folder: Path, **wanted: str | None) -> dict[str, str | None]:
    """The values that the COMeT of a folder was trained with, by its config.json; the wanted ones where it has none.
    Raises ValueError where another value than that of its training is wanted."""
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


def read_prompt_format(folder: Path, layout: Layout | None = None, relation: str | None = None) -> PromptFormat:
    """The format of prompts to the model of a Hugging Face folder: for a COMeT that of its training, by its
    config.json; for another language model the given layout and wording.

    Raises ValueError for an unknown layout, and for a layout or wording that the COMeT was not trained with."""
    if layout is not None and layout not in get_args(Layout):
        raise ValueError(f"unknown model.layout {layout!r}; allowed: {', '.join(get_args(Layout))}")
    fields: dict[str, Any] = as_trained(folder, layout=layout, relation=relation, tags=None)
    return PromptFormat(**{name: value for name, value in fields.items() if value is not None})


class Beam(NamedTuple):
    """One continuation of a prompt."""

    tokens: tuple[int, ...]  # END not included
    log_prob: float  # summed over the tokens, and END if it ended
    score: float  # log_prob / number of tokens, END counted
    ended: bool  # False when it was cut at the length limit


# Tokens


TOKENIZER_CONFIG = "tokenizer_config.json"


class Encoding:
    """A tokenizer that adds no tokens of its own to a text."""

    def __init__(self, tokenizer: Tokenizer, *, start: int | None, end: int, pad: int) -> None:
        self.tokenizer = tokenizer
        self.start = start  # put before every prompt, if there is one
        self.end = end
        self.pad = pad
        tokenizer.no_padding()
        tokenizer.no_truncation()

    @property
    def vocab_size(self) -> int:
        return self.tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, lower-cased if the tokenizer does so."""
        return [encoded.ids for encoded in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Clean text; start, end and padding are left out."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True).strip()

    def add(self, tokens: Sequence[str]) -> None:
        """Add special tokens, which the tokenizer finds wherever they occur in a text."""
        self.tokenizer.add_special_tokens([AddedToken(token, special=True) for token in tokens])

    @classmethod
    def load(cls, folder: Path) -> "Encoding":
        """The encoding of a generator's folder: its end token is the config's eos_token, its start what the
        tokenizer itself puts before a text. A tokenizer without an end token, as GPT-1's, is given <END>."""
        tokenizer = open_tokenizer(folder)
        config = read_facts(folder / TOKENIZER_CONFIG)
        before = tokenizer.encode("").ids
        end = _named(config, "eos_token") or "<END>"
        if tokenizer.token_to_id(end) is None:
            tokenizer.add_special_tokens([AddedToken(end, special=True)])
        pad = _named(config, "pad_token") or end
        return cls(tokenizer, start=before[0] if before else None, end=_id(tokenizer, end), pad=_id(tokenizer, pad))

    @classmethod
    def of_encoder(cls, folder: Path) -> "Encoding":
        """The encoding of a BERT-type encoder, made a generator's: [CLS] starts, [SEP] ends."""
        tokenizer = open_tokenizer(folder)
        start, end, pad = (_id(tokenizer, token) for token in ("[CLS]", "[SEP]", "[PAD]"))
        tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", start)])
        return cls(tokenizer, start=start, end=end, pad=pad)

    def save(self, folder: Path) -> None:
        """Write the tokenizer as AutoTokenizer reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(str(folder / TOKENIZER))
        tokens = {"eos_token": self.end, "pad_token": self.pad}
        if self.start is not None:
            tokens["bos_token"] = self.start
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{role: self.tokenizer.id_to_token(token) for role, token in tokens.items()},
            "model_input_names": ["input_ids", "attention_mask"],  # token types would stop `generate`
            "clean_up_tokenization_spaces": False,
        }
        write_facts(folder / TOKENIZER_CONFIG, config)


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder's tokenizer.json. Raises ValueError where the file is absent or damaged."""
    try:
        return Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the tokenizers library raises no narrower one
        raise ValueError(f"{folder / TOKENIZER} is absent or damaged ({error}); {ANEW}") from error


def _id(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_to_id(token)
    if number is None:
        raise ValueError(f"the tokenizer has no token {token!r}, which its config names")
    return number


def _named(config: dict, role: str) -> str | None:
    """A special token's text, which older configs wrap in an object."""
    token = config.get(role)
    return token["content"] if isinstance(token, dict) else token
