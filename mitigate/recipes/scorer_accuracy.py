"""How good the scorers of a run are on rated statements, where that is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mitigate.score import crowd, people
from mitigate.tasks.crowd.accuracy import Accuracies, known_accuracy
from mitigate.triples import TEMPLATES, Scorer

CLASSES = {
    "mitigate.score.crowd.Crowd": crowd.SHIPPED,
    "mitigate.score.people.Crowd2": people.SHIPPED["crowd2"],
    "mitigate.score.people.CrowdLM": None,
}
"""The scorers whose accuracy lies beside their weights, and the folder of those that come with the project."""


def accuracies(nodes: Mapping[str, Any], scorers: Sequence[Scorer], source: str) -> Accuracies:
    """The sensitivity and specificity of scorers on rated statements of a source, with each template, by category;
    without those that nothing is known of. nodes: the configured scorers (scorers.Scorers)."""
    named = {scorer.name: nodes.get(scorer.name) or {} for scorer in scorers}
    known_of = {name: node for name, node in named.items() if node.get("_target_") in CLASSES}
    folders = {name: node.get("folder") or CLASSES[node["_target_"]] for name, node in known_of.items()}
    found = {
        (name, template): known_accuracy(source, Path(folder), template)
        for name, folder in folders.items()
        if folder is not None
        for template in TEMPLATES
    }
    return {of: known for of, known in found.items() if known}
