"""The methods of a generator that the probe uses."""

from collections.abc import Sequence
from typing import Protocol, Self

from torch import Tensor

from models.beam_state import Beam


class Generator(Protocol):
    """A generator of tails: a COMeT, or any language model with the same prompts. Both are torch modules."""

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens of prompts."""
        ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""
        ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        ...

    def search(
        self, prompts: Sequence[Sequence[int]], *, beams: int = 10, max_length: int = 15, rows: int = 680
    ) -> list[list[Beam]]:
        """The best tails of each prompt, the best first."""
        ...

    def decode(self, tail: Sequence[int]) -> str:
        """A tail's text."""
        ...

    def bfloat16(self) -> Self:
        """Convert to bfloat16; returns itself."""
        ...

    def to(self, device: str) -> Self:
        """Move to a device; returns itself."""
        ...
