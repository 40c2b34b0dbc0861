"""The queue of jobs: who gets which job, when another may take it, and what becomes of it."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mitigate.serve import queue
from mitigate.serve.queue import LEASE, FullError

COMMAND = ["python", "-m", "mitigate"]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with queue.opened(tmp_path / "new" / "queue.sqlite") as connection:
        yield connection


def add(table: sqlite3.Connection, number: int = 1) -> list[int]:
    return [queue.submit(table, "mitigate", {"seed": seed}, COMMAND, now=0.0) for seed in range(number)]


def test_a_job_comes_back_as_it_was_submitted_and_a_full_queue_refuses(table: sqlite3.Connection) -> None:
    overrides = {"policy": "both", "probe.targets": ["lawyer", "café"], "trainer.lr": 1e-05, "probe.relations": None}
    job = queue.submit(table, "mitigate", overrides, [*COMMAND, "policy='both'"], owner="ann", now=5.0)
    found = queue.read(table, job)
    assert (found.state, found.owner, found.submitted, found.started) == ("queued", "ann", 5.0, None)
    assert (found.overrides, found.command) == (overrides, [*COMMAND, "policy='both'"])
    assert queue.read(table, job + 1) is None
    queue.submit(table, "mitigate", {}, COMMAND, most=2)
    with pytest.raises(FullError, match="2 jobs are queued, which is the most; wait until some have run, or cancel"):
        queue.submit(table, "mitigate", {}, COMMAND, most=2)
    assert [job.id for job in queue.latest(table)] == [2, 1]
    assert [job.id for job in queue.latest(table, most=1, state="queued")] == [2]
    assert queue.latest(table, state="done") == []


def test_the_first_submitted_is_the_first_claimed_and_slots_are_kept(table: sqlite3.Connection) -> None:
    first, second, third = add(table, 3)
    claimed = [queue.claim(table, name, 2, now=10.0) for name in ("a", "b", "c")]
    assert [job and job.id for job in claimed] == [first, second, None]
    assert (claimed[0].state, claimed[0].worker, claimed[0].lease) == ("running", "a", 10.0 + LEASE)
    assert queue.finish(table, first, "a", "done", exit_status=0, now=11.0)
    assert queue.claim(table, "c", 2, now=12.0).id == third


def test_a_heartbeat_keeps_a_job_and_without_one_another_gets_it(table: sqlite3.Connection) -> None:
    (job,) = add(table)
    queue.claim(table, "a", 1, now=0.0)
    assert queue.renew(table, job, "a", now=LEASE - 1) == "go on"
    assert queue.claim(table, "b", 1, now=LEASE + 1) is None
    taken = queue.claim(table, "b", 1, now=2 * LEASE)
    assert (taken.id, taken.worker, taken.started) == (job, "b", 0.0)
    assert queue.renew(table, job, "a", now=2 * LEASE) == "lost"
    assert not queue.finish(table, job, "a", "failed", exit_status=1)
    queue.note(table, job, "a", folder="elsewhere", starts=1)
    found = queue.read(table, job)
    assert (found.state, found.folder, found.starts) == ("running", None, 0)
    assert queue.finish(table, job, "b", "done", exit_status=0)
    assert queue.renew(table, job, "b") == "lost"
    found = queue.cancel(table, job)
    assert (found.state, found.cancel) == ("done", False)


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_worker(table: sqlite3.Connection) -> None:
    running, queued = add(table, 2)
    queue.claim(table, "a", 1, now=0.0)
    assert queue.cancel(table, 99) is None
    found = queue.cancel(table, queued, now=3.0)
    assert (found.state, found.ended) == ("cancelled", 3.0)
    found = queue.cancel(table, running)
    assert (found.state, found.cancel) == ("running", True)
    assert queue.renew(table, running, "a", now=1.0) == "cancel"
    assert queue.finish(table, running, "a", "failed", exit_status=-2, error="killed")
    ended = queue.read(table, running)
    assert (ended.state, ended.error, ended.exit) == ("cancelled", None, -2)
    assert queue.claim(table, "b", 1) is None


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
