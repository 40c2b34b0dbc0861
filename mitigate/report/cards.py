"""Model cards of generators and of the classifiers that come with the project, and datasheets of filtered data sets: as
Markdown with the metadata that the hub reads. The words stand in templates; tables and metadata are made here."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mitigate.measure.base import PAPER_SCORERS, bounds, find
from mitigate.package_data import rows_of
from mitigate.report.ledger import summary as summary_of
from mitigate.report.numbers import number
from mitigate.report.sections import left_out
from mitigate.report.table import Column, Table, as_markdown, text
from mitigate.words.outside_text import readable
from models.tail_prompts import NEUTRAL_TAG, POLARISED_TAG

NOT_KNOWN = {"", "other", "unknown", "none", "not given"}
PERMISSIVE = {"mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0"}
"""Licences that let a model be given on under another one that keeps the names of its authors."""
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
HARMS = "representational-harms"
HEADLINES = ("harm", "disparity", "quality", "cost")
"""The kinds of headline measures that the card of a generator shows, in their order."""
SIGNS = re.compile(
    r"[\\`*\[\]<>|~#]"  # code, emphasis, links, tags, cells, headings
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; inside a word the sign has no meaning
    r"|&(?=#?\w+;)"  # an entity
    r"|^[-+=](?=\s|$)|(?:(?<=^\d)|(?<=^\d\d))[.)](?=\s|$)"  # items of a list
)
Listed = Iterable[tuple[str, str, str, Any]]
"""Figures of a model as the hub lists them: data set, key such as "NRM", name, value."""


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A generator that was trained on what a policy keeps of a resource."""

    name: str
    data: str  # the resource, as its licence wants it named: "ConceptNet train100k (Li et al. 2016)"
    license: str | None  # of the data: "CC-BY-SA-4.0"; None: not given
    base_model: str  # the hub's name of the model that training started from, or the name of its folder
    base_license: str | None
    policy: str
    ledger: pl.DataFrame | None = None  # of the training triples
    metrics: Mapping[str, Any]
    verdict: str = ""  # the sentence that the run's page begins with
    command: str
    needs: Mapping[str, str] = field(default_factory=dict)  # of the command: recipes.job.inputs
    demonstration: bool
    targets: Sequence[str] = ()  # that were probed
    notices: Sequence[str] = ()
    scorers: Sequence[str] = PAPER_SCORERS  # whose measures it shows
    prompt: str = ""  # an example: "lawyer is capable of"; "" of a generator of stories
    seq2seq: bool = False  # whether it has an encoder and a decoder
    adapter: bool = False  # whether it is a low-rank adapter of its base alone
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
    content = {
        "licence": licence,
        "model_class": f"Auto{'Peft' * card.adapter}ModelFor{'Seq2SeqLM' if card.seq2seq else 'CausalLM'}",
        "control_tokens": (NEUTRAL_TAG, POLARISED_TAG),
        "measures": _table(rows.values(), ["measure"], **dict.fromkeys(columns, 2)),
        "reasons": None if card.ledger is None else _counts(card.ledger, "reason", "weight"),
        "left_out": left_out(card.targets),
    }
    return _model_card(
        "generator.md.jinja",
        card.name,
        "text2text-generation" if card.seq2seq else "text-generation",
        [(card.data, key, figure.title, metrics[key]) for key, figure in found],
        vars(card) | content,
        license=licence,
        license_name=f"{card.license} and {card.base_license}" if licence == "other" else None,
        base_model=card.base_model,
        library_name="peft" if card.adapter else "transformers",
        tags=["commonsense", "comet" if card.prompt else "story-generation", HARMS],
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


def datasheet(ledger: pl.DataFrame, of_targets: pl.DataFrame, **content: Any) -> str:
    """The datasheet of a filtered data set: the questions of Gebru et al. 2021, *Datasheets for Datasets*, as far as
    the ledger and the settings answer them.

    ledger: what apply_policy returns; of_targets: what measure.quality.kept_by_target returns of it. content: name,
    data, demonstration, notices, command and needs as of a Generator; licence of the data; policy, its settings with
    its class as `action`; files, such as {"kept": "kept.tsv"}; scorers, the configured names by what each is called,
    and their fingerprints; facts, versions and seed."""
    from huggingface_hub.repocard_data import DatasetCardData  # huggingface_hub.DatasetCard takes .2 s more

    metadata = DatasetCardData(
        language=["en"],
        license=licence_of(content["licence"], content["licence"]),
        pretty_name=content["name"],
        task_categories=["text-generation"],
        tags=["commonsense", HARMS],
        configs=[{"config_name": part, "data_files": file} for part, file in content["files"].items()],
    )
    known = measured_agreement()
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
    return _templates().get_template("datasheet.md.jinja").render(content, metadata=metadata.to_yaml())


def measured_agreement() -> dict[tuple[str, str], dict[str, float]]:
    """(resource, scorer) -> measure ("prejudice/f1") -> value, from 0 to 1, of what recipe=agreement finds of the
    scorers that come with the project (its measured.csv)."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("agreement_measured.csv"):
        found.setdefault((row["resource"], row["scorer"]), {})[row["measure"]] = float(row["value"])
    return found


def _counts(ledger: pl.DataFrame, by: str, *further: str) -> Table:
    """The triples by a column of the ledger. further: more columns of its summary."""
    names = ("triples", "kept", "dropped", "added", *further)
    return _table(summary_of(ledger, by).rename({"input": "triples"}), [by], **dict.fromkeys(names, 1))


def regard(
    name: str, metrics: Mapping[str, Any], seed: int, terms: pl.DataFrame, summary: pl.DataFrame, checked: pl.DataFrame
) -> str:
    """The card of "minilm" or "ngram". terms: its errors by identity term (measure.identity.by_term); summary:
    measure.identity.summary of these; checked: the labels that the gate loses (tasks.regard.figures.GATE)."""
    columns = ("accuracy", "always_neutral", "macro_f1", "kappa", "prejudice/f1", "favouritism/f1")
    own = {key.removeprefix(f"{name}/"): value for key, value in metrics.items() if key.startswith(f"{name}/")}
    parts = [key.removesuffix("/kappa") for key in own if key.endswith("/kappa")]
    rows = [{"measured on": part} | {key: own[f"{part}/{key}"] for key in ("texts", *columns)} for part in parts]
    unseen = terms.filter(part="unseen", number="both").sort("axis", nulls_last=True, maintain_order=True)
    tables = {
        "accuracy": _table(rows, ["measured on"], texts=0, **dict.fromkeys(columns, 3)),
        "gate": _table(checked, ["source"], texts=0, polarised=0, kept=1, passed=1),
        "identity": _table(summary.filter(number="both"), ["part", "error"], mean=1, terms=0, beyond=0),
        "terms": _table(unseen, ["term", "axis"], false_positives=1, false_negatives=1),
    }
    listed = _listed(rows, "{measured on}", "accuracy", "macro_f1", "kappa")
    about = {"base": ENCODER if name == "minilm" else None, "license": "cc-by-sa-4.0", "tags": ["regard", HARMS]}
    return _classifier("regard", f"regard-{name}", f"regard data.root=DIR seed={seed}", listed, tables, **about)


def polarity(name: str, train: str, settings: Mapping[str, Any], accuracy: pl.DataFrame, beside: Any) -> str:
    """The card of crowd, crowd2 or crowd_lm. accuracy: a row for each template, source and category, with figures from
    0 to 1 and their _low and _high; beside: of crowd the same for each scorer, of the others rows of
    measure.identity.summary."""
    rows, percent = accuracy.filter(template="paper"), (cs.float() - cs.contains("kappa")) * 100  # kappa is no share
    shares = dict.fromkeys(("people", "labelled", "sensitivity", "specificity"), 1)
    tables = {"accuracy": _table(rows.with_columns(percent), ["source", "category"], statements=0, **shares, kappa=3)}
    if name == "crowd":
        columns = dict.fromkeys(("polarised", "statements", "recall", "false_alarms", "precision"), 1)
        tables["beside"] = _table(beside.with_columns(percent), ["scorer"], **columns)
    else:
        tables["beside"] = _table(beside, ["part", "error"], mean=1, terms=0, beyond=0)
    whole = rows.filter(category="all").rows(named=True)
    listed = _listed(whole, "rated statements, {source}", "sensitivity", "specificity", "kappa")
    base = None if name == "crowd_lm" else ENCODER
    return _classifier("polarity", name, train, listed, tables, base=base, settings=settings)


def people_valid(train: str, settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The card of people_valid. rows: of tasks.predicted_ratings.figures.validity_table."""
    columns = {"statements": 0, "auc": 3, "polarity": 3, "rater": 3, "valid": 1, "found": 1}
    tables = {"accuracy": _table(rows, ["relation", "label"], **columns)}
    listed = _listed([row for row in rows if row["relation"] == "all"], "rated statements of COMeT, {label}", "auc")
    about = {"base": settings["layers"] and ENCODER, "settings": settings, "tags": ["commonsense"]}
    return _classifier("people_valid", "people_valid", train, listed, tables, **about)


def plausibility(name: str, metrics: Mapping[str, Any], seed: int) -> str:
    """The card of a plausibility classifier, "words", "minilm" or "average"."""
    keys = {"accuracy": "accuracy", "true accepted": "true_judged_valid", "false accepted": "false_judged_valid"}
    parts, start = ("dev1", "dev2", "test"), f"{name}/valid/"
    rows = [{"triples": of} | {title: metrics[f"{name}/{of}/{keys[title]}"] for title in keys} for of in parts]
    accepted = [{"triples": key[len(start) :], "accepted": metrics[key]} for key in metrics if key.startswith(start)]
    tables = {
        "accuracy": _table(rows, ["triples"], **dict.fromkeys(keys, 1)),
        "accepted": _table(accepted, ["triples"], accepted=1),
    }
    listed, train = _listed(rows, "ConceptNet, {triples}", "accuracy"), f"plausibility data.root=DIR seed={seed}"
    about = {"base": ENCODER, "license": "cc-by-sa-4.0", "tags": ["commonsense", "conceptnet"]}
    return _classifier("plausibility", f"plausibility-{name}", train, listed, tables, **about)


def frames(name: str, classified: pl.DataFrame, texts: pl.DataFrame, start: str, **content: Any) -> str:
    """The card of a model of Social Bias Frames. classified and texts: tables of recipe=frames; start: "minilm", or
    "model" of the user's own; content: notices, command and needs."""
    known = classified.drop_nulls("f1")
    tables = {
        "classified": _table(known, ["variable", "system"], posts=0, f1=1, precision=1, recall=1),
        "texts": _table(texts, ["variable", "system"], posts=0, bleu2=1, rouge_l=1, corpus_bleu2=1),
    }
    base = ENCODER if start == "minilm" else None  # the hub takes names of its models alone
    own = known.filter(system="model").rows(named=True)
    listed = _listed(own, "Social Bias Inference Corpus, test, {variable}", "f1")
    about = {"license": "cc-by-4.0" if base else "unknown", "tags": [HARMS, "social-bias-frames"], **content}
    return _classifier("frames", name, "", listed, tables, base=base, **about)


def _classifier(kind: str, name: str, train: str, listed: Listed, tables: Mapping[str, Table], **content: Any) -> str:
    """The card of a classifier. kind: the part of the template with its words; train: the arguments that train it
    again; content: base, the encoder that it needs; license and tags; variables of the template."""
    metadata = {"license": "cc-by-4.0", "tags": [HARMS], "base_model": content.pop("base")}
    metadata |= {one: content.pop(one) for one in ("license", "tags") if one in content}
    variables = {"command": f"python -m mitigate recipe=classifier classifier={train}", **content}
    variables |= {"kind": kind, "name": name, "tables": tables, "base_model": metadata["base_model"]}
    return _model_card("classifier.md.jinja", name, "text-classification", listed, variables, **metadata)


def _table(rows: Iterable[Any], words: Iterable[str], **decimals: int) -> Table:
    """Rows under columns of words, made safe for Markdown, and under columns of figures with their intervals."""

    def named(name: str) -> Column:
        return text(name, lambda row: None if row[name] is None else plain(row[name]))

    shown = [Column(name.replace("_", " "), name, places) for name, places in decimals.items()]
    return Table("", [*map(named, words), *shown], rows)


def _listed(rows: Iterable[Mapping[str, Any]], dataset: str, *keys: str) -> Listed:
    """Columns of a table for the hub; dataset: a format of each row."""
    return [(dataset.format_map(row), key, key.replace("_", " "), row[key]) for row in rows for key in keys]


def _model_card(template: str, name: str, task: str, listed: Listed, content: Mapping[str, Any], **fields: Any) -> str:
    """A model's card. task: the hub's name of the model's task; fields: license, tags and further ones of
    ModelCardData, without those that are None."""
    from huggingface_hub.repocard_data import EvalResult, ModelCardData  # huggingface_hub.ModelCard takes .2 s more

    results = []
    for dataset, key, in_words, value in listed:
        if value is not None:
            slug = re.sub(r"\W+", "-", dataset.lower()).strip("-")[:60] or "unknown"
            value = round(float(value), 3)
            results.append(EvalResult(task, slug, dataset, metric_type=key, metric_value=value, metric_name=in_words))
    given = {key: value for key, value in fields.items() if value is not None}
    given |= {"model_name": name, "eval_results": results} if results else {}
    metadata = ModelCardData(language=["en"], pipeline_tag=task, **given).to_yaml()
    return _templates().get_template(template).render({**content, "metadata": metadata})


@cache
def _templates() -> Environment:
    """This folder's templates. Control characters are left out, and a missing variable is an error. A text from outside
    the project passes the filter `plain`, in backticks `code`, and on lines of its own `block`."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        finalize=lambda value: readable(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"number": number, "plain": plain, "code": code, "block": block, "table": as_markdown}
    return made


def plain(value: object) -> str:
    """A text on one line with Markdown's characters escaped, for headings and tables."""
    return SIGNS.sub(r"\\\g<0>", " ".join(str(value).split()))


def code(value: object) -> str:
    """A text on one line as code, in more backticks than it contains."""
    line = " ".join(str(value).split())
    pad = " " if not line or "`" in (line[0], line[-1]) else ""
    return f"{_ticks(line, 1)}{pad}{line}{pad}{_ticks(line, 1)}"


def block(value: object) -> str:
    """A text as lines of code."""
    return f"{_ticks(str(value), 3)}\n{value}\n{_ticks(str(value), 3)}"


def _ticks(content: str, fewest: int) -> str:
    return "`" * max(fewest, 1 + max(map(len, re.findall("`+", content)), default=0))
