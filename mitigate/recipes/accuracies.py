"""How good the scorers of a run are on rated statements, where that is known."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from mitigate.measure.correction import Accuracy
from mitigate.tasks.crowd.known import known_accuracy
from mitigate.triples import Scorer

CLASS = "mitigate.score.crowd.Crowd"
"""The scorers whose accuracy is known: it lies beside their weights."""


def accuracies(score: DictConfig, scorers: Sequence[Scorer], source: str) -> dict[str, dict[str, Accuracy]]:
    """Scorer -> its sensitivity and specificity on rated statements of a source, by category; without those of which
    nothing is known."""
    nodes = {scorer.name: score.scorers.get(scorer.name) or {} for scorer in scorers}
    folders = {name: node.get("folder") for name, node in nodes.items() if node.get("_target_") == CLASS}
    found = {name: known_accuracy(source, Path(folder) if folder else None) for name, folder in folders.items()}
    return {name: known for name, known in found.items() if known}
