"""The queue: a table of jobs in a SQLite file, which the service and the worker of each job change in short
transactions.

A job is queued, running, done, failed or cancelled. A running job belongs to one worker for the time of a lease, which
the worker renews; a job whose lease has ended may be claimed by another worker, and what the first one writes from then
on changes nothing. Functions take a connection, and the time in seconds since 1970, so that they need no server.

Knows nothing of processes and of what a job does. The file must lie on a disk of this machine: SQLite's write-ahead log
is not safe on a network's."""

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from mitigate.errors import MitigateError

State = Literal["queued", "running", "done", "failed", "cancelled"]
Renewed = Literal["go on", "cancel", "lost"]
LEASE = 20.0  # seconds
PATIENCE = 30.0  # seconds that a transaction waits for others


class FullError(MitigateError):
    """The error for a queue that is full."""


@dataclass(frozen=True)
class Job:
    """A row of the table. Times are seconds since 1970."""

    id: Annotated[int, "INTEGER PRIMARY KEY AUTOINCREMENT"]
    recipe: Annotated[str, "TEXT NOT NULL"]
    overrides: Annotated[Mapping[str, Any], "TEXT NOT NULL"]  # as submitted; JSON
    command: Annotated[Sequence[str], "TEXT NOT NULL"]  # as started; JSON
    owner: Annotated[str | None, "TEXT"]  # the person whose token submitted it; None: the common token
    state: Annotated[State, f"TEXT NOT NULL DEFAULT 'queued' CHECK (state IN {get_args(State)})"]
    submitted: Annotated[float, "REAL NOT NULL"]
    started: Annotated[float | None, "REAL"]
    ended: Annotated[float | None, "REAL"]
    worker: Annotated[str | None, "TEXT"]
    lease: Annotated[float | None, "REAL"]  # when it ends
    cancel: Annotated[bool, "INTEGER NOT NULL DEFAULT 0"]
    starts: Annotated[int, "INTEGER NOT NULL DEFAULT 0"]  # of the command
    deaths: Annotated[int, "INTEGER NOT NULL DEFAULT 0"]  # of the command, that its worker has seen
    exit: Annotated[int | None, "INTEGER"]
    error: Annotated[str | None, "TEXT"]
    folder: Annotated[str | None, "TEXT"]
    handle: Annotated[str | None, "TEXT"]  # the cluster's name of the job

    @property
    def name(self) -> str:
        """The unique name of the job. Its number alone is not unique: a new queue in the place of a damaged one starts
        again."""
        return f"{self.id}-{round(self.submitted * 1000)}"


COLUMNS = {name: hint.__metadata__[0] for name, hint in get_type_hints(Job, include_extras=True).items()}
TABLE = f"CREATE TABLE IF NOT EXISTS jobs ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}) STRICT"
INDEX = "CREATE INDEX IF NOT EXISTS by_state ON jobs (state, id)"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the queue, which is made where there is none. Raises MitigateError for a file that is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        for line in ("PRAGMA journal_mode = WAL", TABLE, INDEX):
            connection.execute(line)
        yield connection
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
            raise
        raise MitigateError(f"{path} is not a job queue ({error}); move it away; a new one is created") from error
    finally:
        connection.close()


@contextmanager
def _changing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that holds the write lock from its beginning, so that what it reads stays true."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def submit(
    connection: sqlite3.Connection,
    recipe: str,
    overrides: Mapping[str, Any],
    command: Sequence[str],
    *,
    owner: str | None = None,
    most: int | None = None,
    now: float | None = None,
) -> int:
    """Add a job and return its number. Raises FullError when `most` jobs are queued already."""
    row = {
        **{"recipe": recipe, "overrides": json.dumps(overrides), "command": json.dumps(list(command))},
        **{"owner": owner, "submitted": _time(now)},
    }
    with _changing(connection):
        if most is not None and count(connection, "queued") >= most:
            raise FullError(f"{most:,} jobs are queued, which is the most; wait until some have run, or cancel some")
        added = connection.execute(
            f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )
    assert added.lastrowid is not None
    return added.lastrowid


def claim(connection: sqlite3.Connection, worker: str, slots: int, now: float | None = None) -> Job | None:
    """A job for this worker, now running: one whose lease has ended, whose process may still be alive; or else, if
    fewer than `slots` run, the queued one that was submitted first. None where there is nothing to do."""
    moment = _time(now)
    with _changing(connection):
        found = _jobs(connection, "WHERE state = 'running' AND lease < ? ORDER BY lease LIMIT 1", moment)
        if not found and count(connection, "running") < slots:
            found = _jobs(connection, "WHERE state = 'queued' ORDER BY id LIMIT 1")
        if not found:
            return None
        connection.execute(
            "UPDATE jobs SET state = 'running', worker = ?, lease = ?, started = COALESCE(started, ?) WHERE id = ?",
            (worker, moment + LEASE, moment, found[0].id),
        )
        return read(connection, found[0].id)


def renew(connection: sqlite3.Connection, job: int, worker: str, now: float | None = None) -> Renewed:
    """Renew the worker's lease of a job; return "go on", "cancel" for a job to cancel, or "lost" for one of another
    worker."""
    renewed = connection.execute(
        "UPDATE jobs SET lease = ? WHERE id = ? AND worker = ? AND state = 'running' RETURNING cancel",
        (_time(now) + LEASE, job, worker),
    ).fetchall()
    if not renewed:
        return "lost"
    return "cancel" if renewed[0]["cancel"] else "go on"


def note(
    connection: sqlite3.Connection, job: int, worker: str, *, starts: int = 0, deaths: int = 0, **facts: str | None
) -> None:
    """Record facts about a job of this worker: its run folder, the cluster's handle. starts, deaths: further ones of
    its command."""
    more = "".join(f", {column} = ?" for column in facts)
    connection.execute(
        f"UPDATE jobs SET starts = starts + ?, deaths = deaths + ?{more} WHERE id = ? AND worker = ?",
        (starts, deaths, *facts.values(), job, worker),
    )


def finish(
    connection: sqlite3.Connection,
    job: int,
    worker: str,
    state: Literal["done", "failed", "cancelled"],
    *,
    exit_status: int | None = None,
    error: str | None = None,
    now: float | None = None,
) -> bool:
    """End a job; False where it is no longer this worker's. One that was to be cancelled is cancelled, never failed."""
    changed = connection.execute(
        "UPDATE jobs SET state = CASE WHEN cancel THEN 'cancelled' ELSE ? END, ended = ?, exit = ?,"
        " error = CASE WHEN cancel THEN NULL ELSE ? END, worker = NULL, lease = NULL"
        " WHERE id = ? AND worker = ? AND state = 'running'",
        (state, _time(now), exit_status, error, job, worker),
    )
    return bool(changed.rowcount)


def cancel(connection: sqlite3.Connection, job: int, now: float | None = None) -> Job | None:
    """Cancel a job: a queued one at once, a running one by its worker. One that has ended stays as it is; None where
    there is no such job."""
    connection.execute(
        "UPDATE jobs SET cancel = 1, ended = CASE state WHEN 'queued' THEN ? END,"
        " state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END"
        " WHERE id = ? AND state IN ('queued', 'running')",
        (_time(now), job),
    )
    return read(connection, job)


def read(connection: sqlite3.Connection, job: int) -> Job | None:
    """The job of that number."""
    return next(iter(_jobs(connection, "WHERE id = ?", job)), None)


def latest(connection: sqlite3.Connection, most: int = 100, state: State | None = None) -> list[Job]:
    """The last jobs, the newest first."""
    return _jobs(connection, "WHERE state = COALESCE(?, state) ORDER BY id DESC LIMIT ?", state, most)


def count(connection: sqlite3.Connection, state: State, before: int = 1 << 62) -> int:
    """The number of jobs in a state. before: of those with a smaller number than this one."""
    rows = connection.execute("SELECT COUNT(*) FROM jobs WHERE state = ? AND id < ?", (state, before))
    return int(rows.fetchone()[0])


def _jobs(connection: sqlite3.Connection, rows: str, *values: object) -> list[Job]:
    """The jobs of the rows that a condition in SQL selects."""
    found = []
    for row in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM jobs {rows}", values):
        plain = {name: json.loads(row[name]) for name in ("overrides", "command")}
        found.append(Job(**{**row, **plain, "cancel": bool(row["cancel"])}))
    return found


def _time(now: float | None) -> float:
    return time.time() if now is None else now
