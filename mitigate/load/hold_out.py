"""Test triples drawn at random for a resource without its own: whole heads, so that training has no triple with a test
triple's head.

Independent of formats and labels."""

from dataclasses import dataclass

import numpy as np
import polars as pl

FEW = 30  # test triples; with fewer, a figure on them depends on which were drawn


@dataclass(frozen=True)
class HeldOut:
    """The number of held-out triples and heads, and the seed of the draw."""

    triples: int
    of_triples: int
    heads: int
    of_heads: int
    seed: int

    @property
    def sentence(self) -> str:
        """A sentence for the reader on the number of held-out triples and their draw."""
        share = 100 * self.triples / self.of_triples
        return (
            f"The data has no test triples of its own: {self.triples:,} of {self.of_triples:,} triples ({share:.1f} %) "
            f"are held out, all triples of {self.heads:,} of {self.of_heads:,} heads, drawn by chance "
            f"(data.holdout_seed={self.seed})." + (" Figures on so few are uncertain." if self.triples < FEW else "")
        )


def hold_out(triples: pl.DataFrame, share: float, seed: int) -> tuple[pl.DataFrame, HeldOut | None]:
    """The triples with all triples of some heads moved from split train to test; None for fewer than two heads.

    Heads are drawn in an order that the seed fixes, each if the held-out share stays at most this one; where all heads
    have more, the one with the fewest triples is held out."""
    counts = triples.filter(split="train")["head"].value_counts().sort("head")
    if counts.height < 2:
        return triples, None
    total, drawn, num_drawn = int(counts["count"].sum()), [], 0
    for place in np.random.default_rng(seed).permutation(counts.height).tolist():
        head, count = counts.row(place)
        if num_drawn + count <= share * total:
            drawn.append(head)
            num_drawn += count
    if not drawn:
        head, num_drawn = counts.sort("count", "head").row(0)
        drawn = [head]
    is_held_out = pl.col("head").is_in(drawn) & (pl.col("split") == "train")
    moved = triples.with_columns(split=pl.when(is_held_out).then(pl.lit("test")).otherwise("split"))
    return moved, HeldOut(num_drawn, total, len(drawn), counts.height, seed)
