"""An epoch of knowledge-graph embeddings beside PyKEEN's loops for the same model, loss and negatives (FB15k-237).

    python benchmarks/kge.py [--root DIR] [--rounds 2] [--part 4000] [--models complex transe_l2]

Needs PyKEEN. Both sides take turns, each on a part of the triples; seconds are processor seconds in proportion to an
epoch, so that other programs of the machine count little. Vectors of 200 numbers, softmax cross-entropy, fused Adagrad,
one thread, no evaluation.

1-vs-all: every query is scored with all entities, for tails and for heads. Here a query is scored once, whatever its
number of answers. PyKEEN's LCWA does the same for tails; for heads it needs inverse triples, whose queries are tails of
second relations. Negatives: 512 each. PyKEEN draws them for each triple, here a batch of 1,000 triples shares its 512
heads and 512 tails, so that these rows compare the cost of a step, and not what it teaches."""

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
from mitigate.train.kge import OneVsAll, SharedNegatives
from mitigate.train.settings import EmbeddingTraining

NEGATIVES = 512
LR = 0.05


def ours(graph: Graph, model: str, loss: str) -> Callable[[np.ndarray], None]:
    network = Embeddings(model, len(graph.entities), len(graph.relations), 200)
    optimizer = torch.optim.Adagrad(network.parameters(), lr=LR, fused=True)

    def epoch(part: np.ndarray) -> None:
        size = 250 if loss == "all" else 1000
        settings = EmbeddingTraining(loss=loss, batch_size=size, negatives=NEGATIVES)
        ranking = (OneVsAll if loss == "all" else SharedNegatives)(network, part, settings)
        size = min(size, ranking.examples)
        for batch in Batches(np.zeros(ranking.examples), size, 1).start_at(0, -(-ranking.examples // size)):
            optimizer.zero_grad()
            ranking.loss(batch).backward()
            optimizer.step()

    return epoch


def pykeens(graph: Graph, model: str, loss: str) -> Callable[[np.ndarray], None]:
    from pykeen.models import ComplEx, TransE
    from pykeen.training import LCWATrainingLoop, SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    def factory(triples: np.ndarray) -> CoreTriplesFactory:
        sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
        return CoreTriplesFactory.create(torch.from_numpy(triples), create_inverse_triples=loss == "all", **sizes)

    kind = {"complex": ComplEx, "transe_l2": TransE}[model]
    shape = {"complex": {"embedding_dim": 100}, "transe_l2": {"embedding_dim": 200, "scoring_fct_norm": 2}}[model]
    network = kind(triples_factory=factory(graph.train), random_seed=0, loss="crossentropy", **shape).to("cpu")
    optimizer = torch.optim.Adagrad(network.get_grad_params(), lr=LR, fused=True)

    def epoch(part: np.ndarray) -> None:
        how = {"model": network, "optimizer": optimizer, "triples_factory": factory(part)}
        how["automatic_memory_optimization"] = False
        if loss == "all":
            loop = LCWATrainingLoop(**how)
        else:
            loop = SLCWATrainingLoop(**how, negative_sampler_kwargs={"num_negs_per_pos": 2 * NEGATIVES})
        size = 100 if loss == "shared" else 250 if model == "complex" else 20  # its distances take n x m x 200 numbers
        quiet = {"use_tqdm": False, "use_tqdm_batch": False}
        loop.train(triples_factory=how["triples_factory"], num_epochs=1, batch_size=size, **quiet)

    return epoch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", help="the folder that has kg/ (as data.root); else MITIGATE_DATA")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--part", type=int, default=4_000, help="triples of a turn; a tenth of it with own negatives")
    parser.add_argument("--models", nargs="+", default=["complex", "transe_l2"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    graph = published(
        *("kg/fb15k-237", "", arguments.root), archive="FB15k-237.tar.gz", names="kg/fb15k-237/mid2name.tsv"
    )
    by_head = graph.train[np.argsort(graph.train[:, 0], kind="stable")]  # a part has whole queries for tails
    print("| model | loss | mitigate, s an epoch | PyKEEN | times |\n|---|---|---|---|---|")
    for model in arguments.models:
        for loss, share in (("all", 1.0), ("shared", 0.1)):
            sides = [make(graph, model, loss) for make in (ours, pykeens)]
            found: list[list[float]] = [[], []]
            for turn in range(arguments.rounds + 1):
                first = np.random.default_rng(turn).integers(len(by_head) - arguments.part)
                for place, side in enumerate(sides):
                    size = round(arguments.part * (share if place else 1))
                    part = by_head[first : first + size]
                    started = time.process_time()
                    side(part)
                    if turn:  # the first warms up
                        found[place].append((time.process_time() - started) / len(part) * len(by_head))
            mine, theirs = map(median, found)
            print(f"| `{model}` | {loss} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.1f} |", flush=True)


if __name__ == "__main__":
    main()
