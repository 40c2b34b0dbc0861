"""Any causal language model of Hugging Face's, prompted and trained as a COMeT is.

A tail ends with the tokenizer's own end token, or is cut. Only relations may get tokens of their own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    LogitsProcessor,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
)

from models.adapters import WHOLE, Learning
from models.chat_api import conversation
from models.of_transformers import (
    CACHE,
    OfTransformers,
    load_model,
    load_tokenizer,
    note_regimen,
    prompt_of,
    save_model,
)
from models.tail_prompts import TAIL_TOKENS, regimen, tagged

TASK = "Complete the sentence in a few words:"


class LanguageModel(OfTransformers):
    """A model and its tokenizer: prompts in, tails out."""

    PROMPTS = ("phrase", "chat")
    """The form of a prompt: "lawyer is capable of", or the same after a chat template that requests a completion."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relation: str = "phrase",
        learning: Learning = WHOLE,
        prompt: str = "phrase",
        system: str | None = None,
    ) -> None:
        super().__init__(model, tokenizer, relation, learning)
        self.prompt = prompt
        self.system = system
        # Instead of its own, which may sample, forbid words or end elsewhere.
        model.generation_config = GenerationConfig(eos_token_id=self.end, pad_token_id=self.pad, do_sample=False)

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The head and the relation's phrase, after what the tokenizer or its chat template puts before."""
        texts = [f"{head} {phrase}" for head, phrase in zip(tagged(heads, self.tags), phrases, strict=True)]
        if self.prompt == "chat":  # whose template has all special tokens
            texts = [chat_prompt(self.tokenizer, text, self.system) for text in texts]
        return self.tokenizer(texts, add_special_tokens=self.prompt != "chat")["input_ids"] if texts else []

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens to generate: the tail, cut as a COMeT's, and the end token.

        A tail follows a word. Many tokenizers mark a word's beginning by the space before it, so each is encoded
        after one."""
        (word,) = self.tokenizer(["a"], add_special_tokens=False)["input_ids"]
        texts = self.tokenizer(["a", *(f"a {tail}".rstrip() for tail in tails)], add_special_tokens=False)["input_ids"]
        return [[*text[len(word) :][:TAIL_TOKENS], self.end] for text in texts[1:]]

    def logits(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> tuple[Tensor, Sequence[int]]:
        """The logits of each prompt and its tail as one text (see OfTransformers)."""
        tokens, mask = self.padded([[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)])
        logits = self.model(input_ids=tokens, attention_mask=mask, use_cache=False).logits
        return logits, [len(prompt) - 1 for prompt in prompts]

    def needed(self, prompt: int, tail: int) -> int:
        """The number of positions for the prompt and the tail, one after the other."""
        return prompt + tail - 1

    def reading(self) -> "CausalReading":
        """The model that reads prompts and continues them."""
        return CausalReading(self.model)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens that each text is begun with, what the tokenizer puts before a text included; in a chat, the
        tokens up to the answer to the text."""
        if self.prompt == "chat":
            texts = [chat_text(self.tokenizer, text, self.system) for text in texts]
        return self.tokenizer(list(texts), add_special_tokens=self.prompt != "chat")["input_ids"] if texts else []

    @torch.inference_mode()
    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        chances: Tensor,
        *,
        temperature: float,
        top_k: int,
        sentences: tuple[int, int],
        marks: str,
    ) -> list[list[int]]:
        """Sample the continuation of each prompt: the tokens up to END, or up to the number of its chances, (prompts,
        tokens) in [0, 1). No text ends before the fewest sentences, and none continues after the most; marks end
        sentences. The same chances give the same text, whatever else is in the batch (but for rounding)."""
        tokens, mask = self.padded(prompts, "left")
        length = tokens.shape[1]
        counted = SentenceEnds(self.tokenizer, self.model.config.vocab_size, marks, length)
        fewest, most = sentences
        texts = self.model.generate(
            input_ids=tokens,
            attention_mask=mask,
            max_new_tokens=chances.shape[1],
            logits_processor=[
                NoEndBefore(counted, fewest, self.end),
                Drawn(chances.to(self.model.device), length, temperature, top_k),
            ],
            stopping_criteria=[Enough(counted, most)],
        )
        return [until(said, {self.end, self.pad}) for said in texts[:, length:].tolist()]

    def save(self, folder: Path, *, as_comet: bool = True) -> None:
        """Write the files that AutoModelForCausalLM and AutoTokenizer read; as_comet: with the wording of the prompts
        that it was trained with."""
        if as_comet:
            note_regimen(self.model, self.relation, self.prompt, self.tags)
        save_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        relation: str | None = None,
        lora: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
        prompt: str | None = None,
        system: str | None = None,
    ) -> "LanguageModel":
        """The model of a Hugging Face folder, in float32; a COMeT gets the prompts that it was trained with. An adapter
        is added to its base's weights. lora: the fields of Adapters; None or rank 0: all weights would be trained.
        prompt: one of PROMPTS; None: as it was trained. system: the system prompt of a chat.

        Raises ValueError where that cannot be done: no tokenizer's end token, no chat template, or another layout."""
        how = regimen(folder, "packed", relation)
        prompt = prompt_of(folder, prompt, cls.PROMPTS)
        tokenizer = load_tokenizer(folder)
        if prompt == "chat":
            check_chat(tokenizer, folder, system)
        model = load_model(AutoModelForCausalLM, folder)
        found = cls(model, tokenizer, how.relation, Learning.of(lora, gradient_checkpointing), prompt, system)
        found.tags = how.tags
        return found.eval()


class CausalReading:
    """The texts that a causal language model has read. (A `Reading` of beam.py.)"""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.cache: Any = None

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length) in one batch."""
        return self._read(prompts)

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Append a token to each of the rows."""
        self.cache.batch_select_indices(rows)
        return self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        said = self.model(input_ids=tokens, use_cache=True, **{CACHE: self.cache})
        self.cache = said[CACHE]
        return said.logits[:, -1]


def chat_text(tokenizer: Any, text: str, system: str | None = None) -> str:
    """The chat template's text for a user's message, up to the answer."""
    messages = conversation(text, system)
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def chat_prompt(tokenizer: Any, text: str, system: str | None = None) -> str:
    """The chat template's text for a user who asks to complete a text, up to an answer that begins with it: its tail
    follows as it does without a template."""
    return chat_text(tokenizer, f"{TASK} {text}", system) + text


def check_chat(tokenizer: Any, folder: Path, system: str | None = None) -> None:
    """Check that the tokenizer has a chat template that works. Raises ValueError for a tokenizer without one, for a
    template that fails, and for one that leaves out the system prompt."""
    if tokenizer.chat_template is None:
        raise ValueError(
            f"the tokenizer in {folder} has no chat template (chat_template.jinja, or chat_template in "
            "tokenizer_config.json), which model.prompt=chat needs; set model.prompt=phrase, or give a model that was "
            "trained for chats"
        )
    try:
        text = chat_prompt(tokenizer, "a", system)
    except TemplateError as error:
        hint = "leave model.system out if it takes none" if system else "correct it"
        raise ValueError(
            f"the chat template in {folder} fails ({error}); {hint}, or set model.prompt=phrase"
        ) from error
    if system and system.strip() not in text:
        raise ValueError(f"the chat template in {folder} leaves out the system prompt; leave model.system out")


class Drawn(LogitsProcessor):
    """A logits processor that leaves the token that a row's next number stands for, at a temperature, among the
    likeliest top_k (0: all)."""

    def __init__(self, chances: Tensor, length: int, temperature: float, top_k: int) -> None:
        self.chances = chances  # (rows, tokens to come)
        self.length = length  # of the prompts, padding counted
        self.temperature = temperature
        self.top_k = top_k

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # (rows, length so far), (rows, vocab_size)
        likeliest, tokens = scores.topk(min(self.top_k or scores.shape[1], scores.shape[1]))  # in falling order
        shares = (likeliest.double() / self.temperature).softmax(1).cumsum(1)
        chance = self.chances[:, input_ids.shape[1] - self.length, None]
        place = (shares <= chance * shares[:, -1:]).sum(1, keepdim=True).clamp(max=tokens.shape[1] - 1)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens.gather(1, place), 0.0)


class SentenceEnds:
    """A counter of the sentences that have ended in the generated tokens: tokens with a mark, several in a row as
    one."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int, marks: str, length: int) -> None:
        known = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
        ends = [token is not None and any(mark in token for mark in marks) for token in known]
        self.ends = torch.tensor(ends + [False] * (size - len(ends)))
        self.length = length

    def count(self, input_ids: Tensor) -> Tensor:  # (rows,)
        said = self.ends.to(input_ids.device)[input_ids[:, self.length :]]
        before = torch.nn.functional.pad(said, (1, 0))[:, :-1]
        return (said & ~before).sum(1)


class NoEndBefore(LogitsProcessor):
    """A logits processor that rules out the end token until `fewest` sentences have ended."""

    def __init__(self, sentences: SentenceEnds, fewest: int, end: int) -> None:
        self.sentences = sentences
        self.fewest = fewest
        self.end = end

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.clone()
        scores[self.sentences.count(input_ids) < self.fewest, self.end] = -torch.inf
        return scores


class Enough(StoppingCriteria):
    """A stopping criterion for rows with `most` ended sentences."""

    def __init__(self, sentences: SentenceEnds, most: int) -> None:
        self.sentences = sentences
        self.most = most

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:  # (rows,)
        return self.sentences.count(input_ids) >= self.most


def until(tokens: Sequence[int], ends: set[int]) -> list[int]:
    """The tokens before the first of those that end a text."""
    return list(tokens[: next((place for place, token in enumerate(tokens) if token in ends), len(tokens))])
