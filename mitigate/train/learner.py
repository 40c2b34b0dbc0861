"""The methods of a model that training uses."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from torch import Tensor


class Learner(Protocol):
    """A module of torch that learns tails: a COMeT, or a model of transformers that is asked as one."""

    training: bool

    def prompts(self, heads: Sequence[str], phrases: Sequence[str]) -> list[list[int]]:
        """The tokens it is asked with."""
        ...

    def tails(self, tails: Sequence[str]) -> list[list[int]]:
        """The tokens of tails, with their end."""
        ...

    def nll(self, prompts: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> Tensor:
        """Minus the log-likelihood (tokens,) of each token of the tails, in order."""
        ...

    def begin_steps(self) -> None:
        """Make ready what cannot be sent to another process, in the one that trains."""
        ...

    def train(self, mode: bool = True) -> Self:
        """Itself, from now on with dropout, or without."""
        ...

    def eval(self) -> Self:
        """Itself, from now on without dropout."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """The weights by name."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take these weights."""
        ...
