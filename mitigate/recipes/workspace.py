"""All finished runs on the same data with the same model, on one page: recipe=compare's, and with a key for W&B as a
saved view there."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from mitigate import dashboards
from mitigate.errors import MitigateError
from mitigate.recipes.compare import recipe as compare
from mitigate.recipes.compare.plan import make_plan
from mitigate.recipes.compare.runs import FinishedRun, read_runs
from mitigate.recipes.finished import folders
from mitigate.recipes.job import group_of, plain, record_id, say
from mitigate.tracking import asking, default_entity, resolve


def run(config: DictConfig) -> None:
    """Compare the runs of compare.runs or, if it names none, those under paths.outputs that are like the latest."""
    named = folders(plain(config.compare.runs))
    runs = read_runs(named, "compare.runs") if named else latest(Path(config.paths.outputs))
    config = DictConfig(OmegaConf.merge(config, {"compare": {"runs": [str(run.folder) for run in runs]}}))
    online = resolve(config.tracking.mode) == "online"
    if online:
        dashboards.check_installed()
    compare.run(config)
    if config.dry_run:
        return
    if not online:
        say("  no view is saved in W&B: there is no key, or tracking.mode says otherwise")
        return
    baseline = record_id(make_plan(config).contrasts[0].before[0].folder)
    with asking():
        entity = config.tracking.entity or default_entity()
        view = dashboards.workspace(entity, config.tracking.project, group_of(runs[0].config), baseline)
        address = dashboards.save(view)
    say(f"  view in W&B {address}")


def latest(outputs: Path) -> Sequence[FinishedRun]:
    """The finished runs of the main job with the data and the model of the one that was finished last."""
    finished = sorted(outputs.glob("mitigate-*/manifest.json"), key=lambda path: path.stat().st_mtime)
    runs = read_runs([path.parent for path in finished], "paths.outputs")
    if not runs:
        raise MitigateError(
            f"there is no finished run of recipe=mitigate in {outputs}; name folders by compare.runs=[DIR]"
        )
    alike = [run for run in runs if group_of(run.config) == group_of(runs[-1].config)]
    if others := len(runs) - len(alike):
        count = "1 finished run is" if others == 1 else f"{others} finished runs are"
        say(f"  note: {count} on other data or of another model than {runs[-1].folder.name}, and left out")
    return alike
