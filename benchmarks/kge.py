"""An epoch of knowledge-graph embeddings beside PyKEEN's loop for the same model and loss (FB15k-237).

    python benchmarks/kge.py [--root DIR] [--rounds 3] [--part 0.05] [--models complex transe_l2]

Needs PyKEEN. 1-vs-all on both sides: each query, an entity with a relation, is scored with all entities once, for tails
and for heads. PyKEEN's LCWA loop scores tails only, so its graph has the inverse of each triple too. Vectors of 200
numbers, softmax cross-entropy, fused Adagrad, one thread, no evaluation.

The sides take turns. This package makes a whole epoch; PyKEEN a share of the queries drawn at random, each with all of
its answers, and its seconds are divided by that share. Seconds are processor seconds, so that other programs of the
machine count little. Losses with drawn negatives are not compared: PyKEEN draws them for each triple, this package for
a batch."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.load.graph import Graph, published
from mitigate.models.kge import Embeddings
from mitigate.train.harness import Batches
from mitigate.train.kge import OneVsAll
from mitigate.train.settings import EmbeddingTraining

LR = 0.05
Epoch = Callable[[int], float]  # of a turn's number, which seeds its draws, to the share of an epoch that it made


def ours(graph: Graph, model: str) -> Epoch:
    network = Embeddings(model, len(graph.entities), len(graph.relations), 200)
    optimizer = torch.optim.Adagrad(network.parameters(), lr=LR, fused=True)
    objective = OneVsAll(network, graph.train, EmbeddingTraining(loss="all", batch_size=250))
    steps = -(-objective.num_examples // 250)

    def epoch(turn: int) -> float:
        for batch in Batches(np.zeros(objective.num_examples), 250, turn).start_at(0, steps):
            optimizer.zero_grad()
            objective.loss(batch).backward()
            optimizer.step()
        return 1.0

    return epoch


def pykeens(graph: Graph, model: str, share: float) -> Epoch:
    from pykeen.models import ComplEx, TransE
    from pykeen.training import LCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    heads, relations, tails = graph.train.T
    triples = np.concatenate([graph.train, np.stack([tails, relations + len(graph.relations), heads], axis=1)])
    queries, query = np.unique(triples[:, :2], axis=0, return_inverse=True)

    def factory(part: np.ndarray) -> CoreTriplesFactory:
        sizes = {"num_entities": len(graph.entities), "num_relations": 2 * len(graph.relations)}
        return CoreTriplesFactory.create(torch.from_numpy(part), **sizes)

    kind = {"complex": ComplEx, "transe_l2": TransE}[model]
    shape = {"complex": {"embedding_dim": 100}, "transe_l2": {"embedding_dim": 200, "scoring_fct_norm": 2}}[model]
    network = kind(triples_factory=factory(triples), random_seed=0, loss="crossentropy", **shape).to("cpu")
    optimizer = torch.optim.Adagrad(network.get_grad_params(), lr=LR, fused=True)
    size = 250 if model == "complex" else 20  # its distances take queries x entities x 200 numbers

    def epoch(turn: int) -> float:
        drawn = np.random.default_rng(turn).permutation(len(queries)) < share * len(queries)
        part = factory(triples[drawn[query.ravel()]])
        loop = LCWATrainingLoop(
            model=network, optimizer=optimizer, triples_factory=part, automatic_memory_optimization=False
        )
        loop.train(part, num_epochs=1, batch_size=size, use_tqdm=False, use_tqdm_batch=False)
        return float(drawn.mean())

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has kg/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", type=float, default=0.05, help="PyKEEN's share of the queries in a turn")
    parser.add_argument("--models", nargs="+", default=["complex", "transe_l2"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    graph = published(
        *("kg/fb15k-237", "", arguments.root), archive="FB15k-237.tar.gz", names="kg/fb15k-237/mid2name.tsv"
    )
    print("| model | mitigate, s an epoch | PyKEEN | times |\n|---|---|---|---|")
    for model in arguments.models:
        sides = [ours(graph, model), pykeens(graph, model, arguments.part)]
        seconds: list[list[float]] = [[], []]
        for turn in range(arguments.rounds):
            for place, side in enumerate(sides):
                started = time.process_time()
                share = side(turn)
                seconds[place].append((time.process_time() - started) / share)
            print(model, *(f"{side[-1]:.1f}" for side in seconds), file=sys.stderr, flush=True)
        mine, theirs = map(median, seconds)
        print(f"| `{model}` | {mine:.1f} | {theirs:.1f} | {theirs / mine:.1f} |", flush=True)


if __name__ == "__main__":
    main()
