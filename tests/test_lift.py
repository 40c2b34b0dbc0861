"""Swap lift: by hand, and that neither constants nor echoes score."""

import polars as pl
import pytest

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.lift import Lift, is_echo, other_heads, shares, swap_lift, with_weights

HEADS = ["dog", "fish", "bird", "tree", "car", "lamp"]
SCHEMA = ["group", "head", "relation", "tail"]
KNOWN = {("dog", "bark"), ("fish", "swim"), ("bird", "fly"), ("tree", "grow"), ("car", "drive"), ("lamp", "shine")}
ALSO = {("dog", "swim"), ("bird", "swim"), ("dog", "dog")}  # what a classifier accepts besides


def said(**tails: list[str]) -> pl.DataFrame:
    rows = [("held_out", head, "CapableOf", tail) for head, found in tails.items() for tail in found]
    return pl.DataFrame(rows, schema=dict.fromkeys(SCHEMA, pl.String), orient="row")


def accepted(table: pl.DataFrame, head: str) -> pl.DataFrame:
    known = [pair in KNOWN | ALSO for pair in table.select(head, "tail").iter_rows()]
    return table.with_columns(accepted=pl.Series(known, dtype=pl.Boolean))


def measured(tails: pl.DataFrame, asked: int | None = None) -> pl.DataFrame:
    prompts = said(**{head: [""] for head in HEADS}).drop("tail")
    swapped = tails.join(other_heads(prompts), on=["group", "head", "relation"])
    return with_weights(shares(prompts, accepted(tails, "head"), accepted(swapped, "other"), asked))


def lift(tails: pl.DataFrame, asked: int | None = None) -> Lift:
    return swap_lift(measured(tails, asked), {}, Bootstrap(resamples=300))


def test_each_head_is_an_other_equally_often() -> None:
    prompts = pl.DataFrame({"group": "held_out", "head": [*HEADS, "few"], "relation": [*["IsA"] * 6, "HasA"]})
    others = other_heads(prompts, seed=3)
    assert others.filter(pl.col("head") == pl.col("other")).is_empty()
    assert others.unique().height == others.height == 6 * 4
    assert set(others["other"].value_counts()["count"]) == {4}
    assert set(others["relation"]) == {"IsA"}  # one head has no others
    assert others.equals(other_heads(prompts.reverse(), seed=3))
    assert not others.equals(other_heads(prompts, seed=4))
    assert other_heads(prompts.clear()).is_empty()


def test_a_generator_that_knows_each_head() -> None:
    """All six tails are accepted with their head; "swim" with two others too, of which the circle draws some."""
    right = said(dog=["bark"], fish=["swim"], bird=["fly"], tree=["grow"], car=["drive"], lamp=["shine"])
    found = measured(right)
    assert found["accepted"].to_list() == [100] * 6
    (swim,) = found.filter(head="fish")["elsewhere"]
    assert swim in (25, 50)  # one or both of dog and bird are among the four of five
    assert lift(right).value == pytest.approx(100 - swim / 6)


def test_constants_score_nothing_by_construction() -> None:
    tails = ["swim", "bark", "be useful"]
    found = measured(said(**dict.fromkeys(HEADS, tails)))
    assert found["accepted"].max() > 0
    assert (found["accepted"] != found["elsewhere"]).any()
    assert lift(said(**dict.fromkeys(HEADS, tails))).value == pytest.approx(0, abs=1e-12)


def test_repeating_the_head_is_not_accepted() -> None:
    """Though the classifier accepts (dog, dog)."""
    echo = said(**{head: [head] for head in HEADS})
    assert measured(echo)["accepted"].sum() == 0
    assert lift(echo) == Lift(0, 0, 0)
    pairs = [("dog", "A dog"), ("lawyer", "the lawyers"), ("police_officer", "Police  officer"), ("box", "boxes")]
    pairs += [("dog", "guard dog"), ("dog", ""), ("lawyer", "law")]
    table = pl.DataFrame(pairs, schema=["head", "tail"], orient="row")
    assert table.select(is_echo()).to_series().to_list() == [True, True, True, True, False, False, False]


def test_missing_tails_count_where_so_many_were_asked_for() -> None:
    sure = said(dog=["bark"], tree=["grow"])
    assert lift(sure).value == 100
    assert lift(sure, asked=2).value == pytest.approx(100 * 2 / (6 * 2))


def test_groups_count_alike_and_inflections_are_one_head() -> None:
    table = pl.DataFrame(
        {
            "group": ["held_out", "held_out", "held_out", "profession"],
            "head": ["dog", "dogs", "fish", "nurse"],
            "accepted": [100.0, 70.0, 10.0, 20.0],
            "elsewhere": [10.0, 10.0, 10.0, 0.0],
        }
    )
    found = swap_lift(with_weights(table), {"dogs": "dog"}, Bootstrap(resamples=300))
    assert found.value == pytest.approx(((90 + 60 + 0) / 3 + 20) / 2)
    assert found.low is not None
    assert found.low < found.value
    alone = swap_lift(with_weights(table.head(2)), {"dogs": "dog"}, Bootstrap(resamples=300))
    assert alone == Lift(75, None, None)
    assert swap_lift(with_weights(table.clear()), {}, Bootstrap()) == Lift()
