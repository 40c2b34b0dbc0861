"""How good the scorers of a run are on rated statements, where that is known."""

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from mitigate.tasks.crowd.known import Accuracies, known_accuracy
from mitigate.triples import TEMPLATES, Scorer

CLASS = "mitigate.score.crowd.Crowd"
"""The scorers whose accuracy is known: it lies beside their weights."""


def accuracies(score: DictConfig, scorers: Sequence[Scorer], source: str) -> Accuracies:
    """The sensitivity and specificity of scorers on rated statements of a source, with each template, by category;
    without those of which nothing is known."""
    nodes = {scorer.name: score.scorers.get(scorer.name) or {} for scorer in scorers}
    folders = {name: node.get("folder") for name, node in nodes.items() if node.get("_target_") == CLASS}
    found = {
        (name, template): known_accuracy(source, Path(folder) if folder else None, template)
        for name, folder in folders.items()
        for template in TEMPLATES
    }
    return {of: known for of, known in found.items() if known}
