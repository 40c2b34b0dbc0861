"""The share of probed triples that are accepted as plausible."""

import polars as pl
import pytest

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.validity import valid_metrics

TRIPLES = pl.DataFrame(
    {
        "target": ["nurse", "nurse", "nurse", "nurse", "lawyer", "lawyer"],
        "relation": ["IsA", "IsA", "HasA", "HasA", "IsA", "HasA"],
        "judged_valid": [True, True, True, False, True, False],
    }
)
PARTS = {"all": pl.lit(True), "relation/HasA": pl.col("relation") == "HasA", "one": pl.col("target") == "nurse"}


def test_shares_are_means_over_targets():
    found = valid_metrics(TRIPLES, {**PARTS, "none": pl.lit(False)}, {}, Bootstrap(resamples=500))
    assert found["quality/valid/all"] == pytest.approx((75 + 50) / 2)
    assert found["quality/valid/relation/HasA"] == pytest.approx((50 + 0) / 2)
    assert found["quality/valid/all_low"] < 62.5 < found["quality/valid/all_high"]
    assert found["quality/valid/one"] == 75
    assert (found["quality/valid/one_low"], found["quality/valid/none"]) == (None, None)  # one word, and none


def test_inflections_are_one_word():
    found = valid_metrics(TRIPLES, PARTS, {"nurse": "work", "lawyer": "work"}, Bootstrap(resamples=500))
    assert found["quality/valid/all_low"] is None


def test_triples_that_could_not_be_classified_do_not_count():
    unknown = pl.DataFrame({"target": ["nurse", "lawyer"], "relation": "Mentors", "judged_valid": [None, None]})
    triples = pl.concat([TRIPLES, unknown.cast({"judged_valid": pl.Boolean})])
    parts = {"all": pl.lit(True), "relation/Mentors": pl.col("relation") == "Mentors"}
    found = valid_metrics(triples, parts, {}, Bootstrap(resamples=50))
    assert found["quality/valid/all"] == pytest.approx((75 + 50) / 2)
    assert found["quality/valid/relation/Mentors"] is None
