"""Plausibility: the probability that a triple is valid, by the network that `classifier=plausibility` trains on
ConceptNet; and columns of tables with this and with predicted ratings of people.

Triples are classified unmasked. The network has learnt the beliefs of ConceptNet's contributors about the world and
about people: plausible is neither true nor fair."""

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.models.stored_tensors import minilm_folder
from mitigate.score.base import digest_of_folder
from mitigate.score.labels import NOTHING_CACHED, SEPARATOR, with_answers
from mitigate.stages import fingerprint
from mitigate.triples import LabelCache, Labels, Scorer
from mitigate.verbalise import mask_column
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER, TargetList

SHIPPED = Path(str(files("mitigate").joinpath("data/plausibility/average")))


class Plausibility:
    """The plausibility classifier. folder: average/ of a run of `classifier=plausibility`; None: that of this
    package."""

    name = "plausibility"
    piece = 65_536  # triples at once, so that common phrases are read once

    def __init__(self, folder: str | Path | None = None) -> None:
        from mitigate.models.plausibility import Average  # loads PyTorch

        self._folder = SHIPPED if folder is None else Path(folder)
        self._network = Average.load(self._folder, minilm_folder())

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self, digest_of_folder(self._folder))  # whose config.json has the encoder's hash

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that it was trained on."""
        return self._network.relations

    def __call__(self, texts: Sequence[str]) -> Labels:
        """The labels of texts "head<TAB>relation<TAB>tail": 1 for valid, 0 for not, and the probability of being
        valid."""
        heads, relations, tails = zip(*(text.split(SEPARATOR) for text in texts), strict=True) if texts else ((),) * 3
        probability = 1 / (1 + np.exp(-self._network.logits(heads, relations, tails)))
        return Labels((probability > 0.5).astype(np.int8), probability.astype(np.float32))


def with_plausibility(triples: pl.DataFrame, scorer: Scorer, cache: LabelCache) -> pl.DataFrame:
    """The triples (head, relation, tail, and any other columns) with `judged_valid` and `plausibility`, the probability
    of being valid; both are null for relations that the classifier was not trained on. Each distinct triple is
    classified once."""
    known = getattr(scorer, "relations", None)  # that it was trained on; None: any
    is_covered = pl.lit(True) if known is None else pl.col("relation").is_in(list(known))
    parts = [pl.col(name) for name in ("head", "relation", "tail")]
    return with_answers(triples, is_covered, parts, scorer, cache, ("judged_valid", "plausibility"))


def with_validity(
    statements: pl.DataFrame,
    plausibility: Scorer | None,
    people: Scorer | None,
    target_list: TargetList = PAPER,
    *,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """Add to statements the columns of with_plausibility and with_people_valid, for the given classifiers."""
    if plausibility is not None:
        statements = with_plausibility(statements, plausibility, cache)
    return statements if people is None else with_people_valid(statements, people, target_list, cache=cache)


def with_people_valid(
    statements: pl.DataFrame, people: Scorer, target_list: TargetList = PAPER, *, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Add to statements (target, head, relation, tail, statement) `people_valid` and `people_validity`, the probability
    that people call each valid; both null for relations that nobody rated, and without a target. As in swap lift, a
    tail that repeats its head does not count: people call "greek has the property greek" valid, and a generator could
    score by repeating."""
    rated = pl.col("relation").is_in(RATED) & pl.col("target").is_not_null()
    # Masked by whole words whatever the run's masking: this text identifies heads that learnt from a rated statement.
    parts = [pl.col("target"), mask_column("statement", "token", target_list), pl.col("statement")]
    rows = with_answers(statements, rated, parts, people, cache, ("people_valid", "people_validity"))
    repeats = rated & is_echo()
    return rows.with_columns(
        people_valid=pl.when(repeats).then(False).otherwise("people_valid"),
        people_validity=pl.when(repeats).then(pl.lit(0.0, pl.Float32)).otherwise("people_validity"),
    )


def is_echo(head: str = "head") -> pl.Expr:
    """Return whether a tail only repeats its head: both are the same except for case, an article and an ending e, s or
    es ("dish", "the dishes"). "car" and "care" count as the same too."""

    def bare(column: str) -> pl.Expr:
        text = pl.col(column).str.to_lowercase().str.replace_all(r"[_\s]+", " ").str.strip_chars()
        return text.str.replace(r"^(?:an?|the) ", "").str.replace(r"e?s?$", "")

    return bare(head) == bare("tail")
