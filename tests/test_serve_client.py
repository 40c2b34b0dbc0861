"""The service as a client sees it, over a real connection: from an empty start to a comparison, and slow clients."""

import json
import os
import shutil
import socket
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from served import fresh

from mitigate.errors import MitigateError
from mitigate.serve import request_checks
from mitigate.serve.client import Client, UnreachableError
from mitigate.serve.service import Service

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
    assert (client.jobs(), client.runs(), client.files()) == ([], [], [])
    assert "both" in client.options()["groups"]["policy"]
    jobs = [client.submit("mitigate", {"policy": policy, "seed": 1}) for policy in POLICIES]
    ended = [client.wait(job["id"], SECOND) for job in jobs]
    assert [(job["state"], job["is_finished"]) for job in ended] == [("done", True)] * 2
    names = [job["run"] for job in ended]
    assert names == ["mitigate-none-1-", "mitigate-both-1-"]
    compared = client.wait(client.compare(names, names[0])["id"], SECOND)
    assert (compared["run"], client.run("compare-1")["pages"]) == ("compare-1", ["comparison.html"])
    with pytest.raises(MitigateError, match=r"^compare-1 is a run of recipe=compare; only those of recipe=mitigate"):
        client.generate("lawyer", "CapableOf", ["compare-1"])
    answers = client.generate("Lawyer", "capab", names)
    assert [answer["policy"] for answer in answers] == ["none", "both"]
    assert answers[0]["tails"][0]["tail"] == "capableof of lawyer 1"
    assert client.generate("nurse", "Mentors", names[:1])[0]["tails"][0]["plausibility"] is None
    with pytest.raises(MitigateError, match="unknown relation 'Absent'; allowed: "):
        client.generate("lawyer", "Absent", names)
    short, long = client.label(["lawyer", "the lawyer is a very helpful one"])
    assert (short["masked"], short["labels"]["length"]["meaning"]) == ("this person", "neutral")
    assert long["labels"]["length"]["label"] == -1
    assert b"report of none" in client.file(names[0], "report.html")
    with zipfile.ZipFile(client.download_model(names[0], tmp_path / "model.zip")) as archive:
        assert archive.namelist() == ["model/config.json"]
    with pytest.raises(MitigateError, match=r"cannot write /dev/null/model.zip \(.*\); free some space, or give anoth"):
        client.download_model(names[0], "/dev/null/model.zip")


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_lines_of_the_documentation_are_answered(served: tuple[Service, str], client: Client, tmp_path) -> None:
    """Processes of curl start, which takes seconds: lines are run as they are shown."""
    names = [client.wait(client.submit("mitigate", {"policy": policy})["id"], SECOND)["run"] for policy in POLICIES]
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("curl ")]
    assert len(lines) == 12
    (tmp_path / "mine.csv").write_text("head,relation,tail\n")
    given = {**os.environ, "H": served[1], "J": "content-type: application/json"}
    for line in lines:
        asked = line.replace("NAME", names[0], 1).replace("NAME", names[1], 1).replace("NAME", names[0])
        bash = ["bash", "-c", asked.replace("curl ", "curl --fail --silent --show-error ", 1)]
        done = subprocess.run(bash, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (asked, done.stderr)
    for job in client.jobs():  # those that the lines have submitted
        client.wait(job["id"], SECOND)


def test_jobs_fail_and_are_refused_in_the_services_words(client: Client) -> None:
    failed = client.wait(client.submit("mitigate", {"seed": 13})["id"], SECOND)
    assert (failed["state"], failed["exit"], failed["error"]) == ("failed", 2, "exit status 2: thirteen is refused")
    assert failed["log"][-1] == "mitigate: thirteen is refused"
    with pytest.raises(MitigateError, match=r"'run' cannot be set in this service.*; seed=-1 must be a whole number"):
        client.submit("mitigate", {"run": "os.getcwd", "seed": -1})


def test_a_body_that_comes_slowly_is_given_up_and_others_are_answered(served, client, monkeypatch) -> None:
    monkeypatch.setattr(request_checks, "LONGEST_WAIT", 0.5)
    host, port = served[1].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60.0) as slow:
        slow.sendall(f"POST /jobs HTTP/1.1\r\nHost: {host}:{port}\r\ncontent-type: application/json\r\n".encode())
        slow.sendall(b"content-length: 100\r\n\r\n{")
        assert isinstance(client.jobs(), list)
        answer = b"".join(iter(lambda: slow.recv(4096), b"")).decode()
    assert answer.startswith("HTTP/1.1 408")
    assert json.loads(answer.partition("\r\n\r\n")[2]) == {"faults": ["the body did not come within 0 seconds"]}


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
        yield Client(f"http://127.0.0.1:{server.getsockname()[1]}", token="0123456789abcdef", patience=5.0)
        thread.join()


def test_what_is_no_service_or_gone_is_told() -> None:
    cut = b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"jobs": '
    with answering(cut) as client, pytest.raises(UnreachableError, match=r"no service answers at .* \(IncompleteRead"):
        client.jobs()
    with pytest.raises(UnreachableError, match="no service answers at http://127.0.0.1:9 "):
        Client("http://127.0.0.1:9", token=None).jobs()
    for address in ("file:///etc/passwd", "127.0.0.1:8765", ""):
        with pytest.raises(MitigateError, match="is not the address of a service; allowed: http://HOST:PORT"):
            Client(address, token=None).jobs()
    for body in (b"<html>Sign in</html>", b"[]", b"{}", b"[" * 100_000):
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        message = r"answers, but not as the service does: '.*'; give the address that recipe="
        with answering(answer) as client, pytest.raises(MitigateError, match=message):
            client.jobs()


def test_a_token_does_not_follow_a_redirection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.2)
        elsewhere = "http://{}:{}".format(*other.getsockname())
        answer = f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {elsewhere}/jobs\r\n\r\n".encode()
        with answering(answer) as client, pytest.raises(MitigateError, match="the service answered 302 Found"):
            client.jobs()
        with pytest.raises(TimeoutError):
            other.accept()
