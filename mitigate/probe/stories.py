"""Stories for prompts, by sampling (harms paper, Section 4.2, on CSG of Guan et al. 2020).

A prompt's story depends on the seed and on the prompt, not on other prompts. Prompts are divided into parts, so that a
killed probe resumes with the missing ones."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import polars as pl
import torch
from torch import Tensor

from mitigate.errors import MitigateError
from mitigate.progress import progress
from mitigate.triples import Parts
from mitigate.words.outside_text import ENDS, whole_sentences

PART = 64  # prompts, of similar lengths


class TextGenerator(Protocol):
    """A language model that continues a text."""

    @property
    def positions(self) -> int | None:
        """The largest number of tokens of a text, if there is a limit."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of the beginnings of texts."""

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
        """Continuations of the prompts, each drawn by its row of chances."""

    def decode(self, tail: Sequence[int]) -> str:
        """The text of tokens."""

    def to(self, device: str) -> Self:
        """Move to a device; returns itself."""


@dataclass(frozen=True)
class Sampling:
    """Settings of the sampling of stories. Temperature and top_k are those published with CSG."""

    seed: int
    temperature: float = 0.7
    top_k: int = 40  # 0: all tokens
    max_tokens: int = 100
    fewest: int = 3  # sentences, if they fit into max_tokens
    most: int = 5
    instruction: str = "{prompt}"  # the text that is given to the model

    def __post_init__(self) -> None:
        checks = [
            (self.temperature > 0, f"temperature={self.temperature} must be above 0"),
            (self.top_k >= 0, f"top_k={self.top_k} must be at least 1, or 0 for all tokens"),
            (self.max_tokens >= 1, f"max_tokens={self.max_tokens} must be at least 1"),
            ("{prompt}" in self.instruction, f"instruction={self.instruction!r} has no {{prompt}} in it"),
            (
                1 <= self.fewest <= self.most,
                f"fewest={self.fewest} must be at least 1 and at most most={self.most} sentences",
            ),
        ]
        if faults := [fault for holds, fault in checks if not holds]:
            raise MitigateError("recipe: " + "; ".join(faults))

    def text_of(self, prompt: str) -> str:
        """The text for a prompt."""
        return self.instruction.replace("{prompt}", prompt)


@torch.inference_mode()
def sample_stories(
    generator: TextGenerator, prompts: pl.DataFrame, how: Sampling, *, parts: Parts, device: str = "cpu"
) -> pl.DataFrame:
    """The prompts (row, prompt, and any other columns) with `story`: its whole sentences, at most how.most; "" where
    there is none. Raises MitigateError for prompts too long for the model."""
    generator = generator.to(device)
    begun = generator.encode([how.text_of(prompt) for prompt in prompts["prompt"]])
    _check_length(generator.positions, max(map(len, begun)), how.max_tokens)
    order = sorted(range(len(begun)), key=lambda place: len(begun[place]))  # less padding in batches
    pieces = [order[start : start + PART] for start in range(0, len(order), PART)]
    missing = {number: places for number, places in enumerate(pieces) if number not in parts}
    there = len(order) - sum(map(len, missing.values()))
    with progress("probe", len(order), "prompts", done=there) as advance:
        for number, places in missing.items():
            chosen = prompts[places]
            chances = torch.stack([chances_of(prompt, how) for prompt in chosen["prompt"]])
            drawn = generator.sample(
                [begun[place] for place in places],
                chances,
                temperature=how.temperature,
                top_k=how.top_k,
                sentences=(how.fewest, how.most),
                marks=ENDS,
            )
            stories = [story_of(generator.decode(tokens), how.most) for tokens in drawn]
            parts.save(number, chosen.select("row", story=pl.Series(stories, dtype=pl.String)))
            advance(len(places))
    return prompts.join(pl.concat(list(parts)), on="row", how="left", maintain_order="left")


def story_of(text: str, most: int) -> str:
    """The first whole sentences of a generated text, in one line."""
    return " ".join(whole_sentences(text)[:most])


def chances_of(prompt: str, how: Sampling) -> Tensor:
    """A prompt's own numbers in [0, 1), (max_tokens,), the same on every machine."""
    seed = int.from_bytes(hashlib.sha256(f"{how.seed}\t{prompt}".encode()).digest()[:8])
    return torch.from_numpy(np.random.default_rng(seed).random(how.max_tokens))


def _check_length(positions: int | None, longest: int, max_tokens: int) -> None:
    if positions is None or longest + max_tokens <= positions:
        return
    if longest >= positions:
        raise MitigateError(
            f"a prompt of {longest} tokens leaves nothing of the {positions} that this model reads for a story; leave "
            "out targets with long names (probe.targets), or give a model that reads more"
        )
    raise MitigateError(
        f"recipe.max_tokens={max_tokens} after a prompt of {longest} tokens is more than the {positions} that this "
        f"model reads; give recipe.max_tokens={positions - longest} or less"
    )
