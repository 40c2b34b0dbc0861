"""Training of knowledge-graph embeddings beside PyKEEN's own loops for the same model, on FB15k-237.

    python benchmarks/kge.py [--root DIR] [--rounds 3]

Needs PyKEEN: pip install 'mitigate[pykeen]'. Contestants take turns within a round, so that what else the machine does
falls on all of them; of the rounds the median counts. Each lives in a process of its own, whose peak memory is its
alone, and trains on part of the triples in a turn: the seconds of an epoch are in proportion. Writes its section of
RESULTS.md and takes some ten minutes on one thread."""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, processor, write_section
from mitigate.load.graph.published import fb15k237
from mitigate.tasks.kge.graphs import triples_of
from mitigate.train import harness
from mitigate.train.kge_losses import OneVsAll, SharedNegatives
from mitigate.train.kge_settings import Settings
from models.kge.embeddings import Embeddings

CONF = Path(__file__).parents[1] / "conf" / "model"
BATCH = 100  # triples of PyKEEN's loop: with 1,000 negatives for each triple of 1,000 it would need 10 times the memory
EPOCH = 272_115  # training triples of FB15k-237

Train = Callable[[int], float]
"""Trains on part of the triples that a number chooses, and gives the seconds that an epoch takes at this pace."""


class Work(NamedTuple):
    """What a contestant is given."""

    model: str
    triples: np.ndarray
    entities: int
    relations: int
    part: int  # triples of a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has kg/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="few triples; prints the section and writes nothing")
    arguments = parser.parse_args()
    contestants = entrants(arguments.root, 0.05 if arguments.small else 1.0)
    for number in range(arguments.rounds + 1):
        for contestant in contestants:
            contestant.turn(number)
            print(f"round {number}: {contestant.model}, {contestant.name}, {contestant.last:.0f} s/epoch", flush=True)
    section = "\n\n".join(
        [
            "## Knowledge-graph embeddings: an epoch of FB15k-237 beside PyKEEN",
            f"Measured on {machine()}, PyKEEN {version()}, by `python benchmarks/kge.py`, {arguments.rounds} rounds.",
            table(contestants),
            NOTES.replace("\n", " "),
        ]
    )
    if not arguments.small:
        write_section("kge speed", section, processor())
    print(section)


@dataclass
class Contestant:
    """A way to train, in a process that waits between its turns."""

    model: str
    name: str
    process: ProcessPoolExecutor
    seconds: list[float] = field(default_factory=list)  # of an epoch, a round each
    last: float = 0.0
    peak: float = 0.0  # GiB

    def turn(self, number: int) -> None:
        """The turn of round 0 warms up, and is not counted."""
        self.last, self.peak = self.process.submit(_turn, number).result()
        if number:
            self.seconds.append(self.last)


def entrants(root: str | None, share: float) -> list[Contestant]:
    triples = triples_of(fb15k237(root))
    found = []
    for model, part, name, make in (
        ("complex", 40_000, "mitigate, 1,000 shared negatives", ours),
        ("complex", 1_000, "PyKEEN, 1,000 negatives each", negatives_each),
        ("transe_l2", 40_000, "mitigate, 1,000 shared negatives", ours),
        ("transe_l2", 1_000, "PyKEEN, 1,000 negatives each", negatives_each),
        ("complex_n3", 20_000, "mitigate, 1-vs-all by query", ours),
        ("complex_n3", 10_000, "PyKEEN, 1-vs-all by query (LCWA)", all_entities),
    ):
        work = Work(model, triples.train, triples.num_entities, triples.num_relations, max(200, round(part * share)))
        found.append(Contestant(model, name, begin(make, work)))
    return found


def begin(make: Callable[[Work], Train], work: Work) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _enter, (make, work, torch.get_num_threads()))


def _enter(make: Callable[[Work], Train], work: Work, threads: int) -> None:
    global _train
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    _train = make(work)


def _turn(number: int) -> tuple[float, float]:
    seconds = _train(number)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def ours(work: Work) -> Train:
    """As recipe=kge trains, without its evaluations."""
    config = yaml.safe_load((CONF / f"{work.model}.yaml").read_text())
    network = Embeddings(config["kind"], work.entities, work.relations, config["dimension"], config["deviation"])

    def train(number: int) -> float:
        settings = Settings(**{**config["training"], "max_epochs": 1}, seed=number)
        module = (OneVsAll if settings.loss == "all" else SharedNegatives)(network, work.triples, settings)
        epoch = module.steps
        module.steps = max(1, round(epoch * work.part / len(work.triples)))
        counts = harness.fit(module, precision=settings.precision, accelerator="cpu")
        return counts.seconds / module.steps * epoch

    return train


def negatives_each(work: Work) -> Train:
    """PyKEEN's stochastic loop: every triple has negatives of its own; softmax cross-entropy."""
    from pykeen.training import SLCWATrainingLoop

    how = {"negative_sampler": "basic", "negative_sampler_kwargs": {"num_negs_per_pos": 1_000}}
    loss = {"loss": "infonce", "loss_kwargs": {"margin": 0.0, "log_adversarial_temperature": 0.0}}
    return theirs(work, SLCWATrainingLoop, how, loss, BATCH)


def all_entities(work: Work) -> Train:
    """PyKEEN's loop over distinct pairs of head and relation, which has no queries for heads unless inverse triples are
    made; they are made here."""
    from pykeen.training import LCWATrainingLoop

    return theirs(work, LCWATrainingLoop, {}, {"loss": "crossentropy"}, 250)


def theirs(work: Work, loop: Any, how: dict[str, Any], loss: dict[str, Any], batch: int) -> Train:
    from pykeen.models import ComplEx, TransE
    from pykeen.triples import CoreTriplesFactory

    inverse = work.model == "complex_n3"

    def factory(triples: np.ndarray) -> CoreTriplesFactory:
        return CoreTriplesFactory.create(
            torch.from_numpy(triples),
            num_entities=work.entities,
            num_relations=work.relations,
            create_inverse_triples=inverse,
        )

    if work.model == "transe_l2":
        model = TransE(
            triples_factory=factory(work.triples), embedding_dim=200, scoring_fct_norm=2, random_seed=0, **loss
        )
    else:
        model = ComplEx(triples_factory=factory(work.triples), embedding_dim=100, random_seed=0, **loss)
    model = model.to("cpu")
    optimizer = torch.optim.Adagrad(model.get_grad_params(), lr=0.05, fused=True)

    def train(number: int) -> float:
        part = chosen(work, number)
        trained = loop(
            model=model, triples_factory=factory(part), optimizer=optimizer, automatic_memory_optimization=False, **how
        )
        started = time.perf_counter()
        trained.train(
            triples_factory=factory(part), num_epochs=1, batch_size=batch, use_tqdm=False, use_tqdm_batch=False
        )
        return (time.perf_counter() - started) / len(part) * len(work.triples)

    return train


def chosen(work: Work, number: int) -> np.ndarray:
    """Triples of a turn. For 1-vs-all by query whole queries are drawn, in the order of heads, so that a query has as
    many answers as in the whole graph."""
    rng = np.random.default_rng(number)
    if work.model != "complex_n3":
        return work.triples[rng.choice(len(work.triples), work.part, replace=False)]
    start = rng.integers(len(work.triples) - work.part)
    return work.triples[np.argsort(work.triples[:, 0], kind="stable")][start : start + work.part]


def version() -> str:
    from pykeen.version import get_version

    return get_version()


def table(contestants: list[Contestant]) -> str:
    lines = [
        "| model | | seconds an epoch, median | of the rounds | mitigate is | peak memory, GiB |",
        "|---|---|---|---|---|---|",
    ]
    for contestant in contestants:
        mine = next(c for c in contestants if c.model == contestant.model and c.name.startswith("mitigate"))
        ratio = "" if contestant is mine else f"{median(contestant.seconds) / median(mine.seconds):.1f} times as fast"
        rounds = " ".join(f"{seconds:.0f}" for seconds in contestant.seconds)
        lines.append(
            f"| `{contestant.model}` | {contestant.name} | {median(contestant.seconds):.0f} | {rounds} | {ratio} "
            f"| {contestant.peak:.2f} |"
        )
    return "\n".join(lines)


NOTES = """Seconds of an epoch are in proportion to those of a turn, which trains on 1,000 triples (PyKEEN's stochastic
loop), 10,000 (its 1-vs-all), 20,000 (1-vs-all of mitigate) or 40,000. All have 200 numbers a
vector, softmax cross-entropy and fused Adagrad, and no evaluations. PyKEEN's
stochastic loop draws 1,000 negatives for each triple, in batches of 100 triples. mitigate draws 1,000 for a chunk of
1,000 triples and puts them in the place of heads and of tails, 2,000 for each triple. Triples of a chunk share their
negatives, so that an epoch of both need not teach as much. In 1-vs-all, both score each distinct query with all
entities; PyKEEN makes inverse triples for queries for heads, and has no N3 here. Peak memory is that of a process with
all its libraries."""


if __name__ == "__main__":
    main()
