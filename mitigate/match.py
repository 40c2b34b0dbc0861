"""Which targets a triple is about: those that are its whole head or tail, as in the harms paper (Section 3.1), or
those that stand in them.

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
        found = pl.concat_str(ends, separator="\n").str.extract_all(_pattern(targets["target"].to_list()))
    else:
        found = pl.concat_list(ends)
    named = triples.with_columns(target=found.list.unique(maintain_order=True)).explode("target")
    return named.join(targets.select("target", "category"), on="target", how="inner", maintain_order="left")


def check(match: str) -> None:
    """Raises MitigateError for a match that is neither "exact" nor "contains"."""
    if match not in get_args(Match):
        raise one_of("measure.match", match, get_args(Match))


def _pattern(targets: Sequence[str]) -> str:
    longest_first = sorted(targets, key=lambda target: (-len(target), target))
    return r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b"
