"""The requests that the service answers: about jobs, uploaded files, finished runs and questions; and the page. Nothing
here runs what a client sends: a submission becomes a row of the queue."""

import secrets
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.responses import FileResponse, HTMLResponse, StreamingResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field
from pydantic.functional_validators import AfterValidator
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from mitigate.serve import queue
from mitigate.serve.allowed_jobs import GROUPS, RECIPES, RefusedError, allowed
from mitigate.serve.people import record
from mitigate.serve.queue import Job, State
from mitigate.serve.request_checks import CallerDep
from mitigate.serve.results import summary
from mitigate.serve.service import ServiceDep
from mitigate.serve.worker import last_lines, log_of
from mitigate.settings import settings

HERE = Path(__file__).parent
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The content policy of the pages of runs, which show generated text: they can send no request, to this service or any
other, and read no cookie."""
router = APIRouter()


def _plain(text: str) -> str:
    if any(character < " " and character not in "\t\n" for character in text):
        raise ValueError("it holds a control character")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("it holds half of a character, a surrogate")
    return text


Text = Annotated[str, AfterValidator(_plain)]
RunName = Annotated[str, Field(min_length=1, max_length=255)]


class Strict(BaseModel):
    """A body that may have no further keys."""

    model_config = ConfigDict(extra="forbid")


class Submission(Strict):
    """A job to be run. overrides: options of groups, and settings by their dotted names, of GET /options."""

    recipe: str = Field("mitigate", max_length=40)
    overrides: dict[str, Any] = Field(default_factory=dict, max_length=100)


class Comparison(Strict):
    """Finished runs to be compared. baseline: one of them; None: those of the policy none."""

    runs: list[RunName] = Field(min_length=2, max_length=50)
    baseline: RunName | None = None


class Question(Strict):
    """A head and a relation, to one run or two."""

    head: Annotated[Text, Field(min_length=1, max_length=100)]
    relation: Annotated[Text, Field(min_length=1, max_length=60)]
    runs: list[RunName] = Field(min_length=1, max_length=2)


class Texts(Strict):
    """Texts to be labelled."""

    texts: list[Annotated[Text, Field(min_length=1, max_length=1000)]] = Field(min_length=1, max_length=64)


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def get_page(service: ServiceDep) -> HTMLResponse:
    """The page, which holds no data and needs no token: one HTML file without outside assets, in the look of the
    reports. Only its own script runs, and sends requests to this service only."""
    nonce = secrets.token_urlsafe(16)
    loader = FileSystemLoader([HERE, HERE.parent / "report"])  # of the second its style
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    html = made.get_template("service.html.jinja").render(nonce=nonce, groups=GROUPS)
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(html, headers={"content-security-policy": policy})


@router.get("/options")
def get_options(service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """The allowed submissions: recipes, options of groups, settings with their types and meaning, files' folders; and
    the name of who asks."""
    rules = service.rules
    return {
        **{"name": caller.name, "is_admin": caller.is_admin, "recipes": list(RECIPES), "groups": rules.options()},
        "settings": [
            {"setting": key, "takes": takes, "allowed": settings()[key].allowed, "meaning": settings()[key].meaning}
            for key, takes in allowed().items()
        ],
        "roots": [root.name for root in rules.roots],
    }


def job_of(number: Annotated[int, InPath(ge=1, le=2**31)], service: ServiceDep) -> Job:
    """The job of that number. Raises HTTPException where there is none."""
    with queue.opened(service.path) as table:
        if (job := queue.read(table, number)) is None:
            raise HTTPException(404, "there is no such job; the list of jobs has all")
    return job


JobDep = Annotated[Job, Depends(job_of)]


@router.post("/jobs", status_code=201)
def submit_job(submission: Submission, service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Submit a job. It is checked as the command line checks it, and the answer names all faults."""
    recipe, overrides = submission.recipe, submission.overrides
    arguments = service.rules.arguments(recipe, overrides, service.uploads.folder(caller.name))
    return service.submit(recipe, overrides, arguments, caller)


@router.get("/jobs")
def list_jobs(
    service: ServiceDep, most: Annotated[int, Query(ge=1, le=1000)] = 100, state: State | None = None
) -> dict[str, Any]:
    """The last jobs, the newest first."""
    with queue.opened(service.path) as table:
        jobs = queue.latest(table, most, state)
    return {"jobs": [service.shown(job) for job in jobs]}


@router.get("/jobs/{number}")
def get_job(job: JobDep, service: ServiceDep) -> dict[str, Any]:
    """One job, with the last lines of its output."""
    return {**service.shown(job), "log": last_lines(log_of(service.place, job))}


@router.delete("/jobs/{number}")
def cancel_job(job: JobDep, service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Cancel a job: a queued one at once, a running one as by Ctrl-C. One that has ended stays as it is. Only its
    owner and admins can."""
    if not caller.may_change(job.owner):
        owner = job.owner or "the common token"
        raise HTTPException(403, f"job {job.id} belongs to {owner}; its owner or an admin can cancel it")
    with queue.opened(service.path) as table:
        queue.cancel(table, job.id)
    record(service.place, caller.name, "cancel", job=job.id, owner=job.owner)
    return service.shown(job_of(job.id, service))


@router.get("/files")
def list_files(service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Your uploaded files, which settings such as data.path may name."""
    return {"files": service.uploads.files(caller.name)}


@router.put("/files/{name:path}", status_code=201)
async def put_file(name: str, request: Request, service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Upload a text table: CSV, TSV, JSON lines or plain text in UTF-8, also packed with gzip."""
    upload, size = await run_in_threadpool(service.uploads.begin, caller.name, name), 0
    try:
        async for piece in request.stream():
            size += upload.file.write(piece)
        await run_in_threadpool(upload.keep)
    except ClientDisconnect as error:
        raise HTTPException(400, "the upload was cut off; send it again") from error
    finally:
        upload.discard()
    record(service.place, caller.name, "upload", file=name, bytes=size)
    return list_files(service, caller)


@router.delete("/files/{name:path}")
def remove_file(name: str, service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Remove a file of yours. A job that still has to read it fails."""
    if not service.uploads.remove(caller.name, name):
        raise HTTPException(404, "you have no such file; the list of files has all")
    record(service.place, caller.name, "remove file", file=name)
    return list_files(service, caller)


@router.get("/runs")
def list_runs(service: ServiceDep) -> dict[str, Any]:
    """The finished runs, the latest first."""
    return {"runs": [summary(run) for run in service.results.runs()]}


@router.get("/runs/{name}")
def get_run(name: str, service: ServiceDep) -> dict[str, Any]:
    """One run: its settings, all its figures, and its files."""
    run = service.results.run(name)
    return {**summary(run), "settings": run.settings, "metrics": run.metrics, "files": list(run.files)}


@router.get("/runs/{name}/model.zip")
def get_model(name: str, service: ServiceDep) -> StreamingResponse:
    """The model of a run, in the Hugging Face layout, as a zip file."""
    content = service.results.archive(name)
    disposition = f"attachment; filename=\"model.zip\"; filename*=utf-8''{quote(name)}-model.zip"
    return StreamingResponse(content, media_type="application/zip", headers={"content-disposition": disposition})


@router.get("/runs/{name}/files/{path:path}")
def get_file(name: str, path: str, service: ServiceDep) -> FileResponse:
    """A file of a run: a page in a sandbox, anything else as a download."""
    file = service.results.file(name, path)
    if file.suffix == ".html":
        return FileResponse(file, media_type="text/html", headers={"content-security-policy": SANDBOX})
    return FileResponse(file, media_type="application/octet-stream", filename=file.name)


@router.post("/compare", status_code=201)
def compare(comparison: Comparison, service: ServiceDep, caller: CallerDep) -> dict[str, Any]:
    """Compare finished runs: a job, whose run folder has the page of the comparison."""
    runs = [service.results.run(name) for name in dict.fromkeys(comparison.runs)]
    recipes = {run.recipe for run in runs}
    if len(recipes) > 1 or len(runs) < 2:
        raise RefusedError([f"two runs or more of one recipe are compared, not {len(runs)} of {', '.join(recipes)}"])
    values: dict[str, Any] = {"compare.runs": [str(run.folder) for run in runs]}
    if comparison.baseline is not None:
        values["compare.baseline"] = str(service.results.run(comparison.baseline).folder)
    arguments = service.rules.checked(["recipe=compare"], values)
    return service.submit("compare", comparison.model_dump(), arguments, caller)


@router.post("/generate")
def generate(question: Question, service: ServiceDep) -> dict[str, Any]:
    """The best tails of one run or two for a head and a relation, with their labels."""
    return {"answers": [service.results.tails(name, question.head, question.relation) for name in question.runs]}


@router.post("/label")
def label(texts: Texts, service: ServiceDep) -> dict[str, Any]:
    """The labels of texts, and the words that drove them."""
    return {"texts": service.labels(texts.texts)}
