"""A sweep (`-m`) as a whole. Each job notes its run folder or its failure in the sweep's folder, which all processes
and machines share; at the end the finished runs are compared on a page, a search (`hydra/sweeper=search`) names its
best settings, and failures are listed."""

import json
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from mitigate.files import as_json, read_json, write
from mitigate.progress import complain, say
from mitigate.recipes.config import plain

NOTES = "jobs"  # the folder of the jobs' notes, within the sweep's
FIGURES = "metrics.json"
RESULTS = "optimization_results.yaml"  # of Hydra's Optuna sweeper
LIKE_THE_SWEEP = (
    *("paths.outputs", "paths.cache", "verbose", "measures"),
    *("tracking.mode", "tracking.project", "tracking.entity", "tracking.statements"),
)
_running: list[DictConfig] = []  # the sweep of this process, while it runs


class Sweep(Callback):
    """The callback that Hydra calls at a sweep's start and end, with any launcher."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Make the sweep known to `stop`."""
        _running[:] = [config]

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print and compare the results. Of a callback's errors, Hydra passes on SystemExit alone."""
        _running.clear()
        notes = read_notes(config)
        if "n_trials" in config.hydra.sweeper:
            best = OmegaConf.load(Path(config.hydra.sweep.dir) / RESULTS)
            settings = " ".join(f"{name}={value}" for name, value in best.best_params.items())
            say(f"\nbest: {config.optimized_metric} {best.best_value:.2f} with {settings}")
        if status := compare(config, notes):
            complain("the runs are finished, but their comparison failed, for the reason above")
        if _say_failures(notes) or status:
            raise SystemExit(1)


def stop(error: Exception) -> None:
    """End with exit status 1 where a launcher or sweeper fails, for example since the process of a job was killed."""
    for config in _running[:]:
        _running.clear()
        complain(f"the sweep stopped: {type(error).__name__}: {' '.join(str(error).split())[:400]}")
        if not _say_failures(read_notes(config)):
            complain("run the same command to finish the rest")
        raise SystemExit(1) from error


def fail(call: Mapping[str, Any], error: Exception, sentence: str | None) -> None:
    """Print and note a job's failure. sentence: that for the user, if there is one."""
    complain(sentence or "".join(traceback.format_exception(error)).rstrip())
    note(call, failure=sentence or f"{type(error).__name__}: {error}")


def note(call: Mapping[str, Any], **facts: str | None) -> None:
    """Note how a job of a sweep ended: its run `folder` or its `failure`."""
    if call["sweep"] is not None:
        content = as_json({"overrides": list(call["overrides"]), **facts})
        write(Path(call["sweep"]) / NOTES / f"{call['number']:06}.json", content)


def read_notes(config: DictConfig) -> list[dict[str, Any]]:
    """Read and remove the notes of the sweep, in the order of their jobs, each with the `job`: the overrides that
    distinguish it from others."""
    folder = Path(config.hydra.sweep.dir) / NOTES
    notes = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    shutil.rmtree(folder, ignore_errors=True)
    given = Counter(override for note in notes for override in note["overrides"])
    for note in notes:
        note["job"] = " ".join(one for one in note["overrides"] if len(notes) == 1 or given[one] < len(notes))
    return notes


def _say_failures(notes: Sequence[Mapping[str, Any]]) -> bool:
    """Print the failures once more; returns whether there are any."""
    failed = [note for note in notes if "failure" in note]
    lines = "".join(f"\n  {note['job']}: {note['failure']}" for note in failed)
    if failed:
        complain(f"{len(failed)} of {len(notes)} jobs failed; run the same command to finish:{lines}")
    return bool(failed)


def compare(config: DictConfig, notes: Sequence[Mapping[str, Any]]) -> int:
    """Compare the finished runs of a corpus and targets, unless they differ by seed alone.
    Returns the exit status of the comparison.

    The comparison is a command like any other, in a process of its own: it can be typed again, and any launcher may
    have run the jobs."""
    done = {Path(note["folder"]).resolve(): note["overrides"] for note in notes if note.get("folder")}
    found = {folder: given for folder, given in done.items() if "fingerprint" in (read_json(folder / FIGURES) or {})}
    if len({tuple(one for one in given if not one.startswith("seed=")) for given in found.values()}) < 2:
        return 0
    say("\ncomparison")
    settings = {name: plain(OmegaConf.select(config, name)) for name in LIKE_THE_SWEEP}
    settings |= {"compare.runs": list(map(str, found))}
    command = ["recipe=compare", *(f"{name}={json.dumps(one, ensure_ascii=False)}" for name, one in settings.items())]
    return subprocess.run([sys.executable, "-m", "mitigate", *command], check=False).returncode
