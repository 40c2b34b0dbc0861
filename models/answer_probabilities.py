"""Probabilities of given answers to a message, by a causal language model: what it would write next, without sampling.

Where the tokenizer has a chat template, the message is that of a user and the answer that of the assistant. The
beginning that all messages share, such as their instructions, is read once."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import AutoModelForCausalLM

from models import hub
from models.adapters import base_of, is_adapter
from models.digests import sha256_of_each
from models.of_transformers import CACHE, load_model, load_tokenizer

SUFFIXES = (".json", ".safetensors", ".jinja", ".model", ".tiktoken")
ROWS = 16  # messages read at a time: each has its own copy of the keys and values of the shared beginning
ANSWER = "\nAnswer:"
"""The end of a message to a model without a chat template; its answer then begins with a space."""


class AnswerProbabilities:
    """A causal language model and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.is_chat = tokenizer.chat_template is not None

    @classmethod
    def load(cls, folder: Path, dtype: torch.dtype = torch.float32) -> "AnswerProbabilities":
        """The model of a Hugging Face folder, or an adapter with its base. Raises ValueError and OSError as
        LanguageModel.load, and ValueError for a chat template that fails."""
        made = cls(load_model(AutoModelForCausalLM, folder, dtype), load_tokenizer(folder))
        try:
            made.prompt("a")
        except TemplateError as error:
            raise ValueError(f"the chat template in {folder} fails ({error}); correct it, or remove it") from error
        return made

    def prompt(self, message: str) -> str:
        """The text that the answer follows."""
        if not self.is_chat:
            return message + ANSWER
        messages = [{"role": "user", "content": message}]
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    @torch.inference_mode()
    def probabilities(self, messages: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """The probability that the answer to each message begins with each of the texts, (messages, answers). Raises
        ValueError for a message that is too long."""
        found = np.zeros((len(messages), len(answers)))
        if not messages:
            return found
        prompts = [self._tokens(self.prompt(message)) for message in messages]
        tails = [self._tail(messages[0], prompts[0], answer) for answer in answers]
        self._check_length(messages, prompts, max(map(len, tails)))
        shared = _common(prompts)
        cache, _ = self._read(torch.tensor([prompts[0][:shared]]), None) if shared else (None, None)
        for rows in _batches(prompts):
            tokens = torch.tensor([prompts[row][shared:] for row in rows])
            found[rows] = self._of_batch(tokens, _copies(cache, len(rows)), tails).exp().numpy()
        return found

    def _of_batch(self, tokens: Tensor, cache: Any, tails: Sequence[Sequence[int]]) -> Tensor:
        """The log-probabilities (rows, tails) of tails after the cache and these tokens (rows, length)."""
        cache, logits = self._read(tokens, cache)
        first, found = logits[:, -1].float().log_softmax(-1), list[Tensor]()
        for tail in tails:
            total = first[:, tail[0]]
            if len(tail) > 1:
                words = torch.tensor(tail, device=first.device)
                _, logits = self._read(words[:-1].expand(len(tokens), -1), deepcopy(cache))
                total = total + logits.float().log_softmax(-1).gather(
                    2, words[1:].expand(len(tokens), -1)[..., None]
                ).sum((1, 2))
            found.append(total)
        return torch.stack(found, dim=1).cpu()

    def _read(self, tokens: Tensor, cache: Any) -> tuple[Any, Tensor]:
        """The cache after these tokens (rows, length) too, and the logits (rows, length, vocabulary) after each."""
        more: Mapping[str, Any] = {} if cache is None else {CACHE: cache}
        said = self.model(input_ids=tokens.to(self.model.device), use_cache=True, **more)
        return said[CACHE], said.logits

    def _tokens(self, prompt: str) -> list[int]:
        """The tokens of a prompt; a chat template has all special tokens itself."""
        return list(self.tokenizer(prompt, add_special_tokens=not self.is_chat)["input_ids"])

    def _tail(self, message: str, prompt: Sequence[int], answer: str) -> list[int]:
        """The tokens of an answer behind a prompt."""
        whole = self._tokens(self.prompt(message) + ("" if self.is_chat else " ") + answer)
        if whole[: len(prompt)] != list(prompt) or len(whole) == len(prompt):
            raise ValueError(
                f"the tokenizer joins the answer {answer!r} with the end of the prompt; give a model whose chat "
                "template ends in a line break or in a token of its own"
            )
        return whole[len(prompt) :]

    def _check_length(self, messages: Sequence[str], prompts: Sequence[Sequence[int]], tail: int) -> None:
        limit = getattr(self.model.config, "max_position_embeddings", None)
        at = max(range(len(prompts)), key=lambda row: len(prompts[row]))
        if limit is not None and len(prompts[at]) + tail > limit:
            raise ValueError(
                f"a message of {len(prompts[at])} tokens is too long for the model, which has {limit} positions; it "
                f"ends: {messages[at][-60:]}"
            )


def _common(prompts: Sequence[Sequence[int]]) -> int:
    """The number of tokens that all prompts begin with; at least one of each is left to be read."""
    shortest = min(map(len, prompts)) - 1
    return next((at for at in range(shortest) if len({prompt[at] for prompt in prompts}) > 1), shortest)


def _batches(prompts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the places of prompts of one length, ROWS at a time: so nothing is padded."""
    order = sorted(range(len(prompts)), key=lambda row: len(prompts[row]))
    for _, group in groupby(order, key=lambda row: len(prompts[row])):
        places = list(group)
        yield from (places[start : start + ROWS] for start in range(0, len(places), ROWS))


def _copies(cache: Any, rows: int) -> Any:
    """The cache of one text for so many rows."""
    if cache is None:
        return None
    copied = deepcopy(cache)
    copied.batch_select_indices(torch.zeros(rows, dtype=torch.long))
    return copied


def digest(folder: Path) -> str:
    """A hash of the files of a model and its tokenizer, and of an adapter's base."""
    folders = [folder, hub.locate(base_of(folder))] if is_adapter(folder) else [folder]
    return sha256_of_each(sorted(path for one in folders for path in one.iterdir() if path.suffix in SUFFIXES))
