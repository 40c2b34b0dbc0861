"""Counterfactual augmentation: what is said of one target is said of others too, in the same total weight."""

import csv
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl

from mitigate.targets import any_of, targets

ENDS = ("head", "tail")


def swap(rows: pl.DataFrame, reached: pl.Expr, relations: Sequence[str], copies: int, seed: int) -> pl.DataFrame:
    """The rows, and after them the copies of those that are reached, of one of the relations, and about one target of
    a group in data/swaps.csv alone: its whole head or tail, with no other target beside it.

    Each copy has another target of the group in the first one's place, at most copies - 1 of them, drawn by the seed;
    a statement and its k - 1 copies weigh 1/k each."""
    rows = rows.with_row_index("place")
    chosen = rows.filter(reached, pl.col("relation").is_in(relations), _alone(), pl.col("target").is_in(list(groups())))
    drawn = [_others(target, copies, seed, place) for place, target in chosen.select("place", "target").iter_rows()]
    shared = chosen.with_columns(
        others=pl.Series(drawn, dtype=pl.List(pl.String)),
        reason=pl.col("reason") + ", swapped",
        weight=pl.col("weight") / (1 + pl.Series([len(others) for others in drawn], dtype=pl.Int64)),
    )
    added = shared.explode("others").with_columns(
        *(pl.when(_is_target(end)).then("others").otherwise(end).alias(end) for end in ENDS),
        statement=_statement(),
        target="others",
        source_row="row",
        row=pl.lit(None, rows.schema["row"]),
    )
    swapped = rows.update(shared.select("place", "reason", "weight"), on="place")
    untouched = reached & ~pl.col("place").is_in(chosen["place"].implode())
    swapped = swapped.with_columns(
        reason=pl.when(untouched).then(pl.col("reason") + ", not swapped").otherwise("reason")
    )
    return pl.concat([swapped, added.select(swapped.columns)]).drop("place")


@cache
def groups() -> dict[str, str]:
    """Target -> the group within which it is swapped; targets that are never swapped are not in it."""
    with files("mitigate").joinpath("data/swaps.csv").open(encoding="utf-8") as lines:
        return {
            row["target"]: row["group"] for row in csv.DictReader(line for line in lines if not line.startswith("#"))
        }


def _others(target: str, copies: int, seed: int, place: int) -> list[str]:
    """The targets that take a target's place, in a row of the table."""
    others = [other for other, group in groups().items() if group == groups()[target] and other != target]
    drawn = np.random.default_rng([seed, place]).choice(len(others), min(copies - 1, len(others)), replace=False)
    return [others[i] for i in sorted(drawn)]


def _is_target(end: str) -> pl.Expr:
    return pl.col(end).str.to_lowercase() == pl.col("target")


def _alone() -> pl.Expr:
    """Whether no target stands beside the one that is an end of the triple: "father loves his son" has three."""
    return pl.all_horizontal(_is_target(end) | ~pl.col(end).str.contains(any_of(targets())) for end in ENDS)


def _statement() -> pl.Expr:
    """The statement with the other target: first or last in it, as a target is the whole head or tail."""
    behind = pl.concat_str("others", pl.col("statement").str.strip_prefix(pl.col("head")))
    before = pl.concat_str(pl.col("statement").str.strip_suffix(pl.col("tail")), "others")
    return pl.when(_is_target("head")).then(behind).otherwise(before)
