"""Jobs of a Ray cluster, by Ray Jobs. Ray gives up a job whose node it loses; the queue submits it again."""

import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mitigate.errors import MitigateError, check_installed
from mitigate.serve.engines import environment
from mitigate.serve.engines.cluster import DIED

ABSENT = "status code 404"  # in what Ray's client raises for a job that there is not
NODE_LOST = "its node has died"  # in Ray's message about a job
WAITED = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"  # Ray's error for a job that had no place for 15 minutes


class RayJobs:
    """Jobs of a Ray cluster. address: of the cluster's dashboard; memory: GiB. Raises MitigateError where Ray is absent
    or does not answer."""

    def __init__(
        self, address: str, *, threads: int | None = None, gpus: float = 0, memory: float | None = None
    ) -> None:
        check_installed("serve.engine=ray", "ray", "ray")
        from ray.exceptions import AuthenticationError
        from ray.job_submission import JobSubmissionClient

        try:
            self.client: Any = JobSubmissionClient(address)
        except AuthenticationError as error:
            raise MitigateError(
                f"serve.ray={address}: the cluster asks for its token; start the service with RAY_AUTH_MODE=token and "
                "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
            ) from error
        except (ConnectionError, RuntimeError) as error:
            raise MitigateError(
                f"serve.ray={address}: no Ray cluster answers there; start one by `ray start --head`, with the "
                "packages of ray[default], or give the address of its dashboard"
            ) from error
        self.stopped: set[str] = set()
        self.threads = threads
        self.asks = {
            "entrypoint_num_cpus": threads or 1,
            "entrypoint_num_gpus": gpus or None,
            "entrypoint_memory": None if memory is None else int(memory * 2**30),
        }

    def start(self, name: str, command: Sequence[str], log: Path) -> str:
        """Submit a command in this folder, under its name, and return the name."""
        line = ["env", *(f"{key}={value}" for key, value in environment({}, self.threads).items()), *command]
        shell = f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(line)} >> {shlex.quote(str(log))} 2>&1"
        try:
            self.client.submit_job(entrypoint=shell, submission_id=name, **self.asks)
        except RuntimeError:
            self.client.get_job_status(name)  # raises unless it was submitted before
        return name

    def find(self, name: str) -> str | None:
        """The name, where Ray has the job."""
        try:
            self._info(name)
        except LookupError:
            return None
        return name

    def state(self, handle: str) -> int | None:
        """The exit status, or None while it waits or runs. Raises LookupError for a job that Ray has forgotten, or gave
        up: it lost the node, shut it down (SIGTERM), or had no place for the job in time."""
        found = self._info(handle)
        if not found.status.is_terminal():
            return DIED if found.status.name == "PENDING" and handle in self.stopped else None
        if found.status.name == "SUCCEEDED":
            return 0
        is_lost = found.error_type == WAITED or NODE_LOST in (found.message or "")
        if is_lost or found.driver_exit_code == -signal.SIGTERM:
            raise LookupError(handle)
        return found.driver_exit_code or DIED

    def stop(self, handle: str) -> None:
        """End a job, by SIGTERM, and by SIGKILL some seconds later. A waiting job counts as ended: Ray stops it when it
        has a place."""
        self.client.stop_job(handle)
        self.stopped.add(handle)

    def _info(self, handle: str) -> Any:
        """The state of the job in Ray. Raises LookupError where there is none."""
        try:
            return self.client.get_job_info(handle)
        except RuntimeError as error:
            if ABSENT in str(error):
                raise LookupError(handle) from error
            raise
