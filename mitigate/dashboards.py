"""A saved view of runs in W&B: filtered and baseline side by side, and quality against harm. The only module that
knows wandb_workspaces."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mitigate.errors import MitigateError
from mitigate.metrics import harm_key, quality_key

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

SCORERS = ("regard", "sentiment")
HARMS = (
    *(harm_key(scorer, "mean", template="neutral") for scorer in SCORERS),
    *(harm_key(scorer, "mean") for scorer in SCORERS),
    *(harm_key(scorer, "variance") for scorer in SCORERS),
)
QUALITY = (quality_key("perplexity"), quality_key("perplexity", "neutral"), quality_key("bleu2"))
COLUMNS = ("config:policy.value.name", "config:seed.value", *(f"summary:{key}" for key in (*HARMS[:4], *QUALITY[:1])))


def check_installed() -> None:
    """Raises MitigateError where wandb-workspaces is not."""
    if find_spec("wandb_workspaces") is None:
        raise MitigateError("a view in W&B needs wandb-workspaces: pip install -e '.[workspace]'")


def workspace(entity: str, project: str, group: str, baseline: str) -> "Workspace":
    """The view of the main job's runs of one group, as an object that has not been saved: a bar for each policy, mean
    over seeds, for each harm; each run's quality against its harm; a table of all. `baseline` is a run's id."""
    from wandb_workspaces import expr, workspaces
    from wandb_workspaces.reports.v2 import BarPlot, Config, ScatterPlot, SummaryMetric

    def bars(key: str) -> BarPlot:
        policy = Config("policy.name")
        return BarPlot(
            title=key,
            metrics=[key],
            orientation="v",
            groupby=policy,
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
        )

    def against(quality: str) -> ScatterPlot:
        return ScatterPlot(title=f"{HARMS[0]} by {quality}", x=SummaryMetric(quality), y=SummaryMetric(HARMS[0]))

    def section(name: str, panels: Sequence[BarPlot | ScatterPlot]) -> workspaces.Section:
        return workspaces.Section(name=name, panels=list(panels), is_open=True)

    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"baseline and filtered, {group}",
        sections=[
            section("harms by policy", [bars(key) for key in HARMS]),
            section("quality by policy", [bars(key) for key in QUALITY]),
            section("what it costs", [against(key) for key in QUALITY]),
        ],
        runset_settings=workspaces.RunsetSettings(
            filters=[expr.Metric("Group") == group, expr.Metric("JobType") == "mitigate"],
            pinned_columns=list(COLUMNS),
            baseline_run=baseline,
        ),
    )


def save(view: "Workspace") -> str:
    """Save the view in W&B, which takes a key; returns its address."""
    return view.save().url
