"""Which states of all-MiniLM-L6-v2 predict validity best: nested cross-validation on COMeT's ratings alone.

    python benchmarks/people_choose.py [--data ../shared/data] [--information FILE.parquet]

Each candidate reads the statement (s), or the statement with its target masked (m), with layers 1 to 6, and has a
weight of decay; ranks are numbers of principal components. Candidates are compared in ten folds of targets, without
texts of the fold among those learnt from; for the nested figure, the best of nine folds labels the tenth. FILE: columns
sentence and information, of tasks.generators.likelihood.pointwise_information. Writes its section of RESULTS.md; some
minutes."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.results import machine, write_section
from mitigate.measure.agreement import auc
from mitigate.score.people import plain
from mitigate.score.precision import native_dtype
from mitigate.tasks.predicted_ratings.figures import valid_votes
from mitigate.tasks.ratings.paper_statements import read_with_quality
from mitigate.train.crowd import fit_softmax
from mitigate.triples import NEUTRAL
from models.heads import fold_of
from models.mean_states import Encoder
from models.minilm import locate

READS = ("s3", "s6", "s2", "s4", "s3 s6", "s2 s4", "m3", "s3 m3", "s3 m6")
DECAYS = (0.1, 0.3, 1.0)
RANKS = (32, 96)


class Rated:
    """COMeT's rated statements with the states of all layers."""

    def __init__(self, data: Path, information: Path | None) -> None:
        self.table = read_with_quality(data)
        self.valid = valid_votes(self.table)
        self.folds = np.array([fold_of(cluster) for cluster in self.table["cluster"]])
        self.texts = np.array([plain(text) for text in self.table["masked"]])
        encoder = Encoder(locate(), native_dtype(), range(6))
        kinds = {"s": self.table["sentence"], "m": self.table["masked"]}
        self.states = {
            f"{kind}{place + 1}": layer
            for kind, column in kinds.items()
            for place, layer in enumerate(np.split(encoder.features([plain(text) for text in column]), 6, axis=1))
        }
        if information is not None:
            known = pl.read_parquet(information)
            found = self.table.join(known, on="sentence", how="left", maintain_order="left")["information"].to_numpy()
            self.states["information"] = ((found - found.mean()) / found.std() * 0.1)[:, None].astype(np.float32)

    def features(self, reads: str, rank: int | None) -> np.ndarray:
        """(n, width), or the first principal components of these."""
        found = np.concatenate([self.states[name] for name in reads.split()], axis=1)
        if rank is None:
            return found
        centred = found - found.mean(axis=0)
        return centred @ np.linalg.svd(centred, full_matrices=False)[2][:rank].T

    def predicted(self, features: np.ndarray, decay: float, rows: np.ndarray) -> np.ndarray:
        """The logit of each of some rows, (n,) bool, by a fit that saw neither its fold nor its text; others NaN."""
        found, shares = np.full(len(self.valid), np.nan), np.stack([1 - self.valid, self.valid], axis=1)
        for fold in np.unique(self.folds[rows]):
            asked = rows & (self.folds == fold)
            found[asked] = self.fitted(features, shares, decay, rows & (self.folds != fold), asked)
        return found

    def fitted(
        self, features: np.ndarray, shares: np.ndarray, decay: float, learnt: np.ndarray, asked: np.ndarray
    ) -> np.ndarray:
        """The logits of the rows asked, by what was learnt from others without their texts."""
        learnt = learnt & ~np.isin(self.texts, self.texts[asked])
        weight, bias = fit_softmax(features[learnt], shares[learnt], np.ones(learnt.sum()), decay)
        logits = features[asked] @ weight + bias
        return logits[:, 1] - logits[:, 0]

    def auc(self, found: np.ndarray, rows: np.ndarray) -> float:
        value = auc(found[rows], self.valid[rows] > 0.5)
        assert value is not None
        return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the folder that has humans/")
    parser.add_argument("--information", type=Path, help="pointwise information of the statements")
    arguments = parser.parse_args()
    rated = Rated(arguments.data, arguments.information)
    reads = [*READS, *(["s3 information"] if arguments.information else [])]
    candidates = [(name, decay, None) for name, decay in product(reads, DECAYS)]
    candidates += [("s3", decay, rank) for rank, decay in product(RANKS, DECAYS)]
    every, neutral = np.ones(len(rated.valid), dtype=bool), (rated.table["most"] == NEUTRAL).to_numpy()
    lines = ["| states | rank | decay | AUC ↑ | among neutral |", "|---|---|---|---|---|"]
    features = {(name, rank): rated.features(name, rank) for name, _, rank in candidates}
    for name, decay, rank in candidates:
        found = rated.predicted(features[name, rank], decay, every)
        figures = f"{rated.auc(found, every):.3f} | {rated.auc(found, neutral):.3f}"
        lines.append(f"| {name} | {rank or 'all'} | {decay} | {figures} |")
        print(lines[-1], flush=True)
    found, chosen = nested(rated, candidates, features)
    text = [
        "## Choosing what people_valid reads",
        f"Measured on {machine()}, by `python benchmarks/people_choose.py`, on COMeT's {len(every)} rated statements.",
        "\n".join(lines),
        f"Nested: the best of nine folds labels the tenth with AUC {rated.auc(found, every):.3f}, among neutral "
        f"statements {rated.auc(found, neutral):.3f}; chosen were {chosen}.",
    ]
    write_section("people, choosing", "\n\n".join(text))
    print(text[-1])


def nested(
    rated: Rated,
    candidates: Sequence[tuple[str, float, int | None]],
    features: Mapping[tuple[str, int | None], np.ndarray],
) -> tuple[np.ndarray, str]:
    """The logits of each fold by the candidate that is best on the others, and how often each was."""
    found, counts = np.full(len(rated.valid), np.nan), dict[str, int]()
    shares = np.stack([1 - rated.valid, rated.valid], axis=1)
    for fold in np.unique(rated.folds):
        asked = rated.folds == fold
        best = max(
            candidates, key=lambda one: rated.auc(rated.predicted(features[one[0], one[2]], one[1], ~asked), ~asked)
        )
        name, decay, rank = best
        found[asked] = rated.fitted(features[name, rank], shares, decay, ~asked, asked)
        said = f"{name} with decay {decay}" + (f" and rank {rank}" if rank else "")
        counts[said] = counts.get(said, 0) + 1
        print(fold, said, flush=True)
    return found, ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda one: -one[1]))


if __name__ == "__main__":
    main()
