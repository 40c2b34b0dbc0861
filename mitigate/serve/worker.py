"""The worker of one job: a process of its own that starts the job's command, watches it and ends it.

    python -m mitigate.serve.worker QUEUE JOB WORKER [slurm [OPTION=VALUE ...]]        (options of sbatch)

It runs in a session of its own and outlives the service. A command of this machine dies with its worker; another worker
then starts it again, and it resumes. A worker holds a lock on the job's output (flock) while it works, so a slow one
and its successor do not start two commands."""

import ctypes
import fcntl
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mitigate.child_processes import signal_name
from mitigate.errors import escaped
from mitigate.serve.queue import Job, Queue

BEAT = 1.0  # seconds between two heartbeats
LOOK = 0.1  # seconds between two looks at a command of this machine
ASK_EVERY = 5.0  # seconds between two calls of squeue
MOST_DEATHS = 2  # that one worker has seen
MOST_STARTS = 10  # also by workers that were killed
CORRECTABLE = 2  # the exit status of a fault that a user can correct
SIGNALS = ((signal.SIGINT, 10.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 60.0))  # seconds until the next is sent
GONE = -int(signal.SIGXCPU)  # the status of a job that SLURM lists no more and that left none: it was out of time
RUN_FOLDER = re.compile(r"^  run folder  (.+)$", re.MULTILINE)  # as recipes print it
PRINTED_FIRST = 1 << 16  # bytes of the output in which the run folder is named
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")


class Local:
    """A command of this machine, in a process group of its own, which the system ends with its worker."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            options: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "preexec_fn": _prepare}
            self.process = subprocess.Popen(command, start_new_session=True, **options)

    def poll(self) -> int | None:
        """The exit status; what the command has left running is killed."""
        status = self.process.poll()
        if status is not None:
            self.end(signal.SIGKILL)
        return status

    def end(self, sent: signal.Signals) -> None:
        """Send a signal to the process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, sent)


def _prepare() -> None:
    """End with the worker, and listen to Ctrl-C, which a service in the background of a script may ignore."""
    death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Slurm:
    """A command of SLURM, by sbatch. It is known by its name, so that one which was submitted before its worker was
    killed is found again. SLURM itself queues a preempted job again; its status is then not written. Of jobs of one
    name SLURM runs one at a time (singleton)."""

    def __init__(self, command: Sequence[str], log: Path, options: Sequence[str]) -> None:
        self.name = f"mitigate-{log.stem}"
        self.status = log.with_suffix(".status")
        line = f"{shlex.join(command)} >>{shlex.quote(str(log))} 2>&1; s=$?; "
        line += f"[ $s -eq {128 + signal.SIGTERM} ] || echo $s >{shlex.quote(str(self.status))}"
        always = [f"--job-name={self.name}", "--dependency=singleton", "--requeue", "--output=/dev/null"]
        self.line = ["sbatch", *always, *(f"--{option}" for option in options), f"--wrap={line}"]
        self.asked, self.missing, self.is_known = 0.0, 0, False

    def poll(self) -> int | None:
        """The status that the command left, or GONE once SLURM has twice listed no such job. A job that SLURM does not
        list at first is submitted."""
        if time.monotonic() < self.asked + ASK_EVERY:
            return None
        self.asked = time.monotonic()
        line = ["squeue", "--me", "--noheader", f"--name={self.name}", "--format=%T"]
        answer = subprocess.run(line, check=False, capture_output=True, text=True)
        is_listed = bool(answer.stdout.strip()) if answer.returncode == 0 else None  # None: SLURM does not answer
        if self.status.exists() and (written := self.status.read_text().strip()):
            self.status.unlink()
            return int(written)
        if is_listed is False and not self.is_known:
            subprocess.run(self.line, check=True, capture_output=True)
        self.missing = self.missing + 1 if is_listed is False and self.is_known else 0
        self.is_known = self.is_known or is_listed is not None
        return GONE if self.missing > 1 else None

    def end(self, sent: signal.Signals) -> None:
        """Have SLURM end the job, by its own signals."""
        subprocess.run(["scancel", "--me", f"--name={self.name}"], check=False, capture_output=True)


class LostError(Exception):
    """The job belongs to another worker now."""


class Worker:
    """A worker and its job. options: those of sbatch; None for this machine."""

    def __init__(self, queue: Queue, job: Job, name: str, options: Sequence[str] | None = None) -> None:
        self.queue, self.job, self.name, self.options = queue, job, name, options
        self.log = log_of(queue, job)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.beaten, self.is_cancelled, self.folder = 0.0, False, job.folder

    def work(self) -> None:
        """Run the command, again after it was killed, until the job has ended or belongs to another worker."""
        with self.log.open("ab") as held, suppress(LostError):
            while not _is_locked(held.fileno()):
                self.beat()
                time.sleep(LOOK)
            deaths = 0
            while True:
                status, fault = self._run()
                deaths += status != GONE
                if status in (None, 0, CORRECTABLE) or deaths == MOST_DEATHS or self.is_cancelled:
                    break
            self.queue.finish(self.job.id, self.name, status, fault)

    def _run(self) -> tuple[int | None, str | None]:
        """Start the command and wait for its end; its exit status, and a sentence about a failure."""
        self.beat(now=True)
        starts = self.queue.read(self.job.id).starts  # type: ignore[union-attr]
        if self.is_cancelled:
            return None, None
        if starts >= MOST_STARTS:
            return None, f"it was started {starts} times, and killed each time"
        self.queue.note(self.job.id, self.name, started=True)
        try:
            command, options = self.job.command, self.options
            status = self._watch(Local(command, self.log) if options is None else Slurm(command, self.log, options))
        except (OSError, subprocess.CalledProcessError) as error:
            message = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
            return None, f"it cannot be started: {escaped(message) or error}"
        if status == 0:
            return status, None
        ended = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
        printed = [line for line in last_lines(self.log) if line.strip()] or ["it printed nothing"]
        messages = [line.removeprefix("mitigate: ") for line in printed if line.startswith("mitigate: ")]
        return status, f"{ended}: {(messages or printed)[-1][:500]}"

    def _watch(self, process: Local | Slurm) -> int:
        """Wait for the end of a command, and end it if the job is cancelled."""
        signals, due = list(SIGNALS), 0.0
        while (status := process.poll()) is None:
            self.beat()
            if self.is_cancelled and time.monotonic() >= due:
                sent, patience = signals.pop(0) if len(signals) > 1 else signals[0]
                process.end(sent)
                due = time.monotonic() + patience
            time.sleep(LOOK)
        self.beat(now=True)
        return status

    def beat(self, now: bool = False) -> None:
        """Renew the lease when it is time, and record the run folder once the output names it. Raises LostError."""
        if not now and time.monotonic() < self.beaten + BEAT:
            return
        self.beaten = time.monotonic()
        with suppress(sqlite3.OperationalError):  # a busy disk: the lease is longer than a beat
            answer = self.queue.renew(self.job.id, self.name)
            if answer == "lost":
                raise LostError
            self.is_cancelled = answer == "cancel"
            with self.log.open("rb") as file:
                printed = file.read(PRINTED_FIRST if self.folder is None else 0).decode("utf-8", errors="replace")
            if named := RUN_FOLDER.search(printed):
                self.folder = named[1]
                self.queue.note(self.job.id, self.name, folder=self.folder)


def _is_locked(file: int) -> bool:
    """Return whether this process has the lock of a file now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def log_of(queue: Queue, job: Job) -> Path:
    """The output of a job."""
    return queue.path.parent / "jobs" / f"{job.name}.log"


def last_lines(path: Path, most: int = 40, longest: int = 1 << 16) -> list[str]:
    """The last lines of an output, without what steers a terminal; none where there is no file."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - longest))
        lines = file.read().decode("utf-8", errors="replace").removesuffix("\n").split("\n")
    return [escaped(line.rstrip("\r").rpartition("\r")[2]) for line in lines[-most:]]  # of a bar the last state


def start_jobs(
    queue: Queue, slots: int, threads: int | None, sbatch: Sequence[str] | None, stop: threading.Event
) -> None:
    """Start a worker for each job that may run, `slots` at once, until `stop` is set. The queue alone has the state.
    threads: of each job; sbatch: its options, None for this machine."""
    inherited = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    environment = inherited | (dict.fromkeys(THREADS, str(threads)) if threads else {})
    workers: list[subprocess.Popen[bytes]] = []
    while not stop.wait(0.5):
        workers = [worker for worker in workers if worker.poll() is None]  # no zombie stays
        try:
            while job := queue.claim(name := uuid.uuid4().hex, slots):
                line = [sys.executable, "-m", "mitigate.serve.worker", str(queue.path), str(job.id), name]
                line += [] if sbatch is None else ["slurm", *sbatch]
                with (queue.path.parent / "workers.log").open("ab") as output:
                    streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
                    workers.append(subprocess.Popen(line, start_new_session=True, env=environment, **streams))
        except (OSError, sqlite3.Error) as error:  # a full disk, no more processes: the service still answers
            sys.stderr.write(f"mitigate: no job can be started now: {error}\n")
            stop.wait(5)
    for worker in workers:
        worker.returncode = 0  # it outlives the service, and Python does not warn of it


if __name__ == "__main__":
    path, number, name, *options = sys.argv[1:]
    queue = Queue(Path(path))
    job = queue.read(int(number))
    assert job is not None
    Worker(queue, job, name, options[1:] if options else None).work()
