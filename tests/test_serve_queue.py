"""The queue of jobs: who gets which job, when another may take it, and what becomes of it."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.serve import queue
from mitigate.serve.queue import LEASE, FullError

COMMAND = ["python", "-m", "mitigate"]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with queue.opened(tmp_path / "new" / "queue.sqlite") as connection:
        yield connection


def add(table: sqlite3.Connection, number: int = 1) -> list[int]:
    return [queue.submit(table, "mitigate", {"seed": seed}, COMMAND, now=0.0) for seed in range(number)]


def state(table: sqlite3.Connection, job: int) -> str:
    found = queue.read(table, job)
    assert found is not None
    return found.state


def test_a_job_comes_back_as_it_was_submitted(table: sqlite3.Connection) -> None:
    overrides = {"policy": "both", "probe.targets": ["lawyer", "café"], "trainer.lr": 1e-05, "probe.relations": None}
    job = queue.submit(table, "mitigate", overrides, [*COMMAND, "policy='both'"], submitter="ann", now=5.0)
    found = queue.read(table, job)
    assert found is not None
    assert (found.state, found.submitter, found.submitted, found.started) == ("queued", "ann", 5.0, None)
    assert (found.overrides, found.command) == (overrides, [*COMMAND, "policy='both'"])
    assert queue.read(table, job + 1) is None


def test_the_first_submitted_is_the_first_claimed_and_slots_are_kept(table: sqlite3.Connection) -> None:
    first, second, third = add(table, 3)
    claimed = [queue.claim(table, name, 2, now=10.0) for name in ("a", "b", "c")]
    assert [job and job.id for job in claimed] == [first, second, None]
    assert claimed[0]
    assert (claimed[0].state, claimed[0].worker, claimed[0].lease) == ("running", "a", 10.0 + LEASE)
    assert queue.places(table) == {third: 1}
    assert queue.finish(table, first, "a", "done", exit_status=0, now=11.0)
    assert (found := queue.claim(table, "c", 2, now=12.0))
    assert found.id == third


def test_a_heartbeat_keeps_a_job_and_without_one_another_gets_it(table: sqlite3.Connection) -> None:
    (job,) = add(table)
    queue.claim(table, "a", 1, now=0.0)
    assert queue.renew(table, job, "a", now=LEASE - 1) == "go on"
    assert queue.claim(table, "b", 1, now=LEASE + 1) is None
    taken = queue.claim(table, "b", 1, now=2 * LEASE)
    assert taken
    assert (taken.id, taken.worker, taken.started) == (job, "b", 0.0)
    assert queue.renew(table, job, "a", now=2 * LEASE) == "lost"
    assert not queue.finish(table, job, "a", "failed", exit_status=1)
    queue.note(table, job, "a", folder="elsewhere", starts=1)
    assert (state(table, job), taken.folder, taken.starts) == ("running", None, 0)
    assert queue.finish(table, job, "b", "done", exit_status=0)
    assert state(table, job) == "done"
    assert queue.renew(table, job, "b") == "lost"


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_worker(table: sqlite3.Connection) -> None:
    running, queued = add(table, 2)
    queue.claim(table, "a", 1, now=0.0)
    assert queue.cancel(table, 99) is None
    assert (found := queue.cancel(table, queued, now=3.0))
    assert (found.state, found.ended) == ("cancelled", 3.0)
    assert (found := queue.cancel(table, running))
    assert (found.state, found.cancel) == ("running", True)
    assert queue.renew(table, running, "a", now=1.0) == "cancel"
    assert queue.finish(table, running, "a", "failed", exit_status=-2, error="killed")
    ended = queue.read(table, running)
    assert ended
    assert (ended.state, ended.error, ended.exit) == ("cancelled", None, -2)
    assert (found := queue.cancel(table, running))
    assert found.state == "cancelled"
    assert queue.claim(table, "b", 1) is None


def test_a_job_that_has_ended_is_not_cancelled_and_starts_and_deaths_are_counted(table: sqlite3.Connection) -> None:
    (job,) = add(table)
    queue.claim(table, "a", 1)
    queue.finish(table, job, "a", "done", exit_status=0)
    assert (found := queue.cancel(table, job))
    assert (found.state, found.cancel) == ("done", False)
    (job,) = add(table)
    queue.claim(table, "a", 1)
    queue.note(table, job, "a", folder="run", starts=1)
    queue.note(table, job, "a", starts=1)
    queue.note(table, job, "a", deaths=1)
    assert (found := queue.read(table, job))
    assert (found.folder, found.starts, found.deaths) == ("run", 2, 1)


def test_a_full_queue_refuses_and_says_so(table: sqlite3.Connection) -> None:
    for _ in range(2):
        queue.submit(table, "mitigate", {}, COMMAND, most=2)
    with pytest.raises(FullError, match="2 jobs are queued, which is the most; wait until some have run, or cancel"):
        queue.submit(table, "mitigate", {}, COMMAND, most=2)
    assert [job.id for job in queue.latest(table)] == [2, 1]
    assert [job.id for job in queue.latest(table, most=1, state="queued")] == [2]
    assert queue.latest(table, state="done") == []


def test_owners_take_turns_within_a_priority_and_places_are_the_order_of_starts(table: sqlite3.Connection) -> None:
    """Ann submits a flood before the others; the order is kept by the table alone, as after a kill of all processes."""
    owners = {}
    for owner, priority, number in (("ann", 0, 4), ("bob", 0, 2), ("eve", 0, 1), ("ann", 1, 1), ("bob", -1, 1)):
        for _ in range(number):
            job = queue.submit(table, "mitigate", {}, COMMAND, owner=owner, priority=priority)
            owners[job] = f"{owner}{job}"
    order = [owners[job] for job in sorted(queue.places(table), key=queue.places(table).__getitem__)]
    assert order == ["ann8", "ann1", "bob5", "eve7", "ann2", "bob6", "ann3", "ann4", "bob9"]
    claimed = []
    for moment in range(len(order)):
        job = queue.claim(table, "a", 1, now=float(moment))
        assert job
        claimed.append(owners[job.id])
        queue.finish(table, job.id, "a", "done")
    assert claimed == ["ann8", "bob5", "eve7", "ann1", "bob6", "ann2", "ann3", "ann4", "bob9"]  # ann has just had hers


def test_a_person_has_no_more_jobs_than_allowed_and_others_pass(table: sqlite3.Connection) -> None:
    jobs = [queue.submit(table, "mitigate", {}, COMMAND, owner=owner) for owner in ("ann", "ann", "bob", None, None)]
    most = {"ann": 1, "bob": 0}
    claimed = [queue.claim(table, "a", 9, most_running=most.get) for _ in range(4)]
    assert [job and job.id for job in claimed] == [jobs[0], jobs[3], jobs[4], None]
    queue.finish(table, jobs[0], "a", "done")
    assert (job := queue.claim(table, "a", 9, most_running=most.get))
    assert (job.id, queue.count(table, owner="ann", state="running")) == (jobs[1], 1)
    for _ in range(2):
        queue.submit(table, "mitigate", {}, COMMAND, owner="ann", most_own=2)
    with pytest.raises(FullError, match="you have 2 jobs queued, your limit; wait until one starts, or cancel"):
        queue.submit(table, "mitigate", {}, COMMAND, owner="ann", most_own=2)


def test_many_claim_at_once_and_no_two_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    with queue.opened(path) as connection:
        jobs = add(connection, 20)

    def claims(worker: int) -> list[int]:
        with queue.opened(path) as own:
            return [job.id for turn in range(10) if (job := queue.claim(own, f"{worker}-{turn}", 20))]

    with ThreadPoolExecutor(4) as pool:
        claimed = [job for found in pool.map(claims, range(4)) for job in found]
    assert sorted(claimed) == jobs


def test_a_file_that_is_no_queue_is_named_and_an_earlier_one_gets_its_columns(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    other.write_text("no database, but long enough to be taken for one" * 30)
    message = r"other.sqlite is not a job queue \(file is not a database\); move it away"
    with pytest.raises(MitigateError, match=message), queue.opened(other):
        pass
    with queue.opened(tmp_path / "queue.sqlite") as table:
        (job,) = add(table)
        table.execute("DROP INDEX by_owner")
        for column in ("handle", "owner", "label", "priority", "announced"):
            table.execute(f"ALTER TABLE jobs DROP COLUMN {column}")
    with queue.opened(tmp_path / "queue.sqlite") as table:
        assert state(table, job) == "queued"
        assert {"handle", "owner", "label", "priority", "announced"} <= {
            row["name"] for row in table.execute("PRAGMA table_info(jobs)")
        }
