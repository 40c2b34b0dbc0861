"""A measure is a function and a row of data/metrics.csv: what measures it and what shows it follow from the row."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from docs import reference_pages
from mitigate import metrics
from mitigate.measure import quality
from mitigate.measure.bootstrap import Bootstrap
from mitigate.report import metrics_table, page
from mitigate.report.page import Report
from mitigate.report.table_declarations import column, declared
from mitigate.tasks.quality import figures_by_group
from mitigate.tracking import headlines

WORDS = dict.fromkeys(("names", "name", "against", "titles"), "said")
"""Placeholders of headings."""
LENGTH = replace(
    metrics.quality("perplexity"),
    key="quality/words_per_tail",
    symbol="words per tail",
    name="words per tail",
    meaning="The mean number of words of a test triple's tail.",
    function="words_per_tail",
    better="none",
    decimals=1,
)
SHORT = replace(
    metrics.quality("people_valid"), key="quality/short", name="short tails", rows="statements", needs="short"
)


def words_per_tail(scored: pl.DataFrame) -> float | None:
    """Mean number of words of a tail."""
    return float(scored["tail"].str.split(" ").list.len().mean()) if scored.height else None  # type: ignore[arg-type]


@pytest.fixture
def two_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table of metrics with two more rows, and their functions."""
    rows = metrics.table() | {row.key: row for row in (LENGTH, replace(SHORT, function="short_by_target"))}
    monkeypatch.setattr(metrics, "table", lambda: rows)
    monkeypatch.setattr(quality, "words_per_tail", words_per_tail, raising=False)
    by_target = lambda rows: quality.share_by_target(rows, "short")  # noqa: E731
    monkeypatch.setattr(quality, "short_by_target", by_target, raising=False)
    caches = (metrics.find, metrics.metric, metrics._row_of)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_function_and_a_row_are_measured_and_shown_everywhere(two_more: None) -> None:
    """On the page, as text and CSV, among W&B's figures and in the reference."""
    rows = [("a", "is a", "x y z", "d", 0), ("b", "is a", "x", None, 1)]
    schema = ["head", "relation", "tail", "target", "regard_neutral"]
    scored = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        nll=1.0, tokens=1, characters=4, generated=pl.lit("x")
    )
    found = figures_by_group(metrics.TEST_TRIPLES, scored, ["regard"])
    key = "quality/words_per_tail"
    assert {part: found[f"{key}/{part}"] for part in ("all", "neutral", "polar", "target")} == {
        "all": 2.0,
        "neutral": 3.0,
        "polar": 1.0,
        "target": 3.0,
    }
    shown = page.render(Report(name="run", command="python -m mitigate", demonstration=False, metrics=found))
    assert "words per tail</th>" in shown
    assert LENGTH.meaning.replace("'", "&#39;") in shown
    assert "  words per tail          2.0" in metrics_table.console({"run": found}).splitlines()
    csv = metrics_table.measures({"run": found}).filter(measure="words per tail")
    assert csv["run"].to_list() == [2.0, 3.0, 1.0, 3.0]
    assert f"{key}/polar" in headlines.figures(found, {})["key"].to_list()
    assert f"`{key}`" in reference_pages.figures()


def test_a_function_of_each_target_has_an_interval(two_more: None) -> None:
    targets = [f"t{number}" for number in range(30)]
    said = pl.DataFrame(
        {"target": targets, "category": "origin", "relation": "IsA", "short": [n % 3 == 0 for n in range(30)]}
    )
    found = figures_by_group(metrics.PROBED, said, [], Bootstrap(resamples=100))
    assert found["quality/short/origin"] == pytest.approx(100 / 3)
    assert found["quality/short/all_low"] < 100 / 3 < found["quality/short/all_high"]
    assert "quality/valid/all" not in found  # no column judged_valid


def test_every_declared_function_is_there_and_every_table_has_its_columns() -> None:
    assert all(callable(getattr(quality, row.function)) for row in metrics.table().values() if row.function)
    assert {row.rows for row in metrics.table().values()} == {"", *metrics.ROWS_OF_MEASURES}
    folder = Path(metrics.__file__).parent / "data"
    for row in pl.read_csv(folder / "tables.csv").iter_rows(named=True):
        assert row["columns"].split()
        for name in row["columns"].split():
            column(name, **WORDS)
    shown = declared("filter reasons", [], without=["added"])
    assert [one.title for one in shown.columns] == ["Reason", "triples", "% of all", "weight"]
    assert [one.show for one in shown.columns[1:]] == [1, 1, 1]
