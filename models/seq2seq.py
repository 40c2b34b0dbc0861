"""Any sequence-to-sequence model of Hugging Face's, prompted and trained as a COMeT is: the encoder reads head and
relation, the decoder says the tail. BART so trained is the COMET of Hwang et al. (2021).

The tokens before a tail's first word, the decoder's start token and BART's <s>, are given: they are neither predicted
nor counted. A tail ends with the tokenizer's own end token, or is cut."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from models.adapters import WHOLE, Learning
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


class Seq2Seq(OfTransformers):
    """A model and its tokenizer: prompts in, tails out."""

    PROMPTS = ("phrase", "gen")
    """The input of the encoder: "lawyer is capable of", or as in COMET-ATOMIC 2020 "lawyer CapableOf [GEN]"."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relation: str = "phrase",
        prompt: str = "phrase",
        learning: Learning = WHOLE,
    ) -> None:
        super().__init__(model, tokenizer, relation, learning)
        self.prompt = prompt
        said = [int(token) for token in tokenizer(text_target="")["input_ids"]]
        self.before = [_start(model), *said[: said.index(self.end)]]
        # Instead of its own, which may sample, forbid words or end elsewhere.
        model.generation_config = GenerationConfig(
            eos_token_id=self.end,
            pad_token_id=self.pad,
            decoder_start_token_id=self.before[0],
            forced_bos_token_id=self.before[1] if len(self.before) > 1 else None,
            do_sample=False,
        )

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The input of the encoder: the head and the relation's phrase, with what the tokenizer puts around a text."""
        end = " [GEN]" if self.prompt == "gen" else ""
        texts = [f"{head} {phrase}{end}" for head, phrase in zip(tagged(heads, self.tags), phrases, strict=True)]
        return self.tokenizer(texts)["input_ids"] if texts else []

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens to generate: the tail as the tokenizer makes targets, cut as a COMeT's, and the end token."""
        if not tails:
            return []
        texts = self.tokenizer(text_target=list(tails), add_special_tokens=False)["input_ids"]
        return [[*text[:TAIL_TOKENS], self.end] for text in texts]

    def logits(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> tuple[Tensor, Sequence[int]]:
        """The logits of each tail, its prompt read by the encoder (see OfTransformers)."""
        tokens, mask = self.padded(prompts)
        spoken, spoken_mask = self.padded([[*self.before, *tail[:-1]] for tail in tails])
        logits = self.model(
            input_ids=tokens,
            attention_mask=mask,
            decoder_input_ids=spoken,
            decoder_attention_mask=spoken_mask,
            use_cache=False,
        ).logits
        return logits, [len(self.before) - 1] * len(tails)

    def needed(self, prompt: int, tail: int) -> int:
        """The larger number of positions: encoder and decoder have positions of their own."""
        return max(prompt, len(self.before) + tail - 1)

    def reading(self) -> "Seq2SeqReading":
        """The model that reads prompts and continues them."""
        return Seq2SeqReading(self.model, self.before)

    def save(self, folder: Path) -> None:
        """Write the files that AutoModelForSeq2SeqLM, AutoTokenizer and `generate` read, with the wording of its
        prompts."""
        note_regimen(self.model, self.relation, self.prompt, self.tags)
        save_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        relation: str | None = None,
        prompt: str | None = None,
        lora: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
    ) -> "Seq2Seq":
        """The model of a Hugging Face folder, in float32; one that was trained here gets the prompts that it was
        trained with. An adapter is added to its base's weights. lora, gradient_checkpointing: as LanguageModel.load
        takes them.

        Raises ValueError where that cannot be done: no end token, no start token of the decoder, or another prompt."""
        prompt = prompt_of(folder, prompt, cls.PROMPTS)
        how = regimen(folder, "packed", wording(relation, prompt))
        tokenizer = load_tokenizer(folder)
        model = load_model(AutoModelForSeq2SeqLM, folder)
        found = cls(model, tokenizer, how.relation, prompt, Learning.of(lora, gradient_checkpointing))
        found.tags = how.tags
        return found.eval()


class Seq2SeqReading:
    """The texts that a sequence-to-sequence model has read; its encoder reads a prompt once. (A `Reading` of beam.py.)

    The decoder's keys and values for a prompt are the same for all of its rows. They are copied only in steps after
    which rows belong to other prompts than before: the first, and those in which a beam ends."""

    def __init__(self, model: Any, before: Sequence[int]) -> None:
        self.model = model
        self.before = torch.tensor(before, device=model.device)
        self.cache: Any = None
        self.encoded: Any = None  # (rows, length, width)
        self.prompts: Any = None  # (rows,) which prompt each row is of

    def begin(self, prompts: Tensor) -> Tensor:
        """Read prompts (n, length) in one batch, and the tokens before every tail."""
        self.encoded = self.model.get_encoder()(input_ids=prompts).last_hidden_state
        self.prompts = torch.arange(len(prompts), device=prompts.device)
        return self._read(self.before.expand(len(prompts), -1))

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """One more token for each of the rows."""
        self.cache.self_attention_cache.batch_select_indices(rows)
        prompts = self.prompts[rows]
        if not torch.equal(prompts, self.prompts):
            self.cache.cross_attention_cache.batch_select_indices(rows)
            self.encoded, self.prompts = self.encoded[rows], prompts
        return self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        said = self.model(
            encoder_outputs=(self.encoded,), decoder_input_ids=tokens, use_cache=True, **{CACHE: self.cache}
        )
        self.cache = said[CACHE]
        return said.logits[:, -1]


def wording(relation: str | None, prompt: str) -> str | None:
    """The wording of relations that a prompt is made of: that of "gen" is their names. Raises ValueError for "gen" with
    another."""
    if prompt != "gen":
        return relation
    if relation not in (None, "name"):
        raise ValueError(
            f"model.prompt=gen asks with the names of relations, not with model.relation={relation}; say "
            "model.relation=name, or null"
        )
    return "name"


def _start(model: Any) -> int:
    """The token that the decoder begins with."""
    for settings in (model.config, model.generation_config):
        if (token := getattr(settings, "decoder_start_token_id", None)) is not None:
            return int(token)
    raise ValueError(
        f"{model.config.name_or_path or 'the model'} has no decoder_start_token_id in its config.json, so its decoder "
        "cannot begin; give it there"
    )
