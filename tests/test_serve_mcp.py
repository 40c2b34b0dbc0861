"""The tools of the Model Context Protocol, with the client of its own package."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from served import fresh

pytest.importorskip("mcp", reason="needs the extra mcp")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mitigate.serve import queue
from mitigate.serve.people import Limits
from mitigate.serve.service import Service

Served = tuple[Service, str, str]
"""A service, its address and a token."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with fresh(tmp_path_factory.mktemp("mcp"), mcp=True) as (service, address):
        yield service, address, service.people.create("ada", limits=Limits(queued=1))


def call(served: Served, *calls: tuple[str, dict[str, Any]], mode: str = "auto") -> list[Any]:
    """The results of some tools, asked one after the other."""

    async def called() -> list[Any]:
        _, address, token = served
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(called())


def fault(result: Any) -> str:
    assert result.is_error
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_have_the_fields_of_the_http_description(served: Served, mode: str) -> None:
    async def listed() -> dict[str, Any]:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {served[2]}"})
        async with http, Client(streamable_http_client(f"{served[1]}/mcp", http_client=http), mode=mode) as client:
            return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

    tools = asyncio.run(listed())
    assert list(tools) == ["options", "submit", "status", "runs", "compare", "ask"]
    assert set(tools["submit"]["properties"]) == {"recipe", "overrides", "submitter", "label", "priority"}
    assert tools["ask"]["required"] == ["head", "relation", "runs"]
    assert "both" in call(served, ("options", {}), mode=mode)[0].structured_content["groups"]["policy"]


def test_a_job_is_submitted_watched_and_asked_about_by_its_owner(served: Served) -> None:
    (submitted,) = call(served, ("submit", {"overrides": {"policy": "both"}, "label": "by a tool"}))
    number = submitted.structured_content["id"]
    assert (submitted.structured_content["owner"], submitted.structured_content["label"]) == ("ada", "by a tool")
    while (shown := call(served, ("status", {"number": number}))[0].structured_content)["ended"] is None:
        pass
    assert (shown["state"], shown["is_finished"]) == ("done", True)
    runs, answer = call(
        served, ("runs", {}), ("ask", {"head": "nurse", "relation": "CapableOf", "runs": [shown["run"]]})
    )
    assert [run["name"] for run in runs.structured_content["runs"]] == [shown["run"]]
    tails = [row["tail"] for row in answer.structured_content["answers"][0]["tails"]]
    assert tails[:2] == ["capableof of nurse 1", "capableof of nurse 2"]
    actions = (served[0].place / "actions.jsonl").read_text()
    assert f'"who": "ada", "action": "submit", "job": {number}' in actions


def test_what_http_refuses_is_refused_in_a_sentence(served: Served) -> None:
    forbidden, lone, number, unknown, head = call(
        served,
        ("submit", {"overrides": {"paths.outputs": "/tmp", "seed": -1}}),
        ("compare", {"runs": ["none", "../../etc"]}),
        ("status", {"number": "../runs"}),
        ("remove", {}),
        ("ask", {"head": "", "relation": "CapableOf", "runs": []}),
    )
    assert fault(forbidden).startswith("'paths.outputs' cannot be set in this service")
    assert "; seed=-1 must be a whole number" in fault(forbidden)
    assert fault(lone) == "there is no finished run of that name; the list of runs has all"
    assert fault(number).startswith("number: Input should be a valid integer")
    assert fault(unknown) == "unknown tool; tools: options, submit, status, runs, compare, ask"
    assert fault(head).startswith("body.head: ")
    service = served[0]
    submitted = call(served, *[("submit", {"overrides": {"seed": 600}})] * 5)  # two run, one waits
    full = "you have 1 jobs queued, your limit; wait until one starts, or cancel one"
    assert full in [fault(result) for result in submitted if result.is_error]
    with queue.opened(service.path) as table:
        for job in queue.latest(table):
            queue.cancel(table, job.id)


def test_each_call_needs_a_token_that_is_not_revoked(served: Served) -> None:
    service, address, _ = served
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream"}
    token = service.people.create("bea")

    def status(**more: str) -> tuple[int, Any]:
        answer = httpx2.post(f"{address}/mcp", json=asked, headers=headers | more)
        return answer.status_code, answer.json()

    assert status(authorization=f"Bearer {token}")[0] == 200
    service.people.revoke("bea")
    for more in ({}, {"authorization": f"Bearer {token}"}):
        assert status(**more) == (401, {"faults": ["a token is needed: Authorization: Bearer TOKEN"]})
