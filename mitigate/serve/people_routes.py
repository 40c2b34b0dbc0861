"""Requests about people: the sender and the limits, uploaded files, and the page with its session."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from mitigate.serve import queue
from mitigate.serve import schemas as shapes
from mitigate.serve.access import COOKIE
from mitigate.serve.page import page
from mitigate.serve.people import record, session_of
from mitigate.serve.request_checks import CallerDep
from mitigate.serve.service import ServiceDep
from mitigate.serve.uploads import DESCRIBED

UPLOAD = {"requestBody": {"required": True, "content": {"application/octet-stream": shapes.A_FILE}}}
router = APIRouter()
open_router = APIRouter()  # without a token


@router.get("/me")
def get_me(service: ServiceDep, caller: CallerDep) -> shapes.Me:
    """The sender of this request, with limits and what is used of them."""
    with queue.opened(service.path) as table:
        used = {state: queue.count(table, owner=caller.name, state=state) for state in ("running", "queued")}
    facts: dict[str, Any] = {"name": caller.name, "is_admin": caller.is_admin, "priority": caller.priority}
    facts |= used | {f"most_{name}": value for name, value in vars(caller.limits).items()}
    return shapes.Me(**facts, disk=None if caller.limits.disk is None else service.disk_of(caller.name))


@router.get("/files")
def list_files(service: ServiceDep, caller: CallerDep) -> shapes.Files:
    """Your uploaded files, which settings such as data.path may name."""
    return shapes.Files(files=[shapes.File(**facts) for facts in service.uploads.files(caller.name)])


@router.put("/files/{name:path}", status_code=201, openapi_extra=UPLOAD)
async def put_file(
    name: Annotated[str, InPath(json_schema_extra=DESCRIBED)], request: Request, service: ServiceDep, caller: CallerDep
) -> shapes.Files:
    """Upload a text table: CSV, TSV, JSON lines or plain text in UTF-8, also packed with gzip."""
    await run_in_threadpool(service.check_disk, caller)
    upload, size = await run_in_threadpool(service.uploads.begin, caller.name, name), 0
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
    return list_files(service, caller)


@router.delete("/files/{name:path}")
def remove_file(name: str, service: ServiceDep, caller: CallerDep) -> shapes.Files:
    """Remove a file of yours. A job that still has to read it fails."""
    if not service.uploads.remove(caller.name, name):
        raise HTTPException(404, "you have no such file; the list of files has all")
    record(service.place, caller.name, "remove file", file=name)
    return list_files(service, caller)


@open_router.get("/", response_class=HTMLResponse, include_in_schema=False)
def get_page(service: ServiceDep) -> HTMLResponse:
    """The page, which holds no data."""
    html, policy = page(needs_token=not service.access.is_open)
    return HTMLResponse(html, headers={"content-security-policy": policy})


@open_router.post("/session", status_code=204, response_class=Response)
def open_session(session: shapes.Session, request: Request, service: ServiceDep) -> Response:
    """Show the token once; the browser then keeps a cookie in its place."""
    answer = Response(status_code=204)
    if service.access.is_open:
        return answer
    caller = service.access.of_token(session.token)
    if caller is None:
        raise HTTPException(401, "this is not the token of anybody; ask whoever runs the service for yours")
    is_encrypted = request.headers.get("origin", "").startswith("https:")  # by a proxy
    how: dict[str, Any] = {"httponly": True, "samesite": "strict", "path": "/", "secure": is_encrypted}
    answer.set_cookie(COOKIE, session_of(session.token), **how)
    record(service.place, caller.name, "session")
    return answer


@open_router.delete("/session", status_code=204, response_class=Response)
def close_session() -> Response:
    """Have the browser forget the cookie."""
    answer = Response(status_code=204)
    answer.delete_cookie(COOKIE, path="/")
    return answer
