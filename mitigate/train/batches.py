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
    without a break, so that every batch is full and no example is left out."""

    lengths: np.ndarray  # (n,) int, in tokens: examples of similar length share a batch
    size: int
    seed: int
    _orders: dict[int, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

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
        examples = np.concatenate([self._order(epoch)[places[epochs == epoch]] for epoch in np.unique(epochs)])
        by_length = examples[np.argsort(self.lengths[examples], kind="stable")].reshape(WINDOW, self.size)
        return np.random.default_rng([self.seed, 1, number]).permutation(by_length)

    def _order(self, epoch: int) -> np.ndarray:
        """The examples (n,) of an epoch in their order."""
        if epoch not in self._orders:
            for old in [other for other in self._orders if abs(other - epoch) > 1]:
                del self._orders[old]
            self._orders[epoch] = np.random.default_rng([self.seed, 0, epoch]).permutation(len(self.lengths))
        return self._orders[epoch]


@dataclass(frozen=True)
class Epochs:
    """Batches that each pass through `drawn` draws for one epoch, one epoch after the other."""

    drawn: Iterable[Any]
    size: float  # examples in a batch, on average

    def start_at(self, step: int, stop: int) -> Iterator[Any]:
        """The batches of steps step to stop - 1; those before are drawn and dropped."""
        return islice(chain.from_iterable(repeat(self.drawn)), step, stop)
