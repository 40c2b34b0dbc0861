"""Requests about jobs: what can be submitted; submit, list, watch and cancel. Nothing here runs what a client sends: a
submission becomes a row of the queue."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from mitigate.errors import MitigateError
from mitigate.serve import queue
from mitigate.serve import schemas as shapes
from mitigate.serve.allowed_jobs import GROUPS, RECIPES
from mitigate.serve.allowed_values import allowed
from mitigate.serve.batching import BusyError
from mitigate.serve.job_output import last_lines, log_of
from mitigate.serve.job_table import Job, State
from mitigate.serve.people import record
from mitigate.serve.refusals import FAULTS_OF_STREAM
from mitigate.serve.request_checks import CallerDep
from mitigate.serve.service import Service, ServiceDep
from mitigate.settings import settings

LOOK = 1.0  # seconds between two looks at a job that is watched
MOST_STREAMS = 100  # of events at once
router = APIRouter()


def job_of(number: Annotated[int, InPath(ge=1, le=2**31)], service: ServiceDep) -> Job:
    """The job of that number. Raises HTTPException where there is none."""
    with queue.opened(service.path) as table:
        if (job := queue.read(table, number)) is None:
            raise HTTPException(404, "there is no such job; the list of jobs has all")
    return job


async def stream(request: Request) -> AsyncIterator[None]:
    """One of the streams that there may be at once. Raises BusyError where there are as many."""
    state = request.app.state
    if state.streams >= MOST_STREAMS:
        raise BusyError(f"{MOST_STREAMS} watch already; ask GET /jobs/{{number}} instead")
    state.streams += 1
    try:
        yield
    finally:
        state.streams -= 1


Option = Annotated[str, Field(json_schema_extra={"pattern": rf"^({'|'.join(GROUPS)})=\w+$"})]
JobDep = Annotated[Job, Depends(job_of)]


@router.post("/jobs", status_code=201)
async def submit_job(submission: shapes.Submission, service: ServiceDep, caller: CallerDep) -> shapes.JobShown:
    """Submit a job. It is checked as the command line checks it, and the answer names all faults."""
    recipe, overrides = submission.recipe, submission.overrides
    own = service.uploads.folder(caller.name)
    arguments = await service.composed(service.rules.arguments, recipe, overrides, own)
    given = (recipe, overrides, arguments, submission.submitter)
    how: dict[str, Any] = {"caller": caller, "label": submission.label, "priority": submission.priority}
    return await run_in_threadpool(lambda: service.shown(service.submit(*given, **how)))


@router.get("/jobs")
def list_jobs(
    service: ServiceDep, most: Annotated[int, Query(ge=1, le=1000)] = 100, state: State | None = None
) -> shapes.Jobs:
    """The last jobs, the newest first."""
    with queue.opened(service.path) as table:
        jobs, places = queue.latest(table, most, state), queue.places(table)
    return shapes.Jobs(jobs=[service.shown(job, places) for job in jobs])


@router.get("/jobs/{number}")
def get_job(job: JobDep, service: ServiceDep) -> shapes.JobWithLog:
    """One job, with the last lines of its output."""
    return shapes.JobWithLog(**service.shown(job).model_dump(), log=last_lines(log_of(service.place, job)))


@router.get("/jobs/{number}/events", response_class=EventSourceResponse, responses=FAULTS_OF_STREAM)
async def watch_job(
    request: Request, job: JobDep, service: ServiceDep, _: Annotated[None, Depends(stream)]
) -> AsyncIterator[ServerSentEvent]:
    """The job as JSON each time that it changes, until it has ended or the token is revoked: a stream of
    server-sent events."""
    last = None
    while await run_in_threadpool(_is_let_in, request, service):
        now = await run_in_threadpool(lambda: service.shown(job_of(job.id, service)))
        if now != last:
            yield ServerSentEvent(data=now, event="job")
        if now.ended is not None:
            return
        last = now
        await asyncio.sleep(LOOK)


def _is_let_in(request: Request, service: Service) -> bool:
    """Return whether the sender of a request could still send it."""
    try:
        return service.access.caller(request.headers, request.client.host if request.client else None) is not None
    except MitigateError:
        return False


@router.delete("/jobs/{number}")
def cancel_job(job: JobDep, service: ServiceDep, caller: CallerDep) -> shapes.JobShown:
    """Cancel a job: a queued one at once, a running one as by Ctrl-C. One that has ended stays as it is. Only its
    owner and admins can."""
    if not caller.may_change(job.owner):
        owner = job.owner or "the common token"
        raise HTTPException(403, f"job {job.id} belongs to {owner}; its owner or an admin can cancel it")
    with queue.opened(service.path) as table:
        queue.cancel(table, job.id)
    record(service.place, caller.name, "cancel", job=job.id, owner=job.owner)
    return service.shown(job_of(job.id, service))


@router.get("/options")
def get_options(service: ServiceDep) -> dict[str, Any]:
    """The allowed submissions: recipes, options of groups, settings with their types and meaning, files'
    folders."""
    rules = service.rules
    return {
        **{"recipes": list(RECIPES), "groups": rules.options(), "defaults": rules.defaults()},
        "settings": [
            {"setting": key, "takes": takes, "allowed": settings()[key].allowed, "meaning": settings()[key].meaning}
            for key, takes in allowed().items()
        ],
        "roots": [root.name for root in rules.roots],
    }


@router.get("/form")
async def get_form(
    service: ServiceDep,
    recipe: Annotated[str, Query(max_length=40, json_schema_extra={"enum": [*RECIPES]})] = "mitigate",
    option: Annotated[list[Option], Query(max_length=len(GROUPS))] = [],  # noqa: B006  (FastAPI copies it)
) -> dict[str, Any]:
    """The settings that a submission can have with these options (each GROUP=NAME), with their defaults."""
    return await service.composed(service.rules.form, recipe, dict(part.partition("=")[::2] for part in option))


@router.get("/health")
def get_health(service: ServiceDep) -> shapes.Health:
    """Report that the service answers, and the numbers of jobs that wait and run."""
    with queue.opened(service.path) as table:
        return shapes.Health(queued=queue.count(table, state="queued"), running=queue.count(table, state="running"))
