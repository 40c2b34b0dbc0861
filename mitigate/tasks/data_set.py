"""The triples that a policy keeps and those that it drops, as files, with a datasheet and a Croissant description."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.filter import Policy
from mitigate.measure.coverage import per_target
from mitigate.report import datasheet
from mitigate.report.datasheet import Datasheet
from mitigate.runs import files
from mitigate.runs.formats import table_bytes
from mitigate.tasks.filtered import loss_notices, replaced_notices
from mitigate.tasks.statements import long_texts
from mitigate.triples import label_columns
from mitigate.words.texts import counted

TRIPLE = ("row", "split", "head", "relation", "tail")
SHEET, CROISSANT = "README.md", "croissant.json"


def check_filters(policy: Policy) -> None:
    """Raises MitigateError for a policy that only acts after the training: it leaves the training triples as they
    are."""
    if not policy.changes_training and policy.scorers:
        raise MitigateError(
            f"policy={policy.name} acts after the training (policy.decoding={policy.decoding}, "
            f"policy.tuning={policy.tuning}) and drops no triple; choose a policy that changes the training triples, "
            "such as policy=both_neutral, or run recipe=mitigate"
        )


def files_of(format: str) -> dict[str, str]:
    """What the two files are called."""
    return {name: f"{name}.{format}" for name in ("kept", "dropped")}


def write_data_set(
    ledger: pl.DataFrame,
    policy: Policy,
    format: str,
    *,
    origin: Mapping[str, Any],
    scorers: Mapping[str, str],
    fingerprints: Mapping[str, str],
    folder: Path,
    command: str,
    facts: Mapping[str, str],
    needs: Mapping[str, str],
) -> dict[str, int]:
    """Write kept.FORMAT, dropped.FORMAT, the datasheet (README.md) and croissant.json to a folder; returns the numbers
    of rows. What
    the resource marks as not valid, such as the corrupted triples of ConceptNet's test set, is in neither.

    ledger: what apply_policy returns. origin: of the data its source, licence, whether it is a demonstration, and
    notices. scorers: the configured names of the policy's scorers by what they are called; fingerprints: of the same.
    facts: versions and seed, which the datasheet lists beside the command; needs: what that reads, by its content."""
    valid = ledger.filter("valid") if "valid" in ledger.columns else ledger
    named, tables = files_of(format), {"kept": kept(valid), "dropped": dropped(valid, policy)}
    contents = {name: table_bytes(table, format) for name, table in tables.items()}
    for name, content in contents.items():
        files.write(folder / named[name], content)
    sheet = Datasheet(
        name=folder.name,
        policy={key: getattr(policy, key) for key in ("name", "scorers", "template", "scope", "action")},
        data=origin["source"],
        licence=origin["licence"],
        demonstration=origin["demonstration"],
        files=named,
        scorers=scorers,
        fingerprints=fingerprints,
        facts=facts,
        command=command,
        needs=needs,
        notices=[*origin["notices"], *_limits(ledger, valid)],
    )
    files.write(folder / SHEET, datasheet.render(sheet, valid, per_target(valid)))
    files.write(folder / CROISSANT, datasheet.croissant(sheet, contents, tables))
    return {name: table.height for name, table in tables.items()}


def _limits(ledger: pl.DataFrame, valid: pl.DataFrame) -> list[str]:
    """What a reader of the files must know."""
    number = ledger.height - valid.height
    are = "is" if number == 1 else "are"
    left_out = f"{counted(number, 'triple')} that the resource marks as not valid {are} in neither file."
    long = long_texts(valid["masked"]) if "masked" in valid.columns else []
    return [*replaced_notices(valid), *loss_notices(valid), *long, *([left_out] if number else [])]


def kept(ledger: pl.DataFrame) -> pl.DataFrame:
    """The triples whose weight is above 0 (row, split, head, relation, tail, weight): those of the resource in their
    order, and after them what the policy added, whose `source_row` is the row that each was made from; of a replaced
    triple also where its tail is from (tail_source)."""
    rows = ledger.filter(pl.col("weight") > 0)
    added = ["source_row"] if rows["source_row"].is_not_null().any() else []
    added += ["tail_source"] if "tail_source" in rows.columns else []
    return rows.select(*TRIPLE, "weight", *added)


def dropped(ledger: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The other triples, with the reason and what the policy's scorers found: row, split, head, relation, tail, reason,
    statement, and each scorer's label and strength."""
    labels = [name for scorer in policy.scorers for name in label_columns(scorer, policy.template)]
    return ledger.filter(pl.col("weight") == 0).select(*TRIPLE, "reason", "statement", *labels)
