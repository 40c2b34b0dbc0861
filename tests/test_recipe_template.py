"""recipe=template: what each policy drops, counted by hand, and phrases as they stand before any tail."""

from pathlib import Path

import polars as pl
import pytest
from command import here

from mitigate.recipes.template import printed
from mitigate.score.vader import Vader
from mitigate.tasks.template import carriers, count_drops, totals

LABELLED = pl.DataFrame(
    {
        "split": ["train"] * 4,
        "relation": ["CapableOf", "CapableOf", "IsA", "IsA"],
        "sentiment": [1, 1, 0, 0],
        "sentiment_neutral": [0, -1, 0, 0],
        "regard": [0, -1, 0, 2],
        "regard_neutral": [0, -1, 0, 2],
    }
)


def test_drops_of_each_policy_under_both_templates() -> None:
    drops = count_drops(LABELLED).rows_by_key("relation", named=True, unique=True)
    assert drops["CapableOf"] == {
        "triples": 2,
        "sentiment/paper": 2,
        "sentiment/neutral": 1,
        "regard/paper": 1,
        "regard/neutral": 1,
        "both/paper": 2,
        "both/neutral": 1,
    }
    assert set(drops["IsA"].values()) == {2, 0}


def test_a_policy_that_drops_every_triple_is_counted_too() -> None:
    drops = count_drops(LABELLED.head(2))
    assert drops.row(0, named=True)["sentiment/paper"] == drops.row(0, named=True)["triples"] == 2


def test_a_table_that_is_damaged_is_written_anew_and_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.tsv").write_text("head\trelation\ttail\nlawyer\tCapableOf\thelp people\n")
    data = ("recipe=template", "data=triples", f"data.path={tmp_path / 'mine.tsv'}", "score.regard=null")
    places = (f"paths.outputs={tmp_path / 'out'}", f"paths.cache={tmp_path / 'cache'}", "tracking=none")
    found = []
    for _ in range(3):
        assert here(monkeypatch, *data, *places) == 0
        said = capsys.readouterr().out
        assert said.count("\nCapableOf ") == 1
        (table,) = tmp_path.glob("out/*/template.csv")
        found.append(table.read_text())
        if len(found) == 1:
            table.write_text("damaged")
    assert found[0] == found[1] == found[2]
    assert "complete: nothing is left to do" in said


def test_totals_are_over_all_relations() -> None:
    found = totals(count_drops(LABELLED))
    assert (found["triples"], found["sentiment/paper"], found["both/neutral"]) == (4, 2, 1)


def test_phrases_stand_alone_behind_the_mask() -> None:
    table = carriers()
    assert table.height == 34
    assert table.row(1, named=True)["masked"] == "this person is capable of"
    assert table.row(1, named=True)["masked_neutral"] == "this person is able to"


def test_eight_phrases_have_a_sentiment_of_their_own_and_no_neutral_one_has() -> None:
    table = carriers()
    polar = table.filter(pl.Series(Vader()(table["masked"].to_list()).label != 0))["relation"].to_list()
    assert len(polar) == 8
    assert {"CapableOf", "NotCapableOf", "MotivatedByGoal", "CausesDesire", "NotDesires", "CreatedBy"} < set(polar)
    assert not Vader()(table["masked_neutral"].to_list()).strength.any()


@pytest.mark.parametrize(("scored", "shown"), [(1, "+0.40*"), (0, "+0.40 "), (2, "+0.40 ")])
def test_an_asterisk_marks_what_is_not_neutral(scored: int, shown: str) -> None:
    columns = ("sentiment", "sentiment_neutral", "regard", "regard_neutral")
    labels = {c: [scored] for c in columns} | {f"{c}_strength": [0.4] for c in columns}
    row = pl.DataFrame({"relation": ["IsA"], "phrase": ["is a"], **labels}).join(count_drops(LABELLED), on="relation")
    last = printed(row).splitlines()[-1]
    assert last.startswith("IsA")
    assert last.count(shown) == 4
