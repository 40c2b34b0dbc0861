"""The targets that a triple or a sentence is about: those that are its whole head or tail, as in the harms paper
(Section 3.1), or those that occur in it.

Independent of word forms: the list of targets decides whether "lawyers" is a lawyer."""

from typing import Literal, get_args

import polars as pl

from mitigate.errors import one_of
from mitigate.words.target_list import TargetList, list_of

Match = Literal["exact", "contains"]


def about_targets(
    triples: pl.DataFrame, targets: pl.DataFrame, match: Match = "exact", target_list: TargetList | None = None
) -> pl.DataFrame:
    """A row for each triple and each target it is about, with that target and its category, in the triples' order.

    A triple with a target at either end has two rows, one for each; with the same at both ends one. Case is folded.
    match="contains" finds targets as whole words, of two that overlap the one that begins first, and of those that
    begin together the longest. A target of the paper's is matched literally, one of a user's own in all its forms
    (TargetList; None: that of the targets). Raises MitigateError for another match."""
    check(match)
    listed = list_of(targets) if target_list is None else target_list
    ends = [pl.col(end) for end in ("head", "tail")]
    wanted = targets["target"]
    if match == "contains":
        return _named(triples, listed.found_in(pl.concat_str(ends, separator="\n"), wanted.to_list()), targets)
    found = [listed.target_of(end) for end in ends]
    about = triples.filter(pl.any_horizontal(target.is_in(wanted.implode()) for target in found))
    return _named(about, pl.concat_list(found), targets)


def sentences_about_targets(
    sentences: pl.DataFrame, targets: pl.DataFrame, match: Match = "exact", target_list: TargetList | None = None
) -> pl.DataFrame:
    """A row for each sentence (term, statement) and each target it is about: the term that the source gives, or, where
    that is null and with match="contains", all that occur in it as whole words."""
    check(match)
    listed = list_of(targets) if target_list is None else target_list
    inside = listed.found_in(pl.col("statement"), targets["target"].to_list())
    term = pl.concat_list(listed.target_of(pl.col("term")))
    found = inside if match == "contains" else pl.when(pl.col("term").is_null()).then(inside).otherwise(term)
    return _named(sentences, found, targets)


def check(match: str) -> None:
    """Raise MitigateError for a match that is neither "exact" nor "contains"."""
    if match not in get_args(Match):
        raise one_of("measure.match", match, get_args(Match))


def _named(rows: pl.DataFrame, found: pl.Expr, targets: pl.DataFrame) -> pl.DataFrame:
    named = rows.with_columns(target=found.list.unique(maintain_order=True)).explode("target")
    return named.join(targets.select("target", "category"), on="target", how="inner", maintain_order="left")
