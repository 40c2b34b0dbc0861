"""Jobs as processes: started, watched, cancelled, started again, and taken over from workers that were killed; and
jobs of SLURM, whose commands are fakes. Each process takes seconds."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import until

from mitigate.serve import worker
from mitigate.serve.queue import Job, Queue
from mitigate.serve.worker import Worker, last_lines, log_of, start_jobs


class Service:
    """A queue whose jobs are started by a thread."""

    def __init__(self, folder: Path) -> None:
        self.queue = Queue(folder / "queue.sqlite")
        self.stop = threading.Event()
        self.thread = threading.Thread(target=start_jobs, args=(self.queue, 2, 3, None, self.stop))

    def submit(self, code: str, *arguments: object) -> int:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return self.queue.submit("fake", {}, command, None).id

    def ended(self, number: int) -> Job:
        until(lambda: self.queue.read(number).ended)
        return self.queue.read(number)

    def said(self, number: int) -> str:
        path = log_of(self.queue, self.queue.read(number))
        return path.read_text() if path.exists() else ""

    def works(self, number: int) -> bool:
        return "at work" in self.said(number)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    made.thread.start()
    yield made
    for job in made.queue.latest():
        made.queue.cancel(job.id)
    until(lambda: all(job.ended for job in made.queue.latest()))
    made.stop.set()
    made.thread.join()


def test_a_job_is_done_and_its_output_and_run_folder_are_known(service: Service, monkeypatch) -> None:
    job = service.submit("import os; print('  run folder  RUN'); print(*map(os.environ.get, ('OMP_NUM_THREADS', 'A')))")
    found = service.ended(job)
    assert (found.state, found.exit, found.folder, found.starts, found.error) == ("done", 0, "RUN", 1, None)
    assert last_lines(log_of(service.queue, found)) == ["  run folder  RUN", "3 None"]


DIES = "import os; print('at work', flush=True); os.kill(os.getpid(), 9)"
ONCE = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); known = p.exists(); p.touch(); sys.exit(0 if known else 1)"
FAILS = "import sys; sys.exit(sys.stderr.write('mitigate: data.root is no folder\\nmore\\n') and 2)"
ENDS = {  # code of a job: its state, exit status, starts, error
    FAILS: ("failed", 2, 1, "exit status 2: data.root is no folder"),  # one that can be corrected, at once
    DIES: ("failed", -9, 2, "killed by SIGKILL: at work"),
    ONCE: ("done", 0, 2, None),
}


@pytest.mark.parametrize("code", ENDS, ids=["a fault", "killed", "dies once"])
def test_a_job_that_dies_is_started_once_more_and_then_fails_with_its_output(code, service, tmp_path) -> None:
    found = service.ended(service.submit(code, tmp_path / "known"))
    assert (found.state, found.exit, found.starts, found.error) == ENDS[code]


ASLEEP = "import time\ntry:\n  print('at work', flush=True); time.sleep(600)\n"
ASLEEP += "except KeyboardInterrupt: print('stopped')"


def test_a_running_job_is_cancelled_as_by_ctrl_c(service: Service) -> None:
    job = service.submit(ASLEEP)
    until(lambda: service.works(job))
    service.queue.cancel(job)
    found = service.ended(job)
    assert (found.state, found.error, service.said(job)) == ("cancelled", None, "at work\nstopped\n")


def test_a_job_that_does_not_listen_is_killed_with_what_it_started(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(worker, "SIGNALS", [(sent, 0.2) for sent, _ in worker.SIGNALS])
    monkeypatch.setattr(worker, "BEAT", 0.05)
    stubborn = (
        "import os, signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\n"
        "child = os.fork()\nif child: print(child, 'at work', flush=True)\ntime.sleep(600)"
    )
    service = Service(tmp_path)
    job = service.submit(stubborn)
    thread = threading.Thread(target=Worker(service.queue, service.queue.claim("here", 1), "here").work)
    thread.start()
    until(lambda: service.works(job))
    service.queue.cancel(job)
    thread.join(60)
    assert (service.queue.read(job).state, service.queue.read(job).exit) == ("cancelled", -9)
    until(lambda: has_ended(int(service.said(job).split()[0])))


def has_ended(process: int) -> bool:
    """Whether a process is gone, or a zombie that waits for its parent."""
    path = Path(f"/proc/{process}/stat")
    return not path.exists() or path.read_text().split()[2] == "Z"


RESUMES = """
import os, pathlib, sys, time
print("at work", os.getpid(), os.getppid(), flush=True)
while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)
"""


def test_a_job_dies_with_its_worker_and_another_starts_it_again(service: Service, tmp_path: Path) -> None:
    job = service.submit(RESUMES, tmp_path / "go")
    until(lambda: service.works(job))
    process, parent = map(int, service.said(job).split()[2:4])
    os.kill(parent, signal.SIGKILL)
    until(lambda: has_ended(process))
    end_lease(service.queue)
    until(lambda: service.said(job).count("at work") == 2)
    (tmp_path / "go").touch()
    found = service.ended(job)
    assert (found.state, found.exit, found.starts) == ("done", 0, 2)


def end_lease(queue: Queue) -> None:
    with queue._table() as table:
        table.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")


def test_a_worker_starts_no_job_that_is_lost_held_by_another_or_was_killed_each_time(tmp_path, monkeypatch) -> None:
    """A job inherits no token either."""
    service = Service(tmp_path)
    job = service.submit("print('started')")
    claimed = service.queue.claim("another", 1)
    Worker(service.queue, claimed, "first").work()
    assert (service.queue.read(job).state, service.said(job)) == ("running", "")
    monkeypatch.setattr(worker, "MOST_STARTS", 3)
    for _ in range(3):
        service.queue.note(job, "another", started=True)
    with log_of(service.queue, claimed).open() as held:
        assert worker._is_locked(held.fileno())
        thread = threading.Thread(target=Worker(service.queue, claimed, "another").work)
        thread.start()
        thread.join(1)
        assert service.queue.read(job).state == "running"
    thread.join()
    found = service.queue.read(job)
    assert (found.state, found.error) == ("failed", "it was started 3 times, and killed each time")


COMMANDS = {  # of SLURM: one that runs a job at once, without its output, and lists what `listed` has
    "sbatch": 'echo "$@" >>$0.said; for word; do last=$word; done; sh -c "${last#--wrap=}"',
    "scancel": 'echo "$@" >$0.said; rm -f $(dirname $0)/listed',
    "squeue": "cat $(dirname $0)/listed 2>/dev/null; [ ! -e $(dirname $0)/fault ]",
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    """A maker of workers whose jobs are SLURM's, which is a fake in tmp_path."""
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(worker, "ASK_EVERY", 0.1)
    monkeypatch.setattr(worker, "BEAT", 0.05)
    queue = Queue(tmp_path / "queue.sqlite")

    def made(code: str) -> Worker:
        queue.submit("fake", {}, [sys.executable, "-c", code], None)
        return Worker(queue, queue.claim("w", 9), "w", ["gpus=1", "time=90"])

    return made


def test_slurm_is_asked_for_a_job_and_its_status_is_that_of_the_command(cluster, tmp_path: Path) -> None:
    work = cluster("import sys; print('  run folder  R'); print('mitigate: it\\'s wrong'); sys.exit(2)")
    (tmp_path / "fault").write_text("1")  # SLURM does not answer at first
    thread = threading.Thread(target=work.work)
    thread.start()
    thread.join(0.5)
    assert not (tmp_path / "sbatch.said").exists()
    (tmp_path / "fault").unlink()
    thread.join(60)
    asked = (tmp_path / "sbatch.said").read_text()
    assert f"--job-name=mitigate-{work.job.name} --dependency=singleton --requeue" in asked
    assert "--gpus=1 --time=90" in asked
    found = work.queue.read(work.job.id)
    assert (found.state, found.exit, found.folder, found.starts) == ("failed", 2, "R", 1)
    assert found.error == "exit status 2: it's wrong"


def test_a_job_of_slurm_that_was_submitted_before_is_found_again_and_cancelled(cluster, tmp_path: Path) -> None:
    work = cluster("")
    (tmp_path / "listed").write_text("RUNNING\n")
    work.queue.cancel(work.job.id)
    work.log.touch()
    assert work._watch(worker.Slurm([], work.log, [])) == worker.GONE
    assert not (tmp_path / "sbatch.said").exists()  # not submitted again
    assert f"--name=mitigate-{work.job.name}" in (tmp_path / "scancel.said").read_text()
