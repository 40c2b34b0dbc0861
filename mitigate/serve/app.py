"""HTTP: the service's requests and answers. shapes defines the content of a request, guard who may send it; a fault
is answered by {"faults": [sentences]} with a status of 4xx.

Made by a recipe, which knows the configuration. Nothing here runs what a client sends: a submission becomes a row of
the queue."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, StreamingResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from mitigate import __version__
from mitigate.errors import MitigateError, one_of
from mitigate.serve import queue
from mitigate.serve import schemas as shapes
from mitigate.serve.access import COOKIE, Caller
from mitigate.serve.allowed_jobs import GROUPS, RECIPES, RefusedError, allowed
from mitigate.serve.batching import Asked, Batcher, BusyError
from mitigate.serve.dispatcher import Dispatcher
from mitigate.serve.engines.local import Local
from mitigate.serve.page import page
from mitigate.serve.people import record, session_of
from mitigate.serve.progress import shown
from mitigate.serve.queue import FullError, Job
from mitigate.serve.request_checks import Guard, caller_of
from mitigate.serve.results import UnknownError, differing, summary
from mitigate.serve.service import Service
from mitigate.serve.uploads import TakenError
from mitigate.serve.webhooks import Webhooks
from mitigate.serve.worker import last_lines, log_of
from mitigate.settings import settings

Answer = TypeVar("Answer")
LOOK = 1.0  # seconds between two looks at a job that is watched
MOST_STREAMS = 100  # of events at once
MOST_THREADS = 4  # that answer questions; each batch takes 100 MiB while it is searched
SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
"""The content policy of the pages of runs, which show generated text: they can send no request, to this service or any
other. The page of the service alone may frame them."""
FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": shapes.Faults, "description": text}
    for status, text in {
        400: "the body is no JSON",
        401: "a token is needed",
        403: "another origin, or somebody else's job",
        404: "not there",
        409: "another file has the name",
        408: "the body came too slowly",
        413: "the body is too long",
        421: "another host",
        422: "not allowed; all faults",
        429: "the queue is full, or a person's limit is reached",
        503: "too many ask, or the queue's disk is full or busy",
    }.items()
}

ITS_SCHEMA = {"$ref": f"#/components/schemas/{shapes.Faults.__name__}"}
FAULTS_OF_STREAM: dict[int | str, dict[str, Any]] = {  # which are JSON although the stream is not
    status: {"description": facts["description"], "content": {"application/json": {"schema": ITS_SCHEMA}}}
    for status, facts in FAULTS.items()
}
A_FILE = {"schema": {"type": "string", "format": "binary"}}


def make_app(service: Service, *, starts_jobs: bool = True) -> Guard:
    """The application, behind its guard. starts_jobs: whether it has a dispatcher."""

    def ended(job: Job) -> str:
        return shown(job, None, service.outputs).model_dump_json()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        threads = min(MOST_THREADS, len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(threads, "models") as pool, ThreadPoolExecutor(1, "composing") as composing:
            models = service.models
            app.state.generate = Batcher(models.generate, pool, most=service.batch, threads=threads)
            app.state.label = Batcher(models.label, pool, most=service.batch, threads=threads)
            app.state.streams = 0
            app.state.composing = composing
            service.uploads.clear()
            engine = service.engine or Local(service.path)
            dispatcher = Dispatcher(service.path, service.slots, engine, most_running=service.access.most_running)
            webhooks = Webhooks(service.path, service.webhooks, ended, service.webhook_secret)
            if starts_jobs:
                dispatcher.start()
                webhooks.start()
            tending = asyncio.create_task(_tend(service, pool))
            async with tools.run() if tools else nullcontext():
                yield
            tending.cancel()
            dispatcher.stop()
            webhooks.stop()

    app = FastAPI(
        title="mitigate",
        version=__version__,
        description="Jobs that mitigate and measure harms, their results, and questions to generators and scorers.",
        lifespan=life,
        docs_url=None,  # they load scripts of other hosts
        redoc_url=None,
        responses=FAULTS,
    )
    app.state.service = service
    _add_faults(app)
    _add_jobs(app, service)
    _add_files(app, service)
    _add_results(app, service)
    _add_questions(app, service)
    _add_page(app, service)
    tools = None
    if service.mcp:
        from mitigate.serve import mcp_tools  # a package that only this needs

        tools = mcp_tools.mount(app)
    return Guard(app, set(map(str.lower, service.hosts)), service.access, service.largest_upload)


async def _tend(service: Service, pool: ThreadPoolExecutor) -> None:
    """Release models that nobody uses, and stop jobs of people who are over their disk limit."""
    while True:
        await asyncio.sleep(min(10.0, service.models.idle))
        await asyncio.get_running_loop().run_in_executor(pool, service.models.release)
        try:
            await run_in_threadpool(service.stop_over_disk)
        except sqlite3.OperationalError as error:
            sys.stderr.write(f"mitigate: disk limits cannot be checked now: {error}\n")


def _add_faults(app: FastAPI) -> None:
    statuses: dict[type[Exception], int] = {
        RefusedError: 422,
        FullError: 429,
        BusyError: 503,
        UnknownError: 404,
        TakenError: 409,
        MitigateError: 422,
    }

    async def told(_: Request, error: Exception) -> Response:
        status = next(status for kind, status in statuses.items() if isinstance(error, kind))
        faults = error.faults if isinstance(error, RefusedError) else [str(error)]
        return JSONResponse({"faults": faults}, status, {"retry-after": "5"} if status in (429, 503) else None)

    async def not_now(_: Request, error: Exception) -> Response:
        faults = [f"the queue cannot be used now ({error}); ask again later"]
        return JSONResponse({"faults": faults}, 503, {"retry-after": "5"})

    async def not_valid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # whose input is not repeated: it may be anything
        faults = [f"{'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}" for fault in error.errors()[:20]]
        return JSONResponse({"faults": [ascii(fault)[1:-1] for fault in faults]}, 422)

    async def not_there(request: Request, error: Exception) -> Response:
        assert isinstance(error, AnyHTTPException)
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        if error.status_code == 405:  # the router names the methods of the first route of a path alone
            routes = [route for route in app.routes if isinstance(route, Route)]
            alike = [route.methods or () for route in routes if route.matches(request.scope)[0] != Match.NONE]
            headers["allow"] = ", ".join(sorted({method for methods in alike for method in methods}))
        return JSONResponse({"faults": [str(error.detail)]}, error.status_code, headers)

    for kind in statuses:
        app.add_exception_handler(kind, told)
    app.add_exception_handler(sqlite3.OperationalError, not_now)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(AnyHTTPException, not_there)


JobNumber = Annotated[int, InPath(ge=1, le=2**31)]
By = Annotated[Caller, Depends(caller_of)]


def _add_jobs(app: FastAPI, service: Service) -> None:
    def known(number: JobNumber) -> Job:
        with queue.opened(service.path) as opened:
            return _there(queue.read(opened, number))

    async def stream() -> AsyncIterator[None]:
        if app.state.streams >= MOST_STREAMS:
            raise BusyError(f"{MOST_STREAMS} watch already; ask GET /jobs/{{number}} instead")
        app.state.streams += 1
        try:
            yield
        finally:
            app.state.streams -= 1

    def is_let_in(request: Request) -> bool:
        """Return whether the sender of a request could still send it."""
        try:
            return service.access.caller(request.headers, request.client.host if request.client else None) is not None
        except MitigateError:
            return False

    def view(job: Job) -> shapes.JobShown:
        with queue.opened(service.path) as opened:
            return shown(job, queue.places(opened).get(job.id), service.outputs)

    @app.post("/jobs", status_code=201)
    async def submit_job(submission: shapes.Submission, caller: By) -> shapes.JobShown:
        """Submit a job. It is checked as the command line checks it, and the answer names all faults."""
        recipe, overrides = submission.recipe, submission.overrides
        own = service.uploads.folder(caller.name)
        arguments = await _composed(app, service.rules.arguments, recipe, overrides, own)
        how: dict[str, Any] = {"label": submission.label, "priority": submission.priority, "caller": caller}
        return await run_in_threadpool(
            lambda: view(service.submit(recipe, overrides, arguments, submission.submitter, **how))
        )

    @app.get("/jobs")
    def list_jobs(
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
        state: queue.State | None = None,
    ) -> shapes.Jobs:
        """The last jobs, the newest first."""
        with queue.opened(service.path) as opened:
            jobs, places = queue.latest(opened, most, state), queue.places(opened)
        return shapes.Jobs(jobs=[shown(job, places.get(job.id), service.outputs) for job in jobs])

    @app.get("/jobs/{number}")
    def get_job(job: Annotated[Job, Depends(known)]) -> shapes.JobWithLog:
        """One job, with the last lines of its output."""
        return shapes.JobWithLog(**view(job).model_dump(), log=last_lines(log_of(service.place, job)))

    @app.get("/jobs/{number}/events", response_class=EventSourceResponse, responses=FAULTS_OF_STREAM)
    async def watch_job(
        request: Request, job: Annotated[Job, Depends(known)], _: Annotated[None, Depends(stream)]
    ) -> AsyncIterator[ServerSentEvent]:
        """The job as JSON each time that it changes, until it has ended or the token is revoked: a stream of
        server-sent events."""
        last = None
        while await run_in_threadpool(is_let_in, request):
            now = await run_in_threadpool(lambda: view(known(job.id)))
            if now != last:
                yield ServerSentEvent(data=now, event="job")
            if now.ended is not None:
                return
            last = now
            await asyncio.sleep(LOOK)

    @app.delete("/jobs/{number}")
    def cancel_job(job: Annotated[Job, Depends(known)], caller: By) -> shapes.JobShown:
        """Cancel a job: a queued one at once, a running one as by Ctrl-C. One that has ended stays as it is. Only its
        owner and admins can."""
        if not caller.may_change(job.owner):
            owner = job.owner or "the common token"
            raise HTTPException(403, f"job {job.id} belongs to {owner}; its owner or an admin can cancel it")
        with queue.opened(service.path) as opened:
            found = _there(queue.cancel(opened, job.id))
        record(service.place, caller.name, "cancel", job=job.id, owner=job.owner)
        return view(found)

    @app.get("/me")
    def get_me(caller: By) -> shapes.Me:
        """The sender of this request, with limits and what is used of them."""
        with queue.opened(service.path) as opened:
            states: tuple[queue.State, ...] = ("running", "queued")
            used: dict[str, Any] = {state: queue.count_of(opened, caller.name, state) for state in states}
        most: dict[str, Any] = {f"most_{name}": value for name, value in vars(caller.limits).items()}
        facts: dict[str, Any] = {"name": caller.name, "is_admin": caller.is_admin, "priority": caller.priority}
        disk = None if caller.limits.disk is None else service.disk_of(caller.name)
        return shapes.Me(**facts, **used, **most, disk=disk)

    @app.get("/options")
    def get_options() -> dict[str, Any]:
        """The allowed submissions: recipes, options of groups, settings with their types and meaning, files'
        folders."""
        known_settings = [
            {"setting": key, "takes": takes, "allowed": settings()[key].allowed, "meaning": settings()[key].meaning}
            for key, takes in allowed().items()
        ]
        roots = [root.name for root in service.rules.roots]
        groups, defaults = service.rules.options(), service.rules.defaults()
        return {
            **{"recipes": list(RECIPES), "groups": groups, "defaults": defaults},
            **{"settings": known_settings, "roots": roots},
        }

    @app.get("/form")
    async def get_form(
        recipe: Annotated[str, Query(max_length=40)] = "mitigate",
        option: Annotated[list[str], Query(max_length=len(GROUPS))] = [],  # noqa: B006  (FastAPI copies it)
    ) -> dict[str, Any]:
        """The settings that a submission can have with these options (each GROUP=NAME), with their defaults."""
        chosen = dict(part.partition("=")[::2] for part in option)
        if wrong := [group for group in chosen if group not in GROUPS]:
            raise RefusedError([str(one_of("group", group[:60], GROUPS)) for group in wrong])
        return await _composed(app, service.rules.form, recipe, chosen)

    @app.get("/health")
    def get_health() -> shapes.Health:
        """Report that the service answers, and the numbers of jobs that wait and run."""
        with queue.opened(service.path) as opened:
            return shapes.Health(queued=queue.count(opened, "queued"), running=queue.count(opened, "running"))


def _add_files(app: FastAPI, service: Service) -> None:
    uploads = service.uploads
    body = {"requestBody": {"required": True, "content": {"application/octet-stream": A_FILE}}}

    @app.get("/files")
    def list_files(caller: By) -> shapes.Files:
        """Your uploaded files, which settings such as data.path may name."""
        return shapes.Files(files=[shapes.File(**facts) for facts in uploads.files(caller.name)])

    @app.put("/files/{name:path}", status_code=201, openapi_extra=body)
    async def put_file(name: str, request: Request, caller: By) -> shapes.Files:
        """Upload a text table: CSV, TSV, JSON lines or plain text in UTF-8, also packed with gzip."""
        await run_in_threadpool(service.check_disk, caller)
        upload, size = await run_in_threadpool(uploads.begin, caller.name, name), 0
        try:
            async for piece in request.stream():
                size += upload.file.write(piece)
            upload.file.flush()
            await run_in_threadpool(service.check_disk, caller)
            await run_in_threadpool(upload.keep)
        except ClientDisconnect as error:
            raise HTTPException(400, "the upload was cut off; send it again") from error
        finally:
            upload.discard()
        record(service.place, caller.name, "upload", file=name, bytes=size)
        return list_files(caller)

    @app.delete("/files/{name:path}")
    def remove_file(name: str, caller: By) -> shapes.Files:
        """Remove a file of yours. A job that still has to read it fails."""
        if not uploads.remove(caller.name, name):
            raise HTTPException(404, "you have no such file; the list of files has all")
        record(service.place, caller.name, "remove file", file=name)
        return list_files(caller)


def _add_results(app: FastAPI, service: Service) -> None:
    results = service.results

    @app.get("/runs")
    def list_runs() -> dict[str, Any]:
        """The finished runs, the latest first, each with the last job that had its folder."""
        with queue.opened(service.path) as opened:
            jobs = {Path(folder).name: facts for folder, facts in queue.by_folder(opened).items()}
        nobody = dict.fromkeys(("job", "owner", "label"))
        return {"runs": [summary(run) | jobs.get(run.folder.name, nobody) for run in results.runs()]}

    @app.get("/differences")
    def differences(run: Annotated[list[str], Query(min_length=2, max_length=shapes.MOST_COMPARED)]) -> dict[str, Any]:
        """List the settings that decide a run's result and are not the same in all these runs."""
        return {"settings": differing([results.run(name) for name in run])}

    @app.get("/runs/{name}")
    def get_run(name: str) -> dict[str, Any]:
        """One run: its settings, all its figures, and its files."""
        run = results.run(name)
        return {**summary(run), "settings": run.settings, "metrics": run.metrics, "files": list(run.files)}

    zipped: dict[int | str, dict[str, Any]] = {
        200: {"description": "a zip file", "content": {"application/zip": A_FILE}}
    }
    as_stored: dict[int | str, dict[str, Any]] = {
        200: {"description": "the file", "content": {"text/html": A_FILE, "application/octet-stream": A_FILE}}
    }

    @app.get("/runs/{name}/model.zip", response_class=StreamingResponse, responses=zipped)
    def get_model(name: str) -> StreamingResponse:
        """The model of a run, in the Hugging Face layout, as a zip file."""
        plain = name.encode("ascii", "replace").decode().replace("?", "_")  # curl reads no other
        disposition = f"attachment; filename=\"{plain}-model.zip\"; filename*=utf-8''{quote(name)}-model.zip"
        return StreamingResponse(
            results.archive(name), media_type="application/zip", headers={"content-disposition": disposition}
        )

    @app.get("/runs/{name}/files/{path:path}", response_class=FileResponse, responses=as_stored)
    def get_file(name: str, path: str) -> FileResponse:
        """A file of a run: a page in a sandbox, anything else as a download."""
        file = results.file(name, path)
        if file.suffix == ".html":
            headers = {"content-security-policy": SANDBOX, "x-frame-options": "SAMEORIGIN"}
            return FileResponse(file, media_type="text/html", headers=headers)
        return FileResponse(file, media_type="application/octet-stream", filename=file.name)

    @app.post("/compare", status_code=201)
    async def compare(comparison: shapes.Comparison, caller: By) -> shapes.JobShown:
        """Compare finished runs: a job, whose run folder has the page of the comparison."""
        values = await run_in_threadpool(compared, comparison)
        arguments = await _composed(app, service.rules.checked, ["recipe=compare"], values)
        return await run_in_threadpool(submit_comparison, comparison, arguments, caller)

    def compared(comparison: shapes.Comparison) -> dict[str, Any]:
        """The settings of a comparison. Raises RefusedError for runs that cannot be compared."""
        runs = [results.run(name) for name in dict.fromkeys(comparison.runs)]
        recipes = {run.recipe for run in runs}
        if len(recipes) > 1 or len(runs) < 2:
            raise RefusedError(
                [f"two runs or more of one recipe are compared, not {len(runs)} of {', '.join(recipes)}"]
            )
        values: dict[str, Any] = {"compare.runs": [str(run.folder) for run in runs]}
        if comparison.baseline is not None:
            values["compare.baseline"] = str(results.run(comparison.baseline).folder)
        return values

    def submit_comparison(comparison: shapes.Comparison, arguments: list[str], caller: Caller) -> shapes.JobShown:
        given = comparison.model_dump(exclude={"submitter", "label"})
        how: dict[str, Any] = {"caller": caller, "label": comparison.label}
        job = service.submit("compare", given, arguments, comparison.submitter, **how)
        with queue.opened(service.path) as opened:
            return shown(job, queue.places(opened).get(job.id), service.outputs)


def _add_questions(app: FastAPI, service: Service) -> None:
    @app.post("/generate")
    async def generate(question: shapes.Question) -> shapes.Answers:
        """The best tails of one run or two for a head and a relation, with their labels."""
        runs = [await run_in_threadpool(service.results.run, name) for name in question.runs]
        asked = [Asked(run.folder, question.head, question.relation) for run in runs]
        return shapes.Answers(answers=await app.state.generate.ask(asked))

    @app.post("/label")
    async def label(texts: shapes.Texts) -> shapes.Labels:
        """The labels of texts, and the words that drove them."""
        return shapes.Labels(texts=await app.state.label.ask(texts.texts))

    @app.get("/relations")
    def relations(run: Annotated[list[str], Query(min_length=1, max_length=2)]) -> dict[str, list[str]]:
        """List the relations and the targets that all these runs can be asked about."""
        return service.models.known([service.results.run(name) for name in run])


def _add_page(app: FastAPI, service: Service) -> None:
    access = service.access

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def get_page() -> HTMLResponse:
        html, policy = page(needs_token=not access.is_open)
        return HTMLResponse(html, headers={"content-security-policy": policy})

    @app.post("/session", status_code=204, response_class=Response)
    def open_session(session: shapes.Session, request: Request) -> Response:
        """Show the token once; the browser then keeps a cookie in its place."""
        answer = Response(status_code=204)
        if access.is_open:
            return answer
        caller = access.of_token(session.token)
        if caller is None:
            raise HTTPException(401, "this is not the token of anybody; ask whoever runs the service for yours")
        is_encrypted = request.headers.get("origin", "").startswith("https:")  # by a proxy
        how: dict[str, Any] = {"httponly": True, "samesite": "strict", "path": "/", "secure": is_encrypted}
        answer.set_cookie(COOKIE, session_of(session.token), **how)
        record(service.place, caller.name, "session")
        return answer

    @app.delete("/session", status_code=204, response_class=Response)
    def close_session() -> Response:
        """Have the browser forget the cookie."""
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, path="/")
        return answer


async def _composed(app: FastAPI, check: Callable[..., Answer], *asked: Any) -> Answer:
    """The arguments of a job, or its form. Submissions wait for each other on a thread of their own, on which Hydra
    composes: those that answer other requests stay free."""
    return await asyncio.get_running_loop().run_in_executor(app.state.composing, check, *asked)


def _there(job: Job | None) -> Job:
    if job is None:
        raise HTTPException(404, "there is no such job; the list of jobs has all")
    return job
