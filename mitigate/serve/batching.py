"""Questions to generators and scorers: those of concurrent requests are answered together, by models that are loaded
once and released when they have not been used for a while.

While batches are computed the next one gathers, so nobody waits for a batch to fill up. Each thread answers a batch of
its own with the same models."""

import asyncio
import gc
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.agreement import CLASSES
from mitigate.runs.finished import FinishedRun, open_run
from mitigate.tasks.ask import answers
from mitigate.tasks.ask.answers import Answers, all_targets, shared_relations
from mitigate.tasks.identity import COLUMN
from mitigate.tasks.label import label_statements
from mitigate.tasks.labelled_statements import label_names
from mitigate.triples import OTHER, Scorer

WORDS = {**CLASSES, OTHER: "other"}
MOST_GENERATORS = 4  # that stay loaded
GATHERING, PAUSE = 0.1, 0.02  # of the last batch's time: the most that a batch gathers, and the pause that ends it
Question = TypeVar("Question")
Answer = TypeVar("Answer")


class BusyError(MitigateError):
    """The error for more waiting questions than are allowed."""


class RunQuestion(NamedTuple):
    """A question to the run in a folder."""

    folder: Path
    head: str
    relation: str


class Batcher(Generic[Question, Answer]):
    """A queue that gathers questions and answers them together, in as many batches at once as the executor has threads
    (`threads`): `answer` takes at most `most` and returns as many answers, or the fault of each. Raises BusyError when
    `waiting` questions wait."""

    def __init__(
        self,
        answer: Callable[[Sequence[Question]], Sequence[Answer | MitigateError]],
        executor: Executor,
        *,
        most: int = 64,
        waiting: int = 1024,
        threads: int = 1,
    ) -> None:
        self.answer = answer
        self.executor = executor
        self.most = most
        self.waiting = waiting
        self.threads = threads
        self._left: list[tuple[Question, asyncio.Future[Answer]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = 0  # threads
        self._arrived = 0  # questions, ever
        self._took = 0.0  # seconds, the last batch

    async def ask(self, questions: Sequence[Question]) -> list[Answer]:
        """The answers to one request's questions. Raises the first one's fault."""
        if len(self._left) + len(questions) > self.waiting:
            raise BusyError(f"{len(self._left):,} questions wait to be answered; ask again in some seconds")
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in questions]
        self._left += zip(questions, futures, strict=True)
        self._arrived += len(questions)
        self._start()
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()  # of a request that was given up: nobody else waits for it

    def _start(self) -> None:
        """Begin another batch, if a thread is free for it."""
        self._tasks = {task for task in self._tasks if not task.done()}
        if self._left and len(self._tasks) < self.threads:
            self._tasks.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._left:
            batch = [(question, future) for question, future in await self._batch() if not future.done()]
            if not batch:
                continue
            found: Sequence[Any]
            begin = loop.time()
            self._busy += 1
            try:
                found = await loop.run_in_executor(self.executor, self.answer, [question for question, _ in batch])
            except Exception as error:
                found = [error] * len(batch)
            self._busy -= 1
            self._took = loop.time() - begin
            for (_, future), answer in zip(batch, found, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    async def _batch(self) -> list[tuple[Question, asyncio.Future[Answer]]]:
        """The next batch: an equal share for each free thread. Clients that were answered together ask again one after
        the other, so a pause between two questions begins it, or a limit in proportion to the last batch's time."""
        loop = asyncio.get_running_loop()
        begin, arrived = loop.time(), -1
        while arrived != self._arrived and loop.time() - begin < GATHERING * self._took:
            arrived = self._arrived
            await asyncio.sleep(PAUSE * self._took)
        size = min(self.most, -(-len(self._left) // (self.threads - self._busy)))
        batch, self._left = self._left[:size], self._left[size:]
        self._start()
        return batch


@dataclass
class _Open:
    answers: Answers
    version: int  # when its manifest was written
    used: float


class Models:
    """Generators and scorers, loaded when a question needs them. make_scorers: builds the scorers that label texts."""

    def __init__(self, make_scorers: Callable[[], list[Scorer]], idle: float) -> None:
        self.make_scorers = make_scorers
        self.idle = idle
        self.scorers: list[Scorer] | None = None
        self.used = 0.0
        self.opened: dict[Path, _Open] = {}
        self._lock = threading.Lock()  # of what is loaded

    def generate(self, questions: Sequence[RunQuestion]) -> list[dict[str, Any] | MitigateError]:
        """The answer to each question: the run, its policy and seed, the head as the run has it, and the tails with
        their labels; or the error."""
        found: list[dict[str, Any] | MitigateError | None] = [None] * len(questions)
        together: dict[Path, dict[int, tuple[str, str]]] = {}
        for place, (folder, head, relation) in enumerate(questions):
            try:
                run = self._open(folder)
                head, name = run.index.head(head), run.index.relation(relation)
                stored = run.index.stored(head, name)
                if stored is None:
                    together.setdefault(folder, {})[place] = (head, name)
                else:
                    found[place] = _answer(run, head, name, stored)
            except MitigateError as error:
                found[place] = error
        for folder, prompts in together.items():
            try:
                run = self._open(folder)  # again: another question may have released it
                rows = run.generated_of(list(dict.fromkeys(prompts.values()))).partition_by(
                    "head", "relation", as_dict=True
                )
                for place, (head, name) in prompts.items():
                    found[place] = _answer(run, head, name, rows[head, name])
            except MitigateError as error:
                for place in prompts:
                    found[place] = error
        return [answer for answer in found if answer is not None]

    def label(self, texts: Sequence[str]) -> list[dict[str, Any]]:
        """The result for each text: the masked text that scorers read, their labels and strengths, and the words that
        drove them."""
        with self._lock:
            self.used = time.monotonic()
            if self.scorers is None:
                self.scorers = self.make_scorers()
            scorers = self.scorers
        labels = label_statements(pl.DataFrame({"statement": texts}), scorers, explain=True)
        names = label_names(labels)
        return [_labelled(row, names) for row in labels.iter_rows(named=True)]

    def known(self, runs: Sequence[FinishedRun]) -> dict[str, list[str]]:
        """The relations and targets that all these runs share. It reads tables alone, in any thread."""
        opened = [Answers(run) for run in runs]
        return {"relations": shared_relations(opened), "targets": all_targets(opened)}

    def release(self) -> None:
        """Release models that no question has used for `idle` seconds."""
        with self._lock:
            now, before = time.monotonic(), (len(self.opened), self.scorers)
            self.opened = {folder: run for folder, run in self.opened.items() if now - run.used < self.idle}
            if now - self.used >= self.idle:
                self.scorers = None
        if before != (len(self.opened), self.scorers):
            if not self.opened:
                answers.forget()
            gc.collect()

    def _open(self, folder: Path) -> Answers:
        version = (folder / "manifest.json").stat().st_mtime_ns if (folder / "manifest.json").exists() else 0
        with self._lock:
            now, known = time.monotonic(), self.opened.get(folder)
            if known is None or known.version != version:
                known = _Open(Answers(open_run(folder, "mitigate")), version, now)
                if len(self.opened) >= MOST_GENERATORS:
                    del self.opened[min(self.opened, key=lambda other: self.opened[other].used)]
                self.opened[folder] = known
            known.used = now
            return known.answers


def _answer(run: Answers, head: str, relation: str, tails: pl.DataFrame) -> dict[str, Any]:
    rows = [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in tails.drop("head", "relation").iter_rows(named=True)
    ]
    facts = {"run": run.run.folder.name, "policy": run.run.policy, "seed": run.run.seed}
    return {**facts, "head": head, "relation": relation, "scorers": list(run.index.scorers), "tails": rows}


def _labelled(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    labels = {
        name: {
            "label": row[name],
            "meaning": WORDS[row[name]],
            "strength": round(float(row[f"{name}_strength"]), 4),
            "words": row[f"{name}_words"] or "",
            "depends_on": row.get(f"{name}{COLUMN}") or "",
        }
        for name in names
    }
    return {"text": row["statement"], "masked": row["masked"], "labels": labels}
