"""Test triples drawn by chance, where a resource has none of its own: whole heads, so that nothing that is said of a
test triple's head is in training.

Knows no format and no labels."""

from dataclasses import dataclass

import numpy as np
import polars as pl

FEW = 30  # test triples; with fewer, a figure on them depends on which were drawn


@dataclass(frozen=True)
class HeldOut:
    """How many triples of how many heads were held out, and how they were drawn."""

    triples: int
    of_triples: int
    heads: int
    of_heads: int
    seed: int

    @property
    def sentence(self) -> str:
        """A note for the reader on how many triples were held out, and how."""
        share = 100 * self.triples / self.of_triples
        return (
            f"The data has no test triples of its own: {self.triples:,} of {self.of_triples:,} triples ({share:.1f} %) "
            f"are held out, all triples of {self.heads:,} of {self.of_heads:,} heads, drawn by chance "
            f"(data.holdout_seed={self.seed})." + (" Figures on so few are uncertain." if self.triples < FEW else "")
        )


def hold_out(triples: pl.DataFrame, share: float, seed: int) -> tuple[pl.DataFrame, HeldOut | None]:
    """The triples with all triples of some heads moved from split train to test; None where there are fewer than two
    heads to draw from.

    Heads are taken in an order that the seed fixes, each if not more than this share of the triples is then held out;
    where all heads have more, the one with the fewest triples is."""
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
