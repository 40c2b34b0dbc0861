"""The run without a filter that a run stands beside."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError
from mitigate.runs.finished import FinishedRun, open_run
from mitigate.tasks.compare.run_groups import differing

BASELINE = "none"  # the policy


def find_baseline(outputs: Path, settings: Mapping[str, Any], fingerprint: str) -> FinishedRun | None:
    """The latest finished run of policy none in a folder that differs from a run of the main job by its policy alone:
    same data and targets, same seed, same settings. None where there is no such run, and for a run of policy none.

    settings: those of the run, as a plain dict. fingerprint: of its data and targets, as in its metrics."""
    mine = FinishedRun(outputs, str(settings["recipe"]["name"]), dict(settings), {}, {})
    if mine.policy == BASELINE:
        return None
    name = f"{mine.recipe}-{BASELINE}-{mine.text('data.name')}-{mine.text('model.name')}-seed{mine.seed}-*"
    finished = outputs.glob(f"{name}/manifest.json")
    for manifest in sorted(finished, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            other = open_run(manifest.parent, mine.recipe)
        except MitigateError:  # a damaged folder is no baseline, and no reason to stop
            continue
        same = other.seed == mine.seed and other.metrics["fingerprint"] == fingerprint
        if same and other.policy == BASELINE and not differing([other, mine]):
            return other
    return None
