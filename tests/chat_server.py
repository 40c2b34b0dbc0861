"""An OpenAI-compatible server in a thread of a test, whose answers are a formula and whose faults are listed."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = str | tuple[int, Mapping[str, str], Any]
"""One of "slow", "cut", "cut JSON", "other JSON", "refuse", "filter", "close"; or status, headers and content."""
TOO_MANY: Fault = (429, {"Retry-After": "0.2"}, {"error": {"message": "too many"}})
BROKEN: Fault = (500, {}, "no JSON")
SLOW = 0.3  # seconds


def echo(text: str) -> str:
    """The answer to a text: the text, twice, as two sentences."""
    return f"{text}. {text}."


@dataclass
class ChatServer:
    """The server's state. faults: the number of a request, from 0, or a text of its last message -> what happens to
    it; those of a text happen each time."""

    answer: Callable[[str], str] = echo
    message: Callable[[str], Mapping[str, Any]] | None = None  # in the place of answer: fields of an answer's message
    faults: Mapping[int | str, Fault] = field(default_factory=dict)
    requests: list[tuple[str, Mapping[str, str], dict[str, Any]]] = field(default_factory=list)  # path, headers, body
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def enter(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Fault | None:
        """Count a request; returns its fault."""
        with self._lock:
            number = len(self.requests)
            self.requests.append((path, headers, body))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return self.faults.get(number) or self.faults.get(asked(body))

    def leave(self) -> None:
        """Count a request as answered."""
        with self._lock:
            self._at_once -= 1

    def content(self, path: str, body: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
        """The JSON of an answer. A word is a token."""
        text = self.answer(asked(body))
        choice: dict[str, Any] = {"index": 0, "finish_reason": "content_filter" if fault == "filter" else "stop"}
        if path.endswith("/chat/completions"):
            refusal = "I cannot help with that." if fault == "refuse" else None
            message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
            message |= self.message(asked(body)) if self.message else {}
            choice |= {"message": message, "logprobs": None}
        else:
            choice |= {"text": text, "logprobs": None}
        words = {"prompt_tokens": len(asked(body).split()), "completion_tokens": len(text.split())}
        return {"object": "any", "model": f"{body['model']}-served", "choices": [choice], "usage": words}


def asked(body: Mapping[str, Any]) -> str:
    """The last message, or the prompt."""
    return body["messages"][-1]["content"] if "messages" in body else body["prompt"]


@contextmanager
def chat_server(**fields: Any) -> Iterator[ChatServer]:
    """A server (fields: of ChatServer) on a port of its own, for as long as the context lasts; `url` ends in /v1."""
    state = ChatServer(**fields)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fault = state.enter(self.path, {name.lower(): text for name, text in self.headers.items()}, body)
            try:
                self.respond(body, fault)
            except (BrokenPipeError, ConnectionResetError):  # a client that has stopped waiting
                self.close_connection = True
            finally:
                state.leave()

        def respond(self, body: dict[str, Any], fault: Fault | None) -> None:
            if fault == "close":
                self.close_connection = True
                return
            time.sleep(SLOW if fault == "slow" else 0)
            if isinstance(fault, tuple):
                self.write(fault[0], json.dumps(fault[2]).encode(), headers=fault[1])
                return
            content = json.dumps({} if fault == "other JSON" else state.content(self.path, body, fault)).encode()
            if fault == "cut JSON":  # whole for HTTP
                content = content[: len(content) // 2]
            self.write(200, content, cut=fault == "cut")

        def write(
            self, status: int, content: bytes, headers: Mapping[str, str] | None = None, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            self.close_connection |= cut

        def log_message(self, *args: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
