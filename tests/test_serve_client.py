"""The service as a client sees it, over a real connection: from an empty start to a comparison, and slow clients."""

import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from served import fresh

from mitigate.errors import MitigateError
from mitigate.serve import queue, request_checks, server
from mitigate.serve.client import Client, UnreachableError
from mitigate.serve.service import Service
from mitigate.serve.webhooks import SIGNATURE, Webhooks

SECOND = 0.1
POLICIES = ("none", "both")
PAGE = Path(__file__).parents[1] / "docs" / "service.md"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    with fresh(tmp_path_factory.mktemp("service")) as found:
        yield found


@pytest.fixture
def client(served: tuple[Service, str]) -> Client:
    return Client(served[1], token=None)


def test_two_policies_are_run_compared_and_asked(client: Client, tmp_path: Path) -> None:
    assert (client.jobs(), client.runs()) == ([], [])
    jobs = [client.submit("mitigate", {"policy": policy, "seed": 1}, "ann") for policy in ("none", "both")]
    ended = [client.wait(job["id"], SECOND) for job in jobs]
    assert [(job["state"], job["is_finished"]) for job in ended] == [("done", True)] * 2
    names = [job["run"] for job in ended]
    assert names == ["mitigate-none-1-", "mitigate-both-1-"]
    compared = client.wait(client.compare(names, names[0])["id"], SECOND)
    assert (compared["run"], client.run("compare-1")["pages"]) == ("compare-1", ["comparison.html"])
    for ask in (client.relations, partial(client.generate, "lawyer", "CapableOf")):
        with pytest.raises(MitigateError, match=r"^compare-1 is a run of recipe=compare; only runs of recipe=mitigate"):
            ask(["compare-1"])
    answers = client.generate("Lawyer", "capab", names)
    assert [answer["policy"] for answer in answers] == ["none", "both"]
    assert answers[0]["tails"][0]["tail"] == "capableof of lawyer 1"
    (label,) = client.label(["the lawyer is a very helpful one"])
    assert label["labels"]["length"]["meaning"] == "prejudice"
    with zipfile.ZipFile(client.download_model(names[0], tmp_path / "model.zip")) as archive:
        assert archive.namelist() == ["model/config.json"]


def test_every_request_of_the_description_has_a_method_and_files_and_limits_are_shown(client, tmp_path) -> None:
    """The paths that the methods ask for are those of openapi.json, without the browser's own."""
    asked = set()

    class Noted(Client):
        def _open(self, path: str, body: object = None, method: str | None = None) -> object:
            asked.add((method or ("GET" if body is None else "POST"), path.partition("?")[0]))
            return super()._open(path, body, method)

    noted = Noted(client.address, token=None)
    described = noted._ask("/openapi.json")
    assert noted.me()["name"] is None
    assert noted.options()["defaults"]["policy"] == "both_neutral"
    assert noted.form("filter", policy="both")["groups"] == {"policy": "both", "data": "sample", "measure": None}
    (tmp_path / "mine.csv").write_text("head,relation,tail\n")
    assert [file["name"] for file in noted.upload(tmp_path / "mine.csv")] == ["mine.csv"]
    with pytest.raises(MitigateError, match="you have a file mine.csv already; remove it first"):
        noted.upload(tmp_path / "mine.csv")
    with pytest.raises(MitigateError, match="absent.csv cannot be read"):
        noted.upload(tmp_path / "absent.csv")
    assert noted.files() == noted.upload(tmp_path / "mine.csv", "other.csv")[:1]
    assert [file["name"] for file in noted.remove_file("mine.csv")] == ["other.csv"]
    noted.remove_file("other.csv")
    job = noted.submit("mitigate", {"policy": "none"}, label="a label", priority=-1)
    assert (job["label"], job["priority"]) == ("a label", -1)
    assert [found["state"] for found in noted.watch(job["id"])][-1] == "done"
    (name,) = {noted.wait(job["id"], SECOND)["run"]}
    assert b"report of none" in noted.file(name, "report.html")
    noted.download_model(name, tmp_path / "model.zip")
    other = noted.wait(noted.submit("mitigate", {"policy": "both"})["id"], SECOND)["run"]
    assert noted.differences([name, other])["policy.name"] == {name: "none", other: "both"}
    assert "CapableOf" in noted.relations([name])["relations"]
    assert {run["name"]: run["label"] for run in noted.runs()}[name] == "a label"
    assert noted.jobs()[0]["id"] > job["id"]
    noted.cancel(noted.compare([name, other], label="both")["id"])
    noted.run(name), noted.generate("lawyer", "CapableOf", [name]), noted.label(["a text"])
    numbered = [(method, path.replace(str(job["id"]), "{number}").replace(name, "{name}")) for method, path in asked]
    known = {(method, _shape(path)) for method, path in numbered}
    for path, methods in described["paths"].items():
        if path not in ("/session", "/health"):
            assert {(method.upper(), _shape(path)) for method in methods} <= known, path


def _shape(path: str) -> str:
    """A path with a star for each part that a request chooses."""
    first, *parts = path.strip("/").split("/")
    fixed = ("events", "files", "model.zip")
    return "/".join([first, *(part if part in fixed else "*" for part in parts)])


def test_programs_are_informed_of_ended_jobs_once_signed_and_again_where_they_fail(tmp_path: Path, capsys) -> None:
    received: list[tuple[str, dict[str, str], bytes]] = []
    answers = [500, 200, 302, 302]

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            received.append((self.path, dict(self.headers.items()), content))
            self.send_response(answers.pop(0))
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    path = tmp_path / "queue.sqlite"
    with queue.opened(path) as table:
        for owner in ("ann", "bob"):
            queue.submit(table, "mitigate", {}, ["true"], owner=owner)
        queue.cancel(table, 1)
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/hook"
        hooks = Webhooks(path, [address], lambda job: {"id": job.id, "owner": job.owner}, "a secret")
        hooks.step()  # answered by 500
        hooks.step()
        hooks.step()  # nothing is due
        assert [json.loads(content) for _, _, content in received] == [
            {"event": "job ended", "job": {"id": 1, "owner": "ann"}}
        ] * 2
        _, headers, content = received[0]
        digest = hmac.new(b"a secret", content, hashlib.sha256).hexdigest()
        assert {key.lower(): value for key, value in headers.items()}[SIGNATURE] == f"sha256={digest}"
        with queue.opened(path) as table:
            queue.cancel(table, 2)
        for _ in range(2):
            hooks.step()  # redirections are not followed
        server.shutdown()
    assert [path for path, _, _ in received] == ["/hook"] * 4
    for _ in range(4):
        hooks.step()  # nobody answers
    assert f"{address} was not informed of job 2, 5 times" in capsys.readouterr().err
    with queue.opened(path) as table:
        assert queue.unannounced(table) == []


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_lines_of_the_documentation_are_answered(served: tuple[Service, str], client: Client, tmp_path) -> None:
    """Sixteen processes of curl start, which takes seconds: lines are run as they are shown."""
    names = [client.wait(client.submit("mitigate", {"policy": policy})["id"], SECOND)["run"] for policy in POLICIES]
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("curl ")]
    assert len(lines) == 16
    (tmp_path / "mine.csv").write_text("head,relation,tail\n")
    given = {**os.environ, "H": served[1], "J": "content-type: application/json"}
    for line in lines:
        asked = line.replace("NAME", names[0], 1).replace("NAME", names[1], 1).replace("NAME", names[0])
        bash = ["bash", "-c", asked.replace("curl ", "curl --fail --silent --show-error ", 1)]
        done = subprocess.run(bash, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (asked, done.stderr)
    for job in client.jobs():  # those that the lines have submitted
        client.wait(job["id"], SECOND)
    assert zipfile.is_zipfile(tmp_path / f"{names[0]}-model.zip")


def test_jobs_fail_and_are_refused_in_the_services_words(client: Client) -> None:
    failed = client.wait(client.submit("mitigate", {"seed": 13})["id"], SECOND)
    assert (failed["state"], failed["exit"], failed["error"]) == ("failed", 2, "exit status 2: thirteen is refused")
    assert failed["log"][-1] == "mitigate: thirteen is refused"
    with pytest.raises(MitigateError, match=r"'run' cannot be set in this service.*; seed=-1 must be a whole number"):
        client.submit("mitigate", {"run": "os.getcwd", "seed": -1})
    with pytest.raises(MitigateError, match="there is no such job"):
        client.job(999)
    with pytest.raises(UnreachableError, match="no service answers at http://127.0.0.1:9 "):
        Client("http://127.0.0.1:9", token=None).jobs()


def test_a_body_that_comes_slowly_is_given_up_and_others_are_answered(served, client, monkeypatch) -> None:
    monkeypatch.setattr(request_checks, "LONGEST_WAIT", 0.5)
    slow, host = connected(served[1])
    with slow:
        slow.sendall(f"POST /jobs {host}content-type: application/json\r\n".encode())
        slow.sendall(b"content-length: 100\r\n\r\n{")
        assert isinstance(client.jobs(), list)
        answer = b"".join(iter(lambda: slow.recv(4096), b"")).decode()
    assert answer.startswith("HTTP/1.1 408")
    assert json.loads(answer.partition("\r\n\r\n")[2]) == {"faults": ["the body did not come within 0 seconds"]}


def connected(address: str) -> tuple[socket.socket, str]:
    """A connection to the service, and the header that names its host."""
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60.0), f"HTTP/1.1\r\nHost: {host}:{port}\r\n"


def is_given_up(connection: socket.socket) -> bool:
    """Whether the service closes the connection while headers come letter by letter."""
    try:
        for _ in range(1000):
            connection.sendall(b"x")
            time.sleep(0.05)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


def test_headers_that_trickle_are_given_up_and_others_are_answered(served, client, monkeypatch) -> None:
    monkeypatch.setattr(server, "LONGEST_HEADERS", 0.5)
    (silent, _), (slow, host) = connected(served[1]), connected(served[1])
    with silent, slow:
        slow.sendall(f"GET /jobs {host}x-letters: ".encode())
        assert is_given_up(slow)
        assert silent.recv(10) == b""
        assert isinstance(client.jobs(), list)


def test_a_stream_that_is_watched_for_longer_than_headers_may_take_goes_on(client: Client, monkeypatch) -> None:
    monkeypatch.setattr(server, "LONGEST_HEADERS", 0.2)
    job = client.submit("mitigate", {"seed": 600})["id"]
    states = []
    for seen in client.watch(job):
        states.append(seen["state"])
        if seen["state"] == "running" and seen["run"]:
            time.sleep(0.5)
            client.cancel(job)
    assert states[-1] == "cancelled"
    assert set(states) <= {"queued", "running", "cancelled"}


def test_a_connection_that_is_kept_is_closed_when_its_next_headers_trickle(served, monkeypatch) -> None:
    monkeypatch.setattr(server, "LONGEST_HEADERS", 0.5)
    kept, host = connected(served[1])
    with kept:
        kept.sendall(f"GET /health {host}\r\n".encode())
        assert b"HTTP/1.1 200" in kept.recv(4096)
        kept.sendall(f"GET /health {host}".encode())
        while kept.recv(4096):  # the rest of the first answer, then the end
            pass


@contextmanager
def answering(answer: bytes) -> Iterator[Client]:
    """A client of something that gives one answer, and no more."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Client(f"http://127.0.0.1:{server.getsockname()[1]}", token=None)
        thread.join()


def test_an_answer_or_a_stream_that_ends_too_soon_is_of_a_service_that_is_gone(tmp_path: Path) -> None:
    cut = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jobs": '
    with answering(cut) as client, pytest.raises(UnreachableError, match=r"no service answers at .* \(IncompleteRead"):
        client.jobs()
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nmodel\r\n9\r\nmo"
    for answer in (cut, chunked):
        with answering(answer) as client, pytest.raises(UnreachableError, match="IncompleteRead"):
            client.download_model("a", tmp_path / "model.zip")
    assert list(tmp_path.iterdir()) == []
    stream = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nevent: job\ndata: {"state": "running"}\n\ndata: {"sta'
    with answering(stream) as client:
        watched = client.watch(1)
        assert next(watched) == {"state": "running"}
        with pytest.raises(UnreachableError, match="has ended before job 1; watch it again"):
            next(watched)


@pytest.mark.parametrize(
    "address",
    [
        *("http://[::1", "127.0.0.1:8765", "file:///etc/passwd", "http://", "http://127.0.0.1:99999", "http://a:b", ""),
        *("http://127.0.0.1:8765\n", "http://a b:1", f"http://{'a' * 64}:1", "http://ann:secret@a:1", "http://a:1?b=c"),
        *("http://a:1/\u00e4", "http://a:0"),
    ],
)
def test_what_can_be_no_address_is_told(address: str) -> None:
    with pytest.raises(
        MitigateError, match=r"is not the address of a service; allowed: http://HOST:PORT and "
    ) as raised:
        Client(address, token=None).jobs()
    assert not isinstance(raised.value, UnreachableError)  # for which wait() would wait


def test_addresses_may_have_a_folder_and_brackets() -> None:
    for address in ("https://example.org/mitigate/", "http://[::1]:8765", "http://localhost"):
        assert Client(address, token=None).address == address


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("0123456789abcdef\u20ac", "holds '\u20ac', which no header can carry; .*; give the service another token"),
        ("0123456789abcdef\n", r"holds '\\n', which no header can carry; .*; take the line end away"),
        ("0123456789\x01abcdef", r"holds '\\x01', which no header can carry"),
    ],
)
def test_a_token_that_cannot_be_sent_is_told(token: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MITIGATE_TOKEN", token)
    with pytest.raises(MitigateError, match=message) as raised:
        Client("http://127.0.0.1:9").jobs()
    assert "0123456789" not in str(raised.value)


def test_a_token_may_have_all_that_a_header_carries(served: tuple[Service, str], monkeypatch) -> None:
    token = "".join(map(chr, (*range(0x21, 0x7F), *range(0xA1, 0x100))))
    assert Client(served[1], token=token).jobs() == Client(served[1], token=None).jobs()


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_none_of_the_service_is_told(body: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    message = r"answers, but not as the service does: '.*'; give the address that recipe="
    with answering(answer) as client, pytest.raises(MitigateError, match=message):
        client.jobs()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_does_not_follow_a_redirection(status: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.2)
        elsewhere = "http://{}:{}".format(*other.getsockname())
        answer = f"HTTP/1.1 {status} Moved\r\nContent-Length: 0\r\nLocation: {elsewhere}/jobs\r\n\r\n".encode()
        message = f"sends on to {elsewhere}, which is not followed: the token is for one"
        with answering(answer) as client, pytest.raises(MitigateError, match=message):
            Client(client.address, token="0123456789abcdef", patience=5.0).jobs()
        with pytest.raises(TimeoutError):
            other.accept()
    nowhere = b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n"
    with answering(nowhere) as client, pytest.raises(MitigateError, match="the service answered 302 Found"):
        client.jobs()


def test_a_model_that_cannot_be_written_is_told_as_a_client_can_mend_it() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nzip"
    with answering(answer) as client, pytest.raises(MitigateError) as raised:
        client.download_model("a", "/dev/null/model.zip")
    assert str(raised.value) == (
        "cannot write /dev/null/model.zip (File exists); free some space, or give another path"
    )
