"""The client of OpenAI-compatible endpoints, against a server of the test's own that is slow, refuses and breaks."""

import socket
from dataclasses import replace

import pytest
from chat_server import BROKEN, TOO_MANY, chat_server
from refusals import refuses

from mitigate.models.chat_api import REASONING, REFUSED, Endpoint, EndpointError, conversation

SECRET = "sk-secret"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The machines that are connected to."""
    hosts: list[str] = []
    connect = socket.socket.connect

    def recorded(self: socket.socket, address: tuple) -> None:
        hosts.append(address[0])
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", recorded)
    return hosts


def endpoint(url: str, **fields) -> Endpoint:
    """An endpoint that waits for an answer for 5 seconds."""
    return Endpoint(url, "small", **{"timeout": 5.0, **fields})


def chats(*texts: str) -> list:
    return [conversation(text) for text in texts]


def test_faults_are_repeated_and_answers_come_in_order(connected: list[str]) -> None:
    faults = {0: TOO_MANY, 1: BROKEN, 2: "cut", 3: "close", 4: BROKEN, 5: "slow"}
    texts = [f"text {number}" for number in range(12)]
    with chat_server(faults=faults) as server:
        found = endpoint(server.url, concurrency=3, tries=9).chat(chats(*texts), max_tokens=5, seed=None)
    assert [answer.text for answer in found] == [f"{text}. {text}." for text in texts]
    assert {answer.finish for answer in found} == {"stop"}
    assert {answer.model for answer in found} == {"small-served"}
    assert sum(answer.tries for answer in found) == 17
    assert {(answer.prompt_tokens, answer.answer_tokens) for answer in found} == {(2, 4)}
    assert len(server.requests) == 17
    assert server.most_at_once <= 3
    path, headers, body = server.requests[0]
    assert (path, headers["authorization"]) == ("/v1/chat/completions", f"Bearer {SECRET}")
    assert body.keys() == {"model", "messages", "max_tokens"}
    assert set(connected) == {"127.0.0.1"}


def test_refusals_are_answers_of_their_own() -> None:
    blocked = (400, {}, {"error": {"code": "content_filter", "message": "no"}})
    with chat_server(faults={"a": "refuse", "b": "filter", "c": blocked}) as server:
        found = endpoint(server.url).chat(chats(*"abc"))
    said = ["I cannot help with that.", "", ""]
    assert [(answer.text, answer.finish) for answer in found] == [(text, REFUSED) for text in said]


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"content": "<think>x</think> a"}, "a", "stop"),
        ({"content": "x</think>a"}, "a", "stop"),
        ({"content": "a [THINK]x[/THINK]b"}, "a b", "stop"),
        ({"content": "<think>x"}, "", REASONING),
        ({"content": None, "reasoning_content": "x"}, "", REASONING),
        ({"content": "a", "reasoning": "x"}, "a", "stop"),
        ({"content": None}, "", "stop"),
        ({"content": "I <b>think</b> so."}, "I <b>think</b> so.", "stop"),
    ],
)
def test_reasoning_is_no_answer_and_parts_are_joined(message: dict, text: str, finish: str) -> None:
    with chat_server(message=lambda _: message) as server:
        (found,) = endpoint(server.url).chat(chats("a"))
    assert (found.text, found.finish) == (text, finish)


def test_fields_of_the_body_and_the_system_prompt() -> None:
    own = {"max_tokens": None, "max_completion_tokens": 9}
    with chat_server() as server:
        endpoint(server.url, body=own, key=None).chat([conversation("a", "Be brief.")], max_tokens=5)
        assert endpoint(server.url).complete(["a"])[0].text == "a. a."
    (path, headers, body), (of_completion, _, completed) = server.requests
    assert (path, of_completion, completed["prompt"]) == ("/v1/chat/completions", "/v1/completions", "a")
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    assert (body.get("max_tokens"), body["max_completion_tokens"]) == (None, 9)
    assert "authorization" not in headers


@pytest.mark.parametrize(
    ("status", "content", "message"),
    [
        (401, {}, r"answers HTTP 401 .* the fields of requests and the key \(OPENAI_API_KEY\)"),
        (
            400,
            {"error": {"message": f"no {SECRET} {'x' * 999}"}},
            r"HTTP 400 for the model small .*no \*\*\* x{200,}\);",
        ),
        (429, {"error": {"code": "insufficient_quota", "message": "pay"}}, r"HTTP 429 for the model small \(.*pay\)"),
    ],
)
def test_faults_that_stay_end_the_call(status: int, content: dict, message: str) -> None:
    faults = dict.fromkeys(range(99), (status, {}, content))
    with chat_server(faults=faults) as server, pytest.raises(EndpointError, match=message) as raised:
        endpoint(server.url, concurrency=1, tries=1).chat(chats(*map(str, range(50))))
    assert SECRET not in str(raised.value)
    assert len(server.requests) < 5  # the others are not sent


def test_a_redirect_is_not_followed(connected: list[str]) -> None:
    with chat_server() as other, chat_server(faults={0: (307, {"Location": f"{other.url}/x"}, {})}) as server:
        refuses(EndpointError, "answers HTTP 307 for the model small", endpoint(server.url).chat, chats("a"))
    assert other.requests == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("api.example.org/v1", "is not the address of an endpoint; give one such as https://HOST/v1"),
        ("https://example.org/v1?key=a", "is not the address"),
        ("https://me:word@example.org/v1", "^example.org is not the address of an endpoint"),
        ("https://example.org/v1/chat/completions", "is not the address"),
        ("http://localhost:PORT/v1", "address is malformed: Port could not be cast .*; give one such as"),
        ("http://[::1/v1", "address is malformed: Invalid IPv6 URL"),
        ("http://example.org/v1", "the key in OPENAI_API_KEY would travel unencrypted to example.org"),
    ],
)
def test_wrong_addresses(url: str, message: str) -> None:
    with pytest.raises(EndpointError, match=message) as raised:
        Endpoint(url, "small")
    assert "word" not in str(raised.value).replace("password", "")


def test_wrong_settings_and_the_key_in_no_representation() -> None:
    with pytest.raises(EndpointError, match="needs the name of a model"):
        Endpoint("https://example.org/v1", "")
    there = endpoint("http://localhost:1/v1")
    assert SECRET not in repr(there)
    assert replace(there, key=None).key is None
