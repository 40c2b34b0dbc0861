"""COMeT: a decoder that completes the head and relation of an assertion with its tail (Bosselut et al. 2019)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor, nn
from torch.nn import functional as F

from mitigate.models.beam import beam_search
from mitigate.models.decoder import Decoder, DecoderReading, Padded
from mitigate.models.stored_tensors import CONFIG, read_facts, write_facts
from mitigate.models.tail_prompts import (
    HEAD_TOKENS,
    RELATION_TOKENS,
    TAIL_TOKENS,
    Beam,
    Encoding,
    Layout,
    read_prompt_format,
    tagged,
)


class Comet(nn.Module):
    """A decoder and its encoding: prompts in, tails out."""

    def __init__(
        self,
        decoder: Decoder,
        encoding: Encoding,
        layout: Layout = "packed",
        relation: str = "phrase",
        tags: str | None = None,
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.encoding = encoding
        self.layout = layout
        self.relation = relation
        self.tags = tags

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
    def masked_token(self) -> int | None:
        """The padding token, which no row attends to within a prompt; None with a layout without padding. In a tail it
        is a word like others: the original pads with GPT-1's token 0, a full stop within a word."""
        return self.encoding.pad if self.layout == "comet" else None

    def _slot(self, tokens: list[int], size: int) -> list[int]:
        return tokens + [self.encoding.pad] * (size - len(tokens))

    def nll(
        self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]], candidates: Tensor | None = None
    ) -> Tensor:
        """The negative log-likelihood (tokens,) of each token of the tails, in order. candidates: the tokens (n,), in
        rising order, that it is normalised over; they must include those of the tails; None: the vocabulary.

        Logits, the most expensive part of a small model, are computed for the tails alone."""
        decoder, device = self.decoder, self.decoder.token_embedding.weight.device
        texts = [[*prompt, *tail[:-1]] for prompt, tail in zip(prompts, tails, strict=True)]
        length = max(map(len, texts))
        tokens = np.zeros((len(texts), length), dtype=np.int64)  # padded to the right
        predicting = []  # the rows of hidden states from which the tokens of tails are predicted
        for row, (text, tail) in enumerate(zip(texts, tails, strict=True)):
            tokens[row, : len(text)] = text
            predicting.append(row * length + np.arange(len(text) - len(tail), len(text)))
        mask = None
        if self.masked_token is not None:
            attended = tokens != self.masked_token  # (texts, length)
            attended[:, HEAD_TOKENS + RELATION_TOKENS :] = True
            causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()
            mask = send(attended, device)[:, None] & causal  # (texts, length, length)
        positions = torch.arange(length, device=device).repeat(len(texts))
        attention = Padded(len(texts), decoder.config.dropout if decoder.training else 0.0, mask)
        hidden = decoder(send(tokens.ravel(), device), positions, attention)  # (texts * length, width)
        hidden = hidden[send(np.concatenate(predicting), device)]  # (tokens, width)
        logits = decoder.logits(hidden, candidates)  # (tokens, vocab_size), or (tokens, candidates)
        targets = send(np.concatenate(tails), device)  # (tokens,)
        if candidates is not None:
            targets = torch.searchsorted(candidates, targets)
        return F.cross_entropy(logits.float(), targets, reduction="none")

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first (see beam_search). A copy in bfloat16 searches approximately.
        Raises ValueError in training mode, and for a prompt that is too long for the decoder's positions."""
        if self.decoder.training:
            raise ValueError("the decoder is in training mode, where dropout changes its output; call eval() first")
        longest, positions = max(map(len, prompts), default=0), self.decoder.config.positions
        if longest + max_length - 1 > positions:
            raise ValueError(
                f"a prompt of {longest} tokens with tails of {max_length} needs {longest + max_length - 1} positions; "
                f"the decoder has {positions}"
            )
        reading = partial(DecoderReading, self.decoder, self.masked_token)
        end, device = self.encoding.end, self.decoder.token_embedding.weight.device
        return beam_search(reading, prompts, end=end, device=device, beams=beams, max_length=max_length, rows=rows)

    def add(self, tokens: Sequence[str]) -> None:
        """Add tokens that are words of their own, such as <CapableOf> for a relation."""
        self.encoding.add(tokens)
        self.decoder.grow(self.encoding.vocab_size)

    @classmethod
    def from_encoder(
        cls, folder: Path, dropout: float = 0.1, layout: Layout | None = None, relation: str | None = None
    ) -> "Comet":
        """An untrained COMeT that knows words and phrases from all-MiniLM-L6-v2."""
        decoder, encoding = Decoder.from_encoder(folder, dropout), Encoding.of_encoder(folder)
        return cls(decoder, encoding, *read_prompt_format(folder, layout, relation)).eval()

    @classmethod
    def load(cls, folder: Path, layout: Layout | None = None, relation: str | None = None) -> "Comet":
        """The COMeT of a Hugging Face folder, or a language model that becomes one (see read_prompt_format)."""
        decoder, encoding = Decoder.load(folder), Encoding.load(folder)
        words = encoding.tokenizer.pre_tokenizer  # GPT-2's marks a word by the space before it
        if isinstance(words, ByteLevel) and "comet_layout" not in read_facts(folder / CONFIG):
            words.add_prefix_space = True  # head, phrase and tail are encoded apart
        if encoding.vocab_size > decoder.config.vocab_size:  # an end token was added
            decoder.grow(encoding.vocab_size)
        return cls(decoder, encoding, *read_prompt_format(folder, layout, relation)).eval()

    def save(self, folder: Path) -> None:
        """Write the files that AutoModelForCausalLM, AutoTokenizer and `generate` need to work without this code."""
        tokens = {"bos_token_id": self.encoding.start, "eos_token_id": self.encoding.end}
        tokens["pad_token_id"] = self.encoding.pad
        facts = {"comet_layout": self.layout, "comet_relation": self.relation}
        facts |= {} if self.tags is None else {"comet_tags": self.tags}
        self.decoder.save(folder, **tokens, **facts)
        self.encoding.save(folder)
        generation = {name: value for name, value in tokens.items() if value is not None}
        write_facts(folder / "generation_config.json", {**generation, "max_new_tokens": TAIL_TOKENS + 1})


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """The array as a tensor on the device. A copy from pinned memory does not wait for the GPU's work."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
