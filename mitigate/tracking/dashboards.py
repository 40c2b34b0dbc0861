"""A saved view of runs in W&B: filtered and baseline side by side, and quality against harm. Only this module uses
wandb_workspaces."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mitigate.tracking.headlines import Headline

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

COLUMNS = ("config:policy.value.name", "config:seed.value")


def workspace(
    entity: str, project: str, group: str, baseline: str, figures: Iterable[Headline], harm: str
) -> "Workspace":
    """The view of the main job's runs of one group, as an object that has not been saved: a bar for each policy, mean
    over seeds, for each harm; each run's quality against its harm; a table of all. `baseline` is a run's id.

    figures: the runs' headlines; those that are charted are drawn. harm: the key of the harm against which quality is
    drawn."""
    from wandb_workspaces import expr, workspaces
    from wandb_workspaces.reports.v2 import BarPlot, Config, ScatterPlot, SummaryMetric

    def bars(row: Headline) -> BarPlot:
        policy = Config("policy.name")
        return BarPlot(
            title=row.caption,
            metrics=[row.name],
            orientation="v",
            groupby=policy,
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
        )

    def against(quality: Headline) -> ScatterPlot:
        title = f"{primary.caption}, against {quality.label}"
        return ScatterPlot(title=title, x=SummaryMetric(quality.name), y=SummaryMetric(primary.name))

    def section(name: str, panels: Sequence[BarPlot | ScatterPlot]) -> workspaces.Section:
        return workspaces.Section(name=name, panels=list(panels), is_open=True)

    drawn = [row for row in figures if row.charted]
    harms = [row for row in drawn if row.group in ("harm", "disparity")]
    qualities = [row for row in drawn if row.group in ("quality", "cost")]
    primary = next(row for row in harms if row.key == harm)
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"baseline and filtered, {group}",
        sections=[
            section("harms by policy", list(map(bars, harms))),
            section("quality by policy", list(map(bars, qualities))),
            section("harm against quality", list(map(against, qualities))),
        ],
        runset_settings=workspaces.RunsetSettings(
            filters=[expr.Metric("Group") == group, expr.Metric("JobType") == "mitigate"],
            pinned_columns=[*COLUMNS, *(f"summary:{row.name}" for row in drawn)],
            baseline_run=baseline,
        ),
    )


def save(view: "Workspace") -> str:
    """Save the view in W&B, which takes a key; returns its address."""
    return view.save().url
