"""A saved view of runs in W&B: filtered and baseline side by side, and quality against harm. The only module that
knows wandb_workspaces."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mitigate.errors import MitigateError
from mitigate.headlines import Headline, table
from mitigate.metrics import SCORER

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

DRAWN = [
    row for row in table() if row.charted and SCORER not in row.key and "mitigate" in (row.recipes or ("mitigate",))
]
HARMS = [row for row in DRAWN if row.group in ("harm", "disparity")]
QUALITY = [row for row in DRAWN if row.group in ("quality", "cost")]
COLUMNS = ("config:policy.value.name", "config:seed.value", *(f"summary:{row.name}" for row in DRAWN))


def check_installed() -> None:
    """Raises MitigateError where wandb-workspaces is not."""
    if find_spec("wandb_workspaces") is None:
        raise MitigateError("a view in W&B needs wandb-workspaces: pip install -e '.[workspace]'")


def workspace(entity: str, project: str, group: str, baseline: str) -> "Workspace":
    """The view of the main job's runs of one group, as an object that has not been saved: a bar for each policy, mean
    over seeds, for each harm; each run's quality against its harm; a table of all. `baseline` is a run's id."""
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
        harm = HARMS[0]
        title = f"{harm.caption}, against {quality.label}"
        return ScatterPlot(title=title, x=SummaryMetric(quality.name), y=SummaryMetric(harm.name))

    def section(name: str, panels: Sequence[BarPlot | ScatterPlot]) -> workspaces.Section:
        return workspaces.Section(name=name, panels=list(panels), is_open=True)

    return workspaces.Workspace(
        entity=entity,
        project=project,
        name=f"baseline and filtered, {group}",
        sections=[
            section("harms by policy", list(map(bars, HARMS))),
            section("quality by policy", list(map(bars, QUALITY))),
            section("harm against quality", list(map(against, QUALITY))),
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
