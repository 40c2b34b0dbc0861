"""Refused requests: the status of each error, and answers {"faults": [sentences]}."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

from mitigate.errors import MitigateError
from mitigate.serve.allowed_jobs import RefusedError
from mitigate.serve.batching import BusyError
from mitigate.serve.queue import FullError
from mitigate.serve.results import UnknownError
from mitigate.serve.schemas import Faults
from mitigate.serve.uploads import TakenError

FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"model": Faults, "description": text}
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
ITS_SCHEMA = {"$ref": f"#/components/schemas/{Faults.__name__}"}
FAULTS_OF_STREAM: dict[int | str, dict[str, Any]] = {  # which are JSON although the stream is not
    status: {"description": facts["description"], "content": {"application/json": {"schema": ITS_SCHEMA}}}
    for status, facts in FAULTS.items()
}
STATUSES: dict[type[Exception], int] = {
    **{RefusedError: 422, FullError: 429, BusyError: 503, UnknownError: 404, TakenError: 409},
    **{MitigateError: 422, sqlite3.OperationalError: 503},
}


def add_refusals(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Answer errors as described. routes: those of the application, for the methods that a path allows."""

    async def not_there(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        if error.status_code == 405:  # the router names the methods of the first route of a path alone
            paths = [route for route in routes if isinstance(route, Route)]
            alike = [route for route in paths if route.matches(request.scope)[0] != Match.NONE]
            headers["allow"] = ", ".join(sorted({method for route in alike for method in route.methods or ()}))
        return _refusal(error.status_code, [str(error.detail)], headers)

    for kind in STATUSES:
        app.add_exception_handler(kind, _not_allowed)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, not_there)


async def _not_allowed(_: Request, error: Exception) -> Response:
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    is_busy = isinstance(error, sqlite3.OperationalError)
    sentence = f"the queue cannot be used now ({error}); ask again later" if is_busy else str(error)
    return _refusal(status, error.faults if isinstance(error, RefusedError) else [sentence])


async def _not_valid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # whose input is not repeated: it may be anything
    faults = [f"{'.'.join(map(str, fault['loc']))[:200]}: {fault['msg']}" for fault in error.errors()[:20]]
    return _refusal(422, [ascii(fault)[1:-1] for fault in faults])


def _refusal(status: int, faults: Sequence[str], headers: dict[str, str] | None = None) -> Response:
    later = {"retry-after": "5"} if status in (429, 503) else {}
    return JSONResponse({"faults": faults}, status, (headers or {}) | later)
