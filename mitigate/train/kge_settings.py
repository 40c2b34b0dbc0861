"""How embeddings of a knowledge graph are trained."""

from dataclasses import dataclass, field

from mitigate.errors import MitigateError
from mitigate.runs.fingerprints import SURROUNDING
from mitigate.train.harness import PRECISIONS

LOSSES = ("shared", "all")


@dataclass(frozen=True)
class Settings:
    """How to train. The defaults are those of the paper on bias in knowledge-graph embeddings (section 2.2) where it
    gives any: 1,000 negatives, softmax cross-entropy."""

    loss: str = "shared"  # negatives shared in a chunk, or "all": 1-vs-all
    max_epochs: int = 100
    batch_size: int = 1_000  # triples; with loss="all" queries, each of which is scored with all entities
    chunk_size: int = 1_000  # triples that share negatives
    negatives: int = 1_000
    by_frequency: float = 0.5  # share of negatives drawn as often as entities occur, as half of PyTorch-BigGraph's are
    learning_rate: float = 0.1  # of Adagrad at the first step; it falls in a line to 0 at the end of max_epochs
    n3: float = 0.0  # weight of the N3 regulariser (Lacroix et al. 2018)
    evaluate_every: int = 5  # epochs
    patience: int = 3  # evaluations without a better validation MRR, after which training ends
    precision: str = "32-true"
    seed: int = 1
    checkpoint_every: float = field(default=30.0, metadata=SURROUNDING)  # seconds

    def __post_init__(self) -> None:
        counts = ("max_epochs", "batch_size", "chunk_size", "negatives", "evaluate_every", "patience")
        checks = [
            (self.loss in LOSSES, f"loss={self.loss!r} must be one of {', '.join(LOSSES)}"),
            *((getattr(self, name) >= 1, f"{name}={getattr(self, name)} must be at least 1") for name in counts),
            (0 <= self.by_frequency <= 1, f"by_frequency={self.by_frequency} must be a share from 0 to 1"),
            (self.learning_rate > 0, f"learning_rate={self.learning_rate} must be above 0"),
            (self.n3 >= 0, f"n3={self.n3} must be a weight of at least 0"),
            (self.precision in PRECISIONS, f"precision={self.precision!r} must be one of {', '.join(PRECISIONS)}"),
            (self.checkpoint_every > 0, f"checkpoint_every={self.checkpoint_every} must be above 0 seconds"),
        ]
        if faults := [fault for holds, fault in checks if not holds]:
            raise MitigateError("kge: " + "; ".join(faults))
