"""The table of jobs: its columns with their declarations in SQL, and a row as Job."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_type_hints

State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Job:
    """A row of the table. Times are seconds since 1970."""

    id: Annotated[int, "INTEGER PRIMARY KEY AUTOINCREMENT"]
    recipe: Annotated[str, "TEXT NOT NULL"]
    overrides: Annotated[Mapping[str, Any], "TEXT NOT NULL"]  # as submitted; JSON
    command: Annotated[Sequence[str], "TEXT NOT NULL"]  # as started; JSON
    submitter: Annotated[str | None, "TEXT"]
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
    handle: Annotated[str | None, "TEXT"]  # the engine's name of the job
    owner: Annotated[str | None, "TEXT"]  # the person whose token submitted it; None: the common token
    label: Annotated[str | None, "TEXT"]  # the submitter's own
    priority: Annotated[int, "INTEGER NOT NULL DEFAULT 0"]
    announced: Annotated[bool, "INTEGER NOT NULL DEFAULT 1"]  # its end, to other programs; jobs of early versions are

    @property
    def name(self) -> str:
        """The unique name of the job. Its number alone is not unique: a new queue in the place of a damaged one starts
        again."""
        return f"{self.id}-{round(self.submitted * 1000)}"


COLUMNS = {name: hint.__metadata__[0] for name, hint in get_type_hints(Job, include_extras=True).items()}
TABLE = f"CREATE TABLE IF NOT EXISTS jobs ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}) STRICT"
INDEXES = """
CREATE INDEX IF NOT EXISTS by_state ON jobs (state, id);
CREATE INDEX IF NOT EXISTS by_owner ON jobs (owner, state, started);
"""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the table, or add the columns that one of an earlier version lacks; two processes may do so at once."""
    connection.execute(TABLE)
    present = {row["name"] for row in connection.execute("PRAGMA table_info(jobs)")}
    for name, kind in COLUMNS.items():
        if name not in present:
            with suppress(sqlite3.OperationalError):  # the other one was first
                connection.execute(f"ALTER TABLE jobs ADD COLUMN {name} {kind}")
    connection.executescript(INDEXES)


def jobs(connection: sqlite3.Connection, rows: str, *values: object) -> list[Job]:
    """The jobs of the rows that a condition in SQL selects."""
    return [_job(row) for row in connection.execute(f"SELECT * FROM jobs {rows}", values)]


def _job(row: sqlite3.Row) -> Job:
    facts = {name: row[name] for name in COLUMNS}  # a later version's table may have more, while this one's jobs run
    plain = {name: json.loads(facts[name]) for name in ("overrides", "command")}
    return Job(**(facts | plain | {name: bool(facts[name]) for name in ("cancel", "announced")}))
