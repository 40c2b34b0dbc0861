"""Model cards with metadata that the hub reads, and the card of a saved generator: its training data, the triples that
were filtered out, its measures, and its intended use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mitigate.measure.base import PAPER_SCORERS, find, key_of
from mitigate.measure.quality import GROUPS
from mitigate.report import metric_display
from mitigate.report.excluded_targets import left_out
from mitigate.report.ledger import summary
from mitigate.report.markdown import environment, plain
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG

NOT_KNOWN = {"", "other", "unknown", "none", "not given"}
PERMISSIVE = {"mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0"}
"""Licences that let a model be given on under another one that keeps the names of its authors."""


class Figure(NamedTuple):
    """A figure of a model as the hub lists it."""

    dataset: str
    metric: str  # its key, such as "NRM"
    name: str
    value: Any  # left out where it is None


def model_card(
    template: str, name: str, task: str, figures: Iterable[Figure], content: Mapping[str, Any], **metadata: Any
) -> str:
    """A card as Markdown with the hub's metadata, in which the figures are the model-index. template: extends
    model_card.md.jinja; task: the hub's name of the model's task; content: the template's variables; metadata: license,
    tags and further fields of ModelCardData, without those that are None."""
    from huggingface_hub.repocard_data import EvalResult, ModelCardData  # huggingface_hub.ModelCard takes .2 s more

    results = []
    for dataset, key, in_words, value in figures:
        if value is not None:
            slug = re.sub(r"\W+", "-", dataset.lower()).strip("-")[:60] or "unknown"
            value = round(float(value), 3)
            results.append(EvalResult(task, slug, dataset, metric_type=key, metric_value=value, metric_name=in_words))
    given = {key: value for key, value in metadata.items() if value is not None}
    given |= {"model_name": name, "eval_results": results} if results else {}
    data = ModelCardData(language=["en"], pipeline_tag=task, **given)
    return rendered(template, name, data, content)


def rendered(template: str, name: str, data: Any, content: Mapping[str, Any]) -> str:
    """The text of a card of this folder, with the hub's metadata. A template may set a title in place of the name."""
    made = environment(Path(__file__).parent).get_template(template)
    return made.render(title=plain(name), metadata=data.to_yaml(), **content)


@dataclass(frozen=True)
class Card:
    """The content of a model card; an empty part is left out."""

    name: str
    license: str | None  # of the data: "CC-BY-SA-4.0"; None: not given
    base_model: str  # the hub's name of the model that training started from, or the name of its folder
    base_license: str | None
    data: str  # the resource, as its licence wants it named: "ConceptNet train100k (Li et al. 2016)"
    prompt: str  # an example: "lawyer is capable of"
    policy: str
    command: str
    demonstration: bool
    metrics: metric_display.Metrics
    verdict: str = ""  # the sentence that the run's page begins with
    ledger: pl.DataFrame | None = None
    targets: Sequence[str] = ()  # that were probed
    tags: Sequence[str] = ("commonsense", "comet", "representational-harms")
    notices: Sequence[str] = field(default_factory=tuple)
    scorers: Sequence[str] = PAPER_SCORERS  # whose measures it shows
    seq2seq: bool = False  # whether it has an encoder and a decoder
    adapter: bool = False  # whether it is a low-rank adapter of its base alone
    chat: bool = False  # whether its prompt is that of a chat template, with all special tokens
    needs: Mapping[str, str] = field(default_factory=dict)  # of the command: recipes.job.inputs


def render(card: Card) -> str:
    """The card as Markdown with the hub's metadata."""
    metrics, licence = card.metrics, licence_of(card.license, card.base_license)
    harms = metric_display.harms_by(card.scorers, metrics)
    every = product(metric_display.grouped_measures(["test triples"]), GROUPS["test triples"])
    quality = [(measure, subset) for measure, subset in every if key_of(measure.name, group=subset) in metrics]
    validity, groups_of_validity = metric_display.by_group(metrics, *metric_display.VALIDITY)
    content = {
        "card": card,
        "licence": licence,
        "model_class": f"Auto{'Peft' * card.adapter}ModelFor{'Seq2SeqLM' if card.seq2seq else 'CausalLM'}",
        "legend": metric_display,
        "neutral_tag": NEUTRAL_TAG,
        "polarised_tag": POLARISED_TAG,
        "harms": harms,
        "left_out": left_out(card.targets),
        "shown": lambda key, decimals: shown(metrics, key, decimals),
        "reasons": [] if card.ledger is None else summary(card.ledger, "reason").rows(named=True),
        "quality": quality,
        "probed_parts": groups_of_validity,
        "validity": list(validity),
        "key_of": key_of,
    }
    keys = [metric_display.harm_key(one, template) for one in harms for template in metric_display.TEMPLATE_NAMES]
    keys += [key_of(measure.name, group=subset) for measure, subset in quality]
    return model_card(
        "card.md.jinja",
        card.name,
        "text2text-generation" if card.seq2seq else "text-generation",
        [Figure(card.data, key, figure.title, metrics.get(key)) for key in keys if (figure := find(key))],
        content,
        license=licence,
        license_name=f"{card.license} and {card.base_license}" if licence == "other" else None,
        base_model=card.base_model,
        library_name="peft" if card.adapter else "transformers",
        tags=list(card.tags),
    )


def licence_of(data: str | None, base: str | None) -> str:
    """The licence of a model for the hub, from those of its data and of the model that training started from: "unknown"
    where one of them is unknown, "other" where neither can stand for both."""
    given, started = ((licence or "").strip().casefold() for licence in (data, base))
    if {given, started} & NOT_KNOWN:
        return "unknown"
    if given == started or started in PERMISSIVE:
        return given
    return started if given in PERMISSIVE else "other"


def shown(metrics: metric_display.Metrics, key: str, decimals: int) -> str:
    """A figure with its interval."""
    bounds = metric_display.interval(metrics, key, decimals)
    return f"{metric_display.number(metrics.get(key), decimals)} {bounds}".rstrip()
