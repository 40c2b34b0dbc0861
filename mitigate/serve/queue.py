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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from mitigate.errors import MitigateError

State = Literal["queued", "running", "done", "failed", "cancelled"]
Renewed = Literal["go on", "cancel", "lost"]
STATES = ("queued", "running", "done", "failed", "cancelled")
LEASE = 20.0  # seconds
ALL = -1  # rows
PATIENCE = 30.0  # seconds that a transaction waits for others
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  recipe TEXT NOT NULL,
  overrides TEXT NOT NULL,  -- JSON object, as submitted
  command TEXT NOT NULL,  -- JSON list, as started
  submitter TEXT,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN {STATES}),
  submitted REAL NOT NULL,
  started REAL,
  ended REAL,
  worker TEXT,
  lease REAL,  -- when it ends
  cancel INTEGER NOT NULL DEFAULT 0,
  starts INTEGER NOT NULL DEFAULT 0,  -- of the command
  deaths INTEGER NOT NULL DEFAULT 0,  -- of the command, that its worker has seen
  exit INTEGER,
  error TEXT,
  folder TEXT,
  handle TEXT,  -- what the engine calls it
  owner TEXT,  -- who submitted it, by token; NULL: the common token
  label TEXT,  -- the submitter's own
  priority INTEGER NOT NULL DEFAULT 0,
  announced INTEGER NOT NULL DEFAULT 0  -- to other programs, that it has ended
) STRICT;
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, id);
"""
OF_OWNERS = "CREATE INDEX IF NOT EXISTS by_owner ON jobs (owner, state, started)"
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


@dataclass(frozen=True)
class Job:
    """A row of the table. Times are seconds since 1970."""

    id: int
    recipe: str
    overrides: Mapping[str, Any]
    command: Sequence[str]
    submitter: str | None
    state: State
    submitted: float
    started: float | None
    ended: float | None
    worker: str | None
    lease: float | None
    cancel: bool
    starts: int
    deaths: int
    exit: int | None
    error: str | None
    folder: str | None
    handle: str | None
    owner: str | None
    label: str | None
    priority: int
    announced: bool

    @property
    def name(self) -> str:
        """The unique name of the job. Its number alone is not unique: a new queue in the place of a damaged one starts
        again."""
        return f"{self.id}-{round(self.submitted * 1000)}"


COLUMNS = [column.name for column in fields(Job)]  # a later version's table may have more, while this one's jobs run
ADDED = {
    **{"handle": "TEXT", "owner": "TEXT", "label": "TEXT", "priority": "INTEGER NOT NULL DEFAULT 0"},
    "announced": "INTEGER NOT NULL DEFAULT 1",  # jobs of earlier versions are not announced
}
"""Columns that the table did not have at first."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the queue, which is made where there is none. Raises MitigateError for a file that is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        _complete(connection)
        yield connection
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError | sqlite3.IntegrityError):
            raise
        raise MitigateError(f"{path} is not a job queue ({error}); move it away; a new one is created") from error
    finally:
        connection.close()


def _complete(connection: sqlite3.Connection) -> None:
    """Add the columns that a table made by an earlier version lacks; two processes may do so at once."""
    known = {row["name"] for row in connection.execute("PRAGMA table_info(jobs)")}
    for name, kind in ADDED.items():
        if name not in known:
            with suppress(sqlite3.OperationalError):  # the other one was first
                connection.execute(f"ALTER TABLE jobs ADD COLUMN {name} {kind}")
    connection.execute(OF_OWNERS)


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
        "announced": 0,  # the default of a table that an earlier version made is 1
    }
    with _changing(connection):
        if most is not None and count(connection, "queued") >= most:
            raise FullError(f"{most:,} jobs are queued, which is the most; wait until some have run, or cancel some")
        if most_own is not None and count_of(connection, owner, "queued") >= most_own:
            raise FullError(f"you have {most_own:,} jobs queued, your limit; wait until one starts, or cancel one")
        added = connection.execute(
            f"INSERT INTO jobs ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )
    assert added.lastrowid is not None
    return added.lastrowid


def any_number(_: str | None) -> int | None:
    """No limit, for any owner."""
    return None


def claim(
    connection: sqlite3.Connection,
    worker: str,
    slots: int,
    now: float | None = None,
    most_running: Callable[[str | None], int | None] = any_number,
) -> Job | None:
    """A job for this worker, now running: one whose lease has ended, whose process may still be alive; or else, if
    fewer than `slots` run, the first in order whose owner has fewer running than `most_running` allows. None where
    there is nothing to do."""
    moment = _time(now)
    with _changing(connection):
        left = connection.execute(
            "SELECT id FROM jobs WHERE state = 'running' AND lease < ? ORDER BY lease LIMIT 1", (moment,)
        ).fetchone()
        number = left["id"] if left else None
        if left is None and count(connection, "running") < slots:
            number = _next(connection, most_running)
        if number is None:
            return None
        connection.execute(
            "UPDATE jobs SET state = 'running', worker = ?, lease = ?, started = COALESCE(started, ?) WHERE id = ?",
            (worker, moment + LEASE, moment, number),
        )
        return read(connection, number)


def _next(connection: sqlite3.Connection, most_running: Callable[[str | None], int | None]) -> int | None:
    """The queued job that starts next."""
    is_full: dict[str | None, bool] = {}
    for row in connection.execute(ORDER):
        owner = row["owner"]
        if owner not in is_full:
            most = most_running(owner)
            is_full[owner] = most is not None and count_of(connection, owner, "running") >= most
        if not is_full[owner]:
            return int(row["id"])
    return None


def renew(connection: sqlite3.Connection, job: int, worker: str, now: float | None = None) -> Renewed:
    """Renew the worker's lease of a job; return "go on", "cancel" for a job to cancel, or "lost" for one of another
    worker."""
    with _changing(connection):
        changed = connection.execute(
            "UPDATE jobs SET lease = ? WHERE id = ? AND worker = ? AND state = 'running'",
            (_time(now) + LEASE, job, worker),
        )
        if not changed.rowcount:
            return "lost"
        row = connection.execute("SELECT cancel FROM jobs WHERE id = ?", (job,)).fetchone()
    return "cancel" if row["cancel"] else "go on"


def note(connection: sqlite3.Connection, job: int, worker: str, *, folder: str | None = None, starts: int = 0) -> None:
    """Record the run folder, and that the command was started."""
    connection.execute(
        "UPDATE jobs SET folder = COALESCE(?, folder), starts = starts + ? WHERE id = ? AND worker = ?",
        (folder, starts, job, worker),
    )


def hand_over(connection: sqlite3.Connection, job: int, worker: str, handle: str | None) -> None:
    """Record the engine's handle of the job; None: the engine no longer has it."""
    connection.execute(
        "UPDATE jobs SET handle = ?, starts = starts + ? WHERE id = ? AND worker = ?",
        (handle, int(handle is not None), job, worker),
    )


def note_death(connection: sqlite3.Connection, job: int, worker: str) -> int:
    """Count a death of the command; return the number so far."""
    with _changing(connection):
        connection.execute("UPDATE jobs SET deaths = deaths + 1 WHERE id = ? AND worker = ?", (job, worker))
        return int(connection.execute("SELECT deaths FROM jobs WHERE id = ?", (job,)).fetchone()["deaths"])


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
    with _changing(connection):
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
    with _changing(connection):
        connection.execute(
            "UPDATE jobs SET cancel = 1, error = COALESCE(?, error) WHERE id = ? AND state IN ('queued', 'running')",
            (error, job),
        )
        connection.execute(
            "UPDATE jobs SET state = 'cancelled', ended = ? WHERE id = ? AND state = 'queued'", (_time(now), job)
        )
    return read(connection, job)


def read(connection: sqlite3.Connection, job: int) -> Job | None:
    """The job of that number."""
    row = connection.execute("SELECT * FROM jobs WHERE id = ?", (job,)).fetchone()
    return None if row is None else _job(row)


def latest(connection: sqlite3.Connection, most: int = 100, state: State | None = None) -> list[Job]:
    """The last jobs, the newest first."""
    rows = connection.execute(
        "SELECT * FROM jobs WHERE state = COALESCE(?, state) ORDER BY id DESC LIMIT ?", (state, most)
    )
    return [_job(row) for row in rows]


def places(connection: sqlite3.Connection) -> dict[int, int]:
    """The place of each queued job, 1 for the next. Later submissions of others, who take turns, may change it."""
    return {row["id"]: number for number, row in enumerate(connection.execute(ORDER), start=1)}


def count_of(connection: sqlite3.Connection, owner: str | None, state: State) -> int:
    """The number of an owner's jobs in a state."""
    row = connection.execute("SELECT COUNT(*) AS n FROM jobs WHERE owner IS ? AND state = ?", (owner, state)).fetchone()
    return int(row["n"])


def by_folder(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Number, owner and label of the last finished job of each run folder."""
    lines = "SELECT folder, id AS job, owner, label FROM jobs WHERE folder IS NOT NULL AND state = 'done' ORDER BY id"
    return {row["folder"]: {name: row[name] for name in ("job", "owner", "label")} for row in connection.execute(lines)}


def unannounced(connection: sqlite3.Connection) -> list[Job]:
    """Ended jobs that other programs were not informed of, the first first."""
    rows = connection.execute("SELECT * FROM jobs WHERE ended IS NOT NULL AND announced = 0 ORDER BY ended LIMIT 100")
    return [_job(row) for row in rows]


def announced(connection: sqlite3.Connection, job: int) -> None:
    """Note that other programs were informed that a job has ended."""
    connection.execute("UPDATE jobs SET announced = 1 WHERE id = ?", (job,))


def folders_of(connection: sqlite3.Connection, owner: str) -> list[str]:
    """The run folders of an owner's jobs."""
    rows = connection.execute("SELECT DISTINCT folder FROM jobs WHERE owner = ? AND folder IS NOT NULL", (owner,))
    return [row["folder"] for row in rows]


def count(connection: sqlite3.Connection, state: State) -> int:
    """The number of jobs in a state."""
    return int(connection.execute("SELECT COUNT(*) AS n FROM jobs WHERE state = ?", (state,)).fetchone()["n"])


def _job(row: sqlite3.Row) -> Job:
    facts = {name: row[name] for name in COLUMNS}
    plain = {"overrides": json.loads(facts["overrides"]), "command": json.loads(facts["command"])}
    return Job(**(facts | plain | {name: bool(facts[name]) for name in ("cancel", "announced")}))


def _time(now: float | None) -> float:
    return time.time() if now is None else now
