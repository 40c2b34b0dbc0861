"""Anchors: drift between rated sets taken out, surveys that rate statements again, and the paper's own sets."""

import json
from itertools import product
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.measure.intervals import FEW_TARGETS
from mitigate.tasks.ratings.anchors import (
    AGAIN,
    AS_THEY_ARE,
    EQUALLY,
    draw_anchors,
    drift_table,
    flat,
    read_earlier,
)
from mitigate.tasks.ratings.survey import power
from mitigate.words.targets import targets

PHRASES = {"CapableOf": "is capable of", "Causes": "causes"}
PAIR = ["one", "two"]
WORDS = [word for word, category in targets().items() if category == "profession" and " " not in word][:30]


def rated(batch: str, tails: dict[str, float], words: list[str] = WORDS) -> pl.DataFrame:
    """A statement of each word, relation and tail, rated by four; tails: the share that finds it polarised. Of other
    relations than the first half as many words have it."""
    rows = [
        (batch, batch, f"{word} {phrase} {tail}", -1 if vote < 4 * share else 0, vote < 3)
        for place, phrase in enumerate(PHRASES.values())
        for word in words[: len(words) // (place + 1)]
        for tail, share in tails.items()
        for vote in range(4)
    ]
    given = pl.DataFrame(rows, schema=["source", "batch", "statement", "label", "quality"], orient="row")
    unknown = [pl.lit(None, pl.String).alias(name) for name in ("target", "category", "relation", "rater")]
    return given.with_columns(*unknown, item=pl.col("source") + pl.col("statement"))


def test_drift_is_taken_out_of_the_difference_of_two_sets() -> None:
    """The second batch calls the shared statement polarised half as often; its own one is harmless."""
    table = drift_table(pl.concat([rated("one", {"harm": 1.0, "x": 0.5}), rated("two", {"harm": 0.5, "y": 0.0})]), PAIR)
    assert table.select("figure", "weights").rows() == [*product(("polarised", "valid"), (AS_THEY_ARE, EQUALLY))]
    row, valid = table.row(0, named=True), table.row(2, named=True)
    assert (row["anchors"], row["words"], row["before"], row["after"]) == (45, 30, 75, 25)
    assert [row[name] for name in ("total", "drift", "remaining")] == pytest.approx([-50, -50, 0])
    assert (valid["total"], valid["drift"]) == (0, 0)
    assert flat(table)[f"drift/two/one/polarised/{EQUALLY}/remaining"] == pytest.approx(0)


def test_the_relations_of_anchors_matter_where_drift_is_theirs() -> None:
    """Only causes drift, and only a third of the anchors and half of the statements are causes."""
    first, second = rated("one", {"a": 0.5, "b": 0.5}), rated("two", {"a": 0.5, "c": 0.5})
    drifting = pl.col("statement").str.contains("causes")
    second = second.with_columns(label=pl.when(drifting).then(0).otherwise("label"))
    few = first.filter(~drifting | ~pl.col("statement").str.ends_with("b"))
    pooled, equal = drift_table(pl.concat([few, second]), PAIR).filter(figure="polarised").rows(named=True)
    assert (pooled["drift"], equal["drift"], equal["remaining"]) == pytest.approx((-50 / 3, -25, 0))


def test_without_enough_anchors_batches_and_models_are_not_told_apart() -> None:
    few = WORDS[: FEW_TARGETS - 1]
    both = pl.concat([rated("one", {"a": 0.5}), rated("two", {"a": 0.25}, few), rated("three", {"c": 0.0})])
    table = drift_table(both, ["one", "two", "three"])
    assert table["drift"].null_count() == table.height == 6  # three pairs, two figures
    assert table["anchors"].unique().sort().to_list() == [0, 28]


def test_anchors_are_of_each_relation_and_first_those_of_several_batches() -> None:
    both = pl.concat([rated("one", {"a": 0.5, "b": 0.5}), rated("two", {"b": 0.5}, WORDS[:8])])
    drawn = draw_anchors(both, list(PHRASES), 20, seed=1)
    assert drawn["relation"].value_counts().sort("relation")["count"].to_list() == [10, 10]
    linking = set(both.filter(batch="two")["statement"])
    assert len(linking) == 8 + 4
    assert linking < set(drawn["statement"])
    assert drawn.filter(~pl.col("statement").is_in(linking), relation="Causes")["target"].n_unique() == 6
    assert set(drawn["category"]) == {"profession"}
    assert all(source.endswith(AGAIN) for source in drawn["source"])
    assert draw_anchors(both, list(PHRASES), 20, seed=1).equals(drawn)
    spelt = both.with_columns(pl.col("statement").str.replace("b$", "b_b"))
    assert not draw_anchors(spelt, list(PHRASES), 90, seed=1)["statement"].str.contains("_").any()
    with pytest.raises(MitigateError, match="humans.anchors_from: no rated statement .* relations IsA; choose others"):
        draw_anchors(both, ["IsA"], 20, seed=1)


def test_how_many_ratings_show_five_points() -> None:
    names = ["source", "target", "place"]
    key = pl.DataFrame(product(("none", "both"), WORDS, range(20)), schema=names, orient="row")
    key = key.with_columns(item=pl.format("{} {} {}", *names))
    found, fewer, more = power(key, 3), power(key.filter(pl.int_range(pl.len()) % 2 == 0), 3), power(key, 5)
    assert set(found) == {"polarised", "valid"}
    assert fewer["polarised"]["detectable"] > found["polarised"]["detectable"] > 0
    assert more["valid"]["detectable"] < found["valid"]["detectable"]


def written(folder: Path, name: str, rows: pl.DataFrame) -> list[str]:
    """The settings that name a set's files in the paper's form."""
    folder.mkdir(exist_ok=True)
    columns = {
        "sentences": rows["statement"],
        "bias_labels": 2 - rows["label"].cast(pl.Int64),
        "quality_labels": 2 - rows["quality"].cast(pl.Int64),
    }
    for end, values in columns.items():
        (folder / f"{name}_{end}.txt").write_text("".join(f"{value}\n" for value in values), encoding="utf-8")
    return [f"humans.{end}={folder}/{name}_{end}.txt" for end in columns]


@pytest.fixture
def humans(placed):
    return lambda *overrides: placed("recipe=humans", "score.regard=ngram", "measure.resamples=100", *overrides)


def test_a_survey_with_anchors_and_its_answers(humans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raters of the survey find nothing polarised, also not of the earlier statements, all of which were: all of the
    difference is drift. Takes two runs and a survey (about 6 s)."""
    earlier = written(tmp_path / "humans", "COMeT", rated("COMeT", {"harm": 1.0}))
    assert "these files do not say" in humans(*earlier).done
    (first,) = (tmp_path / "out").glob("humans-ratings-*")
    lines = [f"{word}\t{word} is capable of {tail}" for word in WORDS for tail in ("x", "y")]
    (tmp_path / "mine.tsv").write_text("\n".join(["target\tstatement", *lines]) + "\n")
    asking = (
        "data=statements",
        f"data.path={tmp_path}/mine.tsv",
        f"humans.anchors_from={first}",
        "++humans.anchors=40",
    )
    monkeypatch.setattr("mitigate.recipes.humans.survey.DAILY", 50)
    said = humans(*asking, "humans.raters=1").done
    assert "40 statements of COMeT, rated again" in said
    assert "2 parts of a day's work: survey.html#1 begins with the first" in said
    (survey,) = (tmp_path / "out").glob("humans-survey-*")
    items = pl.read_csv(survey / "survey" / "statements.csv")
    assert items.height == 100
    assert "rated again" not in (survey / "survey" / "survey.html").read_text()
    answers = "".join(f"fox,{item},0,1\n" for item in items["item"])
    (tmp_path / "a.csv").write_text("rater,item,label,quality\n" + answers)
    said = humans(f"humans.survey={survey}", f"humans.answers=[{tmp_path}/a.csv]").done
    (found,) = (path for path in (tmp_path / "out").glob("humans-ratings-*") if path != first)
    metrics = json.loads((found / "humans.json").read_text())
    place = f"drift/mine/COMeT/polarised/{AS_THEY_ARE}"
    assert metrics[f"{place}/anchors"] == 40
    assert [metrics[f"{place}/{name}"] for name in ("total", "drift", "remaining")] == pytest.approx([-100, -100, 0])
    assert metrics[f"COMeT{AGAIN}/prejudice"] == 0
    assert metrics["COMeT/prejudice"] == 100
    assert "raters/rater 2/neutral" not in metrics  # the earlier raters are others
    html = (found / "humans.html").read_text()
    assert "Batches of raters" in html
    hedge = "Polarised votes against COMeT, rated by others: −100.0 points, without drift between raters 0.0"
    assert hedge in html
    assert hedge in said


def test_earlier_ratings_that_are_none(humans, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("lawyer\tthe lawyer is kind\n")
    asking = ("data=statements", f"data.path={tmp_path}/a.tsv", f"humans.anchors_from={tmp_path}")
    assert "humans.anchors_from: " in humans(*asking).refused
    with pytest.raises(MitigateError, match="humans.anchors_from: .* Give the run folder of a recipe=humans that read"):
        read_earlier(str(tmp_path), [])
