"""recipe=workspace: all finished runs on the same data with the same model, on the page of recipe=compare, and with a
key for W&B as a saved view there."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from mitigate.errors import MitigateError, check_installed
from mitigate.recipes import comparing
from mitigate.recipes.job import plain, record_id, say
from mitigate.runs.finished import FinishedRun, folders
from mitigate.tasks.compare.run_plan import make_plan, read_compared, read_models
from mitigate.tracking import dashboards
from mitigate.tracking.headlines import headlines
from mitigate.tracking.record import default_entity, resolve, wandb_errors


def run(config: DictConfig) -> None:
    """Compare the runs of compare.runs or, if it names none, those under paths.outputs that match the latest run."""
    named = folders(plain(config.compare.runs))
    runs = read_models(named, "compare.runs") if named else latest(Path(config.paths.outputs))
    config = comparing.with_facts(config, {"compare": {"runs": [str(run.folder) for run in runs]}})
    online = resolve(config.tracking.mode) == "online"
    if online:
        check_installed("a saved view in W&B", "workspace", "wandb_workspaces")
    comparing.run(config)
    if config.dry_run:
        return
    if not online:
        say("  no view is saved in W&B: there is no key, or tracking.mode says otherwise")
        return
    endpoints = comparing.endpoints_of(config)
    plan = make_plan(*read_compared(plain(config.compare.runs), plain(config.compare.baseline)), endpoints)
    baseline = plan.contrasts[0].before[0]
    figures = headlines(baseline.metrics, "mitigate")
    harms = [row.key for row in figures if row.charted and row.group == "harm"]
    harm = next(key for key in [*plan.endpoints.harm, *harms] if key in harms)
    with wandb_errors():
        entity = config.tracking.entity or default_entity()
        names = (entity, config.tracking.project, _group(runs[0]), record_id(baseline.folder))
        view = dashboards.workspace(*names, figures, harm)
        address = dashboards.save(view)
    say(f"  view in W&B {address}")


def latest(outputs: Path) -> Sequence[FinishedRun]:
    """The finished runs of the main job with the data and the model of the one that finished last."""
    finished = sorted(outputs.glob("mitigate-*/manifest.json"), key=lambda path: path.stat().st_mtime)
    runs: list[FinishedRun] = []
    for path in finished:
        try:
            runs += read_models([path.parent], "paths.outputs")
        except MitigateError as error:  # damaged folders are left out
            say(f"  note: a run is left out. {error}")
    if not runs:
        raise MitigateError(
            f"there is no finished run of recipe=mitigate in {outputs}; name folders by compare.runs=[DIR]"
        )
    matching = [run for run in runs if _group(run) == _group(runs[-1])]
    if others := len(runs) - len(matching):
        count = "1 finished run is" if others == 1 else f"{others} finished runs are"
        say(f"  note: {count} on other data or of another model than {runs[-1].folder.name}, and left out")
    return matching


def _group(run: FinishedRun) -> str:
    """The W&B group of a run, as perform gives it."""
    return f"{run.text('data.name')}-{run.text('model.name')}"
