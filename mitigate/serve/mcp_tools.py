"""Tools of the Model Context Protocol (MCP) at /mcp: serve.mcp=true.

A call of a tool is the HTTP request of the same name by the same person, so that the allowed submissions, people's
limits and the log of actions are those of HTTP. There are no sessions: each call shows its token."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from fastapi import FastAPI
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, Field, ValidationError
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mitigate import __version__
from mitigate.serve import schemas as shapes
from mitigate.serve.request_checks import caller_of

PATH = "/mcp"


class Nothing(shapes.Strict):
    """No arguments."""


class JobNumber(shapes.Strict):
    """The number of a job."""

    number: int = Field(ge=1, le=2**31)


@dataclass(frozen=True)
class Request:
    """The HTTP request that a tool makes, and its arguments: the body of a POST, or parts of the path."""

    method: str
    path: str
    arguments: type[BaseModel]
    meaning: str


TOOLS = {
    "options": Request("GET", "/options", Nothing, "List the recipes, options and settings that a job may have."),
    "submit": Request("POST", "/jobs", shapes.Submission, "Submit a job; the answer has its number."),
    "status": Request(
        "GET", "/jobs/{number}", JobNumber, "Show a job: its state, stage, run and last lines of output."
    ),
    "runs": Request("GET", "/runs", Nothing, "List the finished runs with their first figures."),
    "compare": Request("POST", "/compare", shapes.Comparison, "Submit a job that compares finished runs."),
    "ask": Request("POST", "/generate", shapes.Question, "Show the best tails of one run or two, with their labels."),
}


def mount(app: FastAPI) -> StreamableHTTPSessionManager:
    """Add the tools to the application; its lifespan has to run what is returned."""
    server: Server[Any] = Server("mitigate", version=__version__, on_list_tools=_tools, on_call_tool=_calling(app))
    manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
    app.router.routes.append(Route(PATH, StreamableHTTPASGIApp(manager), include_in_schema=False))
    return manager


async def _tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(name=name, description=request.meaning, input_schema=request.arguments.model_json_schema())
            for name, request in TOOLS.items()
        ]
    )


def _calling(app: FastAPI) -> Any:
    async def call(context: Any, params: CallToolRequestParams) -> CallToolResult:
        caller = caller_of(context.request)

        async def by_caller(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "caller": caller}, receive, send)

        if (request := TOOLS.get(params.name)) is None:
            return _result({"faults": [f"unknown tool; tools: {', '.join(TOOLS)}"]}, is_error=True)
        given, path = params.arguments or {}, request.path
        if request.method == "GET":
            try:
                path = path.format(**request.arguments.model_validate(given).model_dump())
            except ValidationError as error:
                faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
                return _result({"faults": faults}, is_error=True)
        transport = httpx2.ASGITransport(app=by_caller, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://mitigate") as client:
            answer = await client.request(request.method, path, json=given if request.method == "POST" else None)
        return _result(answer.json(), is_error=answer.is_error)

    return call


def _result(content: Mapping[str, Any], *, is_error: bool) -> CallToolResult:
    text = "; ".join(content["faults"]) if is_error else json.dumps(content)
    structured = None if is_error else dict(content)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured, is_error=is_error
    )
