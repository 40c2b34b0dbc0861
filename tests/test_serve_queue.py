"""The queue: who gets which job, when another may take it, what becomes of it; and the tokens of people."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.serve import queue as module
from mitigate.serve.queue import LEASE, Queue, digest

COMMAND = ["python", "-m", "mitigate"]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "new" / "queue.sqlite")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    return now


def add(queue: Queue, number: int = 1) -> list[int]:
    return [queue.submit("mitigate", {"seed": seed}, COMMAND, None).id for seed in range(number)]


def test_a_job_comes_back_as_it_was_submitted_and_a_full_queue_refuses(queue, clock, monkeypatch) -> None:
    clock[0] = 5.0
    overrides = {"policy": "both", "probe.targets": ["lawyer", "café"], "trainer.lr": 1e-05, "probe.relations": None}
    job = queue.submit("mitigate", overrides, [*COMMAND, "policy='both'"], "ann").id
    found = queue.read(job)
    assert (found.state, found.owner, found.submitted, found.started) == ("queued", "ann", 5.0, None)
    assert (found.overrides, found.command) == (overrides, [*COMMAND, "policy='both'"])
    assert queue.read(job + 1) is None
    (second,) = add(queue)
    assert queue.place(queue.read(second)) == 2
    monkeypatch.setattr(module, "MOST_QUEUED", 2)
    with pytest.raises(MitigateError, match="2 jobs are queued, which is the most; wait until some have run"):
        add(queue)
    assert [job.id for job in queue.latest()] == [2, 1]
    assert [job.id for job in queue.latest(1)] == [2]


def test_the_first_submitted_is_the_first_claimed_and_slots_are_kept(queue: Queue, clock: list[float]) -> None:
    first, second, third = add(queue, 3)
    clock[0] = 10.0
    claimed = [queue.claim(name, 2) for name in ("a", "b", "c")]
    assert [job and job.id for job in claimed] == [first, second, None]
    assert (claimed[0].state, claimed[0].started) == ("running", 10.0)
    queue.finish(first, "a", 0)
    assert (queue.read(first).state, queue.claim("c", 2).id) == ("done", third)


def test_many_claim_at_once_and_no_two_get_the_same(queue: Queue) -> None:
    jobs = add(queue, 20)

    def claims(worker: int) -> list[int]:
        own = Queue(queue.path)
        return [job.id for turn in range(10) if (job := own.claim(f"{worker}-{turn}", 20))]

    with ThreadPoolExecutor(4) as pool:
        claimed = [job for found in pool.map(claims, range(4)) for job in found]
    assert sorted(claimed) == jobs


def test_a_heartbeat_keeps_a_job_and_without_one_another_gets_it(queue: Queue, clock: list[float]) -> None:
    (job,) = add(queue)
    queue.claim("a", 1)
    clock[0] = LEASE - 1
    assert queue.renew(job, "a") == "go on"
    clock[0] = LEASE + 1
    assert queue.claim("b", 1) is None
    clock[0] = 2 * LEASE
    taken = queue.claim("b", 1)
    assert (taken.id, taken.started) == (job, 0.0)
    assert queue.renew(job, "a") == "lost"
    queue.finish(job, "a", 1, "wrong")
    queue.note(job, "a", folder="elsewhere", started=True)
    found = queue.read(job)
    assert (found.state, found.folder, found.starts) == ("running", None, 0)
    queue.finish(job, "b", 0)
    assert queue.renew(job, "b") == "lost"
    queue.cancel(job)
    assert (queue.read(job).state, queue.read(job).cancel) == ("done", False)


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_worker(queue: Queue, clock: list[float]) -> None:
    running, queued = add(queue, 2)
    queue.claim("a", 1)
    clock[0] = 3.0
    queue.cancel(queued)
    assert (queue.read(queued).state, queue.read(queued).ended) == ("cancelled", 3.0)
    queue.cancel(running)
    assert (queue.read(running).state, queue.renew(running, "a")) == ("running", "cancel")
    queue.finish(running, "a", -2, "killed")
    ended = queue.read(running)
    assert (ended.state, ended.error, ended.exit) == ("cancelled", None, -2)
    assert queue.claim("b", 1) is None


def test_tokens_are_random_stored_as_hashes_and_end_when_revoked(queue: Queue) -> None:
    ann, bob = queue.create_token("ann"), queue.create_token("b.ob@example.org")
    assert ann != bob
    assert len(ann) > 43  # 256 bits
    assert ann.removeprefix("mitigate_").encode() not in queue.path.read_bytes()
    other = Queue(queue.path)  # of the service that runs meanwhile
    assert other.people() == {"ann": digest(ann), "b.ob@example.org": digest(bob)}
    queue.revoke_token("ann")
    assert other.people()["ann"] is None
    for name in ("", "../x", "a b", ".hidden", "a/b", "é", "a\n", "a" * 51):
        with pytest.raises(MitigateError, match="cannot be the name of a person; allowed: at most 50 letters"):
            queue.create_token(name)
    with pytest.raises(MitigateError, match=r"b.ob@example.org has a token already; revoke it first: serve.revoke=b"):
        queue.create_token("b.ob@example.org")
    with pytest.raises(MitigateError, match="ann has no token; people with one: b.ob@example.org"):
        queue.revoke_token("ann")
    assert queue.create_token("ann") != ann
