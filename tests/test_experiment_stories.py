"""The comparison of stories of benchmarks/plan.md on made-up rows, and the row of a run."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import experiment_stories as stories
from benchmarks.experiment_row import pack

OF_SEEDS = (-1, 0, 1)  # of three seeds


def rows(**polarised: int) -> pl.DataFrame:
    """Three seeds of each arm; of 100 sentences about each of four words so many are polarised."""
    found = [
        {
            **{"arm": arm, "seed": seed, "hours": 0.1, "commit": "abc", "folder": "run", "clusters": "4-a"},
            **dict.fromkeys(stories.FIGURES, 50.0),
            **{"statements": pack([100] * 4), "polarised": pack([share + off] * 4)},
        }
        for arm, share in polarised.items()
        for seed, off in enumerate(OF_SEEDS, start=1)
    ]
    return pl.DataFrame(found, stories.SCHEMA)


def test_an_effect_is_the_difference_in_points() -> None:
    found = stories.effect(rows(none_short=30, both_neutral=20, random_both_neutral=25), "random_both_neutral")
    assert found.value == pytest.approx(5)
    assert found.error == pytest.approx((2 / 3) ** 0.5)  # of two means of three seeds with variance 1; words are alike
    assert found.bounds()[0] < 5 < found.bounds()[1]


def test_the_table_has_the_arms_there_are() -> None:
    said = stories.table(rows(none_short=30, both_neutral=20, random_both_neutral=25))
    assert "| `both_neutral` | 3 | 20.0 | 50 |" in said
    assert "Less polarised than `random_both_neutral`: 5.0 points [" in said
    assert "Less polarised than `none_short`: 10.0 points [" in said
    assert "points" not in stories.table(rows(none_short=30))


def test_the_row_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps({stories.STORIES: 3, stories.NAMING_TARGET: 50.0}))
    (tmp_path / "manifest.json").write_text(json.dumps({"stages": [{"seconds": 3600}, {"seconds": 1800}]}))
    said = {"target": ["she", "hers", "lawyer", "lawyer"], "crowd": [-1, 0, 1, 0]}
    pl.DataFrame(said).write_parquet(tmp_path / "score.parquet")
    row = stories.row_of(tmp_path)
    assert (row["polarised"], row["statements"], row["hours"]) == ("1 1", "2 2", 1.5)  # lawyer; she with hers
    assert row["clusters"].startswith("2-")
    assert row[stories.STORIES] == 3
    assert row[stories.DISTINCT_SENTENCES] is None
    path = tmp_path / "some.csv"
    pl.DataFrame([row | {"arm": "none_short", "seed": 1, "commit": "abc"}], stories.SCHEMA).write_csv(path)
    assert stories.read(path).filter(arm="none_short", seed=1).height == 1
