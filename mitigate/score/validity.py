"""Estimates of people's ratings of generated statements: their validity and their plausibility."""

import polars as pl

from mitigate.score.labels import NOTHING_CACHED, with_answers
from mitigate.score.plausibility import with_plausibility
from mitigate.triples import LabelCache, Scorer
from mitigate.verbalise import mask_column
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER, TargetList


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
    found = with_answers(statements, rated, parts, people, cache, ("people_valid", "people_validity"))
    repeats = rated & is_echo()
    return found.with_columns(
        people_valid=pl.when(repeats).then(False).otherwise("people_valid"),
        people_validity=pl.when(repeats).then(pl.lit(0.0, pl.Float32)).otherwise("people_validity"),
    )


def is_echo(head: str = "head") -> pl.Expr:
    """Return whether a tail only repeats its head: both are the same except for case, an article and an ending e, s or
    es ("dish", "the dishes"). "car" and "care" count as the same too."""
    return _bare(head) == _bare("tail")


def _bare(column: str) -> pl.Expr:
    text = pl.col(column).str.to_lowercase().str.replace_all(r"[_\s]+", " ").str.strip_chars()
    return text.str.replace(r"^(?:an?|the) ", "").str.replace(r"e?s?$", "")
