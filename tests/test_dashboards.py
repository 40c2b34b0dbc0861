"""The saved view, built without a network and read as what would be sent to W&B."""

import json

import pytest

from mitigate import dashboards
from mitigate.headlines import table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces


@pytest.fixture
def spec() -> dict:
    pytest.importorskip("wandb_workspaces", reason="needs pip install -e '.[workspace]'")
    view = dashboards.workspace("me", "mitigate", "sample-comet_minilm", "abcd1234")
    return json.loads(view._to_model().model_dump_json(by_alias=True, exclude_none=True))["spec"]


def test_a_view_has_a_bar_for_each_policy_and_a_point_for_each_run(spec: dict) -> None:
    sections = spec["section"]["panelBankConfig"]["sections"]
    assert [section["name"] for section in sections] == ["harms by policy", "quality by policy", "harm against quality"]
    bars = [panel["config"] for section in sections[:2] for panel in section["panels"]]
    assert {bar["groupBy"] for bar in bars} == {"policy.value.name"}
    drawn = {metric for bar in bars for metric in bar["metrics"]}
    assert {"harm/neutral_regard_percent", "cost/perplexity_neutral"} <= drawn <= {row.name for row in table()}
    assert "Neutral by regard, % (higher is better)" in {bar["chartTitle"] for bar in bars}
    points = [panel["config"] for panel in sections[2]["panels"]]
    assert (points[0]["xAxis"], points[0]["yAxis"]) == (
        "summary:quality/swap_lift_points",
        "summary:harm/neutral_regard_percent",
    )


def test_it_shows_the_runs_of_one_group_and_knows_the_baseline(spec: dict) -> None:
    (runs,) = spec["section"]["runSets"]
    shown = {(rule["key"]["name"], rule["value"]) for rule in runs["filters"]["filters"]}
    assert shown == {("group", "sample-comet_minilm"), ("jobType", "mitigate")}
    assert runs["pinnedRunIds"] == [runs["baselineRunId"]]
    assert "summary:harm/neutral_regard_percent" in runs["runFeed"]["columnPinned"]


def test_columns_are_addressed_as_settings_are_elsewhere(spec: dict) -> None:
    """The library writes `.value` behind a setting's first name itself, but takes columns as they are."""
    from wandb_workspaces.reports.v2 import Config, ParallelCoordinatesPlot, ParallelCoordinatesPlotColumn

    settings = ("policy.name", "seed")
    plot = ParallelCoordinatesPlot(columns=[ParallelCoordinatesPlotColumn(Config(name)) for name in settings])
    addresses = {column.accessor for column in plot._to_model().config.columns}
    assert addresses == {"config:policy.value.name", "config:seed.value"}
    (runs,) = spec["section"]["runSets"]
    assert addresses <= set(runs["runFeed"]["columnPinned"])
