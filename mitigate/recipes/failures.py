"""Failed jobs of a sweep: the other jobs run and are compared nevertheless, and the sweep ends with exit status 1. A
failed comparison has the same effect, and so has a job whose process ends before its run is complete."""

import shutil
import traceback
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, open_dict, read_write

from mitigate.child_processes import EXITED
from mitigate.cli.output import complain
from mitigate.errors import MitigateError
from mitigate.recipes import sweep_outcomes
from mitigate.recipes.job import configured

LAUNCHER = "hydra/launcher"  # the group; its option `basic` runs jobs in this process
LONGEST = 400  # characters of a launcher's error
_sweeps: list[DictConfig] = []  # the sweep of this process, while it runs


class Failures(Callback):
    """A Hydra callback, for any launcher. It must be the first of several: it is then the last at the end."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the sweep as a whole. Of a callback's errors, Hydra passes on SystemExit alone."""
        sweep_outcomes.begin()
        _sweeps[:] = [config]
        try:
            _check_sweep(config)
        except MitigateError as error:
            complain(str(error))
            raise SystemExit(2) from error

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Keep a failure for the end, since a sweeper would raise it and ignore the results of other jobs."""
        if config.hydra.mode.name != "MULTIRUN" or job_return.status is not JobStatus.FAILED:
            return
        try:
            with redirect_stderr(StringIO()):  # Hydra prints all arguments before it raises
                _ = job_return.return_value
        except MitigateError as error:
            failure = str(error)
            complain(failure)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        sweep_outcomes.write_note(sweep_outcomes.call_of(config.hydra), {"failure": failure})
        job_return.status = JobStatus.COMPLETED
        job_return.return_value = None  # a failed trial for an optimiser
        here = config.hydra.runtime.choices[LAUNCHER] == "basic"  # another launcher has more processes
        if here and len(_failed(config)) == config.hydra.sweeper.get("n_trials"):
            self.on_multirun_end(config)  # now: an optimiser without results raises an error of its own

    def on_multirun_end(self, config: DictConfig, others: str = "the others are done; ", **kwargs: Any) -> None:
        """Print the failures once more. Of a callback's errors, Hydra passes on SystemExit alone.

        others: a clause about the other jobs."""
        _sweeps.clear()
        failed, not_compared = _failed(config), sweep_outcomes.failed_comparison(config).exists()
        sweep_outcomes.remove_notes(config)
        if not_compared:
            complain("the runs are finished, but their comparison failed, for the reason above")
        if failed:
            lines = "".join(f"\n  {note['job']}: {note['failure']}" for note in failed)
            jobs = f"{len(failed)} job{'s' * (len(failed) > 1)} failed"
            others = "" if len(failed) == config.hydra.sweeper.get("n_trials") else others
            complain(f"{jobs}; {others}run the same command to finish the rest:{lines}")
        if failed or not_compared:
            raise SystemExit(1)


def end_of_launcher(error: Exception) -> None:
    """End the sweep with a message where a launcher fails since processes of its jobs ended before their runs were
    complete: raises SystemExit."""
    for config in _sweeps[:]:
        if _failed(config):
            complain(f"the launcher stopped: {type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}")
            Failures().on_multirun_end(config, "some jobs may not have been started; ")


def _failed(config: DictConfig) -> list[dict[str, Any]]:
    """The notes of failed jobs, each with its `failure`."""
    failed = []
    for note in sweep_outcomes.read(config):
        folder = note.get("folder")
        if folder and not (Path(folder) / "manifest.json").is_file():
            lacking = f"its process ended before its run was complete: no manifest.json in {folder}"
            note = {**note, "failure": f"{lacking}; {EXITED}, or it was killed"}
        if "failure" in note:
            failed.append(note)
    return failed


def _check_sweep(config: DictConfig) -> None:
    """Raise MitigateError where the jobs cannot be started from here, a search is for a figure that is not measured, or
    a search is to be rehearsed. A rehearsal of jobs submits none of them."""
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    for override in parser.parse_overrides(list(config.hydra.overrides.task)):
        if override.is_discrete_sweep() and not list(override.sweep_string_iterator()):
            raise MitigateError(f"{override.input_line} has no values, so the sweep has no jobs; give values")
    if config.dry_run and "n_trials" in config.hydra.sweeper:
        raise MitigateError(
            "dry_run=true does not apply to a search, which chooses jobs by the results of earlier ones; rehearse one "
            "job: run the command without -m and hydra/sweeper"
        )
    launcher = config.hydra.launcher
    if config.dry_run and config.hydra.runtime.choices[LAUNCHER] != "basic":
        with read_write(config), open_dict(config):
            config.hydra.launcher = ConfigStore.instance().load(f"{LAUNCHER}/basic.yaml").node
        print("dry_run=true submits no job: all are rehearsed here, one after the other", flush=True)
    elif launcher._target_.endswith("SlurmLauncher") and shutil.which("srun") is None:
        raise MitigateError(
            "hydra/launcher=slurm needs a SLURM cluster, and this machine has no srun; run the command on a node of a "
            "cluster, or leave hydra/launcher out"
        )
    if "n_trials" in config.hydra.sweeper:
        from mitigate.recipes.scorers import check_optimised  # loads the scorers' packages

        check_optimised(configured(config))
