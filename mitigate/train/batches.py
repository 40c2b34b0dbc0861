"""The order of a run's examples: each batch is a pure function of (seed, step), so that a run can resume at any step
without the steps before it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

WINDOW = 16  # batches whose examples are sorted by length together: enough to leave about 5 % of padding


@dataclass(frozen=True)
class Batches:
    """Batches of indices of examples. Examples come in a new random order each epoch, one epoch after the other
    without a break, so that every batch is full and no example is left out.

    With prompts, up to `together` examples of the same prompt, drawn anew each epoch, follow each other, so that their
    common part is computed once (models/packing.py). Their gradients are similar: a step learns less."""

    lengths: np.ndarray  # (n,) int, in tokens: examples of similar length share a batch
    size: int
    seed: int
    prompts: np.ndarray | None = None  # (n,) int: the number of each example's prompt
    together: int = 8
    _orders: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False, compare=False)

    def start_at(self, step: int, stop: int) -> Iterator[np.ndarray]:
        """Yield the batches of steps step to stop - 1, each (size,) int."""
        while step < stop:
            number, place = divmod(step, WINDOW)
            for batch in self._window(number)[place : place + stop - step]:
                yield batch
                step += 1

    def ends_epoch(self, step: int) -> bool:
        """Return whether the batch of this step holds the last example of an epoch."""
        return (step + 1) * self.size // len(self.lengths) > step * self.size // len(self.lengths)

    def _window(self, number: int) -> np.ndarray:  # (WINDOW, size)
        drawn = number * WINDOW * self.size + np.arange(WINDOW * self.size)
        epochs, places = np.divmod(drawn, len(self.lengths))
        examples, longest = (
            np.concatenate([self._order(epoch)[part][places[epochs == epoch]] for epoch in np.unique(epochs)])
            for part in (0, 1)
        )
        by_length = examples[np.argsort(longest, kind="stable")].reshape(WINDOW, self.size)
        return np.random.default_rng([self.seed, 1, number]).permutation(by_length)

    def _order(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The examples (n,) of an epoch in their order, and for each the length (n,) of the longest of its group."""
        if epoch not in self._orders:
            for old in [other for other in self._orders if abs(other - epoch) > 1]:
                del self._orders[old]
            self._orders[epoch] = self._drawn(epoch)
        return self._orders[epoch]

    def _drawn(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        chance = np.random.default_rng([self.seed, 0, epoch])
        examples = chance.permutation(len(self.lengths))
        if self.prompts is None:
            return examples, self.lengths[examples]
        prompts = self.prompts[examples]
        sorted_places = np.argsort(prompts, kind="stable")
        ranks = np.empty(len(prompts), dtype=np.int64)  # of each example among those of its prompt
        _, begins, counts = np.unique(prompts[sorted_places], return_index=True, return_counts=True)
        ranks[sorted_places] = np.arange(len(prompts)) - np.repeat(begins, counts)
        _, groups = np.unique(prompts * len(prompts) + ranks // self.together, return_inverse=True)
        turns = chance.permutation(groups.max() + 1)[groups]  # of each example's group
        longest = np.zeros(len(turns), dtype=self.lengths.dtype)
        np.maximum.at(longest, turns, self.lengths[examples])
        places = np.argsort(turns, kind="stable")
        return examples[places], longest[turns][places]


@dataclass(frozen=True)
class Epochs:
    """Batches that each pass through `drawn` draws for one epoch, one epoch after the other."""

    drawn: Iterable[Any]
    size: float  # examples in a batch, on average

    def start_at(self, step: int, stop: int) -> Iterator[Any]:
        """The batches of steps step to stop - 1; those before are drawn and dropped."""
        return islice(chain.from_iterable(repeat(self.drawn)), step, stop)
