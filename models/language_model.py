"""Any causal language model of Hugging Face's, asked what a COMeT is asked, and trained as one.

A tail ends with the tokenizer's own end token, or is cut. Only relations may get tokens of their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AddedToken,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from models.adapters import is_adapter, load_merged
from models.bars import no_bars
from models.beams import Beam
from models.cached_search import CausalReading, cached_search
from models.comet import TAIL_TOKENS, regimen
from models.learning import WHOLE, Learning
from models.sampling import Drawn, Enough, NoEndBefore, SentenceEnds, until

TEXTS = 64  # whose logits are held at a time: 25 tokens each of 50,000 words are 320 MB


class LanguageModel(nn.Module):
    """A model and its tokenizer: prompts in, tails out."""

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
        self.end = tokenizer.eos_token_id
        self.pad = self.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        # Instead of its own, which may sample, forbid words or end elsewhere.
        model.generation_config = GenerationConfig(eos_token_id=self.end, pad_token_id=self.pad, do_sample=False)

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """What tails are asked for with: the head and the relation's phrase, after what the tokenizer puts before."""
        texts = [f"{head} {phrase}" for head, phrase in zip(heads, phrases, strict=True)]
        return self.tokenizer(texts)["input_ids"] if texts else []

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """What is to be said: the tail, cut as a COMeT's, and the end token.

        A tail follows a word. Many tokenizers mark a word's beginning by the space before it, so each is encoded
        after one."""
        (word,) = self.tokenizer(["a"], add_special_tokens=False)["input_ids"]
        texts = self.tokenizer(["a", *(f"a {tail}".rstrip() for tail in tails)], add_special_tokens=False)["input_ids"]
        return [[*text[len(word) :][:TAIL_TOKENS], self.end] for text in texts[1:]]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        found = []
        for start in range(0, len(tails), TEXTS):
            pairs = list(zip(prompts[start : start + TEXTS], tails[start : start + TEXTS], strict=True))
            texts = self._padded([[*prompt, *tail[:-1]] for prompt, tail in pairs], "right")
            logits = self.model(**texts, use_cache=False).logits
            rows = [row for row, (_, tail) in enumerate(pairs) for _ in tail]
            before = [len(prompt) - 1 + place for prompt, tail in pairs for place in range(len(tail))]
            said = torch.tensor([token for _, tail in pairs for token in tail], device=logits.device)
            found.append(F.cross_entropy(logits[rows, before].float(), said, reduction="none"))
        return torch.cat(found)

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see models/beams.py). rows is the most beams worked on at a
        time."""
        reading = partial(CausalReading, self.model)
        device, limits = self.model.device, {"beams": beams, "max_length": max_length, "rows": rows}
        return cached_search(reading, prompts, end=self.end, device=device, **limits)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens that each text is begun with, what the tokenizer puts before a text included."""
        return self.tokenizer(list(texts))["input_ids"] if texts else []

    @property
    def positions(self) -> int | None:
        """How many tokens a text may have; None where the model sets no limit."""
        return getattr(self.model.config, "max_position_embeddings", None)

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
        """How each prompt goes on: the tokens up to END, or up to as many as it has chances, (prompts, tokens) in
        [0, 1). No text ends before the fewest sentences, and none goes on after the most; marks end them. The same
        chances give the same text, whatever else is in the batch (but for rounding)."""
        inputs = self._padded(prompts, "left")
        length = inputs["input_ids"].shape[1]
        counted = SentenceEnds(self.tokenizer, self.model.config.vocab_size, marks, length)
        fewest, most = sentences
        texts = self.model.generate(
            **inputs,
            max_new_tokens=chances.shape[1],
            logits_processor=[
                NoEndBefore(counted, fewest, self.end),
                Drawn(chances.to(self.model.device), length, temperature, top_k),
            ],
            stopping_criteria=[Enough(counted, most)],
        )
        return [until(said, {self.end, self.pad}) for said in texts[:, length:].tolist()]

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text, in one line."""
        return " ".join(str(self.tokenizer.decode(list(tail), skip_special_tokens=True)).split())

    def _padded(self, texts: Sequence[Sequence[int]], side: str) -> dict[str, Tensor]:
        rows = [torch.tensor(text, device=self.model.device) for text in texts]
        tokens = pad_sequence(rows, batch_first=True, padding_value=self.pad, padding_side=side)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True, padding_side=side)
        return {"input_ids": tokens, "attention_mask": mask}

    def add(self, tokens: Sequence[str]) -> None:
        """Adds tokens that are words of their own, such as <CapableOf> for a relation; always the same weights."""
        add_tokens(self.model, self.tokenizer, tokens)

    def begin_training(self) -> None:
        """Makes ready the weights that are to be trained. Raises ValueError where they cannot be."""
        self.model = self.learning.begin(self.model)

    def end_training(self) -> None:
        """Merges adapters, unless they are to be saved alone."""
        self.model = self.learning.end(self.model)

    def save(self, folder: Path, *, as_comet: bool = True) -> None:
        """Writes what AutoModelForCausalLM and AutoTokenizer read; of one that was trained as a COMeT, also how it was
        asked."""
        if as_comet:
            note_regimen(self.model, self.relation)
        save_model(self.model, folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(
        cls,
        folder: Path,
        relation: str | None = None,
        lora: Mapping[str, Any] | None = None,
        gradient_checkpointing: bool = False,
    ) -> "LanguageModel":
        """The model of a Hugging Face folder, in float32; a COMeT among them is asked as it was trained. An adapter is
        added to its base's weights. lora: the fields of Adapters; None or rank 0: all weights would be trained.

        Raises ValueError where that cannot be done: no tokenizer's end token, or another layout."""
        relation = regimen(folder, "packed", relation).relation
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if tokenizer.eos_token_id is None:
            raise ValueError(
                f"the tokenizer in {folder} has no end token (eos_token), so no tail of the model's would end; give a "
                "model that has one"
            )
        model = load_model(AutoModelForCausalLM, folder)
        return cls(model, tokenizer, relation, Learning.of(lora, gradient_checkpointing)).eval()


def load_model(kind: Any, folder: Path) -> Any:
    """The model of a folder, in float32, by one of transformers' AutoModel classes; of an adapter, with its base."""
    if is_adapter(folder):
        return load_merged(folder, kind)
    with no_bars():
        return kind.from_pretrained(folder, dtype=torch.float32)


def save_model(model: Any, folder: Path) -> None:
    """Writes a model of transformers, or the adapters of one alone; with its config.json."""
    with no_bars():
        if isinstance(model, PreTrainedModel):
            model.save_pretrained(folder)
        else:
            model.save_pretrained(folder, save_embedding_layers=False)  # else it asks the hub for the base's vocabulary
            model.config.save_pretrained(folder)


def add_tokens(model: Any, tokenizer: PreTrainedTokenizerBase, tokens: Sequence[str]) -> None:
    """Adds tokens that stand for themselves wherever they occur in a text; the blank before one is part of it. A
    vocabulary that is too small grows, by always the same weights."""
    tokenizer.add_tokens([AddedToken(token, lstrip=True, normalized=False) for token in tokens], special_tokens=True)
    if len(tokenizer) > len(model.get_input_embeddings().weight):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(len(tokenizer))
            model.resize_token_embeddings(len(tokenizer), mean_resizing=False)


def note_regimen(model: Any, relation: str) -> None:
    """Has a model's config.json say how it is asked (see regimen). It has no layout: that of a COMeT which it may once
    have been is left out."""
    model.config.comet_relation = relation
    if hasattr(model.config, "comet_layout"):
        del model.config.comet_layout
