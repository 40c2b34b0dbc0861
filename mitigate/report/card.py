"""The model card of a saved generator: its training data, what was filtered out, its measures, and its intended use."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate import files
from mitigate.report import legend
from mitigate.report.ledger import summary


@dataclass(frozen=True)
class Card:
    """What a model card shows; an empty part is left out."""

    name: str
    license: str  # as the hub spells it: "cc-by-sa-4.0", "mit"
    base_model: str  # the hub's name of what training started from
    data: str  # what it was trained on, in a phrase: "ConceptNet train100k (Li et al. 2016)"
    attribution: str  # the attribution that the data's licence requires, in a sentence
    policy: str
    command: str
    demonstration: bool
    metrics: legend.Metrics
    ledger: pl.DataFrame | None = None
    language: Sequence[str] = ("en",)
    tags: Sequence[str] = ("commonsense", "comet", "conceptnet", "representational-harms")
    notices: Sequence[str] = field(default_factory=tuple)


def write(folder: Path, card: Card) -> Path:
    """Write the card as the folder's README.md, whole or not at all."""
    return files.write(folder / "README.md", render(card))


def render(card: Card) -> str:
    """The card as Markdown with the hub's YAML front matter."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = legend.number
    ledger = None if card.ledger is None or card.ledger.is_empty() else card.ledger
    return environment.get_template("card.md.jinja").render(
        card=card,
        legend=legend,
        reasons=[] if ledger is None else list(summary(ledger, "reason").iter_rows(named=True)),
        quality=[
            (measure, subset)
            for measure in legend.QUALITY
            for subset in legend.SUBSETS
            if legend.quality_key(measure, subset) in card.metrics
        ],
        probed_parts=legend.probed_parts(card.metrics),
    )
