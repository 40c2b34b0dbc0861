"""The methods of a model that training uses."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from torch import Tensor


class Learner(Protocol):
    """A torch module that learns tails: a COMeT, or a model of transformers with the same prompts."""

    training: bool

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens of prompts."""
        ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""
        ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        ...

    def begin_steps(self) -> None:
        """Prepare, in the process that trains, everything that cannot be sent to another process."""
        ...

    def train(self, mode: bool = True) -> Self:
        """Switch dropout on or off; returns itself."""
        ...

    def eval(self) -> Self:
        """Switch dropout off; returns itself."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """The weights by name."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load these weights."""
        ...
