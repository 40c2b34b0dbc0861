"""How much a generator's tail is about its head: pointwise mutual information (Church and Hanks 1990).

log p(tail | head, relation) - log of the mean of p(tail | head', relation) over other heads. A tail that
is likely for every head, such as "person" or "very good", has none."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from scipy.special import logsumexp

from mitigate.probe.generator import Generator
from mitigate.probe.likelihood import nll_of_tails

TRIPLE = ["head", "relation", "tail"]


class Information:
    """Pointwise mutual information of head and tail under a generator, in nats. The likelihood of a relation and tail
    with the other heads is cached, so that each is computed once.

    phrases: what the generator is asked with for each relation. heads: the others, at least two."""

    def __init__(self, generator: Generator, phrases: Mapping[str, str], heads: Sequence[str]) -> None:
        self.generator = generator
        self.phrases = phrases
        self.heads = np.array(heads, dtype=object)
        self._of_others: dict[tuple[str, str], np.ndarray] = {}  # (relation, tail) -> log-likelihoods (heads,)

    def __call__(self, triples: pl.DataFrame) -> np.ndarray:
        """Of n triples (head, relation, tail), (n,): 0 where a tail is as likely of the head as of the others on
        average, at most the log of their number where it is likely of no other. A triple's own head is left out."""
        own = self._log_likelihood(triples)
        others = self._with_others(triples.select("relation", "tail"))  # (n, heads)
        same = triples["head"].to_numpy()[:, None] == self.heads
        mean = logsumexp(np.where(same, -np.inf, others), axis=1) - np.log((~same).sum(axis=1))
        return own - mean

    def _with_others(self, pairs: pl.DataFrame) -> np.ndarray:
        asked = [pair for pair in pairs.unique(maintain_order=True).iter_rows() if pair not in self._of_others]
        rows = [(head, *pair) for pair in asked for head in self.heads]
        found = self._log_likelihood(pl.DataFrame(rows, schema=dict.fromkeys(TRIPLE, pl.String), orient="row"))
        self._of_others |= zip(asked, found.reshape(len(asked), len(self.heads)), strict=True)
        return np.array([self._of_others[pair] for pair in pairs.iter_rows()]).reshape(-1, len(self.heads))

    def _log_likelihood(self, triples: pl.DataFrame) -> np.ndarray:
        return -np.array(nll_of_tails(self.generator, triples, self.phrases, lambda _: None))
