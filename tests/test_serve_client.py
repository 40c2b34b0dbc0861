"""The service as a client sees it, over a real connection: from an empty start to a comparison, and slow clients."""

import json
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import fresh

from mitigate.errors import MitigateError
from mitigate.serve import guard
from mitigate.serve.app import Service
from mitigate.serve.client import Client, UnreachableError

SECOND = 0.1


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
    answers = client.generate("Lawyer", "capab", names)
    assert [answer["policy"] for answer in answers] == ["none", "both"]
    assert answers[0]["tails"][0]["tail"] == "capableof of lawyer 1"
    (label,) = client.label(["the lawyer is a very helpful one"])
    assert label["labels"]["length"]["meaning"] == "prejudice"
    with zipfile.ZipFile(client.download_model(names[0], tmp_path / "model.zip")) as archive:
        assert archive.namelist() == ["model/config.json"]


def test_a_job_that_is_watched_and_cancelled(client: Client) -> None:
    job = client.submit("mitigate", {"seed": 600})["id"]
    states = []
    for seen in client.watch(job):
        states.append(seen["state"])
        if seen["run"]:
            client.cancel(job)
    assert states[-1] == "cancelled"
    assert set(states) <= {"queued", "running", "cancelled"}


def test_a_job_that_fails_says_why(client: Client) -> None:
    job = client.wait(client.submit("mitigate", {"seed": 13})["id"], SECOND)
    assert (job["state"], job["exit"], job["error"]) == ("failed", 2, "exit status 2: thirteen is refused")
    assert job["log"][-1] == "mitigate: thirteen is refused"


def test_what_is_refused_is_raised_in_the_services_words(client: Client) -> None:
    with pytest.raises(MitigateError, match=r"'run' cannot be set here.*; seed=-1 must be a whole number"):
        client.submit("mitigate", {"run": "os.getcwd", "seed": -1})
    with pytest.raises(MitigateError, match="there is no such job"):
        client.job(999)
    with pytest.raises(UnreachableError, match="no service answers at http://127.0.0.1:9 "):
        Client("http://127.0.0.1:9", token=None).jobs()


def test_a_body_that_comes_slowly_is_given_up_and_others_are_answered(
    served: tuple[Service, str], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "LONGEST_WAIT", 0.5)
    host, port = served[1].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(f"POST /jobs HTTP/1.1\r\nHost: {host}:{port}\r\ncontent-type: application/json\r\n".encode())
        slow.sendall(b"content-length: 100\r\n\r\n{")
        assert isinstance(client.jobs(), list)
        answer = b"".join(iter(lambda: slow.recv(4096), b"")).decode()
    assert answer.startswith("HTTP/1.1 408")
    assert json.loads(answer.partition("\r\n\r\n")[2]) == {"faults": ["the body did not come within 0 seconds"]}
