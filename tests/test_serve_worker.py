"""Jobs as processes: started, watched, cancelled, started again, and taken over from workers that were killed. The
commands are fakes of a second."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mitigate.serve import queue, worker
from mitigate.serve.dispatcher import Dispatcher, Local, environment
from mitigate.serve.queue import Job
from mitigate.serve.worker import last_lines, log_of

PATIENCE = 60.0  # seconds: a busy machine is slow


class Service:
    """A queue with its dispatcher, which is stepped by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "a run"  # which is complete
        self.run.mkdir()
        (self.run / "manifest.json").touch()
        self.path = folder / "queue.sqlite"
        self.engine = Local(self.path)
        self.dispatcher = Dispatcher(self.path, 2, self.engine)

    def submit(self, code: str, *arguments: object) -> int:
        with queue.opened(self.path) as table:
            command = [sys.executable, "-c", code.replace("RUN", str(self.run)), *map(str, arguments)]
            return queue.submit(table, "fake", {}, command)

    def started(self, code: str, *arguments: object) -> int:
        number = self.submit(code, *arguments)
        self.dispatcher.step()
        return number

    def job(self, number: int) -> Job:
        with queue.opened(self.path) as table:
            found = queue.read(table, number)
        assert found
        return found

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, (self.folder / "workers.log").read_text()
            time.sleep(0.02)

    def ended(self, number: int) -> Job:
        self.until(lambda: self.job(number).ended is not None)
        return self.job(number)

    def said(self, number: int) -> str:
        path = log_of(self.folder, self.job(number))
        return path.read_text() if path.exists() else ""

    def cancel(self, number: int) -> None:
        with queue.opened(self.path) as table:
            queue.cancel(table, number)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    for process in made.engine.workers:
        assert process.wait(PATIENCE) is not None


def test_a_job_is_done_and_its_output_and_run_folder_are_known(service: Service) -> None:
    job = service.submit("import os; print('  run folder  RUN'); print('x' * 9, os.environ['OMP_NUM_THREADS'])")
    service.engine.threads = 3
    assert service.dispatcher.step() == 1
    found = service.ended(job)
    assert (found.state, found.exit, found.folder, found.starts, found.error) == ("done", 0, str(service.run), 1, None)
    assert last_lines(log_of(service.folder, found)) == [f"  run folder  {service.run}", "xxxxxxxxx 3"]
    assert service.dispatcher.step() == 0


DIES = "import os; print('at work', flush=True); os.kill(os.getpid(), {})"
ONCE = (
    "import sys, pathlib; p = pathlib.Path('known'); known = p.exists(); p.touch(); print('  run folder  RUN');"
    "sys.exit(0 if known else 1)"
)
FAILS = "import sys; sys.exit(sys.stderr.write('mitigate: data.root is no folder\\nmore\\n') and 2)"
EARLY = "import os; print('  run folder  /srv/no run', flush=True); os._exit(0)"
NO_RUN = "before its run was complete: no manifest.json in /srv/no run; code that it ran may have called os._exit"
ENDS = {  # code of a job: its state, exit status, starts, deaths, error
    FAILS: ("failed", 2, 1, 0, "exit status 2: data.root is no folder"),  # one that can be mended, at once
    DIES.format(9): ("failed", -9, 2, 2, "killed by SIGKILL: at work"),
    ONCE: ("done", 0, 2, 1, None),
    EARLY: ("failed", 0, 1, 0, f"the process ended with status 0 {NO_RUN}"),
}


@pytest.mark.parametrize("code", ENDS, ids=["a fault", "killed", "dies once", "no run"])
def test_a_job_that_dies_is_started_once_more_and_then_fails_with_its_log(code, service, tmp_path, monkeypatch) -> None:
    """Processes start, which takes seconds: a worker, and the job once or twice."""
    monkeypatch.chdir(tmp_path)
    job = service.started(code)
    found = service.ended(job)
    assert (found.state, found.exit, found.starts, found.deaths, found.error) == ENDS[code]
    assert "at work" not in code or service.said(job) == "at work\nat work\n"


ASLEEP = "import time\ntry:\n  print('asleep', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: print('stopped')"


def test_a_running_job_is_cancelled_as_by_ctrl_c(service: Service) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a script
    try:
        job = service.started(ASLEEP)
    finally:
        signal.signal(signal.SIGINT, before)
    service.until(lambda: "asleep" in service.said(job))
    service.cancel(job)
    found = service.ended(job)
    assert (found.state, found.error) == ("cancelled", None)
    assert service.said(job) == "asleep\nstopped\n"


def test_a_job_that_does_not_listen_is_killed_with_what_it_started(service: Service, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(worker, "PRESSES", [(sent, 0.2) for sent, _ in worker.PRESSES])
    monkeypatch.setattr(worker, "BEAT", 0.05)
    stubborn = (
        "import os, signal, time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\n"
        "child = os.fork()\nif child: print(child, flush=True)\ntime.sleep(600)"
    )
    job = service.submit(stubborn)
    with queue.opened(service.path) as table:
        assert queue.claim(table, "here", 1)
    thread = threading.Thread(target=worker.work, args=(service.path, job, "here"))
    thread.start()
    service.until(lambda: service.said(job).endswith("\n"))
    service.cancel(job)
    thread.join(PATIENCE)
    assert (service.job(job).state, service.job(job).exit) == ("cancelled", -9)
    child = Path(f"/proc/{service.said(job).strip()}/stat")
    service.until(lambda: not child.exists() or child.read_text().split()[2] == "Z")


RESUMES = """
import pathlib, sys, time
began, complete, go = map(pathlib.Path, sys.argv[1:])
print("  run folder  RUN", flush=True)
with began.open("a") as file: file.write("x")
if complete.exists(): sys.exit(print("complete"))
print("at work", flush=True)
while not go.exists(): time.sleep(0.02)
complete.touch()
"""


def test_a_worker_that_is_killed_ends_no_job_and_its_command_is_not_started_beside_itself(service, tmp_path) -> None:
    began, complete, go = (tmp_path / name for name in ("began", "complete", "go"))
    job = service.started(RESUMES, began, complete, go)
    service.until(lambda: "at work" in service.said(job))
    (process,) = service.engine.workers
    process.kill()
    process.wait()
    with queue.opened(service.path) as table:
        table.execute("UPDATE jobs SET lease = 0 WHERE state = 'running'")
    assert service.dispatcher.step() == 1
    taken = service.job(job)
    service.until(lambda: service.job(job).lease != taken.lease)  # the new worker is at it, and waits
    time.sleep(0.5)
    assert (began.read_text(), service.job(job).state) == ("x", "running")
    go.touch()
    found = service.ended(job)
    assert (found.state, found.exit, found.starts, found.deaths) == ("done", 0, 2, 0)
    assert (began.read_text(), service.said(job).splitlines()[1::2]) == ("xx", ["at work", "complete"])


def test_a_worker_starts_no_job_that_it_has_lost_or_that_was_killed_each_time(service: Service, monkeypatch) -> None:
    """A job inherits no token either."""
    job = service.submit("print('started')")
    with queue.opened(service.path) as table:
        queue.claim(table, "another", 1)
    worker.work(service.path, job, "first")
    assert (service.job(job).state, service.job(job).starts, service.said(job)) == ("running", 0, "")
    assert environment({"MITIGATE_TOKEN": "secret", "HOME": "/root"}, None) == {"HOME": "/root"}
    assert environment({"OMP_NUM_THREADS": "9"}, 2)["OMP_NUM_THREADS"] == "2"
    monkeypatch.setattr(worker, "MOST_STARTS", 3)
    with queue.opened(service.path) as table:
        queue.note(table, job, "another", starts=3)
    worker.work(service.path, job, "another")
    found = service.job(job)
    assert (found.state, found.error) == ("failed", "it was started 3 times, and killed each time")
