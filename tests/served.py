"""A service that runs in a thread of a test, on a port of its own. Its jobs are fakes, which leave prepared runs."""

import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from compared_runs import seal
from test_ask import probed_run

from mitigate.serve.allowed_jobs import Rules
from mitigate.serve.app import configured, make_app
from mitigate.serve.dispatcher import Local
from mitigate.serve.service import Service
from mitigate.triples import Labels

CONF = Path(__file__).parents[1] / "conf"
FAKE = """
import pathlib, shutil, sys, time
prepared, outputs, *arguments = sys.argv[1:]
said = dict(argument.split("=", 1) for argument in arguments)
name = "compare-1" if said["recipe"] == "compare" else f"mitigate-{said.get('policy', 'none')}-1-"
print(f"  run folder  {outputs}/{name}", flush=True)
if said.get("seed") == "13": sys.exit(sys.stderr.write("mitigate: thirteen is refused\\n") and 2)
while said.get("seed") == "600": time.sleep(0.05)
shutil.copytree(pathlib.Path(prepared, name), pathlib.Path(outputs, name), dirs_exist_ok=True)
"""


class Length:
    """A scorer: longer texts are prejudice."""

    name = "length"
    fingerprint = "length"

    def __call__(self, texts: Sequence[str]) -> Labels:
        label = np.array([-1 if len(text) > 20 else 0 for text in texts], dtype=np.int8)
        return Labels(label, label.astype(np.float32))


def make_service(place: Path, port: int, **settings: Any) -> Service:
    """A service without runs, whose jobs leave those of `place`/prepared. settings: fields of Service."""
    prepared, outputs = place / "prepared", place / "out"
    for policy in ("none", "both"):
        run = probed_run(prepared, policy)
        (run / "model").mkdir()
        (run / "model" / "config.json").write_text("{}")
        (run / "report.html").write_text(f"<!doctype html><title>report of {policy}</title><h1>{policy}</h1>")
        seal(run)
    comparison = prepared / "compare-1"
    comparison.mkdir()
    (comparison / "config.yaml").write_text("recipe: {name: compare}\n")
    (comparison / "comparison.json").write_text("{}")
    (comparison / "comparison.html").write_text("<!doctype html><title>comparison</title><h1>compared</h1>")
    (comparison / "manifest.json").write_text("{}")
    seal(comparison)
    outputs.mkdir()
    service = Service(
        rules=Rules(CONF),
        outputs=outputs,
        make_scorers=lambda: [Length()],
        slots=2,
        hosts=[f"127.0.0.1:{port}"],
        command=[sys.executable, "-c", FAKE, str(prepared), str(outputs)],
        **settings,
    )
    service.engine = Local(service.path)
    return service


@contextmanager
def serving(service: Service, listening: socket.socket) -> Iterator[str]:
    """The address of the service while it runs."""
    server = uvicorn.Server(configured(make_app(service), timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        server.should_exit = True
        thread.join()


def settle(service: Service) -> None:
    """Wait for the workers of a service that was stopped."""
    for thread in threading.enumerate():
        if thread.name == "dispatcher":
            thread.join()
    assert isinstance(service.engine, Local)
    for worker in service.engine.workers:
        worker.wait(60)


@contextmanager
def fresh(place: Path, **settings: Any) -> Iterator[tuple[Service, str]]:
    """A new service, and its address. settings: fields of Service."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        service = make_service(place, listening.getsockname()[1], **settings)
        with serving(service, listening) as address:
            yield service, address
    settle(service)
    shutil.rmtree(service.outputs)
