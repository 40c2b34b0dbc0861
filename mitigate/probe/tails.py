"""A generator whose tails are in a table, so that tails of another system, or of a trivial baseline, go through the
same stages as those of a trained generator."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import polars as pl

from mitigate.load.tails import read_tails
from mitigate.words.relations import spelt
from mitigate.words.word_forms import plain
from models.tail_prompts import Beam

if TYPE_CHECKING:
    from torch import Tensor

EVERY_HEAD = None
"""The head of rows for all heads."""


class GivenTails:
    """A generator (the Protocol probe.comet.Generator) of a table (head, relation, tail, score): a null head stands
    for every head, and a null score for an unknown one. Prompts have relations by their names, in brackets (<IsA>). It
    has no probabilities."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._tails = table["tail"].unique(maintain_order=True).to_list()
        number = {tail: place for place, tail in enumerate(self._tails)}
        self._answers: dict[tuple[str | None, str], list[tuple[int, float]]] = {}
        self._prompts: list[tuple[str, str]] = []
        for head, relation, tail, score in table.select("head", "relation", "tail", "score").iter_rows():
            key = (head if head is EVERY_HEAD else plain(head), spelt(relation))
            self._answers.setdefault(key, []).append((number[tail], math.nan if score is None else score))

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """A number for each prompt, with which search finds it."""
        first = len(self._prompts)
        named = [spelt(phrase.removeprefix("<").removesuffix(">")) for phrase in phrases]
        self._prompts += list(zip(map(plain, heads), named, strict=True))
        return [[number] for number in range(first, len(self._prompts))]

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """A token for each word and one for the end, the same for all words."""
        return [[0] * (len(tail.split()) + 1) for tail in tails]

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> "Tensor":
        """NaN for each token: it gives no probabilities."""
        import torch  # takes a second, which searches do without

        return torch.full((sum(map(len, tails)),), math.nan)

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The first tails of each prompt, those of its head before those of every head; none where the table has
        none."""
        results = []
        for (number,) in prompts:
            head, relation = self._prompts[number]
            found = [*self._answers.get((head, relation), ()), *self._answers.get((EVERY_HEAD, relation), ())]
            first = dict(reversed(found))  # the first score of a repeated tail
            beam_of = [Beam((tail,), math.nan, first[tail], True) for tail in dict.fromkeys(tail for tail, _ in found)]
            results.append(beam_of[:beams])
        return results

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        return " ".join(self._tails[number] for number in tail)

    def bfloat16(self) -> Self:
        """Itself, since it has no weights."""
        return self

    def to(self, device: str) -> Self:
        """Itself, since it computes nothing."""
        return self


def open_tails(folder: Path) -> GivenTails:
    """Open a file of tails as a generator. Raises MitigateError as load.tails.read_tails."""
    return GivenTails(read_tails(folder))
