"""Jobs of the service on a real SLURM: a controller and a node that the test starts on this machine, as its own user,
with no accounting."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mitigate.serve import queue
from mitigate.serve.dispatcher import Dispatcher
from mitigate.serve.queue import Job
from mitigate.serve.slurm import Remote, Slurm
from mitigate.serve.worker import log_of

PROGRAMS = ("slurmctld", "slurmd", "slurmstepd", "sbatch", "srun")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
PluginDir={plugins}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=60 State=UP PriorityTier=1
PartitionName=high Nodes={host} MaxTime=60 State=UP PriorityTier=9
"""
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="needs SLURM: apt-get install slurmctld slurmd slurm-client"
)


PATIENCE = 120.0  # seconds
COUNTS = """
import pathlib, sys, time
run, most = pathlib.Path(sys.argv[1]), int(sys.argv[2])
run.mkdir(exist_ok=True)
print(f"  run folder  {run}", flush=True)
for number in range(len(list(run.glob("step-*"))), most):  # goes on from where it stopped
    time.sleep(0.2)
    (run / f"step-{number}").touch()
    print("step", number, flush=True)
(run / "manifest.json").touch()
"""


def until(condition: Callable[[], bool], log: Path | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, log.read_text()[-3000:] if log else ""
        time.sleep(0.2)


class Service:
    """A queue whose dispatcher gives jobs to SLURM, stepped by hand."""

    def __init__(self, place: Path) -> None:
        self.path = place / "queue.sqlite"
        self.slurm = place / "slurm"
        self.restart()

    def restart(self) -> None:
        """Start the dispatcher again, as after a kill: the queue alone keeps the jobs, and their leases have ended."""
        with queue.opened(self.path) as table:
            table.execute("UPDATE jobs SET lease = 0")
        self.dispatcher = Dispatcher(self.path, 2, Remote(self.path, Slurm(self.slurm, minutes=5)))

    def submit(self, run: Path, steps: int) -> int:
        with queue.opened(self.path) as table:
            command = [sys.executable, "-c", COUNTS, str(run), str(steps)]
            return queue.submit(table, "fake", {}, command, owner="ann")

    def job(self, number: int) -> Job:
        self.dispatcher.step()
        with queue.opened(self.path) as table:
            found = queue.read(table, number)
        assert found
        return found


def steps(run: Path) -> int:
    return len(list(run.glob("step-*")))


def said(place: Path, job: Job) -> list[str]:
    """The numbers of steps that the output of a job names, in order."""
    lines = (line.split() for line in log_of(place, job).read_text().splitlines())
    return [line[1] for line in lines if line[0] == "step"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A SLURM of one machine with one processor, and a partition that preempts the other."""
    pytest.importorskip("submitit", reason="needs submitit, of the extra [slurm]")
    place, host = tmp_path_factory.mktemp("slurm"), socket.gethostname().partition(".")[0]
    programs = {name: Path(shutil.which(name) or name) for name in PROGRAMS}
    (plugins,) = programs["slurmd"].resolve().parents[1].glob("lib/*/slurm-wlm")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        ports = [free.getsockname()[1] for free in (one, two)]
    user = os.environ.get("USER", "root") if os.getuid() else "root"
    given = {"host": host, "ports": ports, "user": user, "plugins": plugins, "place": place}
    (place / "slurm.conf").write_text(CONFIGURATION.format(**given))
    for name in ("state", "spool"):
        (place / name).mkdir()
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(place / "slurm.conf")
    stepd = programs["slurmstepd"].resolve()
    lines = [["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", host, "-d", str(stepd)]]
    with (place / "log").open("wb") as log:
        daemons = [subprocess.Popen(line, stdout=log, stderr=log, start_new_session=True) for line in lines]
        try:
            until(lambda: "idle" in answer("sinfo", "--noheader", "-o", "%T"), place / "log")
            yield place
        finally:
            for daemon in reversed(daemons):
                daemon.send_signal(signal.SIGTERM)
                daemon.wait(30)
            os.environ.pop("SLURM_CONF")
            if before is not None:
                os.environ["SLURM_CONF"] = before


def answer(*line: str) -> str:
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout


def test_a_preempted_job_is_queued_again_and_goes_on_also_when_the_service_is_killed(slurm: Path, tmp_path) -> None:
    """SLURM looks for work once in a second or two, so the test takes some."""
    service, run = Service(tmp_path), tmp_path / "run"
    number = service.submit(run, 30)
    until(lambda: service.job(number).folder is not None and steps(run) > 2)
    handle = service.job(number).handle
    assert answer("squeue", "--noheader", "-o", "%i %T").split() == [handle, "RUNNING"]
    subprocess.run(["sbatch", "-p", "high", "--wrap", "sleep 2", "-o", "/dev/null"], check=True, capture_output=True)
    until(lambda: f"{handle} PENDING" in answer("squeue", "--noheader", "-o", "%i %T"))
    done = steps(run)
    assert 2 < done < 30
    subprocess.run(["scontrol", "update", f"JobId={handle}", "StartTime=now"], check=True)  # or it waits for minutes
    assert service.job(number).state == "running"
    service.restart()
    until(lambda: service.job(number).ended is not None, slurm / "log")
    found = service.job(number)
    assert (found.state, found.exit, found.handle, found.starts, found.owner) == ("done", 0, handle, 1, "ann")
    numbers = said(tmp_path, found)
    assert set(numbers) == set(map(str, range(30)))
    assert len(numbers) < 33  # it went on: no step but the one that was cut off was done twice


def test_a_running_job_is_cancelled_without_accounting(slurm: Path, tmp_path: Path) -> None:
    service, run = Service(tmp_path), tmp_path / "run"
    number = service.submit(run, 10_000)
    until(lambda: steps(run) > 1 or service.job(number).handle is None)
    with queue.opened(service.path) as table:
        queue.cancel(table, number)
    until(lambda: service.job(number).ended is not None, slurm / "log")
    assert service.job(number).state == "cancelled"
    assert "RUNNING" not in answer("squeue", "--noheader", "-o", "%T")
