"""Pointwise mutual information of head and tail under a generator of all data: a quality score beside the classifier,
which knows no tail that is likely of everybody."""

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.probe.generator import Generator
from mitigate.probe.information import Information
from mitigate.runs.progress import progress
from mitigate.tasks.base_model import Start
from mitigate.words.relations import asked_with
from mitigate.words.targets import targets

HEADS = 48  # with 24 the area under the ROC curve of HasProperty varied by .02 from draw to draw, with 48 by .01
TOGETHER = 512  # triples


def pointwise_information(
    generator: Generator | Start, triples: pl.DataFrame, *, heads: int = HEADS, seed: int = 1, device: str = "cpu"
) -> pl.DataFrame:
    """The triples (head, relation, tail, and whatever else) with `information`, in nats: log p(tail | head, relation) -
    log of the mean of p(tail | head', relation) over other heads, which are so many targets drawn by the seed.

    0 where the tail is as likely of the head as of these, at most the log of their number. Each distinct relation and
    tail is asked about with each of the heads: for 48 heads, 49 times the work of a likelihood or less. Raises
    MitigateError for fewer than 2 heads, or more than there are targets."""
    asked = generator.asked if isinstance(generator, Start) else asked_with("phrase")
    model = (generator.load() if isinstance(generator, Start) else generator).to(device)
    measure = Information(model, asked, other_heads(heads, seed))
    ordered = triples.with_row_index("_row").sort("relation", "tail", maintain_order=True)  # alike ones together
    found = np.empty(triples.height)
    with progress("information", triples.height, "triples") as advance:
        for part in ordered.iter_slices(TOGETHER):
            found[part["_row"].to_numpy()] = measure(part)
            advance(part.height)
    return triples.with_columns(information=pl.Series(found))


def other_heads(count: int, seed: int) -> list[str]:
    """So many of the 329 targets, drawn by the seed."""
    every = list(targets())
    if not 2 <= count <= len(every):
        raise MitigateError(f"heads={count} must be at least 2 and at most {len(every)}, the number of targets")
    return [every[place] for place in np.random.default_rng(seed).choice(len(every), count, replace=False)]
