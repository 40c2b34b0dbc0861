"""The objects that the application works with: the queue, people, results, uploaded files, scorers."""

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from fastapi import Depends, Request
from pydantic import BaseModel, FiniteFloat, ValidationError

from mitigate.measure.agreement import CLASSES
from mitigate.measure.statements import label_names
from mitigate.progress import NAME
from mitigate.score.labeller import label_statements
from mitigate.serve import queue
from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.dispatcher import Engine
from mitigate.serve.people import Caller, People, record
from mitigate.serve.queue import Job
from mitigate.serve.results import Results
from mitigate.serve.uploads import Uploads
from mitigate.tasks.identity import IDENTITY
from mitigate.triples import OTHER, Scorer

WORDS = {**CLASSES, OTHER: "other"}
HIDDEN = ("command", "worker", "lease", "cancel", "deaths", "folder")  # of a job


class Status(BaseModel):
    """The state of a run, as its status.json has it."""

    updated: FiniteFloat = 0.0
    stage: str | None = None
    step: str | None = None
    share: FiniteFloat | None = None
    seconds_left: FiniteFloat | None = None
    done: list[str] = []


@dataclass
class Service:
    """The objects that the application works with. outputs: the folder of run folders; make_scorers: builds the scorers
    that label texts; command: what a job's arguments follow; engine: None where no job is started."""

    rules: Rules
    outputs: Path
    make_scorers: Callable[[], list[Scorer]]
    slots: int = 1
    most_queued: int = 200
    token: str | None = field(default=None, repr=False)
    largest_upload: int = 50 << 20  # bytes
    hosts: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=lambda: [sys.executable, "-m", "mitigate"])
    engine: Engine | None = None
    _labelling: threading.Lock = field(default_factory=threading.Lock, repr=False)

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
        return People(self.place, self.token)

    @cached_property
    def scorers(self) -> list[Scorer]:
        return self.make_scorers()

    def submit(self, recipe: str, overrides: dict[str, Any], arguments: list[str], caller: Caller) -> dict[str, Any]:
        """Add a job. Raises FullError."""
        with queue.opened(self.path) as table:
            command = [*self.command, *arguments]
            number = queue.submit(table, recipe, overrides, command, owner=caller.name, most=self.most_queued)
            job = queue.read(table, number)
        assert job
        record(self.place, caller.name, "submit", job=number, recipe=recipe)
        return self.shown(job)

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as people see it: its row of the queue, its place there, and how far its run is by the run's
        status.json. A run folder elsewhere than in `outputs` is not shown."""
        folder = None if job.folder is None else Path(job.folder)
        if folder is not None and folder.resolve().parent != self.outputs.resolve():
            folder = None
        status = Status() if folder is None or job.state != "running" else _status(folder, job)
        place = None
        if job.state == "queued":
            with queue.opened(self.path) as table:
                place = 1 + queue.count(table, "queued", job.id)
        return {
            **{name: value for name, value in vars(job).items() if name not in HIDDEN},
            **status.model_dump(exclude={"updated"}),
            **{"place": place, "run": folder.name if folder else None},
            "is_finished": job.state == "done" and folder is not None and (folder / "manifest.json").is_file(),
        }

    def labels(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The result for each text: the masked text that scorers read, their labels and strengths, and the words that
        drove them."""
        with self._labelling:
            found = label_statements(pl.DataFrame({"statement": texts}), self.scorers, explain=True)
        names = label_names(found)
        return [_labelled(row, names) for row in found.iter_rows(named=True)]


def _status(folder: Path, job: Job) -> Status:
    """The status that the run wrote, unless it is from before this job."""
    try:
        found = Status.model_validate_json((folder / NAME).read_bytes(), strict=True)
    except (OSError, ValidationError):
        return Status()
    return found if job.started is not None and found.updated >= job.started else Status()


def _labelled(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    labels = {
        name: {
            **{"label": row[name], "meaning": WORDS[row[name]], "words": row[f"{name}_words"] or ""},
            **{"strength": round(float(row[f"{name}_strength"]), 4), "depends_on": row.get(f"{name}{IDENTITY}") or ""},
        }
        for name in names
    }
    return {"text": row["statement"], "masked": row["masked"], "labels": labels}


async def _service(request: Request) -> Service:
    return request.app.state.service  # type: ignore[no-any-return]


ServiceDep = Annotated[Service, Depends(_service)]
