"""Jobs that SLURM runs: submitted, asked after, stopped, found again after a restart. It is a fake whose answers are
given, fakes of its commands, or submitit's processes of this machine."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mitigate.errors import MitigateError
from mitigate.serve import queue
from mitigate.serve.dispatcher import Dispatcher
from mitigate.serve.queue import Job
from mitigate.serve.slurm import DIED, Remote, Slurm
from mitigate.serve.worker import log_of

PATIENCE = 120.0  # seconds


class Fake:
    """A cluster that says of each job what the test wants."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.started: dict[str, Sequence[str]] = {}
        self.stopped: list[str] = []
        self.says: dict[str, int | Exception | None] = {}
        self.answers = True

    def start(self, name: str, command: Sequence[str], log: Path) -> str:
        if not self.answers:
            raise ConnectionError("nobody there")
        self.started[name] = command
        log.write_text(f"  run folder  {self.run}\nmitigate: data.root is no folder\n")
        return name

    def find(self, name: str) -> str | None:
        if not self.answers:
            raise ConnectionError("nobody there")
        return name if name in self.started else None

    def state(self, handle: str) -> int | None:
        if isinstance(said := self.says.get(handle), Exception):
            raise said
        return said

    def stop(self, handle: str) -> None:
        self.stopped.append(handle)
        self.says[handle] = DIED


class Queue:
    """A queue whose dispatcher is stepped by hand."""

    def __init__(self, folder: Path, cluster: Any) -> None:
        self.path = folder / "queue.sqlite"
        self.dispatcher = Dispatcher(self.path, 2, Remote(self.path, cluster))

    def submit(self, *command: str) -> int:
        with queue.opened(self.path) as table:
            return queue.submit(table, "fake", {}, command or ("true",), owner="ann")

    def cancel(self, number: int) -> None:
        with queue.opened(self.path) as table:
            queue.cancel(table, number)

    def step(self) -> list[Job]:
        self.dispatcher.step()
        with queue.opened(self.path) as table:
            return queue.latest(table)[::-1]

    def restart(self, cluster: Any, known: bool = True) -> None:
        """Another service has the queue; the leases of the first have ended, perhaps before it noted the handle."""
        with queue.opened(self.path) as table:
            table.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")
            if not known:
                table.execute("UPDATE jobs SET handle = NULL, starts = 0")
        self.dispatcher = Dispatcher(self.path, 2, Remote(self.path, cluster))

    def ended(self, number: int) -> Job:
        end = time.monotonic() + PATIENCE
        while (job := self.step()[number - 1]).ended is None:
            assert time.monotonic() < end, job
            time.sleep(0.1)
        return job


@pytest.fixture
def cluster(tmp_path: Path) -> Fake:
    """Its jobs name a run that is complete."""
    (tmp_path / "manifest.json").touch()
    return Fake(tmp_path)


@pytest.fixture
def jobs(tmp_path: Path, cluster: Fake) -> Queue:
    return Queue(tmp_path, cluster)


def test_jobs_are_submitted_by_slots_and_end_as_the_engine_says(jobs: Queue, cluster: Fake) -> None:
    for _ in range(3):
        jobs.submit("python", "job.py")
    first, second, third = jobs.step()
    assert [job.state for job in (first, second, third)] == ["running", "running", "queued"]
    assert (first.starts, first.owner, cluster.started[first.handle]) == (1, "ann", ["python", "job.py"])
    cluster.says = {first.handle: 0, second.handle: 2}
    first, second, third = jobs.step()
    assert (first.state, first.exit, first.folder) == ("done", 0, str(cluster.run))
    assert (second.state, second.exit, second.error) == ("failed", 2, "exit status 2: data.root is no folder")
    assert jobs.step()[2].state == "running"


def test_a_job_that_dies_is_submitted_once_more(jobs: Queue, cluster: Fake) -> None:
    jobs.submit()
    (job,) = jobs.step()
    cluster.says[job.handle] = DIED
    jobs.step()
    (again,) = jobs.step()
    assert (again.state, again.starts, again.deaths) == ("running", 2, 1)
    assert again.handle != job.handle
    cluster.says[again.handle] = DIED
    (failed,) = jobs.step()
    assert (failed.state, failed.exit, failed.deaths) == ("failed", DIED, 2)
    assert failed.error == "killed by SIGKILL: data.root is no folder"


def test_an_engine_that_does_not_answer_is_asked_again_and_jobs_are_cancelled(
    jobs: Queue, cluster: Fake, capsys
) -> None:
    for _ in range(2):
        jobs.submit()
    cluster.answers = False
    assert jobs.step()[0].state == "running"
    assert "SLURM does not answer for job 1: nobody there" in capsys.readouterr().err
    jobs.cancel(1)
    cluster.answers = True
    first, second = jobs.step()
    assert (first.state, first.starts) == ("cancelled", 0)
    jobs.cancel(2)
    second = jobs.step()[1]
    assert (second.state, second.error, cluster.stopped) == ("cancelled", None, [second.handle])
    jobs.submit()
    third = jobs.step()[2]
    for said, state in ((ConnectionError("nobody there"), "running"), (0, "done")):
        cluster.says[third.handle] = said
        assert jobs.step()[2].state == state


def test_after_a_kill_a_submitted_job_has_the_same_name_again_or_is_stopped(jobs, cluster) -> None:
    jobs.submit()
    (job,) = jobs.step()
    for known in (True, False):
        jobs.restart(cluster, known)
        assert (jobs.step()[0].handle, len(cluster.started)) == (job.handle, 1)
    jobs.cancel(1)
    jobs.restart(cluster, known=False)
    assert jobs.step()[0].state == "cancelled"
    assert (cluster.stopped, len(cluster.started)) == ([job.handle], 1)


def test_submitit_runs_a_job_and_says_how_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As processes of this machine, which take seconds to start: there is no SLURM here."""
    jobs = Queue(tmp_path, Slurm(tmp_path / "slurm", threads=1, kind="local"))
    code = "import os, sys; print('at work', *map(os.environ.get, ('OMP_NUM_THREADS', 'MITIGATE_TOKEN'))); sys.exit(2)"
    number = jobs.submit(sys.executable, "-c", code)
    monkeypatch.setenv("MITIGATE_TOKEN", "secret")
    found = jobs.ended(number)
    assert (found.state, found.exit, found.error) == ("failed", 2, "exit status 2: at work 1 None")
    assert log_of(tmp_path, found).read_text() == "at work 1 None\n"
    again = Slurm(tmp_path / "slurm", kind="local")  # after a restart of the service
    assert again.state(found.handle) == 2


COMMANDS = {  # of SLURM, as far as submitit calls them
    "srun": "",
    "sbatch": "cp $1 $0.script; echo Submitted batch job 7",
    "scancel": "echo $@ > $0.said",
    "sacct": "echo 'JobID|State|NodeList'; echo '7|RUNNING|n1'",
}


def test_what_slurm_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By fakes of its commands."""
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    engine = Slurm(tmp_path / "slurm", threads=8, gpus=1, memory=1.5, minutes=90, partition="gpu")
    assert engine.start("mitigate-1", ["true"], tmp_path / "1.log") == "7"
    script = (tmp_path / "sbatch.script").read_text()
    asked = {line.removeprefix("#SBATCH --") for line in script.splitlines() if line.startswith("#SBATCH")}
    assert {
        *("job-name=mitigate-1", "dependency=singleton", "partition=gpu", "time=90", "cpus-per-task=8"),
        *("gpus-per-node=1", "mem=1536MB", "nodes=1"),
    } <= asked
    assert engine.state("7") is None
    engine.stop("7")
    assert (tmp_path / "scancel.said").read_text() == "7\n"
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho Submitted batch job 8\n")
    for same in (engine, Slurm(tmp_path / "slurm")):  # also after a restart of the service
        assert same.start("mitigate-1", ["true"], tmp_path / "1.log") == "7"
        assert (same.find("mitigate-1"), same.find("mitigate-11")) == ("7", None)
    assert engine.start("mitigate-11", ["true"], tmp_path / "11.log") == "8"
    (tmp_path / "slurm" / "8_submitted.pkl").unlink()  # as a kill leaves it: that job has no command
    assert engine.find("mitigate-11") is None


def test_slurm_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/absent")
    with pytest.raises(MitigateError, match="serve.engine=slurm finds no SLURM here .*; start the service where sba"):
        Slurm(tmp_path)
    monkeypatch.setattr("mitigate.errors.find_spec", lambda name: None)
    with pytest.raises(MitigateError, match=r"serve.engine=slurm needs submitit: pip install 'mitigate\[slurm\]'"):
        Slurm(tmp_path)
