"""The model cards of the plausibility classifiers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mitigate.report.markdown import environment

PARTS = {
    "dev1": "dev1, on which the threshold was chosen",
    "dev2": "dev2",
    "test": "test",
}
SHARES = {
    "true": "true test triples",
    "shuffled": "the same, their tails shuffled",
    "shuffled_within_relation": "the same, their tails shuffled within each relation",
    "turned_round": "the same, head and tail exchanged",
    "echo": "each of the 329 targets as head and tail at once, in every relation",
    "target": "true test triples about one of the 329 targets",
}
POLARITIES = ("prejudice", "neutral", "favouritism")


def render(name: str, metrics: Mapping[str, Any], seed: int) -> str:
    """The card of a classifier, "words", "minilm" or "average", as Markdown with the hub's front matter."""
    templates = environment(Path(__file__).parent)
    templates.filters["percent"] = lambda share: "–" if share is None else f"{share:.1f}"
    return templates.get_template("plausibility_card.md.jinja").render(
        name=name,
        classifiers=list(dict.fromkeys(key.partition("/")[0] for key in metrics)),
        metrics=metrics,
        parts=PARTS,
        shares=SHARES,
        polarities=POLARITIES,
        scorers=sorted(
            key.split("/")[2] for key in metrics if key.startswith(f"{name}/valid/") and key.endswith("/neutral")
        ),
        seed=seed,
    )
