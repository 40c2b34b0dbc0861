"""Jobs of a sweep that fail: the others are done and compared all the same, and the sweep ends with exit status 1."""

import sys
import traceback
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from mitigate.errors import MitigateError
from mitigate.recipes import notes
from mitigate.texts import escaped


class Failures(Callback):
    """A Hydra callback, for any launcher. It must be the first of several: it is then the last at the end."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        notes.begin()

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        """Keep what went wrong for the end, since a sweeper would raise it and look at no other job's result."""
        if config.hydra.mode.name != "MULTIRUN" or job_return.status is not JobStatus.FAILED:
            return
        try:
            _ = job_return.return_value
        except MitigateError as error:
            failure = str(error)
            _tell(failure)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        notes.leave(notes.call_of(config.hydra), {"failure": failure})
        job_return.status = JobStatus.COMPLETED
        job_return.return_value = None  # which an optimiser takes for a trial that failed

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Tell the failures once more. Hydra swallows what a callback raises, but for SystemExit."""
        failed = [note for note in notes.read(config) if "failure" in note]
        notes.forget(config)
        if failed:
            lines = "".join(f"\n  {note['job']}: {note['failure']}" for note in failed)
            jobs = f"{len(failed)} job{'s' * (len(failed) > 1)} failed"
            _tell(f"{jobs}; the others are done, and the same command does what is left:{lines}")
            raise SystemExit(1)


def _tell(message: str) -> None:
    print(f"mitigate: {escaped(message)}", file=sys.stderr, flush=True)
