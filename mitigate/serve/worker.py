"""The worker of one job: a process of its own that starts the job's command, watches it and ends it.

    python -m mitigate.serve.worker QUEUE JOB WORKER

It is started in a session of its own and outlives the service. The command runs in a process group of its own, with its
output in a file. Both hold the same lock on the job's lock file (flock, which a process inherits with the open file):
it is free only when both have ended, however they ended. So a worker that takes a job over from one that was killed
waits for the command that still runs, and never starts it a second time beside it. How a command ended that nobody
waited for is not known: the same command again finds its run complete, or goes on from where it stopped.

The command's exit status decides: 0 is done where the run is complete; 2 is a fault that its user can mend, failed at
once; anything else is a death, after which it is started once more."""

import fcntl
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from mitigate.runs.child_processes import EXITED, signal_name
from mitigate.serve import queue
from mitigate.serve.queue import Job, Renewed
from mitigate.words.outside_text import escaped

BEAT = 1.0  # seconds between two heartbeats
LOOK = 0.1  # seconds between two looks at the command
MOST_DEATHS = 2
MOST_STARTS = 100  # by workers that were killed with it, each time
RUN_FOLDER = re.compile(r"^  run folder  (.+)$", re.MULTILINE)  # as recipes say it (recipes/job.perform)
SAID_FIRST = 1 << 16  # bytes of the output in which the run folder is said
LONGEST_ERROR = 500
MENDABLE = 2  # the exit status of a fault that a user can mend (mitigate.__main__.cli)
PRESSES = ((signal.SIGINT, 10.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 60.0))
"""The signals that end a command, and the seconds until the next is sent."""


class LostError(Exception):
    """The job belongs to another worker now."""


def work(path: Path, number: int, worker: str) -> None:
    """Work on a job that this worker has claimed, until it has ended or belongs to another."""
    with queue.opened(path) as connection:
        job = queue.read(connection, number)
        assert job is not None
        with _lock_file(path.parent, job) as lock, suppress(LostError):
            Worker(connection, path.parent, job, worker, lock).work()


class Worker:
    """A job in hand."""

    def __init__(self, connection: sqlite3.Connection, place: Path, job: Job, name: str, lock: int) -> None:
        self.connection = connection
        self.log = log_of(place, job)
        self.number = job.id
        self.name = name
        self.lock = lock
        self.beaten = 0.0
        self.told: Renewed = "go on"
        self.is_found = False  # the run folder

    def work(self) -> None:
        """Run the job's command, again after it was killed, until the job has ended. Raises LostError when the job
        belongs to another worker."""
        self._wait_for_another()
        while True:
            if self._beat(now=True) == "cancel":
                return self._finish("cancelled")
            job = queue.read(self.connection, self.number)
            assert job is not None
            if job.starts >= MOST_STARTS:
                return self._finish("failed", error=f"it was started {job.starts} times, and killed each time")
            try:
                status = self._run(list(job.command))
            except OSError as error:
                return self._finish("failed", error=f"it cannot be started: {error}")
            if self.told == "cancel":
                return self._finish("cancelled", status)
            if status == 0:
                fault = incomplete(self.log)
                return self._finish("failed" if fault else "done", status, fault)
            queue.note(self.connection, self.number, self.name, deaths=int(status != MENDABLE))
            if status == MENDABLE or job.deaths + 1 >= MOST_DEATHS:
                return self._finish("failed", status, sentence(self.log, status))

    def _wait_for_another(self) -> None:
        """Take the lock; while the command of an earlier worker holds it, watch that one."""
        presses = _Presses(self._recorded)
        while not _taken(self.lock):
            if self._beat() == "cancel":
                presses.go_on()
            time.sleep(LOOK)
            self._find_folder()

    def _run(self, command: list[str]) -> int:
        """Start the command and wait for it; its exit status, negative for a signal."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        os.ftruncate(self.lock, 0)  # of an earlier command
        with self.log.open("ab") as output:
            queue.note(self.connection, self.number, self.name, starts=1)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[self.lock],
                preexec_fn=self._record,
            )
        presses = _Presses(lambda: process.pid)
        try:
            while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if self._beat() == "cancel":
                    presses.go_on()
                self._find_folder()
                time.sleep(LOOK)
            self._find_folder()
        finally:
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                _signal(process.pid, signal.SIGKILL)  # what it started; its own id is not given again before wait()
                process.wait()
        return process.returncode

    def _record(self) -> None:
        """Write the new process's id into the lock file, before the command begins, and let Ctrl-C end it: a service in
        the background of a script may ignore that signal."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.pwrite(self.lock, str(os.getpid()).encode(), 0)

    def _recorded(self) -> int | None:
        """The process group of the command that holds the lock. It is the command's while the lock is held."""
        text = os.pread(self.lock, 20, 0)
        return int(text) if text.isdigit() else None

    def _beat(self, now: bool = False) -> Renewed:
        """The heartbeat, when it is time; what the queue has said last. Raises LostError."""
        if now or time.monotonic() - self.beaten >= BEAT:
            self.beaten = time.monotonic()
            try:
                self.told = queue.renew(self.connection, self.number, self.name)
            except sqlite3.OperationalError:
                return self.told  # a busy disk: the lease is longer than a beat
            if self.told == "lost":
                raise LostError
        return self.told

    def _find_folder(self) -> None:
        """Tell the queue the run folder once the output names it."""
        if not self.is_found and (folder := run_folder(self.log)):
            self.is_found = True
            queue.note(self.connection, self.number, self.name, folder=folder)

    def _finish(
        self, state: Literal["done", "failed", "cancelled"], status: int | None = None, error: str | None = None
    ) -> None:
        queue.finish(self.connection, self.number, self.name, state, exit_status=status, error=error)


class _Presses:
    """The signals that end a process group, each sent when the previous one has had its time."""

    def __init__(self, group: Callable[[], int | None]) -> None:
        self.group = group
        self.left = list(PRESSES)
        self.until = 0.0

    def go_on(self) -> None:
        """Send the next signal, if it is time."""
        group = self.group()
        if group is None or time.monotonic() < self.until:
            return
        sent, patience = self.left[0]
        self.left = self.left[1:] or self.left
        self.until = time.monotonic() + patience
        _signal(group, sent)


def _signal(group: int, sent: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sent)


@contextmanager
def _lock_file(place: Path, job: Job) -> Iterator[int]:
    path = place / "jobs" / f"{job.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def log_of(place: Path, job: Job) -> Path:
    """The output of a job. place: the queue's folder."""
    return place / "jobs" / f"{job.name}.log"


def last_lines(path: Path, most: int = 40, longest: int = 1 << 16) -> list[str]:
    """The last lines of an output, without what steers a terminal; none where there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - longest))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = text.removesuffix("\n").split("\n") if text else []  # splitlines() would split a bar
    return [escaped(line.rstrip("\r").rpartition("\r")[2]) for line in lines[-most:]]  # of a bar the last state


def run_folder(log: Path, most: int = SAID_FIRST) -> str | None:
    """The run folder that an output names, once it does. most: bytes of the output that are read, -1 for all."""
    try:
        with log.open("rb") as file:
            said = RUN_FOLDER.search(file.read(most).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    return said[1] if said else None


def incomplete(log: Path) -> str | None:
    """A sentence about a command that ended with status 0 before its run was complete; None where it is complete."""
    folder = run_folder(log, -1)
    if folder is not None and (Path(folder) / "manifest.json").is_file():  # which a run writes last
        return None
    lacking = "no run folder was named" if folder is None else f"no manifest.json in {folder}"
    return f"the process ended with status 0 before its run was complete: {lacking}; {EXITED}"


def sentence(log: Path, status: int) -> str:
    """A sentence about a failure: the last that the command said."""
    ended = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
    said = [line for line in last_lines(log) if line.strip()]
    own = [line.removeprefix("mitigate: ") for line in said if line.startswith("mitigate: ")]
    last = (own or said or ["it said nothing"])[-1]
    return f"{ended}: {last[:LONGEST_ERROR]}"


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
