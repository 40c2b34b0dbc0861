"""The base of models of transformers that are prompted and trained as a COMeT."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import AddedToken, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import CausalLMOutputWithPast

from models.adapters import WHOLE, Learning, is_adapter, load_merged
from models.beam import Reading, beam_search
from models.hf_layouts import CONFIG
from models.hub import no_bars, opened, without_code
from models.stored_tensors import read_facts
from models.tail_prompts import Beam

CACHE = next(field.name for field in fields(CausalLMOutputWithPast) if field.name in ("cache", "past_key_values"))
"""The name that models of transformers give their cache, as an argument and in their output. transformers 5.24 warns of
the old name, past_key_values, which ends with 5.40."""
SHOWN = 60  # characters of a prompt that is too long
TEXTS = 64  # whose logits are held at a time: 25 tokens each of 50,000 words are 320 MB


class OfTransformers(nn.Module, ABC):
    """A model and its tokenizer. A tail ends with the tokenizer's own end token, or is cut."""

    PROMPTS: tuple[str, ...]  # forms of a prompt, the default first

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relation: str = "phrase",
        learning: Learning = WHOLE,
    ) -> None:
        super().__init__()
        self.learning = learning
        self.model: Any = model  # PreTrainedModel itself has no `generate`; the models of a kind have
        self.tokenizer = tokenizer
        self.relation = relation
        self.tags: str | None = None  # see Regimen
        self.end = tokenizer.eos_token_id
        self.pad = self.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    @abstractmethod
    def logits(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> tuple[Tensor, Sequence[int]]:
        """The logits of texts, (texts, length, vocab_size), and for each text the place where its tail's first token is
        predicted."""

    @abstractmethod
    def needed(self, prompt: int, tail: int) -> int:
        """The number of positions for a prompt and a tail of these numbers of tokens; the last token of a tail is never
        read."""

    @abstractmethod
    def reading(self) -> Reading:
        """The model that reads prompts and continues them."""

    @property
    def positions(self) -> int | None:
        """The largest number of tokens of a text; None where the model sets no limit."""
        return getattr(self.model.config, "max_position_embeddings", None)

    def check_length(self, prompts: Sequence[Sequence[int]], tails: Sequence[int]) -> None:
        """Check the length of prompts with their tails; raise ValueError for the first that is too long. tails: the
        largest number of tokens of each prompt's tail."""
        if (limit := self.positions) is None:
            return
        for prompt, tail in zip(prompts, tails, strict=True):
            if (needed := self.needed(len(prompt), tail)) > limit:
                raise ValueError(
                    f"a prompt of {len(prompt)} tokens with a tail of {tail} needs {needed} positions; the model has "
                    f"{limit}. The prompt begins: {self.decode(prompt)[:SHOWN]}"
                )

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order. Raises ValueError for texts that are
        too long."""
        self.check_length(prompts, [len(tail) for tail in tails])
        found = []
        for start in range(0, len(tails), TEXTS):
            said = tails[start : start + TEXTS]
            logits, firsts = self.logits(prompts[start : start + TEXTS], said)
            rows = [row for row, tail in enumerate(said) for _ in tail]
            places = [first + place for first, tail in zip(firsts, said, strict=True) for place in range(len(tail))]
            words = torch.tensor([token for tail in said for token in tail], device=logits.device)
            found.append(F.cross_entropy(logits[rows, places].float(), words, reduction="none"))
        return torch.cat(found)

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search). Raises ValueError for prompts that
        are too long."""
        self.check_length(prompts, [max_length] * len(prompts))
        device, limits = self.model.device, {"beams": beams, "max_length": max_length, "rows": rows}
        return beam_search(self.reading, prompts, end=self.end, device=device, **limits)

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text, in one line."""
        return " ".join(str(self.tokenizer.decode(list(tail), skip_special_tokens=True)).split())

    def add(self, tokens: Sequence[str]) -> None:
        """Add tokens that are words of their own, such as <CapableOf> for a relation, with always the same weights."""
        add_tokens(self.model, self.tokenizer, tokens)

    def begin_training(self) -> None:
        """Prepare the weights that are trained. Raises ValueError where they cannot be."""
        self.model = self.learning.begin(self.model)

    def begin_steps(self) -> None:
        """Prepare the process that trains (see Learning)."""
        self.learning.begin_steps(self.model)

    def end_training(self) -> None:
        """Merges adapters, unless they are to be saved alone."""
        self.model = self.learning.end(self.model)

    def padded(self, texts: Sequence[Sequence[int]], side: str = "right") -> tuple[Tensor, Tensor]:
        """The texts' tokens (texts, length), and which of them are no padding."""
        rows = [torch.tensor(text, device=self.model.device) for text in texts]
        tokens = pad_sequence(rows, batch_first=True, padding_value=self.pad, padding_side=side)
        return tokens, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder. Raises ValueError for one without an end token, and for one without words, which
    transformers makes where the file with these is absent."""
    tokenizer = without_code(AutoTokenizer, folder)
    if set(tokenizer.get_vocab().values()) <= set(tokenizer.all_special_ids):
        raise ValueError(
            f"the tokenizer in {folder} has no words: a file of its own, such as tokenizer.json, is absent; copy it "
            "there"
        )
    if tokenizer.eos_token_id is None:
        raise ValueError(
            f"the tokenizer in {folder} has no end token (eos_token), so no tail of the model's would end; give a "
            "model that has one"
        )
    return tokenizer


def load_model(kind: Any, folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The model of a folder, by one of transformers' AutoModel classes; of an adapter, with its base, in float32."""
    if is_adapter(folder):
        return load_merged(folder, kind)
    with no_bars():
        return opened(kind, folder, dtype=dtype)


def save_model(model: Any, folder: Path) -> None:
    """Write a model of transformers with its config.json; of a model with adapters the adapters alone."""
    with no_bars():
        if isinstance(model, PreTrainedModel):
            model.save_pretrained(folder)
        else:
            model.save_pretrained(folder, save_embedding_layers=False)  # else it asks the hub for the base's vocabulary
            model.config.save_pretrained(folder)


def add_tokens(model: Any, tokenizer: PreTrainedTokenizerBase, tokens: Sequence[str]) -> None:
    """Add special tokens, which the tokenizer finds wherever they occur in a text; the blank before one is part of it.
    A vocabulary that is too small grows; its new weights depend on its size alone."""
    tokenizer.add_tokens([AddedToken(token, lstrip=True, normalized=False) for token in tokens], special_tokens=True)
    if len(tokenizer) > len(model.get_input_embeddings().weight):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(len(tokenizer))
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)


def prompt_of(folder: Path, prompt: str | None, forms: Sequence[str]) -> str:
    """The form of prompt that the model of a folder was trained with, which its config.json names, else the given one,
    else the first of those allowed.

    Raises ValueError for an unknown form, and for another than it was trained with."""
    if prompt is not None and prompt not in forms:
        raise ValueError(f"unknown model.prompt {prompt!r}; allowed: {', '.join(forms)}")
    path = folder / CONFIG  # which the folder of a mere tokenizer may lack
    trained = read_facts(path).get("comet_prompt") if path.is_file() else None
    if trained is not None and prompt not in (None, trained):
        raise ValueError(
            f"model.prompt={prompt}, but the model in {folder} was trained with model.prompt={trained}; give that, or "
            "null"
        )
    return trained or prompt or forms[0]


def note_regimen(model: Any, relation: str, prompt: str, tags: str | None) -> None:
    """Store in a model's config the wording of its prompts and their control tokens (see regimen). The layout of a
    COMeT that the model was before is removed."""
    model.config.comet_relation, model.config.comet_prompt = relation, prompt
    if tags is not None:
        model.config.comet_tags = tags
    if hasattr(model.config, "comet_layout"):
        del model.config.comet_layout
