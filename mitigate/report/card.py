"""The model card of a saved generator: its training data, what was filtered out, its measures, and its intended use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mitigate.metrics import PAPER_SCORERS
from mitigate.report import legend
from mitigate.report.excluded_targets import left_out
from mitigate.report.ledger import summary
from mitigate.report.markdown import environment
from mitigate.report.reasons import why
from mitigate.runs import files

NOT_KNOWN = {"", "other", "unknown", "none", "not given"}
PERMISSIVE = {"mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0"}
"""Licences that let a model be given on under another one that keeps the names of its authors."""


@dataclass(frozen=True)
class Card:
    """The content of a model card; an empty part is left out."""

    name: str
    license: str | None  # of the data: "CC-BY-SA-4.0"; None: not given
    base_model: str  # the hub's name of what training started from, or that of its folder
    base_license: str | None
    data: str  # what it was trained on, as its licence wants it named: "ConceptNet train100k (Li et al. 2016)"
    prompt: str  # what it can be asked with: "lawyer is capable of"
    policy: str
    command: str
    demonstration: bool
    metrics: legend.Metrics
    verdict: str = ""  # the sentence that the run's page begins with
    ledger: pl.DataFrame | None = None
    targets: Sequence[str] = ()  # that were probed
    language: Sequence[str] = ("en",)
    tags: Sequence[str] = ("commonsense", "comet", "representational-harms")
    notices: Sequence[str] = field(default_factory=tuple)
    scorers: Sequence[str] = PAPER_SCORERS  # whose measures it shows
    seq2seq: bool = False  # whether it has an encoder and a decoder
    adapter: bool = False  # whether it is a low-rank adapter of its base alone
    chat: bool = False  # whether its prompt is that of a chat template, with all special tokens
    needs: Mapping[str, str] = field(default_factory=dict)  # of the command: arguments.inputs


def write(folder: Path, card: Card) -> Path:
    """Write the card as the folder's README.md, whole or not at all."""
    return files.write(folder / "README.md", render(card))


def render(card: Card) -> str:
    """The card as Markdown with the hub's YAML front matter."""
    ledger = None if card.ledger is None or card.ledger.is_empty() else card.ledger
    template = environment(Path(__file__).parent).get_template("card.md.jinja")
    return template.render(
        card=card,
        licence=licence_of(card.license, card.base_license),
        library="peft" if card.adapter else "transformers",
        model_class=f"Auto{'Peft' * card.adapter}ModelFor{'Seq2SeqLM' if card.seq2seq else 'CausalLM'}",
        legend=legend,
        harms=legend.harms_by(card.scorers, card.metrics),
        left_out=left_out(card.targets),
        shown=lambda key, decimals: shown(card.metrics, key, decimals),
        reasons=[] if ledger is None else list(summary(ledger, "reason").iter_rows(named=True)),
        quality=[
            (measure, subset)
            for measure in legend.QUALITY
            for subset in legend.SUBSETS
            if legend.quality_key(measure, subset) in card.metrics
        ],
        probed_parts=legend.probed_parts(card.metrics),
        validity=legend.validity(card.metrics),
    )


def licence_of(data: str | None, base: str | None) -> str:
    """The licence of a model for the hub, by those of its data and of the model that training started from: "unknown"
    where one of them is not known, and "other" where neither lets the other stand for both."""
    given, started = ((licence or "").strip().casefold() for licence in (data, base))
    if {given, started} & NOT_KNOWN:
        return "unknown"
    if given == started or started in PERMISSIVE:
        return given
    return started if given in PERMISSIVE else "other"


def shown(metrics: legend.Metrics, key: str, decimals: int) -> str:
    """A figure with its interval, or why there is none."""
    reason = why(metrics, key)
    also = f"({reason})" if reason else legend.interval(metrics, key, decimals)
    return f"{legend.number(metrics.get(key), decimals)} {also}".rstrip()
