"""Models of transformers: causal and sequence-to-sequence ones, prompted and trained as a COMeT is, with low-rank
adapters (Hu et al. 2022) by peft; a causal one's probabilities of answers to a message; and classifiers of texts.

A tail ends with the tokenizer's own end token, or is cut. The tokens before the first word of a sequence-to-sequence
model's tail, the decoder's start token and BART's <s>, are given: they are neither predicted nor counted. BART so
trained is the COMET of Hwang et al. (2021)."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import fields
from functools import partial
from inspect import signature
from itertools import takewhile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jinja2 import TemplateError
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AddedToken,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    GenerationConfig,
    LogitsProcessor,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

from mitigate.models import hub
from mitigate.models.beam import beam_search, sample_tokens
from mitigate.models.chat_api import conversation
from mitigate.models.encoder import LONGEST, TOKENS, pad, token_batches
from mitigate.models.heads import LABELS, REGARD
from mitigate.models.stored_tensors import sha256_of_each
from mitigate.models.tail_prompts import TAIL_TOKENS, Beam, as_trained, read_prompt_format, tagged

CACHE = next(field.name for field in fields(CausalLMOutputWithPast) if field.name in ("cache", "past_key_values"))
"""The name that models of transformers give their cache, as an argument and in their output. transformers 5.24 warns of
the old name, past_key_values, which ends with 5.40."""
SHOWN = 60  # characters of a prompt that is too long
TEXTS = 64  # whose logits are held at a time: 25 tokens each of 50,000 words are 320 MB
TASK = "Complete the sentence in a few words:"
ANSWER = "\nAnswer:"
"""The end of a message to a model without a chat template; its answer then begins with a space."""
ALPHA = 16  # an adapter's output is multiplied by ALPHA / rank
NO_PEFT = "low-rank adapters need the library peft: pip install 'mitigate[lora]', or set model.lora.rank=0"


class Pretrained(nn.Module):
    """A model of transformers and its tokenizer: prompts in, tails out. A subclass has prompts(heads, phrases) and
    tails(texts), as tokens; and logits(prompts, tails), which returns (texts, length, vocab_size) and for each text the
    position that predicts the first token of its tail."""

    AUTO: ClassVar[Any]  # the class of transformers that opens a folder
    PROMPTS: ClassVar[tuple[str, ...]]  # forms of a prompt, the default first
    before: Sequence[int] = ()  # tokens before every tail, where a decoder needs them
    logits: Callable[..., tuple[Tensor, Sequence[int]]]

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relation: str = "phrase",
        prompt: str = "phrase",
        system: str | None = None,
        lora: Mapping[str, Any] | None = None,
    ) -> None:
        """system: the system prompt of a chat. lora: the rank of adapters that are trained in place of the weights."""
        super().__init__()
        self.model: Any = model  # PreTrainedModel itself has no `generate`; the models of a kind have
        self.tokenizer = tokenizer
        self.relation, self.prompt, self.system = relation, prompt, system
        self.lora = lora
        self.tags: str | None = None  # see PromptFormat
        self.end = tokenizer.eos_token_id
        self.pad = self.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        # Instead of its own, which may sample, forbid words or end elsewhere.
        model.generation_config = GenerationConfig(eos_token_id=self.end, pad_token_id=self.pad, do_sample=False)

    @classmethod
    def load(
        cls,
        folder: Path,
        relation: str | None = None,
        prompt: str | None = None,
        system: str | None = None,
        lora: Mapping[str, Any] | None = None,
    ) -> Self:
        """The model of a Hugging Face folder, in float32; one that was trained here gets the prompts that it was
        trained with. lora: None, or of rank 0: all weights would be trained. prompt: one of PROMPTS; None: as it was
        trained.

        Raises ValueError where that cannot be done: no end token, no chat template, or another layout or prompt."""
        prompt = prompt_of(folder, prompt, cls.PROMPTS)
        how = read_prompt_format(folder, "packed", wording(relation, prompt))
        tokenizer = load_tokenizer(folder)
        if prompt == "chat":
            check_chat(tokenizer, folder, system)
        lora = lora if lora and lora["rank"] else None
        generator = cls(hub.load_model(cls.AUTO, folder), tokenizer, how.relation, prompt, system, lora)
        generator.tags = how.tags
        return generator.eval()

    def save(self, folder: Path, *, as_comet: bool = True) -> None:
        """Write the files that AUTO, AutoTokenizer and `generate` read. as_comet: note the format of its prompts."""
        config = self.model.config
        if as_comet:
            config.comet_relation, config.comet_prompt = self.relation, self.prompt
            if self.tags is not None:
                config.comet_tags = self.tags
            if hasattr(config, "comet_layout"):  # of a COMeT that the model was before
                del config.comet_layout
        with hub.no_bars():
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @property
    def positions(self) -> int | None:
        """The largest number of tokens of a text; None where the model sets no limit."""
        return getattr(self.model.config, "max_position_embeddings", None)

    def check_length(self, prompts: Sequence[Sequence[int]], tails: Sequence[int]) -> None:
        """Raise ValueError for the first prompt that is too long with its tail. tails: numbers of tokens."""
        limit, before = self.positions, len(self.before)
        for prompt, tail in zip(prompts, tails, strict=True):
            # The last token of a tail is never read. Encoder and decoder have positions of their own.
            needed = max(len(prompt), before + tail - 1) if before else len(prompt) + tail - 1
            if limit is not None and needed > limit:
                raise ValueError(
                    f"a prompt of {len(prompt)} tokens with a tail of {tail} needs {needed} positions; the model has "
                    f"{limit}. The prompt begins: {self.decode(prompt)[:SHOWN]}"
                )

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """The negative log-likelihood (tokens,) of each token of tails, in order. Raises ValueError for long texts."""
        self.check_length(prompts, [len(tail) for tail in tails])
        losses = []
        for start in range(0, len(tails), TEXTS):
            batch = tails[start : start + TEXTS]
            logits, firsts = self.logits(prompts[start : start + TEXTS], batch)
            rows = [row for row, tail in enumerate(batch) for _ in tail]
            places = [first + place for first, tail in zip(firsts, batch, strict=True) for place in range(len(tail))]
            targets = torch.tensor([token for tail in batch for token in tail], device=logits.device)
            losses.append(F.cross_entropy(logits[rows, places].float(), targets, reduction="none"))
        return torch.cat(losses)

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search). Raises ValueError for long prompts."""
        self.check_length(prompts, [max_length] * len(prompts))
        reading, device = partial(CachedReading, self.model, self.before), self.model.device
        return beam_search(reading, prompts, end=self.end, device=device, beams=beams, max_length=max_length, rows=rows)

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text, in one line."""
        return " ".join(str(self.tokenizer.decode(list(tail), skip_special_tokens=True)).split())

    def add(self, tokens: Sequence[str]) -> None:
        """Add special tokens, which the tokenizer finds wherever they occur in a text, such as <CapableOf> for a
        relation; the blank before one is part of it. Their weights depend on the size of the vocabulary alone."""
        added = [AddedToken(token, lstrip=True, normalized=False) for token in tokens]
        self.tokenizer.add_tokens(added, special_tokens=True)
        if len(self.tokenizer) > len(self.model.get_input_embeddings().weight):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(len(self.tokenizer))
                self.model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)

    def begin_training(self) -> None:
        """Add the adapters that are trained, if any, to all linear layers but the head; they change nothing yet, and
        are always the same. Raises ValueError without peft."""
        if self.lora is None:
            return
        try:
            import peft
        except ModuleNotFoundError as error:
            raise ValueError(NO_PEFT) from error
        config = peft.LoraConfig(
            task_type="SEQ_2_SEQ_LM" if self.model.config.is_encoder_decoder else "CAUSAL_LM",
            r=self.lora["rank"],
            lora_alpha=ALPHA,
            target_modules="all-linear",
        )
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
            torch.manual_seed(self.lora["rank"])
            self.model = peft.get_peft_model(self.model, config)

    def end_training(self) -> None:
        """Merge adapters into the weights."""
        if self.lora:
            self.model = self.model.merge_and_unload()

    def padded(self, texts: Sequence[Sequence[int]], side: str = "right") -> tuple[Tensor, Tensor]:
        """The texts' tokens (texts, length), and which of them are no padding."""
        rows = [torch.tensor(text, device=self.model.device) for text in texts]
        tokens = pad_sequence(rows, batch_first=True, padding_value=self.pad, padding_side=side)
        return tokens, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)


class LanguageModel(Pretrained):
    """A causal language model. Its prompts: "lawyer is capable of", or that after a chat template that asks for it."""

    AUTO = AutoModelForCausalLM
    PROMPTS = ("phrase", "chat")

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        texts = [f"{head} {phrase}" for head, phrase in zip(tagged(heads, self.tags), phrases, strict=True)]
        if self.prompt == "chat":
            texts = [chat_prompt(self.tokenizer, text, self.system) for text in texts]
        return self._tokens(texts)

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        # A tail follows a word. Many tokenizers mark a word's beginning by the space before it.
        word, *texts = self.tokenizer(["a", *(f"a {tail}".rstrip() for tail in tails)], add_special_tokens=False)[
            "input_ids"
        ]
        return [[*text[len(word) :][:TAIL_TOKENS], self.end] for text in texts]

    def logits(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> tuple[Tensor, Sequence[int]]:
        # Texts end in the same column, so that the last columns suffice: logits of a large vocabulary are expensive.
        tokens, mask = self.padded([[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)], "left")
        kept = max(map(len, tails))
        how = {"position_ids": (mask.cumsum(1) - 1).clamp(min=0), "logits_to_keep": kept}
        parameters = signature(getattr(self.model, "get_base_model", lambda: self.model)().forward).parameters
        how = {name: value for name, value in how.items() if name in parameters}
        logits = self.model(input_ids=tokens, attention_mask=mask, use_cache=False, **how).logits[:, -kept:]
        return logits, [kept - len(tail) for tail in tails]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens that each text is begun with, what the tokenizer puts before a text included; in a chat, the
        tokens up to the answer to the text."""
        chat = self.prompt == "chat"
        return self._tokens([chat_text(self.tokenizer, text, self.system) for text in texts] if chat else list(texts))

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        """The tokens of texts; a chat template has all special tokens itself."""
        return self.tokenizer(texts, add_special_tokens=self.prompt != "chat")["input_ids"] if texts else []

    @torch.inference_mode()
    def sample(self, prompts: Sequence[Sequence[int]], uniforms: Tensor, **how: Any) -> list[list[int]]:
        """Sample a continuation of each prompt: the tokens before END, as many as its uniforms at most. uniforms:
        (prompts, tokens) numbers in [0, 1), which fix the draws: the same numbers give the same text, whatever else is
        in the batch (but for rounding). how: temperature, top_k, sentences and marks, as SentenceSampler takes them."""
        tokens, mask = self.padded(prompts, "left")
        length = tokens.shape[1]
        texts = self.model.generate(
            input_ids=tokens,
            attention_mask=mask,
            max_new_tokens=uniforms.shape[1],
            logits_processor=[SentenceSampler(self.tokenizer, uniforms.to(self.model.device), length=length, **how)],
        )
        ends = {self.end, self.pad}
        return [list(takewhile(lambda token: token not in ends, text)) for text in texts[:, length:].tolist()]


class Seq2Seq(Pretrained):
    """A sequence-to-sequence model: the encoder reads head and relation, the decoder generates the tail. The input of
    the encoder: "lawyer is capable of", or as in COMET-ATOMIC 2020 "lawyer CapableOf [GEN]"."""

    AUTO = AutoModelForSeq2SeqLM
    PROMPTS = ("phrase", "gen")

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *more: Any, **named: Any) -> None:
        start = model.generation_config.decoder_start_token_id  # type: ignore[union-attr]
        super().__init__(model, tokenizer, *more, **named)
        target = [int(token) for token in tokenizer(text_target="")["input_ids"]]
        self.before = [start, *target[: target.index(self.end)]]
        model.generation_config.update(  # type: ignore[union-attr]
            decoder_start_token_id=start, forced_bos_token_id=self.before[1] if len(self.before) > 1 else None
        )

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        end = " [GEN]" if self.prompt == "gen" else ""
        texts = [f"{head} {phrase}{end}" for head, phrase in zip(tagged(heads, self.tags), phrases, strict=True)]
        return self.tokenizer(texts)["input_ids"] if texts else []

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        texts = self.tokenizer(text_target=list(tails), add_special_tokens=False)["input_ids"] if tails else []
        return [[*text[:TAIL_TOKENS], self.end] for text in texts]

    def logits(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> tuple[Tensor, Sequence[int]]:
        tokens, mask = self.padded(prompts)
        targets, targets_mask = self.padded([[*self.before, *tail[:-1]] for tail in tails])
        logits = self.model(
            input_ids=tokens,
            attention_mask=mask,
            decoder_input_ids=targets,
            decoder_attention_mask=targets_mask,
            use_cache=False,
        ).logits
        return logits, [len(self.before) - 1] * len(tails)


class CachedReading:
    """The texts that a model has read. (A `Reading` of beam.py.)

    before: the tokens that a decoder with an encoder begins with; an encoder reads a prompt once. The decoder's keys
    and values for a prompt are the same for all of its rows, and are copied only where rows change their prompts."""

    def __init__(self, model: Any, before: Sequence[int] = ()) -> None:
        self.model, self.before = model, before
        self.cache: Any = None
        self.encoded: Any = None  # (rows, length, width) of the encoder
        self.prompts: Any = None  # (rows,) which prompt each row is of

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length) in one batch, and the tokens before every tail."""
        if not self.before:
            return self.read(prompts)
        self.encoded = self.model.get_encoder()(input_ids=prompts).last_hidden_state
        self.prompts = torch.arange(len(prompts), device=prompts.device)
        return self.read(prompts.new_tensor(self.before).expand(len(prompts), -1))

    def extend(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """Append a token to each of the rows."""
        self.keep(rows)
        return self.read(tokens[:, None])

    def keep(self, rows: Tensor) -> None:
        """Continue these rows, each of which may be named several times."""
        if self.encoded is None:
            self.cache.batch_select_indices(rows)
            return
        self.cache.self_attention_cache.batch_select_indices(rows)
        if not torch.equal(prompts := self.prompts[rows], self.prompts):
            self.cache.cross_attention_cache.batch_select_indices(rows)
            self.encoded, self.prompts = self.encoded[rows], prompts

    def fork(self) -> Self:
        """A copy with a cache of its own, which shares the model."""
        forked = copy(self)
        forked.cache = deepcopy(self.cache)
        return forked

    def read(self, tokens: Tensor) -> Tensor:
        """Read more tokens (rows, length) of each text; return the logits (rows, vocab_size) after them."""
        inputs: dict[str, Any] = {"input_ids": tokens, CACHE: self.cache, "use_cache": True}
        if self.encoded is not None:
            inputs |= {"encoder_outputs": (self.encoded,), "decoder_input_ids": inputs.pop("input_ids")}
        outputs = self.model(**inputs)
        self.cache = outputs[CACHE]
        return outputs.logits[:, -1]


# Prompts


def chat_text(tokenizer: Any, text: str, system: str | None = None) -> str:
    """The chat template's text for a user's message, up to the answer."""
    messages = conversation(text, system)
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def chat_prompt(tokenizer: Any, text: str, system: str | None = None) -> str:
    """The chat template's text for a user who asks to complete a text, up to an answer that begins with it: its tail
    follows as it does without a template."""
    return chat_text(tokenizer, f"{TASK} {text}", system) + text


# Folders


def check_chat(tokenizer: Any, folder: Path, system: str | None = None) -> None:
    """Check that the tokenizer has a chat template that works, and that takes the system prompt. Raises ValueError."""
    if tokenizer.chat_template is None:
        raise ValueError(
            f"the tokenizer in {folder} has no chat template, which model.prompt=chat needs; set model.prompt=phrase, "
            "or give a model that was trained for chats"
        )
    try:
        text = chat_prompt(tokenizer, "a", system)
    except TemplateError as error:
        raise ValueError(f"the chat template in {folder} fails ({error}); set model.prompt=phrase") from error
    if system and system.strip() not in text:
        raise ValueError(f"the chat template in {folder} leaves out the system prompt; leave model.system out")


def prompt_of(folder: Path, prompt: str | None, forms: Sequence[str]) -> str:
    """The form of prompt that the model of a folder was trained with, which its config.json names, else the given one,
    else the first of those allowed. Raises ValueError for an unknown form, and for another than it was trained with."""
    if prompt is not None and prompt not in forms:
        raise ValueError(f"unknown model.prompt {prompt!r}; allowed: {', '.join(forms)}")
    return as_trained(folder, prompt=prompt)["prompt"] or forms[0]


def wording(relation: str | None, prompt: str) -> str | None:
    """The wording of relations in a form of prompt: names in "gen", for which another one raises ValueError."""
    if prompt == "gen" and relation not in (None, "name"):
        raise ValueError(f"model.prompt=gen asks with the names of relations; set model.relation=name, not {relation}")
    return "name" if prompt == "gen" else relation


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder. Raises ValueError for one without an end token."""
    tokenizer = hub.load_without_code(AutoTokenizer, folder)
    if tokenizer.eos_token_id is None:
        raise ValueError(f"the tokenizer in {folder} has no end token (eos_token), so no tail of the model would end")
    return tokenizer


# Sampling


class SentenceSampler(LogitsProcessor):
    """A logits processor that samples a token of each row and masks all others (see sample_tokens). sentences: the
    fewest and the most of a text: it does not end before the fewest have ended, and ends after the most. A sentence
    ends at tokens that contain one of the marks, several in a row counted as one."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        uniforms: Tensor,
        *,
        temperature: float,
        top_k: int,
        sentences: tuple[int, int],
        marks: str,
        length: int,
    ) -> None:
        self.uniforms = uniforms  # (rows, tokens to come)
        self.temperature, self.top_k = temperature, top_k
        self.fewest, self.most = sentences
        self.end, self.length = tokenizer.eos_token_id, length  # of the prompts, padding counted
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        self.marked = torch.tensor([any(mark in (word or "") for mark in marks) for word in words]).to(uniforms.device)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:  # (rows, length so far), (rows, vocab_size)
        generated = input_ids[:, self.length :]
        marked = self.marked[generated.clamp(max=len(self.marked) - 1)]  # a model may have more tokens
        ended = (marked & ~F.pad(marked, (1, 0))[:, :-1]).sum(1)  # sentences
        scores = scores.clone()
        scores[ended < self.fewest, self.end] = -torch.inf
        tokens = sample_tokens(scores, self.uniforms[:, generated.shape[1]], self.temperature, self.top_k)
        tokens[ended >= self.most] = self.end
        return torch.full_like(scores, -torch.inf).scatter(1, tokens[:, None], 0.0)


# Models that label texts


class AnswerProbabilities:
    """A causal language model that gives the probabilities of answers to a message, without sampling. Where the
    tokenizer has a chat template, the message is that of a user and the answer that of the assistant."""

    def __init__(self, base: str | Path) -> None:
        """base: a Hugging Face folder, a name on the hub or a GGUF file. Raises ValueError and OSError as
        LanguageModel.load does, and ValueError for a chat template that fails."""
        folder = hub.locate(str(base), seq2seq=False)
        self.model, self.tokenizer = hub.load_model(AutoModelForCausalLM, folder).eval(), load_tokenizer(folder)
        self.is_chat = self.tokenizer.chat_template is not None
        if self.is_chat:
            check_chat(self.tokenizer, folder)
        suffixes = (".json", ".safetensors", ".jinja", ".model", ".tiktoken")
        self.sha256 = sha256_of_each(sorted(path for path in folder.iterdir() if path.suffix in suffixes))
        """A hash of the files of model and tokenizer."""

    def prompt(self, message: str) -> str:
        """The text that the answer follows."""
        return chat_text(self.tokenizer, message) if self.is_chat else message + ANSWER

    @torch.inference_mode()
    def probabilities(self, messages: Sequence[str], answers: Sequence[str]) -> np.ndarray:
        """The probability that the answer to each message begins with each of the texts, (messages, answers). The
        beginning that all messages share, such as their instructions, is read once. Raises ValueError for a message
        that is too long."""
        probabilities = np.zeros((len(messages), len(answers)))
        if not messages:
            return probabilities
        prompts = [self._tokens(self.prompt(message)) for message in messages]
        tails = [self._tail(messages[0], prompts[0], answer) for answer in answers]
        longest, tail = max(map(len, prompts)), max(map(len, tails))
        if longest + tail > (getattr(self.model.config, "max_position_embeddings", None) or np.inf):
            raise ValueError(f"a message of {longest} tokens is too long for the model; shorten it, or the rubric")
        by_position = zip(*(prompt[:-1] for prompt in prompts), strict=False)
        shared = [tokens[0] for tokens in takewhile(lambda tokens: len(set(tokens)) == 1, by_position)]
        begun = CachedReading(self.model)
        if shared:
            begun.read(torch.tensor([shared], device=self.model.device))
        for batch in token_batches([len(prompt) - len(shared) for prompt in prompts], one_length=True):
            reading, rows = begun.fork(), torch.zeros(len(batch), dtype=torch.long, device=self.model.device)
            if shared:
                reading.keep(rows)
            tokens = torch.tensor([prompts[row][len(shared) :] for row in batch], device=self.model.device)
            first = reading.read(tokens).float().log_softmax(-1)  # (batch, vocab_size)
            for column, (token, *others) in enumerate(tails):
                log_prob, after = first[:, token], reading.fork() if others else reading
                for following in others:
                    logits = after.read(rows[:, None] + token).float()
                    log_prob, token = log_prob + logits.log_softmax(-1)[:, following], following
                probabilities[batch, column] = log_prob.exp().cpu().numpy()
        return probabilities

    def _tokens(self, text: str) -> list[int]:
        """The tokens of a text; a chat template has all special tokens itself."""
        return list(self.tokenizer(text, add_special_tokens=not self.is_chat)["input_ids"])

    def _tail(self, message: str, prompt: Sequence[int], answer: str) -> list[int]:
        """The tokens of an answer behind a prompt."""
        whole = self._tokens(self.prompt(message) + ("" if self.is_chat else " ") + answer)
        if whole[: len(prompt)] != list(prompt) or len(whole) == len(prompt):
            raise ValueError(
                f"the tokenizer joins the answer {answer!r} with the end of the prompt; give a model whose chat "
                "template ends in a line break or in a token of its own"
            )
        return whole[len(prompt) :]


NAMES = {
    "negative": ("negative", "neg", "unfavourable", "unfavorable", "bad"),
    "neutral": ("neutral", "neu"),
    "positive": ("positive", "pos", "favourable", "favorable", "good"),
    "other": ("other", "mixed"),
}


class SequenceClassifier:
    """A sequence classifier whose labels can be read as regard, such as sasha/regardv3. The meaning of a column is read
    from the model's own id2label, by name, and never assumed."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.columns = columns(model.config.id2label)
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str) -> Self:
        """The classifier of a folder or a name on the hub. Raises ValueError when it cannot be loaded, and for labels
        that do not mean regard."""
        try:
            how: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": "eager"}  # a tenth faster than fused
            model = hub.load_complete(AutoModelForSequenceClassification, name, **how)
            return cls(model, hub.load_without_code(AutoTokenizer, name))
        except (OSError, UnpicklingError) as error:
            raise ValueError(
                f"the classifier {name!r} is neither a folder nor on the Hugging Face hub, or its weights are a "
                "pickle, which can run code; set score.bert.model to a folder with the weights as model.safetensors"
            ) from error

    @torch.inference_mode()
    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """(n, 4) float32, columns as in REGARD; 0 for a label that the model lacks."""
        rows = self.tokenizer(list(texts), truncation=True, max_length=LONGEST)["input_ids"] if texts else []
        shape = len(rows), self.model.config.num_labels + 1  # the last column is for labels that the model lacks
        probabilities = np.zeros(shape, dtype=np.float32)
        padding = self.tokenizer.pad_token_id
        alone = None in (padding, self.model.config.pad_token_id)  # as with GPT: texts are never padded
        for batch in token_batches([len(row) for row in rows], 1 if alone else TOKENS):
            tokens, mask = pad([rows[row] for row in batch], padding or 0)
            logits = self.model(input_ids=tokens, attention_mask=mask).logits
            probabilities[batch, :-1] = logits.float().softmax(-1).numpy()
        return probabilities[:, [-1 if column is None else column for column in self.columns]]

    def sha256(self) -> str:
        """The SHA-256 of everything that a text's label depends on: the weights, the tokenizer and the labels'
        columns."""
        digest = hashlib.sha256(f"{self.columns} {self.tokenizer.backend_tokenizer.to_str()}".encode())
        for name, value in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + value.numpy().tobytes())
        return digest.hexdigest()


def columns(id2label: Mapping[int, str]) -> list[int | None]:
    """The model's column for each of REGARD, by name.

    Raises ValueError when a name means none of them, when two mean the same, and when one of LABELS is missing."""
    meaning = {name: label for label, names in NAMES.items() for name in names}
    labels = [meaning.get(name.strip().lower()) for name in id2label.values()]
    if None in labels or len(set(labels)) < len(labels) or not set(LABELS) <= set(labels):
        raise ValueError(
            f"the classifier's labels are {', '.join(id2label.values())}; they must be {', '.join(LABELS)}, each once, "
            "and may include other. Set id2label in its config.json to the meaning of its columns"
        )
    column_of = dict(zip(labels, map(int, id2label), strict=True))
    return [column_of.get(label) for label in REGARD]
