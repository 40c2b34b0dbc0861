"""recipe=serve: what is refused before it listens, what it is called, and that it comes back after a kill."""

import fcntl
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import httpx2 as httpx
import pytest
from command import ROOT
from served import processes, until

from mitigate.errors import MitigateError
from mitigate.recipes.serve import check, hosts_of
from mitigate.serve.queue import Queue


@pytest.mark.parametrize("address", ["0.0.0.0", "mitigate.example.org", "::"])
def test_what_would_let_everybody_in_is_refused(address: str) -> None:
    with pytest.raises(MitigateError, match=f"address={address} can be reached by others, and anybody could submit"):
        check(address, False)
    check(address, True)


def test_addresses_that_may_be_served_and_the_names_that_browsers_may_send() -> None:
    check("::1", False)
    check("localhost", False)
    local = ["127.0.0.1", "localhost", "[::1]"]
    assert hosts_of("127.0.0.1", 8765, []) == [*local, *(f"{name}:8765" for name in local)]
    named = hosts_of("10.0.0.5", 8765, ["M.example.org:8443", "FE80::1"])
    assert {"10.0.0.5:8765", "m.example.org:8443", "[fe80::1]:8765"} <= set(named)


def test_places_that_cannot_be_had_are_named_before_anybody_submits(tmp_path: Path, job) -> None:
    rehearsed = job("recipe=serve", "serve.port=9", "dry_run=true")
    assert f"would serve http://127.0.0.1:9/, jobs in {tmp_path / 'outputs'}" in rehearsed.said
    assert list(tmp_path.iterdir()) == []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = job("recipe=serve", f"serve.port={port}")
    Queue(tmp_path / "outputs" / ".serve" / "queue.sqlite").create_token("ann")
    elsewhere = job("recipe=serve", "serve.address=192.0.2.1")  # of no machine
    with (tmp_path / "outputs" / ".serve" / "service.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        locked = job("recipe=serve")
    (tmp_path / "file").touch()
    no_folder = job("recipe=serve", f"paths.outputs={tmp_path / 'file'}")
    (tmp_path / "outputs" / ".serve" / "queue.sqlite").write_bytes(bytes(range(256)) * 20)
    damaged = job("recipe=serve", f"serve.port={port}")
    for refused, message in (
        (in_use, f"serve.port={port} is not available (Address already in use"),
        (elsewhere, "is not available (Cannot assign requested address"),
        (locked, f"another service already has {tmp_path / 'outputs'}; stop it"),
        (no_folder, f"cannot write {tmp_path / 'file' / '.serve'} (Not a directory); choose another place"),
        (damaged, "queue.sqlite is not a job queue (file is not a database); move it away"),
    ):
        assert refused.status == 2
        assert message in refused.complaint


class Client:
    """A person's requests to a service at a port."""

    def __init__(self, port: int, token: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.headers = {"authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = httpx.request(method, self.address + path, headers=self.headers, timeout=60, **more)
        assert answer.is_success, answer.text
        return answer.json()

    def submit(self, seed: int) -> int:
        overrides = {"seed": seed, "score.regard": "ngram"}
        return self.ask("POST", "/jobs", json={"recipe": "audit", "overrides": overrides})["id"]

    def job(self, number: int) -> dict[str, Any]:
        return self.ask("GET", f"/jobs/{number}")

    def waiting(self) -> dict[int, int]:
        return {job["id"]: job["place"] for job in self.ask("GET", "/jobs")["jobs"] if job["place"]}

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.address}/jobs", headers=self.headers).is_success
        return False


def test_service_worker_and_job_are_killed_and_two_peoples_queues_go_on_in_order(tmp_path: Path) -> None:
    """By the real command, which takes seconds: a job of recipe=audit survives signal 9 to its service, resumes after
    one to itself, and after one to service, worker and job together."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "mitigate", "recipe=serve", f"paths.outputs={tmp_path}", f"serve.port={port}"]
    how: Any = {"cwd": ROOT, "env": os.environ, "stdout": DEVNULL, "stderr": DEVNULL}
    queue = Queue(tmp_path / ".serve" / "queue.sqlite")
    ann, bob = (Client(port, queue.create_token(name)) for name in ("ann", "bob"))

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*line, "tracking=none"], **how)
        until(lambda: ann.answers() or process.poll() is not None)
        return process

    def started(number: int) -> list[int]:
        """The process of a job, stopped, else it may end before it is killed."""
        until(lambda: processes("recipe=audit", f"paths.outputs='{tmp_path}'"))
        found = processes("recipe=audit", f"paths.outputs='{tmp_path}'")
        os.kill(found[0], signal.SIGSTOP)
        return found

    service = start()
    try:
        first = ann.submit(1)
        (running,) = started(first)
        second, third, others = ann.submit(2), ann.submit(3), bob.submit(4)
        order = {second: 1, third: 2, others: 3}
        assert ann.waiting() == order
        os.kill(running, signal.SIGKILL)  # the job, which its worker starts again
        until(lambda: ann.job(first)["starts"] == 2)
        (running,) = started(first)
        service.kill()
        service.wait()
        service = start()
        assert ann.waiting() == order
        service.kill()
        service.wait()
        for process in [*processes("mitigate.serve.worker", str(tmp_path)), running]:
            os.kill(process, signal.SIGKILL)
        with sqlite3.connect(queue.path) as table:
            table.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")
        table.close()
        service = start()
        assert ann.waiting() == order
        owners = dict.fromkeys((first, second, third), "ann") | {others: "bob"}
        assert {job["id"]: job["owner"] for job in bob.ask("GET", "/jobs")["jobs"]} == owners
        ann.ask("DELETE", f"/jobs/{third}")
        until(lambda: ann.job(first)["ended"], 300)
        found = ann.job(first)
        assert (found["state"], found["exit"], found["starts"], found["report"]) == ("done", 0, 3, "audit.html")
        until(lambda: ann.job(second)["starts"] == 1)
        assert ann.waiting() == {others: 1}
        ann.ask("DELETE", f"/jobs/{second}")
        with pytest.raises(AssertionError, match=f"job {others} belongs to bob; only its owner can cancel it"):
            ann.ask("DELETE", f"/jobs/{others}")
        bob.ask("DELETE", f"/jobs/{others}")
        until(lambda: bob.job(others)["ended"] and ann.job(second)["ended"])
        assert (bob.job(others)["state"], ann.job(second)["state"]) == ("cancelled", "cancelled")
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) is not None
