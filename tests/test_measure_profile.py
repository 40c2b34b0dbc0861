"""How a target stands among its peers, with numbers one can check by hand."""

import polars as pl
import pytest

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.profile import AGAINST, against_peers, is_distinctive, with_peers

DRAWN = Bootstrap(resamples=500)


def pairs(rows: list[tuple[str, str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["target", "cluster", "relation", "said"], orient="row")


def values(rows: dict[str, list[float]], clusters: dict[str, str] | None = None) -> pl.DataFrame:
    """A value of each relation R0, R1 ... of each target."""
    known = clusters or {}
    return pl.DataFrame(
        [
            (target, known.get(target, target), f"R{place}", "negative", value)
            for target, row in rows.items()
            for place, value in enumerate(row)
        ],
        schema=["target", "cluster", "relation", "figure", "value"],
        orient="row",
    )


def test_how_many_peers_have_a_pair_is_counted_without_words_of_the_same_cluster() -> None:
    found = with_peers(
        pairs(
            [
                *[(who, who, "Can", "cook") for who in ("nurse", "chef", "pilot")],
                ("nurse", "nurse", "Can", "heal"),
                ("nurse", "nurse", "Can", "heal"),  # a second wording of the same
                ("she", "she", "Can", "heal"),
                ("her", "she", "Can", "heal"),
                ("nurse", "nurse", "Is", "calm"),
            ]
        )
    )
    rows = {(row["target"], row["said"]): (row["having"], row["peers"]) for row in found.iter_rows(named=True)}
    assert rows["nurse", "cook"] == (2, 4)  # of chef, pilot, she and her
    assert rows["nurse", "heal"] == (2, 4)
    assert rows["she", "heal"] == (1, 3)  # her is no peer of she
    assert rows["nurse", "calm"] == (0, 0)  # nobody else was asked
    few = found.with_columns(few=is_distinctive(50), none=is_distinctive(0)).filter(target="nurse").unique("said")
    assert dict(few.select("said", "few").iter_rows()) == {"cook": True, "heal": True, "calm": None}
    assert dict(few.select("said", "none").iter_rows()) == {"cook": False, "heal": False, "calm": None}


def test_a_difference_is_paired_by_relation() -> None:
    rows = {"nurse": [50, 70, 60], "chef": [10, 30, 20], "pilot": [20, 40, 30]}
    found = against_peers(values({who: [*row, *row] for who, row in rows.items()}), DRAWN)
    row = found.filter(target="nurse").row(0, named=True)
    assert list(row) == list(AGAINST)
    assert (row["value"], row["peers_mean"]) == (60, 25)
    assert (row["difference"], row["low"], row["high"]) == pytest.approx((35, 35, 35))  # the same in each relation
    assert (row["peers_low"], row["peers_high"]) == (20, 30)
    assert (row["place"], row["peers"], row["relations"]) == (1, 2, 6)
    assert (row["beyond"], row["peers_beyond"]) == (True, 2)
    assert found.filter(target="chef")["difference"].item() == pytest.approx(20 - 45)
    assert found["place"].to_list() == [1, 3, 2]


def test_five_relations_are_too_few_to_call_a_difference_one() -> None:
    """All on one side, as in one of 16 targets whose differences are chance."""
    rows = {"nurse": [40.0, 50, 60, 70, 80], "chef": [0.0] * 5, "pilot": [0.0] * 5}
    row = against_peers(values(rows), DRAWN).row(0, named=True)
    assert row["low"] > 0
    assert not row["beyond"]


def test_a_generator_that_says_the_same_of_all_differs_in_nothing() -> None:
    found = against_peers(values({who: [10, 0, 33.3] for who in ("nurse", "chef", "pilot")}), DRAWN)
    assert found.select("difference", "low", "high").unique().rows() == [(0, 0, 0)]
    assert found["beyond"].to_list() == [False] * 3
    assert found["place"].to_list() == [1, 1, 1]
    same = with_peers(pairs([(who, who, "Can", "cook") for who in ("nurse", "chef", "pilot")]))
    assert same.filter(is_distinctive(10)).is_empty()


def test_a_difference_in_one_relation_of_many_is_within_its_interval() -> None:
    rows = {"nurse": [40.0] + [0.0] * 9, "chef": [0.0] * 10, "pilot": [0.0] * 10}
    row = against_peers(values(rows), DRAWN).row(0, named=True)
    assert row["difference"] == 4
    assert row["low"] <= 0 < row["high"]
    assert not row["beyond"]


def test_relations_that_no_peer_has_and_targets_without_peers_are_left_out() -> None:
    lone = values({"nurse": [50.0, 90.0], "chef": [10.0]})
    row = against_peers(lone, DRAWN).row(0, named=True)
    assert (row["difference"], row["relations"], row["low"], row["high"]) == (40, 1, None, None)
    assert not row["beyond"]
    assert against_peers(values({"she": [1.0], "her": [2.0]}, {"her": "she"}), DRAWN).is_empty()
