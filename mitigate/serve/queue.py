"""The queue: a table of jobs and a table of people in one SQLite file, which the service and the worker of each job
change in short transactions.

A job is queued, running, done, failed or cancelled. A running job belongs to one worker for the time of a lease, which
the worker renews; a job whose lease has ended may be claimed by another worker, and what the first one writes from then
on changes nothing. Times are seconds since 1970.

The file must lie on a disk of this machine: SQLite's write-ahead log is not safe on a network's."""

import hashlib
import json
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from mitigate.errors import MitigateError, did_you_mean

LEASE = 20.0  # seconds
PATIENCE = 30.0  # seconds that a transaction waits for others
MOST_QUEUED = 200
PERSON = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,49}")
JOBS = """CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, recipe TEXT NOT NULL, overrides TEXT NOT NULL, command TEXT NOT NULL,
    owner TEXT, state TEXT NOT NULL DEFAULT 'queued', submitted REAL NOT NULL, started REAL, ended REAL,
    worker TEXT, lease REAL, cancel INTEGER NOT NULL DEFAULT 0, starts INTEGER NOT NULL DEFAULT 0,
    exit INTEGER, error TEXT, folder TEXT
) STRICT"""
PEOPLE = "CREATE TABLE IF NOT EXISTS people (name TEXT PRIMARY KEY, token TEXT) STRICT"


@dataclass(frozen=True)
class Job:
    """A row of the table of jobs. owner: the person whose token submitted it; None: nobody had a token. starts:
    how often its command was started."""

    id: int
    recipe: str
    overrides: Mapping[str, Any]  # as submitted
    command: Sequence[str]  # as started
    owner: str | None
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    submitted: float
    started: float | None
    ended: float | None
    cancel: bool
    starts: int
    exit: int | None
    error: str | None
    folder: str | None

    @property
    def name(self) -> str:
        """The unique name of the job: a new queue in the place of a lost one counts from 1 again."""
        return f"{self.id}-{round(self.submitted * 1000)}"


class Queue:
    """The tables in a file, which is made where there is none. Each method is one transaction. Raises MitigateError for
    a file that is no queue."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as table:
                for statement in ("PRAGMA journal_mode = WAL", JOBS, PEOPLE):
                    table.execute(statement)
        except sqlite3.DatabaseError as error:
            raise MitigateError(f"{path} is not a job queue ({error}); move it away to get a new one") from error

    @contextmanager
    def _table(self) -> Iterator[sqlite3.Connection]:
        """A connection whose statements are one transaction; it has the write lock from its beginning, so that what it
        reads stays true."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def submit(
        self, recipe: str, overrides: Mapping[str, Any], command: Sequence[str], owner: str | None = None
    ) -> Job:
        """Add a job. Raises MitigateError when MOST_QUEUED jobs are queued already."""
        row = (recipe, json.dumps(overrides), json.dumps(list(command)), owner, time.time())
        with self._table() as table:
            if table.execute("SELECT COUNT(*) FROM jobs WHERE state = 'queued'").fetchone()[0] >= MOST_QUEUED:
                raise MitigateError(f"{MOST_QUEUED} jobs are queued, which is the most; wait until some have run")
            added = table.execute(
                "INSERT INTO jobs (recipe, overrides, command, owner, submitted) VALUES (?, ?, ?, ?, ?)", row
            )
            return _jobs(table, "WHERE id = ?", added.lastrowid)[0]

    def claim(self, worker: str, slots: int) -> Job | None:
        """A job for this worker, now running: one whose lease has ended; or else, if fewer than `slots` run, the queued
        one that was submitted first. None where there is nothing to do."""
        now = time.time()
        with self._table() as table:
            jobs = _jobs(table, "WHERE state = 'running' AND lease < ? ORDER BY lease LIMIT 1", now)
            if not jobs and table.execute("SELECT COUNT(*) FROM jobs WHERE state = 'running'").fetchone()[0] < slots:
                jobs = _jobs(table, "WHERE state = 'queued' ORDER BY id LIMIT 1")
            if not jobs:
                return None
            table.execute(
                "UPDATE jobs SET state = 'running', worker = ?, lease = ?, started = COALESCE(started, ?) WHERE id = ?",
                (worker, now + LEASE, now, jobs[0].id),
            )
            return _jobs(table, "WHERE id = ?", jobs[0].id)[0]

    def renew(self, job: int, worker: str) -> Literal["go on", "cancel", "lost"]:
        """Renew the worker's lease; "cancel" for a job to cancel, "lost" for one that is no longer this worker's."""
        with self._table() as table:
            table.execute(
                "UPDATE jobs SET lease = ? WHERE id = ? AND worker = ? AND state = 'running'",
                (time.time() + LEASE, job, worker),
            )
            jobs = _jobs(table, "WHERE id = ? AND worker = ? AND state = 'running'", job, worker)
        return "lost" if not jobs else "cancel" if jobs[0].cancel else "go on"

    def note(self, job: int, worker: str, *, started: bool = False, folder: str | None = None) -> None:
        """Record that this worker's job was started, or its run folder."""
        with self._table() as table:
            table.execute(
                "UPDATE jobs SET starts = starts + ?, folder = COALESCE(?, folder) WHERE id = ? AND worker = ?",
                (started, folder, job, worker),
            )

    def finish(self, job: int, worker: str, status: int | None, error: str | None = None) -> None:
        """End a job of this worker: cancelled if that was asked, else failed with its error, else done."""
        with self._table() as table:
            table.execute(
                "UPDATE jobs SET"
                " state = CASE WHEN cancel THEN 'cancelled' WHEN ?1 IS NULL THEN 'done' ELSE 'failed' END,"
                " error = CASE WHEN cancel THEN NULL ELSE ?1 END, exit = ?2, ended = ?3, worker = NULL, lease = NULL"
                " WHERE id = ?4 AND worker = ?5 AND state = 'running'",
                (error, status, time.time(), job, worker),
            )

    def cancel(self, job: int) -> None:
        """Cancel a job: a queued one at once, a running one by its worker. One that has ended stays as it is."""
        with self._table() as table:
            table.execute(
                "UPDATE jobs SET cancel = 1, ended = CASE state WHEN 'queued' THEN ? END,"
                " state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END"
                " WHERE id = ? AND state IN ('queued', 'running')",
                (time.time(), job),
            )

    def read(self, job: int) -> Job | None:
        """The job of that number."""
        with self._table() as table:
            return next(iter(_jobs(table, "WHERE id = ?", job)), None)

    def latest(self, most: int = 100) -> list[Job]:
        """The last jobs, the newest first."""
        with self._table() as table:
            return _jobs(table, "ORDER BY id DESC LIMIT ?", most)

    def place(self, job: Job) -> int:
        """The place of a queued job: 1 for the next that starts."""
        with self._table() as table:
            return 1 + len(_jobs(table, "WHERE state = 'queued' AND id < ?", job.id))

    def create_token(self, name: str) -> str:
        """Add a person and return the new token; its SHA-256 alone is stored, which is enough for 256 random bits.
        Raises MitigateError for a name that is taken or not allowed."""
        if not PERSON.fullmatch(name):
            raise MitigateError(
                f"{name!r} cannot be the name of a person; allowed: at most 50 letters, digits, dots, dashes, "
                "underscores, @, a letter or digit first"
            )
        token = f"mitigate_{secrets.token_urlsafe(32)}"
        with self._table() as table:
            if table.execute("SELECT 1 FROM people WHERE name = ? AND token IS NOT NULL", (name,)).fetchone():
                raise MitigateError(f"{name} has a token already; revoke it first: serve.revoke={name}")
            table.execute("INSERT OR REPLACE INTO people VALUES (?, ?)", (name, digest(token)))
        return token

    def revoke_token(self, name: str) -> None:
        """End a person's token. The row stays: a service that once had tokens never opens to all. Raises MitigateError
        for an unknown name."""
        with self._table() as table:
            if table.execute("UPDATE people SET token = NULL WHERE name = ? AND token IS NOT NULL", (name,)).rowcount:
                return
        names = [person for person, token in self.people().items() if token]
        raise MitigateError(
            f"{name} has no token; people with one: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        )

    def people(self) -> dict[str, str | None]:
        """The hash of each person's token by name; None for a revoked one."""
        with self._table() as table:
            return dict(map(tuple, table.execute("SELECT name, token FROM people ORDER BY name")))


def digest(token: str) -> str:
    """The SHA-256 of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _jobs(table: sqlite3.Connection, condition: str, *values: object) -> list[Job]:
    """The jobs that a condition in SQL selects."""
    columns = ", ".join(field.name for field in fields(Job))
    rows = [dict(row) for row in table.execute(f"SELECT {columns} FROM jobs {condition}", values)]
    for row in rows:
        row["overrides"], row["command"] = json.loads(row["overrides"]), json.loads(row["command"])
        row["cancel"] = bool(row["cancel"])
    return [Job(**row) for row in rows]
