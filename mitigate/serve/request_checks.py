"""Checks before every request: its Host and its Origin are the service's, its sender is known, and its body is small
and arrives soon; the headers that every answer has; and refusals, with a status and {"faults": [sentences]}.

A page elsewhere cannot reach the service: a browser says where a request comes from (Origin, Sec-Fetch-Site), and a
name that was made to point here is not among the Hosts."""

import asyncio
import sqlite3
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mitigate.errors import MitigateError
from mitigate.serve.allowed_jobs import RefusedError
from mitigate.serve.people import Caller, People
from mitigate.serve.queue import FullError
from mitigate.serve.results import UnknownError
from mitigate.serve.uploads import TakenError

LARGEST_BODY = 1 << 20  # bytes
LONGEST_WAIT = 20.0  # seconds for a body
UPLOADS = "/files/"  # bodies of PUT below it are files
LONGEST_UPLOAD = 1800.0  # seconds
STRICT = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "content-security-policy": STRICT,
}
STATUSES: dict[type[Exception], int] = {
    **{RefusedError: 422, FullError: 429, UnknownError: 404, TakenError: 409},
    **{MitigateError: 422, sqlite3.OperationalError: 503},
}


@dataclass
class Guard:
    """An ASGI application before another. hosts: as browsers name the service, such as "127.0.0.1:8765". The sender of
    a request is passed on in its scope (caller_of)."""

    app: ASGIApp
    hosts: Collection[str]
    people: People
    largest_upload: int = LARGEST_BODY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass permitted requests on, and refuse the others."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":  # a web socket: there is none
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self._refused(scope, Headers(scope=scope)):
            await JSONResponse({"faults": [refused[1]]}, refused[0])(scope, receive, _with_headers(send))
        else:
            is_upload = scope["method"] == "PUT" and scope["path"].startswith(UPLOADS)
            most, patience = (self.largest_upload, LONGEST_UPLOAD) if is_upload else (LARGEST_BODY, LONGEST_WAIT)
            await self.app(scope, _limited(receive, Headers(scope=scope), most, patience), _with_headers(send))

    def _refused(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """The status and the sentence that refuse a request; None for one that may pass."""
        if headers.get("host", "").lower() not in self.hosts:
            return 421, "this service is not called so: the Host header is none of its names (serve.hosts)"
        origin, is_page = headers.get("origin"), scope["path"] == "/"  # which holds nothing
        ours = {f"{scheme}://{host}" for scheme in ("http", "https") for host in self.hosts}
        is_from_elsewhere = headers.get("sec-fetch-site") == "cross-site" and not is_page  # to which a link may lead
        if (origin is not None and origin.lower() not in ours) or is_from_elsewhere:
            return 403, "a page of another origin may not ask this service"
        if is_page:
            return None
        try:
            scope["caller"] = self.people.caller(headers)
        except MitigateError as error:
            sys.stderr.write(f"mitigate: {error}\n")
            return 503, "nobody can be let in now; ask whoever runs the service to read its messages"
        return None if scope["caller"] else (401, "a token is needed: Authorization: Bearer TOKEN")


def caller_of(request: Request) -> Caller:
    """The sender of a request that has passed the guard."""
    found = request.scope["caller"]
    assert isinstance(found, Caller)
    return found


CallerDep = Annotated[Caller, Depends(caller_of)]


def _limited(receive: Receive, headers: Headers, most: int, patience: float) -> Receive:
    """The body of at most so many bytes, within so many seconds. Reading it raises HTTPException, which the application
    answers, when it is too long or too slow; what comes after it (that the client has gone) may take its time."""
    said = headers.get("content-length", "0")
    size, whole, end = 0, False, asyncio.get_running_loop().time() + patience

    async def limited() -> Message:
        nonlocal size, whole
        if whole:
            return await receive()
        if said.isdigit() and int(said[:20]) > most:
            raise HTTPException(413, f"the body is too long; allowed: {most:,} bytes")
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, f"the body did not come within {patience:.0f} seconds") from error
        size += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if size > most:
            raise HTTPException(413, f"the body is too long; allowed: {most:,} bytes")
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def add_refusals(app: FastAPI) -> None:
    """Answer errors as described."""
    for kind in STATUSES:
        app.add_exception_handler(kind, _not_allowed)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _not_there)


async def _not_allowed(_: Request, error: Exception) -> Response:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    is_busy = isinstance(error, sqlite3.OperationalError)
    sentence = f"the queue cannot be used now ({error}); ask again later" if is_busy else str(error)
    return _refusal(status, error.faults if isinstance(error, RefusedError) else [sentence])


async def _not_valid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # whose input is not repeated: it may be anything
    faults = [f"{'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}" for fault in error.errors()[:20]]
    return _refusal(422, [ascii(fault)[1:-1] for fault in faults])


async def _not_there(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refusal(error.status_code, [str(error.detail)])


def _refusal(status: int, faults: Sequence[str]) -> Response:
    return JSONResponse({"faults": faults}, status, {"retry-after": "5"} if status in (429, 503) else None)
