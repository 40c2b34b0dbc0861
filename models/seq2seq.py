"""Any sequence-to-sequence model of Hugging Face's, asked what a COMeT is asked, and trained as one: the encoder reads
head and relation, the decoder says the tail. BART so trained is the COMET of Hwang et al. (2021).

What stands before a tail's first word, the decoder's start token and BART's <s>, is given: it is neither predicted nor
counted. A tail ends with the tokenizer's own end token, or is cut."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from models import layouts
from models.beams import Beam
from models.cached_search import cached_search
from models.comet import TAIL_TOKENS, regimen
from models.language_model import TEXTS, add_tokens, load_model, note_regimen, save_model
from models.learning import WHOLE, Learning

Prompt = Literal["phrase", "gen"]
"""What the encoder reads: "lawyer is capable of", or as in COMET-ATOMIC 2020 "lawyer CapableOf [GEN]"."""


class Seq2Seq(nn.Module):
    """A model and its tokenizer: prompts in, tails out."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        relation: str = "phrase",
        prompt: Prompt = "phrase",
        learning: Learning = WHOLE,
    ) -> None:
        super().__init__()
        self.learning = learning
        self.model: Any = model
        self.tokenizer = tokenizer
        self.relation, self.prompt = relation, prompt
        self.end = tokenizer.eos_token_id
        self.pad = self.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
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
        """What the encoder reads: the head and the relation's phrase, with what the tokenizer puts around a text."""
        end = " [GEN]" if self.prompt == "gen" else ""
        texts = [f"{head} {phrase}{end}" for head, phrase in zip(heads, phrases, strict=True)]
        return self.tokenizer(texts)["input_ids"] if texts else []

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """What is to be said: the tail as the tokenizer makes targets, cut as a COMeT's, and the end token."""
        if not tails:
            return []
        texts = self.tokenizer(text_target=list(tails), add_special_tokens=False)["input_ids"]
        return [[*text[:TAIL_TOKENS], self.end] for text in texts]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        found = []
        for start in range(0, len(tails), TEXTS):
            asked, said = prompts[start : start + TEXTS], tails[start : start + TEXTS]
            tokens, mask = self._padded(asked)
            spoken, spoken_mask = self._padded([[*self.before, *tail[:-1]] for tail in said])
            logits = self.model(
                input_ids=tokens,
                attention_mask=mask,
                decoder_input_ids=spoken,
                decoder_attention_mask=spoken_mask,
                use_cache=False,
            ).logits
            rows = [row for row, tail in enumerate(said) for _ in tail]
            places = [len(self.before) - 1 + place for tail in said for place in range(len(tail))]
            words = torch.tensor([token for tail in said for token in tail], device=logits.device)
            found.append(F.cross_entropy(logits[rows, places].float(), words, reduction="none"))
        return torch.cat(found)

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see models/beams.py). rows is the most beams worked on at a
        time."""
        reading = partial(Seq2SeqReading, self.model, self.before)
        device, limits = self.model.device, {"beams": beams, "max_length": max_length, "rows": rows}
        return cached_search(reading, prompts, end=self.end, device=device, **limits)

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text, in one line."""
        return " ".join(str(self.tokenizer.decode(list(tail), skip_special_tokens=True)).split())

    def add(self, tokens: Sequence[str]) -> None:
        """Adds tokens that are words of their own, such as <CapableOf> for a relation; always the same weights."""
        add_tokens(self.model, self.tokenizer, tokens)

    def begin_training(self) -> None:
        """Makes ready the weights that are to be trained. Raises ValueError where they cannot be."""
        self.model = self.learning.begin(self.model)

    def end_training(self) -> None:
        """Merges adapters, unless they are to be saved alone."""
        self.model = self.learning.end(self.model)

    def save(self, folder: Path) -> None:
        """Writes what AutoModelForSeq2SeqLM, AutoTokenizer and `generate` read, and how it was asked."""
        note_regimen(self.model, self.relation)
        self.model.config.comet_prompt = self.prompt
        save_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        relation: str | None = None,
        prompt: Prompt | None = None,
        lora: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
    ) -> "Seq2Seq":
        """The model of a Hugging Face folder, in float32; one that was trained here is asked as it was trained. An
        adapter is added to its base's weights. lora, gradient_checkpointing: as LanguageModel.load takes them.

        Raises ValueError where that cannot be done: no end token, no start token of the decoder, or another prompt."""
        prompt = prompt_of(folder, prompt)
        relation = regimen(folder, "packed", wording(relation, prompt)).relation
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if tokenizer.eos_token_id is None:
            raise ValueError(
                f"the tokenizer in {folder} has no end token (eos_token), so no tail of the model's would end; give a "
                "model that has one"
            )
        model = load_model(AutoModelForSeq2SeqLM, folder)
        return cls(model, tokenizer, relation, prompt, Learning.of(lora, gradient_checkpointing)).eval()

    def _padded(self, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        rows = [torch.tensor(text, device=self.model.device) for text in texts]
        tokens = pad_sequence(rows, batch_first=True, padding_value=self.pad)
        return tokens, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)


class Seq2SeqReading:
    """Of a sequence-to-sequence model, whose encoder reads a prompt once. (A `Reading`.)"""

    def __init__(self, model: Any, before: Sequence[int]) -> None:
        self.model = model
        self.before = torch.tensor(before, device=model.device)
        self.cache: Any = None
        self.encoded: Any = None  # (rows, length, width)

    def begin(self, prompts: Tensor) -> Tensor:
        """Reads prompts (n, length) together, and what stands before every tail."""
        self.encoded = self.model.get_encoder()(input_ids=prompts).last_hidden_state
        return self._read(self.before.expand(len(prompts), -1))

    def go_on(self, rows: Tensor, tokens: Tensor) -> Tensor:
        """One more token for each of the rows."""
        self.cache.batch_select_indices(rows)
        self.encoded = self.encoded[rows]
        return self._read(tokens[:, None])

    def _read(self, tokens: Tensor) -> Tensor:
        said = self.model(
            encoder_outputs=(self.encoded,), decoder_input_ids=tokens, past_key_values=self.cache, use_cache=True
        )
        self.cache = said.past_key_values
        return said.logits[:, -1]


def prompt_of(folder: Path, prompt: Prompt | None = None) -> Prompt:
    """How the model of a folder is prompted: as it was trained, which its config.json tells, else as given.

    Raises ValueError for an unknown form, and for another than it was trained with."""
    if prompt is not None and prompt not in get_args(Prompt):
        raise ValueError(f"unknown model.prompt {prompt!r}; allowed: {', '.join(get_args(Prompt))}")
    config = json.loads((folder / layouts.CONFIG).read_text(encoding="utf-8"))
    trained = config.get("comet_prompt")
    if trained is not None and prompt not in (None, trained):
        raise ValueError(
            f"model.prompt={prompt}, but the model in {folder} was trained with model.prompt={trained}; give that, or "
            "null"
        )
    return trained or prompt or "phrase"


def wording(relation: str | None, prompt: Prompt) -> str | None:
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
