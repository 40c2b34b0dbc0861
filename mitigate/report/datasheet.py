"""The datasheet of a filtered data set, with metadata that the hub reads: the questions of Gebru et al. 2021,
*Datasheets for Datasets*, as far as the ledger and the settings answer them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from mitigate.report.card import licence_of, rendered
from mitigate.report.ledger import summary
from mitigate.report.scorer_reliability import RESOURCES, measured

MEASURES = tuple(f"{label}/{measure}" for label in ("prejudice", "favouritism") for measure in ("precision", "recall"))


@dataclass(frozen=True)
class Datasheet:
    """The content of a datasheet besides the counts of the ledger."""

    name: str
    policy: Mapping[str, Any]  # its settings, and the name of its class as `action`
    data: str  # the resource, as its licence wants it named
    licence: str | None  # None: not given
    demonstration: bool
    files: Mapping[str, str]  # "kept" -> "kept.tsv"
    scorers: Mapping[str, str]  # configured names, by what each is called: {"regard": "minilm"}
    fingerprints: Mapping[str, str]  # of the same
    facts: Mapping[str, str]  # versions and seed
    command: str
    notices: Sequence[str] = field(default_factory=tuple)
    needs: Mapping[str, str] = field(default_factory=dict)  # of the command: recipes.job.inputs


def render(sheet: Datasheet, ledger: pl.DataFrame, of_targets: pl.DataFrame) -> str:
    """The datasheet as Markdown with the hub's metadata. ledger: what apply_policy returns; of_targets: what
    measure.quality.kept_by_target returns of it."""
    from huggingface_hub.repocard_data import DatasetCardData  # huggingface_hub.DatasetCard takes .2 s more

    data = DatasetCardData(
        language=["en"],
        license=licence_of(sheet.licence, sheet.licence),
        pretty_name=sheet.name,
        task_categories=["text-generation"],
        tags=["commonsense", "representational-harms"],
        configs=[{"config_name": name, "data_files": file} for name, file in sheet.files.items()],
    )
    train = ledger.filter(split="train")
    by_category = of_targets.group_by("category").agg(pl.col("triples", "kept").sum())
    content = {
        "sheet": sheet,
        "tables": {by: summary(train, by).rows(named=True) for by in ("reason", "relation")},
        "splits": summary(ledger, "split").rows(named=True),
        "categories": by_category.sort("category").rows(named=True),
        "agreement": _agreement(sheet),
        "columns": MEASURES,
    }
    return rendered("datasheet.md.jinja", sheet.name, data, content)


def _agreement(sheet: Datasheet) -> list[dict[str, object]]:
    """The precision and recall of the policy's scorers, where they were measured: a row for each scorer and source of
    statements."""
    known = measured()
    rows: list[dict[str, object]] = [
        {"scorer": name, "resource": resource, **known.get((resource, sheet.scorers[name]), {})}
        for name in sheet.scorers
        for resource in RESOURCES
    ]
    return [row for row in rows if row.keys() >= set(MEASURES)]
