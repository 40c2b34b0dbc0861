"""The charts of a run and of a comparison, as the tables that W&B's presets draw."""

import polars as pl
import pytest

from mitigate.charts import DIFFERENCES, beside, compared, headline_differences, summary

REGARD, VALID, PERPLEXITY = "neutral_template/NRM", "quality/valid/all", "quality/perplexity/neutral"
ROWS = [
    {"figure": PERPLEXITY, "baseline": 20.0, "value": 21.0, "as": "ratio", "change": 1.05, "low": 1.02, "high": 1.08},
    {"figure": VALID, "baseline": 12.0, "value": 11.0, "as": "difference", "change": -1.0, "low": None, "high": None},
    {"figure": REGARD, "baseline": 80.0, "value": 84.0, "difference": 4.0, "low": 1.0, "high": 7.0},
    {"figure": f"{REGARD}/origin", "baseline": 80.0, "value": 84.0, "difference": 4.0, "low": 1.0, "high": 7.0},
]


@pytest.fixture
def rows() -> pl.DataFrame:
    return pl.concat(headline_differences(policy, "none", ROWS) for policy in ("both", "both, lr=0.1"))


def test_a_runs_headlines_stand_beside_the_baselines() -> None:
    runs = {"none, seed 1": {REGARD: 80.0, VALID: None}, "both, seed 1": {REGARD: 84, VALID: 12.0, "NRM": 70.0}}
    charts = beside(runs, "mitigate")
    assert list(charts) == [
        "beside_the_baseline/harm_neutral_regard_percent",
        "beside_the_baseline/quality_plausible_percent",
    ]
    harm, quality = charts.values()
    assert (harm.kind, harm.title) == ("bars", "Neutral by regard, % (higher is better)")
    assert harm.rows.columns == ["run", "neutral by regard, %"]
    assert harm.rows.rows() == [("none, seed 1", 80.0), ("both, seed 1", 84.0)]
    assert quality.rows.rows() == [("both, seed 1", 12.0)]


def test_differences_are_in_points_or_in_percent_of_the_baseline(rows: pl.DataFrame) -> None:
    assert dict(rows.schema) == DIFFERENCES
    mine = rows.filter(policy="both")
    assert mine["key"].to_list() == [REGARD, VALID, PERPLEXITY]
    assert mine["unit"].to_list() == ["percentage points", "percentage points", "% of the baseline"]
    assert mine["difference"].to_list() == pytest.approx([4.0, -1.0, 5.0])
    assert mine["low"].to_list() == [1.0, None, pytest.approx(2.0)]
    assert mine["better"].to_list() == ["up", "up", "down"]


def test_the_runs_table_has_the_difference_of_each_drawn_headline(rows: pl.DataFrame) -> None:
    found = summary(rows)
    assert len(found) == 6
    assert found["both/harm_neutral_regard_percent_difference"] == 4.0
    assert found["both_lr_0_1/cost_perplexity_neutral_difference"] == pytest.approx(5.0)


def test_an_interval_is_a_line_with_a_tick_at_the_difference(rows: pl.DataFrame) -> None:
    charts = {name: chart for name, chart in compared(rows).items() if name.startswith("differences/")}
    assert list(charts) == ["differences/harm_neutral_regard_percent", "differences/cost_perplexity_neutral"]
    chart = charts["differences/harm_neutral_regard_percent"]
    assert (chart.kind, chart.title) == ("lines", "Neutral by regard, % (higher is better)")
    assert chart.rows.columns == ["difference from none, percentage points", "number in the legend", "policy"]
    lines = {name: rows.drop("policy").rows() for (name,), rows in chart.rows.group_by("policy", maintain_order=True)}
    assert lines["0 no difference"] == [(0.0, 0.5), (0.0, 2.5)]
    assert lines["1 both"] == [(1.0, 1.0), (4.0, 1.0), (4.0, 1.15), (4.0, 0.85), (4.0, 1.0), (7.0, 1.0)]
    assert lines["2 both, lr=0.1"][0] == (1.0, 2.0)


def test_harm_stands_against_quality_and_cost_with_the_baseline_at_the_origin(rows: pl.DataFrame) -> None:
    charts = {name: chart for name, chart in compared(rows).items() if name.startswith("harm_against")}
    assert list(charts) == [
        "harm_against_quality/plausible_percent_scatter",
        "harm_against_quality/plausible_percent_lines",
        "harm_against_cost/perplexity_neutral_scatter",
        "harm_against_cost/perplexity_neutral_lines",
    ]
    points = charts["harm_against_cost/perplexity_neutral_scatter"]
    assert (points.kind, points.title) == ("points", "Harm against cost: differences from none")
    assert points.rows.columns == [
        "perplexity on neutral test triples, % (lower is better)",
        "neutral by regard, points (higher is better)",
        "policy",
    ]
    assert points.rows["policy"].to_list() == ["none", "both", "both, lr=0.1"]
    assert points.rows.row(1)[:2] == pytest.approx((5.0, 4.0))
    lines = charts["harm_against_quality/plausible_percent_lines"]
    assert lines.rows.filter(policy="both").rows() == [(0.0, 0.0, "both"), (-1.0, 4.0, "both")]
    assert lines.title == "y: neutral by regard, points (higher is better)"


def test_column_names_are_no_paths_to_vega() -> None:
    rows = headline_differences("both", "none.d['x']", ROWS)
    names = [name for chart in compared(rows).values() for name in chart.rows.columns]
    assert any("none d  x" in name for name in names)
    assert not set("".join(names)) & set(".'\"[]\\")


def test_nothing_is_drawn_of_nothing() -> None:
    empty = headline_differences("both", "none", [])
    assert (summary(empty), compared(empty), beside({"both": {}}, "mitigate")) == ({}, {}, {})


def test_harm_without_a_difference_stands_against_nothing() -> None:
    unknown = [{**row, "value": None, "difference": None} if row["figure"] == REGARD else row for row in ROWS]
    assert [name for name in compared(headline_differences("both", "none", unknown)) if "against" in name] == []


def test_the_scorer_in_regards_place_is_the_harm_that_stands_against_quality() -> None:
    figures = [
        {"figure": figure, "baseline": 80.0, "value": value, "change": value - 80.0, "as": "difference"}
        | {"low": None, "high": None}
        for figure, value in (
            ("neutral_template/NSM", 70.0),
            ("neutral_template/rude/neutral_mean", 90.0),
            (VALID, 79.0),
        )
    ]
    charts = compared(headline_differences("both", "none", figures), "rude")
    columns = charts["harm_against_quality/plausible_percent_scatter"].rows.columns
    assert columns[1] == "neutral by rude, points (higher is better)"
