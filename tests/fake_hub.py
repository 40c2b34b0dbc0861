"""The Hugging Face hub's HTTP as far as sharing needs it, on this machine: repositories and commits of small files."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_of_the_test"


@dataclass
class Hub:
    """The repositories by "kind/owner/name": whether they are private, and their files."""

    address: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that knows one user, "me", by TOKEN, and refuses others."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hub.requests.append(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.answer(401, {"error": "Invalid username or password."})
            elif self.path == "/api/repos/create":
                asked = json.loads(body)
                name = f"{asked.get('type', 'model')}s/{asked.get('organization') or 'me'}/{asked['name']}"
                status = 409 if name in hub.private else 200
                hub.private.setdefault(name, asked.get("private") or asked.get("visibility") == "private")
                self.answer(status, {"url": f"{hub.address}/{name.removeprefix('models/')}"})
            elif self.path == "/api/validate-yaml":
                self.answer(200, {"errors": [], "warnings": []})
            elif "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                how = {"uploadMode": "regular", "shouldIgnore": False}
                self.answer(200, {"files": [file | how for file in asked]})
            elif "/commit/" in self.path:
                self.commit(body)
            else:
                self.answer(404, {"error": "no such address"})

        def commit(self, body: bytes) -> None:
            name = self.path.removeprefix("/api/").partition("/commit/")[0]
            lines = [json.loads(line) for line in body.splitlines()]
            kept = hub.files.setdefault(name, {})
            sent = [line["value"] for line in lines if line["key"] == "file"]
            kept |= {file["path"]: base64.b64decode(file["content"]) for file in sent}
            place = f"{hub.address}/me/x/commit/{'1' * 40}"
            self.answer(200, {"success": True, "commitOid": "1" * 40, "commitUrl": place})

        def do_GET(self) -> None:
            hub.requests.append(self.path)
            kind, _, name = self.path.removeprefix("/api/").partition("/")
            self.answer(200, {"id": name, "private": hub.private[f"{kind}/{name}"], "siblings": []})

        def answer(self, status: int, content: dict) -> None:
            sent = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
