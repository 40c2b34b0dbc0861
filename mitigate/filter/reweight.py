"""Counterfactual augmentation: copies of statements about one target for others of its group, with the same total
weight; balance of polarised shares between targets; triples dropped at random; and policies of a user's own."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter.policy import Policy
from mitigate.package_data import rows_of
from mitigate.words.targets import PAPER, TargetList
from mitigate.words.word_forms import ARTICLE, article, contains, spellings, unhyphenated_column, with_plurals

ENDS = ("head", "tail")
DRAWN = "drawn at random"
MOST = 4.0
"""The largest factor of a statement's weight: a single prejudice about a target must not be learnt by heart."""
WANTED = "it must return its rows in their order, with `weight` (0 or more) and `reason` (a text)"


def swap(
    rows: pl.DataFrame,
    reached: pl.Expr,
    relations: Sequence[str],
    copies: int,
    seed: int,
    target_list: TargetList = PAPER,
) -> pl.DataFrame:
    """The rows, and after them the copies of those that are reached, of one of the relations, and about one target of a
    group alone: its whole head or tail, with no other target beside it. Groups are those of data/swaps.csv, and for own
    targets those of the list.

    Each copy has another target of the group in the first one's place, at most copies - 1 of them, drawn by the seed in
    proportion to their training triples: a rare target has few copies, so that these do not outnumber its own triples.
    A statement and its k - 1 copies weigh 1/k each. In the place of an own target's plural stands the other's plural,
    and before it the article that the first one had, "a" or "an" by its sound."""
    rows = rows.with_row_index("place")
    others = _others(rows.filter(split="train")["target"].drop_nulls(), groups() | target_list.groups)
    is_target = {end: target_list.target_of(pl.col(end)) == pl.col("target") for end in ENDS}
    alone = pl.all_horizontal(is_target[end] | ~contains(pl.col(end), target_list.pattern) for end in ENDS)
    chosen = rows.filter(reached, pl.col("relation").is_in(relations), alone, pl.col("target").is_in(list(others)))
    drawn = [
        _draw(others[target], copies - 1, np.random.default_rng([seed, place]))
        for place, target in chosen.select("place", "target").iter_rows()
    ]
    likes = {other: list(with_plurals(other))[-1] for targets in others.values() for other in targets}
    bare = {end: unhyphenated_column(pl.col(end)) for end in ENDS}
    is_plural = {end: bare[end].str.replace(ARTICLE, "").is_in(_plurals(target_list, others)) for end in ENDS}
    shared = chosen.with_columns(
        others=pl.Series(drawn, dtype=pl.List(pl.String)),
        reason=pl.col("reason") + ", swapped",
        weight=pl.col("weight") / (1 + pl.Series([len(others) for others in drawn], dtype=pl.Int64)),
    )
    is_head, is_many = is_target["head"], pl.any_horizontal(is_target[end] & is_plural[end] for end in ENDS)
    exploded = (
        shared.explode("others")
        .with_columns(other="others", others=pl.when(is_many).then(pl.col("others").replace(likes)).otherwise("others"))
        .with_columns(others=pl.concat_str(_article(pl.when(is_head).then("head").otherwise("tail"), likes), "others"))
    )
    added = exploded.with_columns(
        *(pl.when(is_target[end]).then("others").otherwise(end).alias(end) for end in ENDS),
        statement=_statement(is_target),
        target="other",
        category=pl.col("other").replace_strict(target_list.categories, return_dtype=pl.String),
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
    """Target of the paper's -> the group within which it is swapped; targets that are never swapped are not in it."""
    return {row["target"]: row["group"] for row in rows_of("swaps.csv")}


def _plurals(target_list: TargetList, swapped: Iterable[str]) -> list[str]:
    """The plurals by rule of those own targets that are swapped, and of their given forms."""
    own = [target for target in target_list.own if target.word in set(swapped)]
    forms = [form for target in own for form in (target.word, *target.forms)]
    many = {written for form in forms for plural in list(with_plurals(form))[1:] for written in spellings(plural)}
    return sorted(many - {written for target in own for written in spellings(target.word)})


def _article(end: pl.Expr, words: Iterable[str]) -> pl.Expr:
    """The article before a target, with a blank, in the form that the word in "others" takes; "" where there is
    none."""
    written = end.str.to_lowercase().str.extract(f"({ARTICLE})").fill_null("")
    fitting = pl.col("others").replace_strict({word: f"{article(word)} " for word in words}, default="")
    return pl.when(written.is_in(["a ", "an "])).then(fitting).otherwise(written)


def _others(named: pl.Series, groups: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """The others of its group that training triples name, and their counts, for each target that can be swapped."""
    often = Counter(named)
    found = {
        target: {other: often[other] for other in often if groups.get(other) == group and other != target}
        for target, group in groups.items()
    }
    return {target: others for target, others in found.items() if others}


def _draw(others: dict[str, int], size: int, chance: np.random.Generator) -> list[str]:
    often = np.array(list(others.values()))
    drawn = chance.choice(len(often), min(size, len(often)), replace=False, p=often / often.sum())
    return [list(others)[i] for i in sorted(drawn)]


def _statement(is_target: Mapping[str, pl.Expr]) -> pl.Expr:
    """The statement with the other target at its start, its end, or both, as the target is the whole head or tail."""
    first = pl.col("statement").str.strip_prefix(pl.col("head"))
    headed = pl.when(is_target["head"]).then(pl.concat_str("others", first)).otherwise("statement")
    return (
        pl.when(is_target["tail"])
        .then(pl.concat_str(headed.str.strip_suffix(pl.col("tail")), "others"))
        .otherwise(headed)
    )


def drop_at_random(rows: pl.DataFrame, reached: pl.Expr, in_scope: pl.Expr, seed: int) -> pl.DataFrame:
    """The rows with `weight` 0 and the reason DRAWN for as many of each split and relation as are reached,
    drawn by seed from those in the scope, polarised or not; the others with weight 1 and the reason "kept"."""
    lots = pl.Series(np.random.default_rng(seed).permutation(rows.height))
    drawn = rows.with_columns(_scope=in_scope, _lot=lots, _many=reached.sum().over("split", "relation"))
    place = pl.when("_scope").then("_lot").rank("ordinal").over("split", "relation")  # null outside the scope
    is_drawn = (place <= pl.col("_many")).fill_null(False)
    return drawn.with_columns(
        weight=(~is_drawn).cast(pl.Float64),
        reason=pl.when(is_drawn).then(pl.lit(DRAWN)).otherwise(pl.lit("kept")),
    ).drop("_scope", "_lot", "_many")


def even_out(ledger: pl.DataFrame, direction: pl.Expr, filtered: pl.Expr) -> pl.DataFrame:
    """The ledger with new weights for the triples about a target (its whole head or tail).

    Prejudiced, neutral and favouring triples about a target each get the share of the target's weight that they have in
    its category, at most MOST times their own. So a target keeps its weight if it has all three and none is at that
    limit; else it loses weight."""
    about = filtered & pl.col("target").is_not_null()
    cells = ledger.with_columns(about=about, sign=direction.sign().fill_nan(0.0))
    weight = pl.col("weight").sum()
    of_target = weight.over("about", "split", "category", "target")
    share = weight.over("about", "split", "category", "sign") / weight.over("about", "split", "category")
    factor = (of_target * share / weight.over("about", "split", "category", "target", "sign")).clip(upper_bound=MOST)
    balanced = pl.col("about") & (pl.col("weight") > 0)
    reason = pl.when(pl.col("reason") == "kept").then(pl.lit("balanced")).otherwise(pl.col("reason") + ", balanced")
    return cells.with_columns(
        weight=pl.when(balanced).then(pl.col("weight") * factor).otherwise("weight"),
        reason=pl.when(balanced).then(reason).otherwise("reason"),
    ).drop("about", "sign")


def by_own_action(policy: Policy, rows: pl.DataFrame, filtered: pl.Expr) -> pl.DataFrame:
    """The rows with the weights and reasons of policy.act; rows of splits that the policy does not filter stay
    unchanged. Raises MitigateError for any other return value."""
    assert policy.own_action is not None
    found = policy.own_action(rows)
    if fault := _fault(found, rows):
        raise MitigateError(f"policy {policy.name!r}: {type(policy).__name__}.act {fault}; {WANTED}")
    return rows.with_columns(
        weight=pl.when(filtered).then(found["weight"].cast(pl.Float64)).otherwise("weight"),
        reason=pl.when(filtered).then(found["reason"]).otherwise("reason"),
    )


def _fault(found: object, rows: pl.DataFrame) -> str | None:
    if not isinstance(found, pl.DataFrame):
        return f"returned {type(found).__name__}, not a table"
    if lacking := [name for name in ("row", "weight", "reason") if name not in found.columns]:
        return f"returned a table without the column {lacking[0]}"
    if found["row"].to_list() != rows["row"].to_list():
        return f"returned {found.height:,} rows for {rows.height:,}, or changed their order"
    if not found["weight"].dtype.is_numeric() or not (found["weight"].is_finite() & (found["weight"] >= 0)).all():
        return "returned a weight that is not a number of 0 or more"
    if found["weight"].null_count() or found["reason"].dtype != pl.String or found["reason"].null_count():
        return "returned a weight or a reason that is missing, or a reason that is not a text"
    return None
