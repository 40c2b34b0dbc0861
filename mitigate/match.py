"""Which targets a triple or a sentence is about: those that are its whole head or tail, as in the harms paper (Section
3.1), or those that stand in it.

Knows no wording: whether "lawyers" is a lawyer is for the list of targets to say."""

import re
from collections.abc import Sequence
from typing import Literal, get_args

import polars as pl

from mitigate.errors import one_of

Match = Literal["exact", "contains"]


def about_targets(triples: pl.DataFrame, targets: pl.DataFrame, match: Match = "exact") -> pl.DataFrame:
    """A row for each triple and each target it is about, with that target and its category, in the triples' order.

    A triple with a target at either end stands there twice, once for each; with the same at both ends once. Case is
    folded. match="contains" finds targets as whole words, and where two overlap the longer one. Raises MitigateError
    for another match."""
    check(match)
    ends = [pl.col(end).str.to_lowercase() for end in ("head", "tail")]
    if match == "contains":
        return _named(triples, _standing_in(pl.concat_str(ends, separator="\n"), targets), targets)
    wanted = targets["target"].implode()
    about = triples.filter(pl.any_horizontal(end.is_in(wanted) for end in ends))
    return _named(about, pl.concat_list(ends), targets)


def sentences_about_targets(sentences: pl.DataFrame, targets: pl.DataFrame, match: Match = "exact") -> pl.DataFrame:
    """A row for each sentence (term, statement) and each target it is about: the term that the source says it is about,
    or, where that is null and with match="contains", all that stand in it as whole words."""
    check(match)
    inside = _standing_in(pl.col("statement").str.to_lowercase(), targets)
    term = pl.concat_list(pl.col("term").str.to_lowercase())
    found = inside if match == "contains" else pl.when(pl.col("term").is_null()).then(inside).otherwise(term)
    return _named(sentences, found, targets)


def check(match: str) -> None:
    """Raises MitigateError for a match that is neither "exact" nor "contains"."""
    if match not in get_args(Match):
        raise one_of("measure.match", match, get_args(Match))


def _named(rows: pl.DataFrame, found: pl.Expr, targets: pl.DataFrame) -> pl.DataFrame:
    named = rows.with_columns(target=found.list.unique(maintain_order=True)).explode("target")
    return named.join(targets.select("target", "category"), on="target", how="inner", maintain_order="left")


def _standing_in(text: pl.Expr, targets: pl.DataFrame) -> pl.Expr:
    return text.str.extract_all(_pattern(targets["target"].to_list()))


def _pattern(targets: Sequence[str]) -> str:
    longest_first = sorted(targets, key=lambda target: (-len(target), target))
    return r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b"
