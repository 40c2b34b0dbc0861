"""Test triples drawn by chance: whole heads, the same for the same seed."""

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.load.files import LoadedStatements
from mitigate.load.hold_out import HeldOut, hold_out
from mitigate.load.triples_file import Loaded
from mitigate.relations import Relation
from mitigate.tasks.corpus import corpus_of
from mitigate.triples import TRIPLES

MENTORS = Relation("mentors", "is a mentor of", "works with")


def triples(**counts: int) -> pl.DataFrame:
    """As many triples of split train about each head."""
    heads = [head for head, count in counts.items() for _ in range(count)]
    rows = [(row, "train", head, "IsA", f"tail {row}", True) for row, head in enumerate(heads, start=1)]
    return pl.DataFrame(rows, schema=TRIPLES, orient="row")


def test_all_triples_of_a_head_are_on_one_side_and_no_more_than_the_share() -> None:
    rows = triples(**{f"head{number}": 1 + number % 3 for number in range(60)})  # 120 triples
    moved, held_out = hold_out(rows, 0.1, seed=1)
    assert moved.drop("split").equals(rows.drop("split"))
    sides = moved.group_by("head").agg(pl.col("split").n_unique())
    assert sides["split"].to_list() == [1] * 60
    test = moved.filter(split="test")
    assert 10 <= test.height <= 12
    assert held_out == HeldOut(test.height, 120, test["head"].n_unique(), 60, seed=1)
    assert "are held out, all triples of" in held_out.sentence
    assert hold_out(rows, 0.1, seed=1)[0].equals(moved)
    assert not hold_out(rows, 0.1, seed=2)[0].equals(moved)


def test_where_every_head_has_more_the_smallest_is_held_out_and_one_head_cannot_be_divided() -> None:
    moved, held_out = hold_out(triples(nurse=30, lawyer=20, chef=50), 0.1, seed=1)
    assert moved.filter(split="test")["head"].unique().to_list() == ["lawyer"]
    assert held_out is not None
    assert held_out.sentence == (
        "The data has no test triples of its own: 20 of 100 triples (20.0 %) are held out, all triples of 1 of 3 "
        "heads, drawn by chance (data.holdout_seed=1). Figures on so few are uncertain."
    )
    rows = triples(nurse=30)
    assert hold_out(rows, 0.1, seed=1)[1] is None
    corpus = corpus_of(Loaded(rows), holdout=0.1)
    assert set(corpus.triples["split"]) == {"train"}
    assert corpus.notices[0] == (
        "No triples can be held out for test: all 30 have one head, “nurse”; nothing is measured on test triples."
    )
    corpus = corpus_of(Loaded(triples(nurse=3, lawyer=3)), ["IsA"], holdout=0)
    assert corpus.notices == ["No triples are held out for test (data.holdout=0); nothing is measured on test triples."]


def test_splits_of_the_data_are_kept_and_what_is_odd_is_said() -> None:
    rows = triples(nurse=3, lawyer=1).with_columns(split=pl.Series(["train", "train", "train", "test"]))
    corpus = corpus_of(Loaded(rows), holdout=0.5, only_in_data=True)
    assert corpus.triples.equals(rows)
    assert (corpus.held_out, corpus.notices) == (None, [])
    assert corpus.facts == {"triples by split": "test 1, train 3"}
    both = pl.concat([rows, rows.head(1).with_columns(split=pl.lit("test"))])
    assert corpus_of(Loaded(both), ["IsA"]).notices == ["1 of 2 distinct test triples are training triples too."]
    dev = rows.with_columns(split=pl.col("split").replace("test", "dev"))
    none = ["The data has no test triples; nothing is measured on them."]
    assert corpus_of(Loaded(dev), ["IsA"], holdout=0.5).notices == none
    with pytest.raises(MitigateError, match=r"the data has no training triples \(by split: test 4\)"):
        corpus_of(Loaded(rows.with_columns(split=pl.lit("test"))), holdout=0.5)
    with pytest.raises(MitigateError, match="this recipe needs triples to train on: data=sample"):
        corpus_of(LoadedStatements(pl.DataFrame()))


def test_the_relations_of_a_run() -> None:
    """Those probed, and those that the generator is asked about besides COMeT's 34."""
    relations = pl.Series(["mentors", "IsA", "Synonym", "IsA", "IsA", "IsA"])
    loaded = Loaded(triples(nurse=3, lawyer=3).with_columns(relation=relations), own_relations=(MENTORS,))
    corpus = corpus_of(loaded, only_in_data=True)
    assert [relation.name for relation in corpus.relations] == ["IsA", "Synonym", "mentors"]
    assert [relation.name for relation in corpus.further] == ["Synonym", "mentors"]
    assert len(corpus_of(loaded).relations) == 34
    chosen = corpus_of(loaded, ["mentors", "HasA"])
    assert [relation.name for relation in chosen.relations] == ["mentors", "HasA"]
    assert "Relations that are probed and no training triple has: HasA." in chosen.notices
    with pytest.raises(MitigateError, match="unknown relation 'mentor'; allowed: AtLocation, .*, mentors"):
        corpus_of(loaded, ["mentor"])


def test_a_wording_of_ones_own_for_a_relation_of_the_project_is_asked_with() -> None:
    own = Relation("IsA", "is one", "is one")
    corpus = corpus_of(Loaded(triples(nurse=1, lawyer=1), own_relations=(own,)), ["IsA"])
    assert (corpus.relations, corpus.further) == ([own], [own])
    assert corpus.notices[-1] == "One wording alone is given for IsA: its neutral wording is the same."
