"""recipe=serve: what is refused before it listens, what it is called, and that it comes back after a kill."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import DEVNULL

import pytest
from command import ROOT
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.recipes.serve import check, hosts_of
from mitigate.serve import queue
from mitigate.serve.client import Client, UnreachableError
from mitigate.serve.people import People

TOKEN = "0123456789abcdef"


def config(**settings: object) -> object:
    given = {"address": "127.0.0.1", "port": 8765, "token": None, "roots": [], "hosts": [], **settings}
    return OmegaConf.create({"serve": given, "paths": {"outputs": "/absent"}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"address": "0.0.0.0"}, "address=0.0.0.0 can be reached by others, and anybody could submit jobs; give each"),
        ({"address": "mitigate.example.org"}, "can be reached by others"),
        ({"address": "::"}, "can be reached by others"),
        ({"token": TOKEN[1:]}, "the token (serve.token or MITIGATE_TOKEN) has 15 characters; give 16 or more"),
        ({"roots": ["/absent"]}, "serve.roots: /absent: no such folder"),
    ],
)
def test_what_would_let_everybody_in_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(MitigateError) as refused:
        check(config(**settings))
    assert message in str(refused.value)


def test_addresses_that_may_be_served_and_the_names_that_browsers_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in ({}, {"address": "::1"}, {"address": "localhost"}, {"address": "0.0.0.0", "token": TOKEN}):
        check(config(**settings))
    local = ["127.0.0.1:80", "localhost:80", "[::1]:80"]
    assert hosts_of("127.0.0.1", 8765, []) == [name.replace("80", "8765") for name in local]
    assert hosts_of("10.0.0.5", 8765, ["m.example.org"]) == ["10.0.0.5:8765", "m.example.org:8765", "m.example.org"]
    assert hosts_of("0.0.0.0", 80, []) == [*local, "127.0.0.1", "localhost", "[::1]"]
    monkeypatch.setattr("mitigate.errors.find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(MitigateError, match=r"recipe=serve needs uvicorn: pip install 'mitigate\[serve\]'"):
        check(config())


def test_places_that_cannot_be_had_are_named_before_anybody_submits(tmp_path: Path, job) -> None:
    rehearsed = job("recipe=serve", "serve.port=9", "dry_run=true")
    assert f"would serve http://127.0.0.1:9/, jobs in {tmp_path / 'outputs'}" in rehearsed.said
    assert list(tmp_path.iterdir()) == []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = job("recipe=serve", f"serve.port={port}")
    elsewhere = job("recipe=serve", "serve.address=192.0.2.1", f"serve.token={TOKEN}")  # of no machine
    with (tmp_path / "outputs" / ".serve" / "service.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        locked = job("recipe=serve")
    (tmp_path / "file").touch()
    no_folder = job("recipe=serve", f"paths.outputs={tmp_path / 'file'}")
    (tmp_path / "outputs" / ".serve" / "queue.sqlite").write_bytes(bytes(range(256)) * 20)
    damaged = job("recipe=serve", f"serve.port={port}")
    for refused, message in (
        (in_use, f"serve.port={port} is not available (Address already in use); choose another port"),
        (elsewhere, "is not available (Cannot assign requested address); choose another port or address"),
        (locked, f"another service already has {tmp_path / 'outputs'}; stop it"),
        (no_folder, f"cannot write to {tmp_path / 'file' / '.serve'} (Not a directory); choose another place"),
        (damaged, "queue.sqlite is not a job queue (file is not a database); move it away"),
    ):
        assert refused.status == 2
        assert message in refused.complaint


def test_a_service_worker_and_job_are_killed_and_two_peoples_queues_go_on_in_order(tmp_path: Path) -> None:
    """By the real command, which takes seconds: jobs of recipe=audit go on while signal 9 kills their service, and
    then the service, the worker and the job together."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "mitigate", "recipe=serve", f"paths.outputs={tmp_path}", f"serve.port={port}"]
    how = {"cwd": ROOT, "env": os.environ | {"MITIGATE_TOKEN": TOKEN}, "stdout": DEVNULL, "stderr": DEVNULL}
    people, path = People(tmp_path / ".serve"), tmp_path / ".serve" / "queue.sqlite"
    ann, bob = (Client(f"http://127.0.0.1:{port}", people.create(name)) for name in ("ann", "bob"))
    client = Client(f"http://127.0.0.1:{port}", TOKEN)

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*line, "tracking=none"], **how)
        until(lambda: client.jobs() is not None or process.poll() is not None)
        return process

    def until(condition: object) -> None:
        for _ in range(1200):
            try:
                if condition():  # type: ignore[operator]
                    return
            except UnreachableError:
                pass
            time.sleep(0.1)
        pytest.fail("it took too long")

    def submit(by: Client, seed: int) -> int:
        return by.submit("audit", {"seed": seed, "score.regard": "ngram"})["id"]

    def waiting() -> dict[int, int]:
        return {job["id"]: job["place"] for job in client.jobs() if job["place"] is not None}

    service = start()
    try:
        first = submit(ann, 1)
        until(lambda: client.job(first)["starts"] == 1)
        until(lambda: any(lock.read_text() for lock in path.parent.glob("jobs/*.lock")))
        (lock,) = path.parent.glob("jobs/*.lock")
        os.killpg(int(lock.read_text()), signal.SIGSTOP)  # else it may end before it is killed
        second, third, others = submit(ann, 2), submit(ann, 3), submit(bob, 4)
        order = {second: 1, third: 2, others: 3}
        assert waiting() == order
        for _ in range(2):
            service.kill()
            service.wait()
            service = start()
            assert waiting() == order
        service.kill()
        service.wait()
        for pid in worker_of(path):
            os.kill(pid, signal.SIGKILL)
        os.killpg(int(lock.read_text()), signal.SIGKILL)
        with queue.opened(path) as table:
            table.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")
        service = start()
        assert waiting() == order
        owners = dict.fromkeys((first, second, third), "ann") | {others: "bob"}
        assert {job["id"]: job["owner"] for job in client.jobs()} == owners
        ann.cancel(third)
        found = client.wait(first, 0.2)
        assert (found["state"], found["exit"], found["starts"]) == ("done", 0, 2)
        assert (tmp_path / found["run"] / "manifest.json").is_file()
        assert found["run"] in [run["name"] for run in client.runs()]
        until(lambda: client.job(second)["starts"] == 1)
        assert waiting() == {others: 1}
        ann.cancel(second)
        with pytest.raises(MitigateError, match=f"job {others} belongs to bob; its owner or an admin can cancel it"):
            ann.cancel(others)
        bob.cancel(others)
        assert client.wait(others, 0.2)["state"] == "cancelled"
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) is not None


def worker_of(path: Path) -> list[int]:
    """The processes of workers of this queue."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if f"mitigate.serve.worker {path}" in line]
