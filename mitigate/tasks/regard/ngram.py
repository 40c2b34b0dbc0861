"""The shipped n-gram classifier of regard, trained on the labels and on the teacher's probabilities, also of copies
with identity terms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.runs.files import replacing_folder
from mitigate.tasks.regard.copies import with_copies
from mitigate.tasks.regard.texts import LEARNT
from mitigate.train.harness import Log
from mitigate.train.regard_ngram import fit_ngram


def train_ngram(
    labelled: pl.DataFrame,
    taught: pl.DataFrame,
    copies: Mapping[str, float],
    settings: Mapping[str, Any],
    *,
    seed: int,
    folder: Path,
    log: Log,
) -> dict[str, int]:
    """Train on the labelled texts (text, label, part) of part train, on those of `taught` (text, probabilities) that
    are not labelled and on copies with identity terms; write ngram/ to the folder; returns the number of parameters.

    copies: as of with_copies. settings: of mitigate.train.regard_ngram.fit_ngram."""
    learnt = labelled.filter(pl.col("part").is_in(LEARNT))
    texts, wanted = with_copies(learnt, taught, copies, seed)
    known = set(labelled["text"])
    rest = [i for i, text in enumerate(texts) if text not in known]
    classifier = fit_ngram(labelled, [texts[i] for i in rest], wanted[rest], seed=seed, log=log, **settings)
    with replacing_folder(folder / "ngram") as part:
        classifier.save(part)
    return {"parameters": classifier.weight.size + classifier.bias.size}
