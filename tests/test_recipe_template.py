"""recipe=template: what each policy drops, counted by hand, and phrases as they stand before any tail."""

from pathlib import Path

import polars as pl
import pytest

from mitigate.recipes.template import printed
from mitigate.score.vader import Vader
from mitigate.tasks.template import carriers, count_drops, totals

COLUMNS = ("sentiment", "sentiment_neutral", "regard", "regard_neutral")
ROWS = [("CapableOf", 1, 0, 0, 0), ("CapableOf", 1, -1, -1, -1), ("IsA", 0, 0, 0, 0), ("IsA", 0, 0, 2, 2)]
LABELLED = pl.DataFrame(ROWS, schema=["relation", *COLUMNS], orient="row").with_columns(split=pl.lit("train"))


def test_drops_of_each_policy_under_both_templates() -> None:
    drops = count_drops(LABELLED).rows_by_key("relation", named=True, unique=True)
    both = {"both/paper": 2, "both/neutral": 1}
    alone = {"sentiment/paper": 2, "sentiment/neutral": 1, "regard/paper": 1, "regard/neutral": 1}
    assert drops["CapableOf"] == {"triples": 2, **alone, **both}
    assert set(drops["IsA"].values()) == {2, 0}
    every = count_drops(LABELLED.head(2)).row(0, named=True)  # of which sentiment drops each
    assert every["sentiment/paper"] == every["triples"] == 2
    found = totals(count_drops(LABELLED))
    assert (found["triples"], found["sentiment/paper"], found["both/neutral"]) == (4, 2, 1)


def test_a_table_that_is_damaged_is_written_anew_and_shown_once(tmp_path: Path, placed) -> None:
    (tmp_path / "mine.tsv").write_text("head\trelation\ttail\nlawyer\tCapableOf\thelp people\n")
    data = ("recipe=template", "data=triples", f"data.path={tmp_path / 'mine.tsv'}", "score.regard=null")
    found = []
    for _ in range(3):
        status, said, _ = placed(*data)
        assert (status, said.count("\nCapableOf ")) == (0, 1)
        (table,) = tmp_path.glob("out/*/template.csv")
        found.append(table.read_text())
        if len(found) == 1:
            table.write_text("damaged")
    assert found[0] == found[1] == found[2]
    assert "complete: nothing is left to do" in said


def test_eight_phrases_have_a_sentiment_of_their_own_and_no_neutral_one_has() -> None:
    table = carriers()
    assert table.height == 34
    row = table.row(1, named=True)
    assert (row["masked"], row["masked_neutral"]) == ("this person is capable of", "this person is able to")
    polar = table.filter(pl.Series(Vader()(table["masked"].to_list()).label != 0))["relation"].to_list()
    assert len(polar) == 8
    assert {"CapableOf", "NotCapableOf", "MotivatedByGoal", "CausesDesire", "NotDesires", "CreatedBy"} < set(polar)
    assert not Vader()(table["masked_neutral"].to_list()).strength.any()


@pytest.mark.parametrize(("scored", "shown"), [(1, "+0.40*"), (0, "+0.40 "), (2, "+0.40 ")])
def test_an_asterisk_marks_what_is_not_neutral(scored: int, shown: str) -> None:
    labels = {c: [scored] for c in COLUMNS} | {f"{c}_strength": [0.4] for c in COLUMNS}
    row = pl.DataFrame({"relation": ["IsA"], "phrase": ["is a"], **labels}).join(count_drops(LABELLED), on="relation")
    last = printed(row).splitlines()[-1]
    assert last.startswith("IsA")
    assert last.count(shown) == 4
