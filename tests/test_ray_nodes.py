"""Jobs of the service on a real Ray cluster: a head and a second node, which the test starts on this machine."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from cluster_jobs import Service, said, steps, until

from mitigate.errors import MitigateError
from mitigate.serve import queue
from mitigate.serve.engines.ray_jobs import RayJobs

pytestmark = pytest.mark.thorough
START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--node-ip-address=127.0.0.1"]
SIZE = ["--num-cpus=1", f"--object-store-memory={80 * 2**20}"]
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",  # where ~/.ray has a token, Ray would ask for it
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "500",  # a lost node is noticed in seconds, not in half a minute
    "RAY_health_check_timeout_ms": "2000",
}


@dataclass
class Cluster:
    """Nodes of one processor each. place: a folder with a short path, because sockets lie below it."""

    place: Path
    address: str = ""
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *options: str) -> None:
        """Start a node, whose jobs see its name as NODE."""
        log, environment = self.place / f"{name}.log", {**os.environ, **SETTINGS, "NODE": name}
        with log.open("wb") as file:
            self.nodes[name] = subprocess.Popen([*START, *SIZE, *options], stdout=file, stderr=file, env=environment)
        until(lambda: "Ray runtime started" in log.read_text() or self.nodes[name].poll() is not None, log)
        assert self.nodes[name].poll() is None, log.read_text()[-3000:]

    def lose(self, name: str) -> None:
        """Kill all processes of a node, as when its machine is taken away."""
        started = self.nodes.pop(name)
        node = psutil.Process(started.pid)
        found = [node, *node.children(recursive=True)]
        for process in found:
            if process.is_running():
                process.kill()
        _, left = psutil.wait_procs(found, timeout=30)
        started.wait()
        assert not left

    def connect(self) -> RayJobs:
        return RayJobs(self.address, threads=1)

    def answers(self) -> bool:
        try:
            self.connect()
        except MitigateError:
            return False
        return True


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two nodes, `head` and `second`."""
    pytest.importorskip("ray.dashboard.optional_deps", reason="needs ray[default], which has Ray's job server")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        port, dashboard = (free.getsockname()[1] for free in (one, two))
    with tempfile.TemporaryDirectory(prefix="ray-") as place:
        made = Cluster(Path(place), f"http://127.0.0.1:{dashboard}")
        try:
            made.start("head", "--head", f"--port={port}", f"--dashboard-port={dashboard}", f"--temp-dir={place}")
            made.start("second", f"--address=127.0.0.1:{port}")
            until(made.answers, made.place / "head.log")
            yield made
        finally:
            for name in list(made.nodes):
                made.lose(name)


def test_a_job_whose_node_is_lost_goes_on_on_another_also_when_the_service_is_killed(cluster, tmp_path: Path) -> None:
    """Starting two nodes takes most of the test's time."""
    service = Service(tmp_path, cluster.connect)
    runs = {service.submit(run, 40): run for run in (tmp_path / "one", tmp_path / "two")}
    until(lambda: all(service.job(number).folder and steps(run) > 2 for number, run in runs.items()))
    ((_, kept), (_, lost)) = sorted((said(tmp_path, service.job(number), "node"), number) for number in runs)
    assert said(tmp_path, service.job(lost), "node") == ["second"]
    cluster.lose("second")
    done = steps(runs[lost])
    assert 2 < done < 40
    service.restart()
    until(lambda: all(service.job(number).ended for number in runs), cluster.place / "head.log")
    found = service.job(lost)
    assert (found.state, found.exit, found.starts, found.deaths, found.owner) == ("done", 0, 2, 0, "ann")
    assert found.folder == str(runs[lost])
    assert said(tmp_path, found, "node") == ["second", "head"]
    assert 40 <= len(said(tmp_path, found, "step")) < 43  # it went on: no step but the one that was cut off twice
    whole = service.job(kept)
    assert (whole.state, whole.starts, said(tmp_path, whole, "node")) == ("done", 1, ["head"])
    assert {path.name for path in runs[lost].iterdir()} == {path.name for path in runs[kept].iterdir()}


def test_a_waiting_job_is_cancelled_and_a_running_one(cluster: Cluster, tmp_path: Path) -> None:
    """On the node that is left."""
    service = Service(tmp_path, cluster.connect)
    running, waiting = (service.submit(tmp_path / name, 10_000) for name in ("one", "two"))
    until(lambda: service.job(running).folder is not None)
    for number in (waiting, running):
        assert service.job(running).state == "running"
        with queue.opened(service.path) as table:
            queue.cancel(table, number)
        until(lambda number=number: service.job(number).ended is not None, cluster.place / "head.log")
        assert service.job(number).state == "cancelled"
    handle, client = service.job(waiting).handle, cluster.connect().client
    until(lambda: client.get_job_info(handle).status.name == "STOPPED")
    assert steps(tmp_path / "two") == 0
