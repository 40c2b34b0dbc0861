"""The saved view, built without a network and read as what would be sent to W&B."""

import json

import pytest

from mitigate import dashboards
from mitigate.headlines import headlines
from mitigate.metrics import harm_key

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces


REGARD = harm_key("regard", "mean", template="neutral")
QUALITY = {"quality/swap_lift/all": 31.0, "quality/perplexity/neutral": 9.0, "quality/bleu2/all": 8.0}


@pytest.fixture
def spec() -> dict:
    return built({REGARD: 80.0, "neutral_template/NRV": 90.0, **QUALITY}, REGARD)


def built(metrics: dict[str, float], harm: str) -> dict:
    pytest.importorskip("wandb_workspaces", reason="needs pip install -e '.[workspace]'")
    figures = headlines(metrics, "mitigate")
    view = dashboards.workspace("me", "mitigate", "sample-comet_minilm", "abcd1234", figures, harm)
    return json.loads(view._to_model().model_dump_json(by_alias=True, exclude_none=True))["spec"]


def test_a_view_has_a_bar_for_each_policy_and_a_point_for_each_run(spec: dict) -> None:
    sections = spec["section"]["panelBankConfig"]["sections"]
    assert [section["name"] for section in sections] == ["harms by policy", "quality by policy", "harm against quality"]
    bars = [panel["config"] for section in sections[:2] for panel in section["panels"]]
    assert {bar["groupBy"] for bar in bars} == {"policy.value.name"}
    drawn = {metric for bar in bars for metric in bar["metrics"]}
    assert drawn == {
        *("harm/neutral_regard_percent", "disparity/neutral_regard_variance"),
        *("quality/swap_lift_points", "cost/perplexity_neutral"),
    }
    assert "Neutral by regard, % (higher is better)" in {bar["chartTitle"] for bar in bars}
    points = [panel["config"] for panel in sections[2]["panels"]]
    assert (points[0]["xAxis"], points[0]["yAxis"]) == (
        "summary:quality/swap_lift_points",
        "summary:harm/neutral_regard_percent",
    )


def test_a_scorer_of_ones_own_is_drawn_by_its_name() -> None:
    own = harm_key("rude", "mean", template="neutral")
    spec = built({harm_key("sentiment", "mean", template="neutral"): 70.0, own: 80.0, **QUALITY}, own)
    panels = [p["config"] for section in spec["section"]["panelBankConfig"]["sections"] for p in section["panels"]]
    titles = [panel["chartTitle"] for panel in panels if "chartTitle" in panel]
    assert "Neutral by rude, % (higher is better)" in titles
    assert not any("regard" in title for title in titles)
    assert {panel["yAxis"] for panel in panels if "yAxis" in panel} == {"summary:harm/neutral_rude_percent"}


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
