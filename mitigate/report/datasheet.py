"""The datasheet of a filtered data set: the questions of Gebru et al. 2021, *Datasheets for Datasets*, as far as the
ledger and the settings answer them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.report.ledger import summary
from mitigate.report.markdown import environment
from mitigate.report.scorer_reliability import RESOURCES, measured

MEASURES = tuple(f"{label}/{measure}" for label in ("prejudice", "favouritism") for measure in ("precision", "recall"))


@dataclass(frozen=True)
class Datasheet:
    """The content of a datasheet besides the counts of the ledger."""

    name: str
    policy: Mapping[str, Any]  # its name, scorers, template, scope and action
    data: str  # the resource, as its licence wants it named
    licence: str | None  # None: not given
    demonstration: bool
    files: Mapping[str, str]  # "kept" -> "kept.tsv"
    scorers: Mapping[str, str]  # configured names, by what each is called: {"regard": "minilm"}
    fingerprints: Mapping[str, str]  # of the same
    facts: Mapping[str, str]  # versions and seed
    command: str
    notices: Sequence[str] = field(default_factory=tuple)
    needs: Mapping[str, str] = field(default_factory=dict)  # of the command: arguments.inputs


def render(sheet: Datasheet, ledger: pl.DataFrame, of_targets: pl.DataFrame) -> str:
    """The datasheet as Markdown. ledger: what apply_policy returns; of_targets: what measure.coverage.per_target
    returns of it."""
    train = ledger.filter(split="train")
    template = environment(Path(__file__).parent).get_template("datasheet.md.jinja")
    return template.render(
        sheet=sheet,
        tables={by: _rows(summary(train, by)) for by in ("reason", "relation")},
        splits=_rows(summary(ledger, "split")),
        categories=_rows(of_targets.group_by("category").agg(pl.col("triples", "kept").sum()).sort("category")),
        agreement=_agreement(sheet),
        columns=MEASURES,
    )


def _agreement(sheet: Datasheet) -> list[dict[str, object]]:
    """How often the policy's scorers are right, where that is known: a row for each scorer and source of statements."""
    known = measured()
    rows = []
    for name in sheet.policy["scorers"]:
        for resource in RESOURCES:
            found = known.get((resource, sheet.scorers[name]), {})
            if all(measure in found for measure in MEASURES):
                rows.append({"scorer": name, "resource": resource, **{key: found[key] for key in MEASURES}})
    return rows


def _rows(table: pl.DataFrame) -> list[dict[str, object]]:
    return list(table.iter_rows(named=True))
