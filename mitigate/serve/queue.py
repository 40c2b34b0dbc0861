"""The queue: a table of jobs in a SQLite file, which the service and the worker of each job change in short
transactions.

A job is queued, running, done, failed or cancelled. A running job belongs to one worker for the time of a lease, which
the worker renews; a job whose lease has ended may be claimed by another worker, and what the first one writes from then
on changes nothing. Queued jobs start in the order of priority and, within one priority, take turns among their owners.
Functions take a connection, and the time in seconds since 1970, so that they need no server.

Knows nothing of processes and of what a job does. The file must lie on a disk of this machine: SQLite's write-ahead log
is not safe on a network's."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from mitigate.errors import MitigateError
from mitigate.serve.job_table import Job, State, jobs, prepare

Renewed = Literal["go on", "cancel", "lost"]
MostRunning = Callable[[str | None], int | None]  # of an owner; None: no limit
LEASE = 20.0  # seconds
ALL = -1  # rows
PATIENCE = 30.0  # seconds that a transaction waits for others
ORDER = """
SELECT id, owner FROM (
  SELECT id, owner, priority,
    ROW_NUMBER() OVER (PARTITION BY owner, priority ORDER BY id)
      + (SELECT COUNT(*) FROM jobs AS other WHERE other.owner IS jobs.owner AND other.state = 'running') AS turn,
    (SELECT MAX(started) FROM jobs AS other WHERE other.owner IS jobs.owner) AS latest
  FROM jobs WHERE state = 'queued'
) ORDER BY priority DESC, turn, latest, id
"""
"""Queued jobs in the order in which they start: the higher priority first; then the owner with fewer running jobs, then
the one who has waited longer since a start, then the job that was submitted first."""


class FullError(MitigateError):
    """The error for a queue that is full."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the queue, which is made where there is none. Raises MitigateError for a file that is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        prepare(connection)
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
    submitter: str | None = None,
    owner: str | None = None,
    label: str | None = None,
    priority: int = 0,
    most: int | None = None,
    most_own: int | None = None,
    now: float | None = None,
) -> int:
    """Add a job and return its number. Raises FullError when `most` jobs are queued already, or `most_own` of this
    owner."""
    row = {
        **{"recipe": recipe, "overrides": json.dumps(overrides), "command": json.dumps(list(command))},
        **{"submitter": submitter, "owner": owner, "label": label, "priority": priority, "submitted": _time(now)},
        "announced": 0,
    }
    with _changing(connection):
        if most is not None and count(connection, state="queued") >= most:
            raise FullError(f"{most:,} jobs are queued, which is the most; wait until some have run, or cancel some")
        if most_own is not None and count(connection, state="queued", owner=owner) >= most_own:
            raise FullError(f"you have {most_own:,} jobs queued, your limit; wait until one starts, or cancel one")
        added = connection.execute(
            f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )
    assert added.lastrowid is not None
    return added.lastrowid


def claim(
    connection: sqlite3.Connection,
    worker: str,
    slots: int,
    now: float | None = None,
    most_running: MostRunning | None = None,
) -> Job | None:
    """A job for this worker, now running: one whose lease has ended, whose process may still be alive; or else, if
    fewer than `slots` run, the first in order whose owner has fewer running than `most_running` allows. None where
    there is nothing to do."""
    moment = _time(now)
    with _changing(connection):
        left = jobs(connection, "WHERE state = 'running' AND lease < ? ORDER BY lease LIMIT 1", moment)
        number = left[0].id if left else None
        if not left and count(connection, state="running") < slots:
            number = _next(connection, most_running)
        if number is None:
            return None
        connection.execute(
            "UPDATE jobs SET state = 'running', worker = ?, lease = ?, started = COALESCE(started, ?) WHERE id = ?",
            (worker, moment + LEASE, moment, number),
        )
        return read(connection, number)


def _next(connection: sqlite3.Connection, most_running: MostRunning | None) -> int | None:
    """The queued job that starts next."""
    is_full: dict[str | None, bool] = {}
    for row in connection.execute(ORDER):
        owner = row["owner"]
        if owner not in is_full:
            most = most_running(owner) if most_running else None
            is_full[owner] = most is not None and count(connection, state="running", owner=owner) >= most
        if not is_full[owner]:
            return int(row["id"])
    return None


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
    """Record facts about a job of this worker: its run folder, the engine's handle. starts, deaths: further ones of
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
        " error = CASE WHEN cancel THEN error ELSE ? END, worker = NULL, lease = NULL"
        " WHERE id = ? AND worker = ? AND state = 'running'",
        (state, _time(now), exit_status, error, job, worker),
    )
    return bool(changed.rowcount)


def cancel(connection: sqlite3.Connection, job: int, now: float | None = None, error: str | None = None) -> Job | None:
    """Cancel a job: a queued one at once, a running one by its worker. One that has ended stays as it is; None where
    there is no such job. error: the reason, where the service cancels it."""
    connection.execute(
        "UPDATE jobs SET cancel = 1, error = COALESCE(?, error), ended = CASE state WHEN 'queued' THEN ? END,"
        " state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END"
        " WHERE id = ? AND state IN ('queued', 'running')",
        (error, _time(now), job),
    )
    return read(connection, job)


def read(connection: sqlite3.Connection, job: int) -> Job | None:
    """The job of that number."""
    return next(iter(jobs(connection, "WHERE id = ?", job)), None)


def latest(connection: sqlite3.Connection, most: int = 100, state: State | None = None) -> list[Job]:
    """The last jobs, the newest first."""
    return jobs(connection, "WHERE state = COALESCE(?, state) ORDER BY id DESC LIMIT ?", state, most)


def places(connection: sqlite3.Connection) -> dict[int, int]:
    """The place of each queued job, 1 for the next. Later submissions of others, who take turns, may change it."""
    return {row["id"]: number for number, row in enumerate(connection.execute(ORDER), start=1)}


def count(connection: sqlite3.Connection, **values: str | None) -> int:
    """The number of jobs with these values of columns."""
    where = " AND ".join(f"{column} IS ?" for column in values)
    return int(connection.execute(f"SELECT COUNT(*) FROM jobs WHERE {where}", tuple(values.values())).fetchone()[0])


def by_folder(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Number, owner and label of the last finished job of each run folder."""
    lines = "SELECT folder, id AS job, owner, label FROM jobs WHERE folder IS NOT NULL AND state = 'done' ORDER BY id"
    return {row["folder"]: {name: row[name] for name in ("job", "owner", "label")} for row in connection.execute(lines)}


def folders_of(connection: sqlite3.Connection, owner: str) -> list[str]:
    """The run folders of an owner's jobs."""
    rows = connection.execute("SELECT DISTINCT folder FROM jobs WHERE owner = ? AND folder IS NOT NULL", (owner,))
    return [row["folder"] for row in rows]


def unannounced(connection: sqlite3.Connection) -> list[Job]:
    """Ended jobs that other programs were not informed of, the first first."""
    return jobs(connection, "WHERE ended IS NOT NULL AND announced = 0 ORDER BY ended LIMIT 100")


def announced(connection: sqlite3.Connection, job: int) -> None:
    """Note that other programs were informed that a job has ended."""
    connection.execute("UPDATE jobs SET announced = 1 WHERE id = ?", (job,))


def _time(now: float | None) -> float:
    return time.time() if now is None else now
