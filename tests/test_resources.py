"""What a policy keeps of each target. By hand."""

import polars as pl
import pytest

from mitigate.measure.quality import kept_by_target
from mitigate.measure.results import Results, by_category, measured

TARGETS = pl.DataFrame({"target": ["nurse", "cook"], "category": ["profession", "profession"]})


def test_coverage_of_each_target() -> None:
    """Of 12 triples about nurses 3 are kept; of two about Italy both; one is about nobody."""
    rows = [("nurse", "profession", "train", f"tail {n % 4}", float(n % 4 == 0)) for n in range(12)]
    rows += [("italy", "origin", "train", "land", 1.0), ("italy", "origin", "train", "place", 0.5)]
    rows += [(None, None, "train", "x", 0.0), ("nurse", "profession", "test", "x", 1.0)]
    schema = {"target": pl.String, "category": pl.String, "split": pl.String, "tail": pl.String, "weight": pl.Float32}
    ledger = pl.DataFrame(rows, schema=schema, orient="row")
    ledger = ledger.with_columns(relation=pl.lit("IsA"), source_row=pl.lit(None, pl.UInt32))
    table = kept_by_target(ledger)
    assert table.rows() == [("nurse", "profession", 12, 3), ("italy", "origin", 2, 2)]
    found = Results(measured("training triples", table, by_category(table)))
    assert found["coverage/triples"] == pytest.approx(100 * 5 / 14)
    assert (found["coverage/least"], found["coverage/least/profession"]) == (25, 25)
    assert found["coverage/least/origin"] is None  # two triples are too few
