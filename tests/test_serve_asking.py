"""Questions of many at once: answered together, each with its own answer or fault; and models that are let go."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from served import Length
from test_ask import probed_run

from mitigate.errors import MitigateError
from mitigate.runs.finished import open_run
from mitigate.serve.batching import Batcher, BusyError, Models, RunQuestion
from mitigate.tasks.ask.answers import Answers


def asked_together(answer: Any, requests: Sequence[Sequence[Any]], **how: Any) -> list[Any]:
    """What concurrent requests get: their answers, or the error of each."""

    async def all_of_them() -> list[Any]:
        with ThreadPoolExecutor(1) as thread:
            batcher: Batcher[Any, Any] = Batcher(answer, thread, **how)
            return await asyncio.gather(*map(batcher.ask, requests), return_exceptions=True)

    return asyncio.run(all_of_them())


def test_questions_are_answered_together_each_with_its_own_fault_and_an_error_for_all() -> None:
    batches = []

    def doubled(numbers: Sequence[int]) -> list[int]:
        batches.append(list(numbers))
        return [2 * number for number in numbers]

    found = asked_together(doubled, [[number, -number] for number in range(5)], most=4)
    assert found == [[2 * number, -2 * number] for number in range(5)]
    assert [len(batch) for batch in batches] == [4, 4, 2]

    def only_even(numbers: Sequence[int]) -> list[Any]:
        if 7 in numbers:
            raise ZeroDivisionError
        return [MitigateError(f"{number} is odd") if number % 2 else number for number in numbers]

    first, second, third = asked_together(only_even, [[2], [2, 3], [4]])
    assert (first, third) == ([2], [4])
    assert str(second) == "3 is odd"
    assert all(isinstance(found, ZeroDivisionError) for found in asked_together(only_even, [[2], [7]]))


def test_no_more_wait_than_may_and_who_gives_up_is_not_waited_for() -> None:
    found = asked_together(list, [[1, 2], [3, 4], [5]], waiting=3)
    assert (found[0], found[2]) == ([1, 2], [5])
    assert isinstance(found[1], BusyError)
    assert str(found[1]) == "2 questions wait to be answered; ask again in some seconds"
    seen = []

    def noted(numbers: Sequence[int]) -> list[int]:
        seen.extend(numbers)
        return list(numbers)

    async def given_up() -> list[int]:
        with ThreadPoolExecutor(1) as thread:
            batcher: Batcher[int, int] = Batcher(noted, thread)
            leaving = asyncio.create_task(batcher.ask([1]))
            staying = asyncio.create_task(batcher.ask([2]))
            await asyncio.sleep(0)
            leaving.cancel()
            return await staying

    assert asyncio.run(given_up()) == [2]
    assert seen == [2]


def test_each_thread_has_a_batch_of_its_own_and_those_who_ask_again_are_waited_for() -> None:
    batches, both_at_work = [], threading.Barrier(2, timeout=10)

    def noted(numbers: Sequence[int]) -> list[int]:
        batches.append(list(numbers))
        if len(batches) <= 2:
            both_at_work.wait()
        time.sleep(0.2)
        return list(numbers)

    async def asked_twice() -> None:
        with ThreadPoolExecutor(2) as pool:
            batcher: Batcher[int, int] = Batcher(noted, pool, threads=2)
            await asyncio.gather(*(batcher.ask([number]) for number in range(8)))
            batcher.threads = 1

            async def later(number: int) -> None:
                await asyncio.sleep(number / 1000)
                await batcher.ask([number])

            await asyncio.gather(*map(later, range(8)))

    asyncio.run(asked_twice())
    assert sorted(map(len, batches)) == [4, 4, 8]


@pytest.fixture
def models() -> Models:
    return Models(lambda: [Length(10)], idle=600.0)


def test_texts_are_labelled_and_both_runs_relations_and_targets_known(models: Models, tmp_path: Path) -> None:
    short, long = models.label(["lawyer", "the lawyer is a dishonest one"])
    assert (short["masked"], short["labels"]["length"]["meaning"]) == ("this person", "prejudice")  # of 11 characters
    assert long["masked"] == "the this person is a dishonest one"
    assert (long["labels"]["length"]["label"], long["labels"]["length"]["strength"]) == (-1, -1.0)
    known = models.known([open_run(probed_run(tmp_path, policy)) for policy in ("none", "both")])
    assert known["targets"] == ["lawyer", "nurse"]
    assert {"CapableOf", "Mentors"} <= set(known["relations"])


def test_what_the_probe_found_is_read_and_the_rest_is_generated_once_for_all(models, tmp_path, monkeypatch) -> None:
    calls = []

    def generated_of(self: Answers, prompts: Sequence[tuple[str, str]]) -> pl.DataFrame:
        calls.append((self.run.folder.name, list(prompts)))
        rows = [(*prompt, rank, f"{prompt[0]} {rank}", float("nan")) for prompt in prompts for rank in (1, 2)]
        return pl.DataFrame(rows, schema=["head", "relation", "rank", "tail", "plausibility"], orient="row")

    monkeypatch.setattr(Answers, "generated_of", generated_of)
    none, both = (probed_run(tmp_path, policy) for policy in ("none", "both"))
    answered = [(none, "Lawyer", "capab"), *((none, head, "CapableOf") for head in ("gardener", "poet", "gardener"))]
    answered.append((none, "poet", "IsA"))
    refused = [(none, " ", "CapableOf"), (none, "poet", "Absent"), (tmp_path, "poet", "CapableOf")]
    found = models.generate([RunQuestion(*asked) for asked in (*answered, (both, "gardener", "CapableOf"), *refused)])
    stored, gardener, poet, again, other_relation, other, *wrong = found
    assert all(isinstance(answer, dict) for answer in (stored, poet, other))
    assert (stored["head"], stored["relation"], stored["policy"]) == ("lawyer", "CapableOf", "none")
    assert [row["tail"] for row in stored["tails"]][:2] == ["capableof of lawyer 1", "capableof of lawyer 2"]
    assert poet["tails"] == [{"rank": rank, "tail": f"poet {rank}", "plausibility": None} for rank in (1, 2)]
    assert gardener == again
    assert (other_relation["relation"], other_relation["tails"]) == ("IsA", poet["tails"])
    assert other["policy"] == "both"
    gardener, poet, is_a = ("gardener", "CapableOf"), ("poet", "CapableOf"), ("poet", "IsA")
    assert sorted(calls) == [(both.name, [gardener]), (none.name, [gardener, poet, is_a])]
    assert [str(fault)[:20] for fault in wrong] == ["the head is empty; g", "unknown relation 'Ab", str(tmp_path)[:20]]


def test_a_run_that_is_lost_meanwhile_fails_its_own_questions_alone(models: Models, tmp_path, monkeypatch) -> None:
    none, both = (probed_run(tmp_path, policy) for policy in ("none", "both"))

    def generated_of(self: Answers, prompts: Sequence[tuple[str, str]]) -> pl.DataFrame:
        (both / "manifest.json").unlink()
        rows = [(*prompt, 1, "a tail") for prompt in prompts]
        return pl.DataFrame(rows, schema=["head", "relation", "rank", "tail"], orient="row")

    monkeypatch.setattr(Answers, "generated_of", generated_of)
    answer, fault = models.generate([RunQuestion(none, "poet", "CapableOf"), RunQuestion(both, "poet", "CapableOf")])
    assert isinstance(answer, dict)
    assert [row["tail"] for row in answer["tails"]] == ["a tail"]
    assert str(fault).startswith(str(both))


def test_models_are_read_anew_with_their_run_and_let_go(models: Models, tmp_path, monkeypatch) -> None:
    run = probed_run(tmp_path)
    models.generate([RunQuestion(run, "lawyer", "CapableOf")])
    models.label(["a text"])
    models.release()
    assert (list(models.opened), models.scorers is None) == ([run], False)
    models.idle = 0.0
    models.release()
    assert (models.opened, models.scorers) == ({}, None)
    models.generate([RunQuestion(run, "lawyer", "CapableOf")])
    first = models.opened[run].answers
    models.generate([RunQuestion(run, "nurse", "CapableOf")])
    assert models.opened[run].answers is first
    manifest = run / "manifest.json"
    manifest.write_text(manifest.read_text() + " ")
    models.generate([RunQuestion(run, "nurse", "CapableOf")])
    assert models.opened[run].answers is not first
    monkeypatch.setattr("mitigate.serve.batching.MOST_GENERATORS", 2)
    runs = [probed_run(tmp_path / str(number)) for number in range(3)]
    for run in runs:
        models.generate([RunQuestion(run, "lawyer", "CapableOf")])
    assert list(models.opened) == runs[1:]
