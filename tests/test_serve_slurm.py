"""Jobs of the service on a real SLURM: a controller and a node that the test starts on this machine, as its own user,
with no accounting."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import processes, until

from mitigate.serve.queue import Job, Queue
from mitigate.serve.worker import log_of, start_jobs

PROGRAMS = ("slurmctld", "slurmd", "slurmstepd", "sbatch", "squeue")
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


COUNTS = """
import pathlib, sys, time
run, most = pathlib.Path(sys.argv[1]), int(sys.argv[2])
run.mkdir(exist_ok=True)
print(f"  run folder  {run}", flush=True)
for number in range(len(list(run.glob("step-*"))), most):  # goes on from where it stopped
    time.sleep(0.2)
    (run / f"step-{number}").touch()
    print("step", number, flush=True)
"""


def kill_workers(queue: Queue) -> None:
    """As a crash of the service's machine leaves the queue: without workers, and their leases have ended."""
    for process in processes("mitigate.serve.worker", str(queue.path)):
        os.kill(process, signal.SIGKILL)
    with queue._table() as table:
        table.execute("UPDATE jobs SET lease = 0")


@pytest.fixture
def queue(slurm: Path, tmp_path: Path) -> Iterator[Queue]:
    """A queue whose jobs are given to SLURM."""
    made, stop = Queue(tmp_path / "queue.sqlite"), threading.Event()
    thread = threading.Thread(target=start_jobs, args=(made, 2, None, ["time=5"], stop))
    thread.start()
    yield made
    stop.set()
    thread.join()


def submit(queue: Queue, run: Path, number: int) -> int:
    return queue.submit("fake", {}, [sys.executable, "-c", COUNTS, str(run), str(number)], "ann").id


def steps(run: Path) -> int:
    return len(list(run.glob("step-*")))


def said(queue: Queue, job: Job) -> list[str]:
    """The numbers of steps that the output of a job names, in order."""
    lines = (line.split() for line in log_of(queue, job).read_text().splitlines())
    return [line[1] for line in lines if line[:1] == ["step"]]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A SLURM of one machine with one processor, and a partition that preempts the other."""
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
            until(lambda: "idle" in answer("sinfo", "--noheader", "-o", "%T"))
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


def test_a_preempted_job_is_queued_again_and_resumes_also_when_its_worker_is_killed(queue: Queue, tmp_path) -> None:
    """SLURM looks for work once in a second or two, so the test takes some."""
    run = tmp_path / "run"
    number = submit(queue, run, 30)
    until(lambda: queue.read(number).folder is not None and steps(run) > 2)
    name = f"mitigate-{queue.read(number).name}"
    handle, listed = answer("squeue", "--noheader", "-o", "%i %j").split()
    assert listed == name
    subprocess.run(["sbatch", "-p", "high", "--wrap", "sleep 2", "-o", "/dev/null"], check=True, capture_output=True)
    until(lambda: f"{handle} PENDING" in answer("squeue", "--noheader", "-o", "%i %T"))
    done = steps(run)
    assert 2 < done < 30
    kill_workers(queue)
    subprocess.run(["scontrol", "update", f"JobId={handle}", "StartTime=now"], check=True)  # or it waits for minutes
    until(lambda: queue.read(number).ended is not None)
    found = queue.read(number)
    assert (found.state, found.exit, found.owner) == ("done", 0, "ann")
    numbers = said(queue, found)
    assert set(numbers) == set(map(str, range(30)))
    assert len(numbers) < 33  # it resumed: no step but the one that was cut off was done twice


def test_a_running_job_is_cancelled(queue: Queue, tmp_path: Path) -> None:
    number = submit(queue, tmp_path / "run", 10_000)
    until(lambda: steps(tmp_path / "run") > 1)
    queue.cancel(number)
    until(lambda: queue.read(number).ended is not None)
    assert queue.read(number).state == "cancelled"
    assert "RUNNING" not in answer("squeue", "--noheader", "-o", "%T")
