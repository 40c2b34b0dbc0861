"""The HTTP application: people, jobs, uploaded files, run folders, and the page. Nothing here runs what a client sends:
a submission becomes a row of the queue.

Pages of other sites cannot use the service: browsers name the origin of a request (Origin, Sec-Fetch-Site), and a host
name that was made to point here is not in `hosts`. A refusal is a status of 4xx or 5xx with {"faults": [sentences]}."""

import codecs
import os
import secrets
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from mitigate.errors import MitigateError
from mitigate.files import VERSION, read_json
from mitigate.progress import NAME as STATUS
from mitigate.serve.queue import PERSON, Job, Queue, digest
from mitigate.serve.rules import RECIPES, Rules, allowed, run_of
from mitigate.serve.worker import last_lines, log_of, start_jobs
from mitigate.settings import WrongError, settings

HERE = Path(__file__).parent
LARGEST_BODY = 1 << 20  # bytes
LARGEST_FILE = 50 << 20  # bytes
MOST_CONNECTIONS = 500
ENDINGS = (".csv", ".tsv", ".jsonl", ".txt")  # of uploaded files
FILE = "the name of a file that you uploaded, or of one in the service's folders"
COOKIE = "mitigate_token"  # which the page sets
CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'"
SANDBOX = (
    f"sandbox allow-scripts; {CLOSED}; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'self'"
)
"""The content policy of the pages of runs, which show generated text: they can send no request and read no cookie."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": f"{CLOSED}; frame-ancestors 'none'",
}


class Submission(BaseModel):
    """A job to be run. overrides: options of groups, and settings by their dotted names, of GET /options."""

    model_config = ConfigDict(extra="forbid")
    recipe: str = Field("mitigate", max_length=40)
    overrides: dict[str, Any] = Field(default_factory=dict, max_length=100)


Number = Annotated[int, Field(ge=1, le=2**31)]


@dataclass
class Service:
    """The answers to requests (make_app). command: what a job's arguments follow; hosts: as browsers name the service,
    such as "127.0.0.1:8765"; sbatch: options of SLURM, None for this machine; slots: jobs at once."""

    queue: Queue
    rules: Rules
    command: Sequence[str]
    hosts: Sequence[str]
    slots: int = 1
    threads: int | None = None
    sbatch: Sequence[str] | None = None

    def files(self, caller: str | None) -> Path:
        """The folder of a caller's uploaded files; one for all as long as nobody has a token."""
        return self.queue.path.parent / "files" / (caller or "_common")  # no name of a person

    def caller(self, request: Request) -> str | None:
        """The name of the person whose token a request carries; None where no token was ever made. Raises HTTPException
        for a request without a valid token."""
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
        cookies = [unquote(value) for name, _, value in pairs if name == COOKIE]
        names = {hashed: name for name, hashed in self.queue.people().items()}  # a lookup by hash leaks no token
        for token in [bearer.strip()] if scheme.lower() == "bearer" else cookies:
            if (hashed := digest(token)) in names:
                return names[hashed]
        if names:
            raise HTTPException(401, "a valid token is needed: Authorization: Bearer TOKEN")
        return None

    def page(self) -> HTMLResponse:
        """The page, which holds no data and needs no token: one HTML file without outside assets, in the look of the
        reports. Only its own script runs, and sends requests to this service only."""
        nonce = secrets.token_urlsafe(16)
        loader = FileSystemLoader([HERE, HERE.parent / "report"])  # of the second its style
        made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        html = made.get_template("service.html.jinja").render(nonce=nonce)
        policy = (
            f"{CLOSED}; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; frame-src 'self'; "
            "img-src data:; frame-ancestors 'none'"
        )
        return HTMLResponse(html, headers={"content-security-policy": policy})

    def options(self, request: Request) -> dict[str, Any]:
        """The allowed submissions: recipes, options of groups, settings with their values and meaning; and the name of
        who asks."""
        known = [settings()[key] for key in allowed()]
        rows = [
            {"setting": one.key, "allowed": FILE if one.serve == "file" else one.allowed, "meaning": one.meaning}
            for one in known
        ]
        return {"name": request.state.caller, "recipes": RECIPES, "groups": self.rules.options(), "settings": rows}

    def submit(self, submission: Submission, request: Request) -> dict[str, Any]:
        """Submit a job. It is checked as the command line checks it, and the answer names all faults."""
        recipe, overrides, caller = submission.recipe, submission.overrides, request.state.caller
        arguments = self.rules.arguments(recipe, overrides, self.files(caller))
        return self.shown(self.queue.submit(recipe, overrides, [*self.command, *arguments], caller))

    def jobs(self, most: Number = 100) -> dict[str, Any]:
        """The last jobs, the newest first."""
        return {"jobs": [self.shown(job) for job in self.queue.latest(most)]}

    def job(self, number: Number) -> dict[str, Any]:
        """One job, with the last lines of its output."""
        job = self._job(number)
        return {**self.shown(job), "log": last_lines(log_of(self.queue, job))}

    def cancel(self, number: Number, request: Request) -> dict[str, Any]:
        """Cancel a job of yours or of nobody: a queued one at once, a running one as by Ctrl-C."""
        owner = self._job(number).owner
        if owner not in (None, request.state.caller):
            raise HTTPException(403, f"job {number} belongs to {owner}; only its owner can cancel it")
        self.queue.cancel(number)
        return self.shown(self._job(number))

    def list_files(self, request: Request) -> dict[str, Any]:
        """Your uploaded files, which settings such as data.path may name."""
        paths = [path for path in sorted(self.files(request.state.caller).glob("[!.]*")) if not path.is_symlink()]
        return {"files": [{"name": path.name, "bytes": path.stat().st_size} for path in paths]}

    async def upload(self, name: str, request: Request) -> dict[str, Any]:
        """Upload a text table: CSV, TSV, JSON lines or plain text in UTF-8. A name is a name in the sender's folder and
        never a path; no file replaces another."""
        if not PERSON.fullmatch(name) or not name.endswith(ENDINGS):
            raise MitigateError(
                "a file's name has at most 50 letters, digits, dots, dashes and underscores, a letter or digit first, "
                f"and ends in {', '.join(ENDINGS)}; unpack archives, and save spreadsheets as CSV"
            )
        folder = self.files(request.state.caller)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        part, size, decoder = folder / f".{secrets.token_hex(8)}.part", 0, codecs.getincrementaldecoder("utf-8")()
        try:
            with part.open("wb") as file:
                async for piece in request.stream():
                    size += file.write(piece)
                    if "\0" in decoder.decode(piece):
                        raise MitigateError(f"{name} is not a text: it holds zero bytes")
            decoder.decode(b"", final=True)
            if not size:
                raise MitigateError(f"{name} is empty")
            os.link(part, folder / name)  # unlike a renaming, it replaces nothing
        except UnicodeDecodeError as error:
            raise MitigateError(f"{name} is not a text in UTF-8; save it as CSV, TSV or JSON lines in UTF-8") from error
        except FileExistsError as error:
            raise HTTPException(409, f"you have a file {name} already; remove it or choose another name") from error
        finally:
            part.unlink(missing_ok=True)
        return self.list_files(request)

    def remove(self, name: str, request: Request) -> dict[str, Any]:
        """Remove a file of yours. A job that still has to read it fails."""
        path = self.files(request.state.caller) / name
        if not PERSON.fullmatch(name) or not path.is_file():
            raise HTTPException(404, "you have no file of that name")
        path.unlink()
        return self.list_files(request)

    def run(self, name: str) -> dict[str, Any]:
        """The files of a run; metrics.json has its figures."""
        if (folder := run_of(self.rules.outputs, name)) is None:
            raise HTTPException(404, "there is no finished run of that name")
        return {"name": name, "files": files_of(folder)}

    def file(self, name: str, path: str) -> FileResponse:
        """A file of a run: a page in a sandbox, anything else as a download."""
        if path not in self.run(name)["files"]:
            raise HTTPException(404, "the run has no file of that name")
        place = self.rules.outputs / name / path
        if place.suffix == ".html":
            return FileResponse(place, media_type="text/html", headers={"content-security-policy": SANDBOX})
        return FileResponse(place, media_type="application/octet-stream", filename=place.name)

    def _job(self, number: int) -> Job:
        if (job := self.queue.read(number)) is None:
            raise HTTPException(404, "there is no job of that number")
        return job

    def shown(self, job: Job) -> dict[str, Any]:
        """A job as people see it: its row, its place in the queue or its progress, its run and that one's report."""
        folder = None if job.folder is None else Path(job.folder)
        run = folder if folder and folder.resolve().parent == self.rules.outputs.resolve() else None
        view = {name: value for name, value in vars(job).items() if name not in ("command", "cancel", "folder")}
        view["place"] = self.queue.place(job) if job.state == "queued" else None
        status = (read_json(run / STATUS) if run and job.state == "running" else None) or {}
        is_current = status.get("updated", 0) >= (job.started or 0)  # and not of an earlier job
        for name in ("stage", "step", "share", "seconds_left"):
            view[name] = status.get(name) if is_current else None
        view["run"] = run.name if run else None
        pages = [name for name in files_of(run) if name.endswith(".html")] if run and job.state == "done" else []
        view["report"] = min(pages, key=lambda name: name != "report.html", default=None)
        return view


def make_app(service: Service) -> FastAPI:
    """The application; while it runs, a thread starts jobs."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        given = (service.queue, service.slots, service.threads, service.sbatch, stop)
        threading.Thread(target=start_jobs, args=given, name="starter", daemon=True).start()
        yield
        stop.set()

    app = FastAPI(title="mitigate", version=VERSION, lifespan=life, docs_url=None, redoc_url=None)

    @app.middleware("http")
    async def guard(request: Request, answer: Any) -> Response:
        try:
            await run_in_threadpool(check_request, service, request)
            response = await answer(request)
        except (HTTPException, sqlite3.Error) as error:  # of the check: the handlers below see errors of answers alone
            response = refusal(error)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response  # type: ignore[no-any-return]

    for kind in (HTTPException, RequestValidationError, MitigateError, sqlite3.Error):
        app.add_exception_handler(kind, lambda _, error: refusal(error))

    app.get("/")(service.page)
    app.get("/options")(service.options)
    app.post("/jobs", status_code=201)(service.submit)
    app.get("/jobs")(service.jobs)
    app.get("/jobs/{number}")(service.job)
    app.delete("/jobs/{number}")(service.cancel)
    app.get("/files")(service.list_files)
    app.put("/files/{name:path}", status_code=201)(service.upload)
    app.delete("/files/{name:path}")(service.remove)
    app.get("/runs/{name}")(service.run)
    app.get("/runs/{name}/files/{path:path}")(service.file)
    return app


def check_request(service: Service, request: Request) -> None:
    """Check where a request comes from, its length and its token, and record its caller. Raises HTTPException."""
    headers, is_page = request.headers, request.url.path == "/"  # which holds nothing, and to which a link may lead
    if headers.get("host", "").lower() not in service.hosts:
        raise HTTPException(421, "the Host header is not a name of this service; its operator adds it to serve.hosts")
    origins = {"", *(f"{scheme}://{host}" for scheme in ("http", "https") for host in service.hosts)}
    is_embedded = headers.get("sec-fetch-site") == "cross-site" and not is_page
    if is_embedded or headers.get("origin", "").lower() not in origins:
        raise HTTPException(403, "a page of another origin may not send requests to this service")
    length = headers.get("content-length", "0")
    most = LARGEST_FILE if request.method == "PUT" else LARGEST_BODY
    if "transfer-encoding" in headers or not length.isdigit():
        raise HTTPException(411, "the length of the body must be given (Content-Length)")
    if len(length) > 15 or int(length) > most:
        raise HTTPException(413, f"the body is too long; allowed: {most:,} bytes")
    request.state.caller = None if is_page else service.caller(request)


def refusal(error: Exception) -> Response:
    """The answer to a refused request. Input that is not valid is not repeated: it may be anything."""
    status, faults = 503 if isinstance(error, sqlite3.Error) else 422, [str(error)]
    if isinstance(error, HTTPException):
        status, faults = error.status_code, [error.detail]
    elif isinstance(error, WrongError):
        faults = list(error.faults.values())
    elif isinstance(error, RequestValidationError):
        faults = [ascii(f"{'.'.join(map(str, one['loc']))[:200]}: {one['msg']}")[1:-1] for one in error.errors()[:20]]
    return JSONResponse({"faults": faults}, status)


def files_of(run: Path) -> list[str]:
    """The files that a run's manifest names and that lie in its folder. A run folder may come from anybody, and its
    manifest name anything."""
    files, folder = [], run.resolve()
    for name in (read_json(run / "manifest.json") or {}).get("files") or ():
        with suppress(OSError, ValueError):  # a name that is too long, or has a zero byte
            place = (run / str(name)).resolve()
            if place.is_relative_to(folder) and place.is_file():
                files.append(str(name))
    return files


def configured(app: FastAPI) -> uvicorn.Config:
    """The settings of the server of the application."""
    quiet: Any = {"server_header": False, "access_log": False, "log_level": "warning", "ws": "none"}
    limits: Any = {"limit_concurrency": MOST_CONNECTIONS, "timeout_graceful_shutdown": 5, "proxy_headers": False}
    return uvicorn.Config(app, **quiet, **limits)


def serve(service: Service, listening: socket.socket) -> None:
    """Answer requests until Ctrl-C or a signal."""
    uvicorn.Server(configured(make_app(service))).run([listening])
