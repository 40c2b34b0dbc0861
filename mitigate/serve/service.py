"""The objects that the application works with: the queue, people, results, uploaded files, models; and submission."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from mitigate.serve import queue
from mitigate.serve.access import Access, Caller
from mitigate.serve.allowed_jobs import RefusedError, Rules
from mitigate.serve.batching import Models
from mitigate.serve.engines import Engine
from mitigate.serve.job_table import Job
from mitigate.serve.people import MOST_PRIORITY, Limits, People, record, size_of
from mitigate.serve.progress import shown
from mitigate.serve.queue import FullError
from mitigate.serve.results import Results
from mitigate.serve.schemas import JobShown
from mitigate.serve.uploads import Uploads

Answer = TypeVar("Answer")
ANYBODY = Caller()


@dataclass
class Service:
    """The objects that the application works with. outputs: the folder of run folders; command: what a job's arguments
    follow; limits: of each person without other ones."""

    rules: Rules
    outputs: Path
    models: Models
    slots: int = 1
    most_queued: int = 200
    batch: int = 64
    mcp: bool = False
    token: str | None = field(default=None, repr=False)
    limits: Limits = field(default_factory=Limits)
    user_header: str | None = None
    proxies: list[str] = field(default_factory=list)
    largest_upload: int = 50 << 20  # bytes
    webhooks: list[str] = field(default_factory=list)
    webhook_secret: str | None = field(default=None, repr=False)
    hosts: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "mitigate"])
    engine: Engine | None = None  # None: this machine
    full: set[str | None] = field(default_factory=set)  # people who were over their disk limit at the last check
    composing: Executor = field(default_factory=lambda: ThreadPoolExecutor(1, "composing"), repr=False)

    @property
    def place(self) -> Path:
        """The folder of the service's own files."""
        return self.outputs / ".serve"

    @property
    def path(self) -> Path:
        return self.place / "queue.sqlite"

    @cached_property
    def results(self) -> Results:
        return Results(self.outputs)

    @property
    def uploads(self) -> Uploads:
        return Uploads(self.place / "files", self.largest_upload)

    @cached_property
    def people(self) -> People:
        return People(self.place)

    @property
    def access(self) -> Access:
        return Access(self.people, self.token, self.limits, self.user_header, self.proxies)

    def submit(
        self,
        recipe: str,
        overrides: dict[str, Any],
        arguments: list[str],
        submitter: str | None = None,
        *,
        caller: Caller = ANYBODY,
        label: str | None = None,
        priority: int | None = None,
    ) -> Job:
        """Add a job. Raises FullError, and RefusedError for a priority above the caller's."""
        highest = MOST_PRIORITY if caller.priority is None else caller.priority
        if priority is not None and priority > highest:
            raise RefusedError([f"priority={priority} is above yours, {highest}; give that or less"])
        self.check_disk(caller)
        with queue.opened(self.path) as table:
            how: dict[str, Any] = {"submitter": submitter, "owner": caller.name, "label": label}
            how |= {"priority": priority or 0, "most": self.most_queued, "most_own": caller.limits.queued}
            number = queue.submit(table, recipe, overrides, [*self.command, *arguments], **how)
            found = queue.read(table, number)
        assert found
        record(self.place, caller.name, "submit", job=number, recipe=recipe)
        return found

    async def composed(self, check: Callable[..., Answer], *values: Any) -> Answer:
        """The arguments of a job, or its form. Submissions wait for each other on a thread of their own, on which Hydra
        composes: those that answer other requests stay free."""
        return await asyncio.get_running_loop().run_in_executor(self.composing, check, *values)

    def shown(self, job: Job, places: Mapping[int, int] | None = None) -> JobShown:
        """The answer of HTTP about a job. places: of queued jobs, where they are at hand."""
        if places is None:
            with queue.opened(self.path) as table:
                places = queue.places(table)
        return shown(job, places.get(job.id), self.outputs)

    def check_disk(self, caller: Caller) -> None:
        """Raise FullError where a person's runs and files take all that is allowed."""
        if fault := self._over_disk(caller.name, caller.limits.disk):
            raise FullError(fault)
        self.full.discard(caller.name)

    def stop_over_disk(self) -> None:
        """Stop the running jobs of people whose runs and files take all that is allowed; their queued ones wait."""
        with queue.opened(self.path) as table:
            jobs = [*queue.latest(table, queue.ALL, "running"), *queue.latest(table, queue.ALL, "queued")]
            owners = {job.owner for job in jobs}
            faults = {owner: self._over_disk(owner, self.access.limits_of(owner).disk) for owner in owners}
            self.full = {owner for owner, fault in faults.items() if fault}
            for job in jobs:
                if job.owner in self.full and job.state == "running" and not job.cancel:
                    queue.cancel(table, job.id, error=f"stopped: {faults[job.owner]}; submitted again, it resumes")
                    record(self.place, None, "stop", job=job.id, owner=job.owner)

    def most_running(self, owner: str | None) -> int | None:
        """The number of jobs of an owner that may run at once; None: any."""
        return 0 if owner in self.full else self.access.limits_of(owner).running

    def _over_disk(self, owner: str | None, most: float | None) -> str | None:
        if owner is None or most is None or (used := self.disk_of(owner)) < most:
            return None
        return (
            f"your runs and files take {used:.3g} GiB, and {most:g} GiB are allowed; remove files, or ask whoever runs "
            "the service to remove runs"
        )

    def disk_of(self, owner: str | None) -> float:
        """GiB of the run folders of an owner's jobs, and of uploaded files."""
        if owner is None:
            return 0.0
        with queue.opened(self.path) as table:
            folders = [Path(folder) for folder in queue.folders_of(table, owner)]
        folders = [folder for folder in folders if folder.resolve().parent == self.outputs.resolve()]
        return size_of([*folders, self.uploads.folder(owner)]) / 2**30


async def _service(request: Request) -> Service:
    return request.app.state.service  # type: ignore[no-any-return]


ServiceDep = Annotated[Service, Depends(_service)]
