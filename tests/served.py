"""A service for tests: with a client of its own in this process, or in a thread on a port of its own. Its jobs are
fakes, which leave a run of two files."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from mitigate.serve.app import Service, configured, make_app
from mitigate.serve.queue import Queue
from mitigate.serve.rules import Rules
from mitigate.settings import CONF

HOST = "127.0.0.1:8765"
FAKE = """
import json, pathlib, sys, time
given = dict(argument.split("=", 1) for argument in sys.argv[1:])
run = pathlib.Path(given["paths.outputs"].strip("'"), f"{given['recipe']}-{given.get('seed', 1)}")
print(f"  run folder  {run}", flush=True)
if given.get("seed") == "13": sys.exit(sys.stderr.write("mitigate: thirteen is refused\\n") and 2)
while given.get("seed") == "600": time.sleep(0.05)
run.mkdir(exist_ok=True)
(run / "report.html").write_text(f"<!doctype html><title>report</title><h1>report of {given['recipe']}</h1>")
(run / "kept.tsv").write_text("lawyer\\tIsA\\tperson\\n")
(run / "manifest.json").write_text(json.dumps({"files": {"kept.tsv": "", "report.html": ""}}))
"""


def make_service(place: Path, host: str = HOST, **settings: Any) -> Service:
    """A service without runs. settings: fields of Service."""
    outputs = place / "out"
    rules = settings.pop("rules", None) or Rules(CONF, outputs)
    command = [sys.executable, "-c", FAKE]
    return Service(Queue(outputs / ".serve" / "queue.sqlite"), rules, command, [host], **settings)


@contextmanager
def asking(service: Service) -> Iterator[TestClient]:
    """A client in this process. No job is started."""
    app = make_app(service)
    yield TestClient(app, base_url=f"http://{service.hosts[0]}")


@contextmanager
def serving(place: Path, **settings: Any) -> Iterator[tuple[Service, str]]:
    """A service that runs its jobs, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = "{}:{}".format(*listening.getsockname())
        service = make_service(place, host, **settings)
        server = uvicorn.Server(configured(make_app(service)))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        try:
            yield service, f"http://{host}"
        finally:
            for job in service.queue.latest():
                service.queue.cancel(job.id)
            until(lambda: all(job.ended for job in service.queue.latest()))
            server.should_exit = True
            thread.join()


def finished_run(outputs: Path, name: str, files: dict[str, str]) -> Path:
    """A run folder with a manifest of these files, by name with their content."""
    folder = outputs / name
    folder.mkdir(parents=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (folder / "manifest.json").write_text(json.dumps({"files": dict.fromkeys(files, "")}))
    return folder


def until(condition: Any, patience: float = 60.0) -> None:
    """Wait until a condition is true: a busy machine is slow."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def processes(*words: str) -> list[int]:
    """The processes whose command has these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            command = path.read_text(errors="replace").replace("\0", " ")
            found += [int(path.parent.name)] if all(word in command for word in words) else []
    return found
