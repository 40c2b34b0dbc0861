"""Model cards of generators and datasheets of filtered data sets, as Markdown with the metadata that the hub reads. The
words stand in templates; tables and metadata are made here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any

import polars as pl
import yaml

from mitigate.files import rows_of
from mitigate.measure.base import PAPER_SCORERS, bounds, find
from mitigate.measure.quality import OF_RESOURCE
from mitigate.models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG
from mitigate.report.page import environment
from mitigate.report.sections import left_out
from mitigate.report.table import Column, Table, as_markdown, text
from mitigate.triples import kind_of_reason

NOT_KNOWN = {"", "other", "unknown", "none", "not given"}
PERMISSIVE = {"mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0"}
"""Licences that let a model be given on under another one that keeps the names of its authors."""
HARMS = "representational-harms"
HEADLINES = ("harm", "disparity", "quality", "cost")
"""The kinds of headline measures that the card of a generator shows, in their order."""
SIGNS = re.compile(
    r"[\\`*\[\]<>|~#]"  # code, emphasis, links, tags, cells, headings
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; inside a word the sign has no meaning
    r"|&(?=#?\w+;)"  # an entity
    r"|^[-+=](?=\s|$)|(?:(?<=^\d)|(?<=^\d\d))[.)](?=\s|$)"  # items of a list
)

KEPT = pl.col("weight") > 0


def summary(ledger: pl.DataFrame, by: str) -> pl.DataFrame:
    """Counts for each value of the column `by`, the largest first: (by, input, kept, dropped, added, weight,
    share_dropped).

    input, kept and dropped count the resource's triples, added those of the policy; weight is the sum of all their
    weights, share_dropped is in percent of the input. Rows where `by` is null are left out."""
    rows = ledger.with_columns(kind_of_reason(pl.col("reason"))).filter(pl.col(by).is_not_null())
    counts = rows.group_by(by).agg(
        input=OF_RESOURCE.sum(),
        kept=(OF_RESOURCE & KEPT).sum(),
        dropped=(OF_RESOURCE & ~KEPT).sum(),
        added=(~OF_RESOURCE).sum(),
        weight=pl.col("weight").cast(pl.Float64).sum(),
    )
    share = pl.when(pl.col("input") > 0).then(100 * pl.col("dropped") / pl.col("input")).otherwise(0.0)
    return counts.with_columns(share_dropped=share).sort("input", by, descending=[True, False])


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A generator that was trained on what a policy keeps of a resource."""

    name: str
    data: str  # the resource, as its licence wants it named
    license: str | None  # of the data: "CC-BY-SA-4.0"; None: not given
    base_model: str  # the hub's name of the model that training started from, or the name of its folder
    base_license: str | None
    policy: str
    ledger: pl.DataFrame | None = None  # of the training triples
    metrics: Mapping[str, Any]
    verdict: str = ""  # the sentence that the run's page begins with
    command: str
    demonstration: bool
    targets: Sequence[str] = ()  # that were probed
    notices: Sequence[str] = ()
    scorers: Sequence[str] = PAPER_SCORERS  # whose measures it shows
    prompt: str = ""  # an example: "lawyer is capable of"; "" of a generator of stories
    seq2seq: bool = False  # whether it has an encoder and a decoder
    chat: bool = False  # whether its prompt is that of a chat template, with all special tokens


def generator(card: Generator) -> str:
    """The card of a generator, with its headline measures."""
    metrics, licence = card.metrics, licence_of(card.license, card.base_license)
    known = [(key, figure) for key in metrics if (figure := find(key)) and figure.scorer in ("", *card.scorers)]
    shown = [pair for pair in known if pair[1].group == pair[1].declared.headline_group and not pair[1].variant]
    found = [pair for kind in HEADLINES for pair in shown if pair[1].declared.headline == kind]
    rows: dict[str, dict[str, Any]] = {}
    for key, figure in found:
        words = f"{figure._replace(template='').title} {figure.declared.arrow}"
        place = "neutral_template" if figure.template == "neutral" else "value"
        values = zip((place, *bounds(place)), map(metrics.get, (key, *bounds(key))), strict=True)
        rows.setdefault(words, {"measure": words}).update(values)
    columns = [name for name in ("neutral_template", "value") if any(name in row for row in rows.values())]
    content: dict[str, Any] = {
        "licence": licence,
        "model_class": f"AutoModelFor{'Seq2SeqLM' if card.seq2seq else 'CausalLM'}",
        "control_tokens": (NEUTRAL_TAG, POLARISED_TAG),
        "measures": _table(rows.values(), ["measure"], **dict.fromkeys(columns, 2)),
        "reasons": None if card.ledger is None else _counts(card.ledger, "reason", "weight"),
        "left_out": left_out(card.targets),
    }
    fields = {
        "license": licence,
        "license_name": f"{card.license} and {card.base_license}" if licence == "other" else None,
        "base_model": card.base_model,
        "library_name": "transformers",
        "tags": ["commonsense", "comet" if card.prompt else "story-generation", HARMS],
        "pipeline_tag": "text2text-generation" if card.seq2seq else "text-generation",
    }
    return _render("generator.md.jinja", fields, **vars(card), **content)


def licence_of(data: str | None, base: str | None) -> str:
    """The licence of a model for the hub, from those of its data and of the model that training started from: "unknown"
    where one of them is unknown, "other" where neither can stand for both."""
    given, started = ((licence or "").strip().casefold() for licence in (data, base))
    if {given, started} & NOT_KNOWN:
        return "unknown"
    if given == started or started in PERMISSIVE:
        return given
    return started if given in PERMISSIVE else "other"


def datasheet(ledger: pl.DataFrame, of_targets: pl.DataFrame, **content: Any) -> str:
    """The datasheet of a filtered data set: the questions of Gebru et al. 2021, *Datasheets for Datasets*, as far as
    the ledger and the settings answer them.

    ledger: what apply_policy returns; of_targets: what measure.quality.kept_by_target returns of it. content: name,
    data, demonstration, notices, command as of a Generator; licence of the data; policy, its settings with
    its class as `action`; files, such as {"kept": "kept.tsv"}; scorers, the configured names by what each is called,
    and their fingerprints; facts, versions and seed."""
    licence = licence_of(content["licence"], content["licence"])
    fields = {
        **{"license": licence, "pretty_name": content["name"], "task_categories": ["text-generation"]},
        "tags": ["commonsense", HARMS],
        "configs": [{"config_name": part, "data_files": file} for part, file in content["files"].items()],
    }
    known: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("agreement_measured.csv"):
        known.setdefault((row["resource"], row["scorer"]), {})[row["measure"]] = float(row["value"])
    agreement = [
        {"scorer": called, "statements of": source, **known[source, scorer]}
        for called, scorer in content["scorers"].items()
        for source in ("ConceptNet", "GenericsKB", "COMeT")
        if (source, scorer) in known
    ]
    kinds = [f"{label}/{one}" for label in ("prejudice", "favouritism") for one in ("precision", "recall")]
    train = ledger.filter(split="train")
    categories = of_targets.group_by("category").agg(pl.col("triples", "kept").sum()).sort("category")
    content |= {
        "splits": _counts(ledger, "split"),
        "categories": _table(categories, ["category"], triples=0, kept=0),
        "relations": _counts(train, "relation", "share_dropped"),
        "reasons": _counts(train, "reason", "weight"),
        "agreement": _table(agreement, ["scorer", "statements of"], **dict.fromkeys(kinds, 2)),
    }
    return _render("datasheet.md.jinja", fields, **content)


def _counts(ledger: pl.DataFrame, by: str, *further: str) -> Table:
    """The triples by a column of the ledger. further: more columns of its summary."""
    names = ("triples", "kept", "dropped", "added", *further)
    return _table(summary(ledger, by).rename({"input": "triples"}), [by], **dict.fromkeys(names, 1))


def _table(rows: Iterable[Any], words: Iterable[str], **decimals: int) -> Table:
    """Rows under columns of words, made safe for Markdown, and under columns of figures with their intervals."""

    def named(name: str) -> Column:
        return text(name, lambda row: None if row[name] is None else plain(row[name]))

    shown = [Column(name.replace("_", " "), name, places) for name, places in decimals.items()]
    return Table("", [*map(named, words), *shown], rows)


def _render(template: str, fields: Mapping[str, Any], **content: Any) -> str:
    """A card. A text from outside the project passes the filter `plain`, or `block` on lines of its own."""
    made = environment(html=False)
    made.filters |= {"plain": plain, "block": lambda lines: indent(str(lines), "    "), "table": as_markdown}
    given = {"language": ["en"], **{name: value for name, value in fields.items() if value is not None}}
    metadata = yaml.safe_dump(given, sort_keys=False, allow_unicode=True).strip()
    return made.get_template(template).render(content, metadata=metadata)


def plain(value: object) -> str:
    """A text on one line with Markdown's characters escaped, for headings and tables."""
    return SIGNS.sub(r"\\\g<0>", " ".join(str(value).split()))
