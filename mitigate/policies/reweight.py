"""Policies that keep all triples and give them new weights: copies of statements about one target for others of its
group (counterfactual augmentation), and equal shares of polarised statements for all targets of a category."""

from collections import Counter
from collections.abc import Collection
from functools import cache
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field
from pydantic.dataclasses import dataclass

from mitigate.errors import one_of
from mitigate.files import rows_of
from mitigate.policies.base import STRICT, Policy
from mitigate.policies.drop import DRAWN, REACHED, Filter, Scope
from mitigate.settings import Name
from mitigate.words.relations import relations
from mitigate.words.targets import TargetList
from mitigate.words.word_forms import ARTICLE, article, spellings, unhyphenated_column, with_plurals

ENDS = ("head", "tail")
MOST = 4.0  # the largest factor of a statement's weight, so that a single prejudice is not learnt by heart
ABOUT_TARGETS = (
    *("CapableOf", "NotCapableOf", "Desires", "NotDesires", "DesireOf", "HasProperty", "NotHasProperty"),
    "ReceivesAction",
)
"""Relations whose statements are about a target's abilities, wishes and character, not about its place or kind."""


@dataclass(frozen=True, config=STRICT)
class Balance(Filter):
    """Gives triples about a target (its whole head or tail) new weights, so that all targets of a category have the
    same shares of prejudice and of favouritism. Control: the same weights, drawn within each relation.

    Prejudiced, neutral and favouring triples about a target each get the share of the target's weight that they have in
    its category, at most MOST times their own. So a target keeps its weight if it has all three and none is at that
    limit; else it loses weight."""

    scope: Scope = "targets"

    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        cells = rows.with_columns(about=pl.col("target").is_not_null(), sign=self.direction().sign())
        weight = pl.col("weight").sum()
        among = ("about", "split", "category")
        of_target, share = weight.over(*among, "target"), weight.over(*among, "sign") / weight.over(*among)
        factor = (of_target * share / weight.over(*among, "target", "sign")).clip(upper_bound=MOST)
        return cells.with_columns(
            weight=pl.when("about").then(factor).otherwise("weight"),
            reason=pl.when("about").then(pl.lit("balanced")).otherwise(pl.lit("kept")),
        ).drop("about", "sign")


@dataclass(frozen=True, config=STRICT)
class Swap(Filter):
    """Copies polarised triples about one target alone, its whole head or tail with no other target beside it, to others
    of its group: those of data/swaps.csv, and for own targets those of the list. Control: copies as many triples of
    each relation, drawn among those that it could copy.

    Each copy has another target of the group in the first one's place, at most copies - 1 of them, drawn by the seed in
    proportion to their training triples: a rare target has few copies, so that these do not outnumber its own triples.
    A statement and its k - 1 copies weigh 1/k each. In the place of an own target's plural stands the other's plural,
    and before it the article that the first one had, "a" or "an" by its sound."""

    scope: Scope = "targets"
    copies: Annotated[int, Field(ge=2, le=1000, description="targets that share a statement, its own included")] = 8
    relations: Annotated[
        tuple[Name, ...], Field(min_length=1, strict=False, description="relations whose statements are copied")
    ] = ABOUT_TARGETS

    def weigh(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        check_relations(self, {**relations(), **dict.fromkeys(rows["relation"])})
        able = self._able(rows, target_list)
        outcome = pl.when(able).then(pl.lit(", swapped")).otherwise(pl.lit(", not swapped"))
        rows = rows.with_columns(reason=pl.when(REACHED).then(pl.col("reason") + outcome).otherwise("reason"))
        return _with_copies(rows, REACHED & able, self.copies, self.seed, target_list)

    def draw(self, rows: pl.DataFrame, target_list: TargetList) -> pl.DataFrame:
        able = self._able(rows, target_list) & pl.col("in_scope")
        lots = pl.Series("lot", np.random.default_rng(self.seed).permutation(rows.height))
        place = pl.when(able).then("lot").rank("ordinal").over("split", "relation")
        is_drawn = (place <= (REACHED & able).sum().over("split", "relation")).fill_null(False)
        drawn = rows.with_columns(lots).with_columns(reached=is_drawn).drop("lot")
        reason = pl.when(REACHED).then(pl.lit(DRAWN)).otherwise(pl.lit("kept"))
        return self.weigh(drawn.with_columns(reason=reason), target_list)

    def _able(self, rows: pl.DataFrame, target_list: TargetList) -> pl.Expr:
        """Return whether a triple can be copied: of one of the relations, about one target alone that has others."""
        others = _others(rows, target_list)
        whole = {end: target_list.target_of(pl.col(end)) == pl.col("target") for end in ENDS}
        alone = pl.all_horizontal(whole[end] | ~pl.col(end).str.contains(target_list.pattern) for end in ENDS)
        able = pl.col("relation").is_in(self.relations) & alone & pl.col("target").is_in(list(others))
        return able.fill_null(False)


def check_relations(policy: Policy, known: Collection[str]) -> None:
    """Raise MitigateError for a relation that the policy swaps and that is not one of these names."""
    for relation in (name for part in policy.parts if isinstance(part, Swap) for name in part.relations):
        if relation not in known:
            raise one_of("relation in policy.relations", relation, known)


def _with_copies(rows: pl.DataFrame, copied: pl.Expr, copies: int, seed: int, target_list: TargetList) -> pl.DataFrame:
    """The rows, with less weight for those that are copied, and after them their copies."""
    rows, others = rows.with_row_index("place"), _others(rows, target_list)
    chosen = rows.filter(copied)
    drawn = []  # for each chosen row the other targets of its copies
    for place, target in chosen.select("place", "target").iter_rows():
        words, counts = list(others[target]), np.array(list(others[target].values()))
        size, rng = min(copies - 1, len(words)), np.random.default_rng([seed, place])
        picked = rng.choice(len(words), size, replace=False, p=counts / counts.sum())
        drawn.append([words[i] for i in sorted(picked)])
    shared = chosen.with_columns(
        other=pl.Series(drawn, dtype=pl.List(pl.String)),
        weight=pl.col("weight") / (1 + pl.Series([len(words) for words in drawn], dtype=pl.Int64)),
    )
    plural_of = {other: list(with_plurals(other))[-1] for words in others.values() for other in words}
    own = [target for target in target_list.own if target.word in others]
    forms = [form for target in own for form in (target.word, *target.forms)]
    plurals = [plural for form in forms for plural in list(with_plurals(form))[1:]]
    plural_forms = {spelling for plural in plurals for spelling in spellings(plural)}
    plural_forms -= {spelling for target in own for spelling in spellings(target.word)}
    bare = {end: unhyphenated_column(pl.col(end)).str.replace(ARTICLE, "") for end in ENDS}
    is_target = {end: target_list.target_of(pl.col(end)) == pl.col("target") for end in ENDS}
    is_plural = pl.any_horizontal(is_target[end] & bare[end].is_in(sorted(plural_forms)) for end in ENDS)
    word = pl.when(is_plural).then(pl.col("other").replace(plural_of)).otherwise("other")
    old_text = pl.when(is_target["head"]).then("head").otherwise("tail").str.to_lowercase()
    old_article = old_text.str.extract(f"({ARTICLE})").fill_null("")
    a_or_an = word.replace_strict({form: f"{article(form)} " for form in plural_of}, default="")  # a plural has none
    new_article = pl.when(old_article.is_in(["a ", "an "])).then(a_or_an).otherwise(old_article)
    copied_rows = shared.explode("other").with_columns(new=pl.concat_str(new_article, word))
    after_head = pl.col("statement").str.strip_prefix(pl.col("head"))
    headed = pl.when(is_target["head"]).then(pl.concat_str("new", after_head)).otherwise("statement")
    tailed = pl.concat_str(headed.str.strip_suffix(pl.col("tail")), "new")
    added = copied_rows.with_columns(
        *(pl.when(is_target[end]).then("new").otherwise(end).alias(end) for end in ENDS),
        statement=pl.when(is_target["tail"]).then(tailed).otherwise(headed),
        target="other",
        category=pl.col("other").replace_strict(target_list.categories, return_dtype=pl.String),
        source_row="row",
        row=pl.lit(None, rows.schema["row"]),
    )
    reweighted = rows.update(shared.select("place", "weight"), on="place")
    return pl.concat([reweighted, added.select(reweighted.columns)]).drop("place")


@cache
def groups() -> dict[str, str]:
    """Target of the paper's -> the group within which it is swapped; targets that are never swapped are not in it."""
    return {row["target"]: row["group"] for row in rows_of("swaps.csv")}


def _others(rows: pl.DataFrame, target_list: TargetList) -> dict[str, dict[str, int]]:
    """The others of its group that training triples name, and their counts, for each target that can be swapped."""
    counts, group_of = Counter(rows.filter(split="train")["target"].drop_nulls()), groups() | target_list.groups
    others_of = {
        target: {other: counts[other] for other in counts if group_of.get(other) == group and other != target}
        for target, group in group_of.items()
    }
    return {target: others for target, others in others_of.items() if others}
