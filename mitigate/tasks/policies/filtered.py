"""A policy applied to triples: the ledger, figures of what it kept and of the training, notices, and the filtered data
set as files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

import polars as pl

from mitigate import files
from mitigate.errors import MitigateError
from mitigate.measure.quality import OF_RESOURCE, kept_by_target
from mitigate.measure.results import by_category, measured
from mitigate.policies import Policy, Scored, choice_of
from mitigate.report import cards
from mitigate.report.table import Column, Table, text
from mitigate.tasks.labelled_statements import long_texts, table_bytes
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, valid_rows
from mitigate.words.outside_text import counted, readable

MUCH = 90.0
"""Percent of a relation's training triples; a policy that takes more of them is reported."""
NAMED = 8  # relations in a notice
EMPTY = pl.col("lost") == 100.0
TRIPLE = ("row", "split", "head", "relation", "tail")
SHEET = "README.md"
WIDTH = 60  # characters of an example's statement
SIGNS = {PREJUDICE: "−1", NEUTRAL: "0", FAVOURITISM: "+1"}


def by_relation(ledger: pl.DataFrame) -> pl.DataFrame:
    """Training triples of each relation (relation, triples, lost), the commonest first: the number in the resource, and
    the percentage of their weight that the policy takes away, net of what it adds."""
    train = valid_rows(ledger.filter(split="train"))
    sums = train.group_by("relation").agg(
        triples=OF_RESOURCE.sum(), weight=pl.col("weight").cast(pl.Float64).sum(), kept=(pl.col("weight") > 0).sum()
    )
    lost = pl.when(pl.col("kept") == 0).then(100.0).otherwise(100 * (1 - pl.col("weight") / pl.col("triples")))
    found = sums.filter(pl.col("triples") > 0).select("relation", "triples", lost=lost.clip(0.0))
    return found.sort("triples", "relation", descending=[True, False])


def loss_notices(ledger: pl.DataFrame) -> list[str]:
    """Notices of relations that lose all training triples, or nearly all, to a policy."""
    table, nearly = by_relation(ledger), f"takes more than {MUCH:.0f} % of the"
    found = []
    for takes, condition in (("drops all", EMPTY), (nearly, (pl.col("lost") > MUCH) & ~EMPTY)):
        rows = table.filter(condition).select("relation", "triples").iter_rows()
        if relations := [f"{name} ({triples:,})" for name, triples in rows]:
            found.append(f"The policy {takes} training triples of {named(relations)}.")
    return found


def untrained(ledger: pl.DataFrame, probed: Sequence[str]) -> dict[str, int]:
    """The probed relations without a training triple left, with the number that the resource has."""
    table = by_relation(ledger)
    triples = dict(table.select("relation", "triples").iter_rows())
    trained = set(table.filter(~EMPTY)["relation"])
    return {relation: triples.get(relation, 0) for relation in probed if relation not in trained}


def named(relations: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(relations) - NAMED} more" if len(relations) > NAMED else ""
    return ", ".join(relations[:NAMED]) + more


def measure_filter(ledger: pl.DataFrame) -> pl.DataFrame:
    """Results (measure.results.SCHEMA): numbers of training triples that the policy kept, dropped and added, and the
    shares of those about targets that it kept. ledger: what apply_policy returns."""
    of_targets = kept_by_target(ledger)
    found = measured("ledger", ledger.filter(pl.col("split") == "train"))
    return pl.concat([found, measured("training triples", of_targets, by_category(of_targets))])


def check_filters(policy: Policy) -> None:
    """Raise MitigateError for a policy that acts after the training alone and leaves the training triples as they
    are."""
    if choice_of(policy) and not policy.filters:
        raise MitigateError(
            f"policy={policy.name} acts after the training and drops no triple; choose a policy that changes the "
            "training triples, such as policy=both_neutral, or run recipe=mitigate"
        )


def files_of(format: str) -> dict[str, str]:
    """Names of the two files."""
    return {name: f"{name}.{format}" for name in ("kept", "dropped")}


def write_data_set(
    ledger: pl.DataFrame, policy: Policy, format: str, *, origin: Mapping[str, Any], folder: Path, **fields: Any
) -> dict[str, int]:
    """Write kept.FORMAT, dropped.FORMAT and the datasheet (README.md) to a folder; returns the
    numbers of rows. Triples that the resource marks as not valid, such as the corrupted ones of ConceptNet's test set,
    are in neither.

    ledger: what apply_policy returns. origin: source, licence, demonstration and notices of the data. fields: further
    ones of the datasheet."""
    valid = valid_rows(ledger)
    named, tables = files_of(format), {"kept": kept(valid), "dropped": dropped(valid, policy)}
    for name, table in tables.items():
        files.write(folder / named[name], table_bytes(table, format))
    sheet = cards.datasheet(
        valid,
        kept_by_target(valid),
        policy=asdict(policy.parts[0]) | {"name": policy.name, "action": type(policy.parts[0]).__name__},
        data=origin["source"],
        licence=origin["licence"],
        demonstration=origin["demonstration"],
        files=named,
        **fields,
        notices=[*origin["notices"], *_limits(ledger, valid)],
    )
    files.write(folder / SHEET, sheet)
    return {name: table.height for name, table in tables.items()}


def _limits(ledger: pl.DataFrame, valid: pl.DataFrame) -> list[str]:
    """Notices for readers of the files."""
    number = ledger.height - valid.height
    are = "is" if number == 1 else "are"
    left_out = f"{counted(number, 'triple')} that the resource marks as not valid {are} in neither file."
    long = long_texts(valid["masked"]) if "masked" in valid.columns else []
    return [*loss_notices(valid), *long, *([left_out] if number else [])]


def kept(ledger: pl.DataFrame) -> pl.DataFrame:
    """The triples of weight above 0 (row, split, head, relation, tail, weight): those of the resource in their order,
    then those that the policy added, with the row that each was made from (source_row), and control tokens (token)."""
    rows = ledger.filter(pl.col("weight") > 0)
    added = ["source_row"] if rows["source_row"].is_not_null().any() else []
    added += ["token"] if "token" in rows.columns else []
    return rows.select(*TRIPLE, "weight", *added)


def dropped(ledger: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The triples of weight 0: row, split, head, relation, tail, reason, statement, and the label and strength of each
    of the policy's scorers."""
    columns = [name for pair in _columns(policy).items() for name in pair]
    return ledger.filter(pl.col("weight") == 0).select(*TRIPLE, "reason", "statement", *columns)


def _columns(policy: Policy) -> dict[str, str]:
    """The columns of labels that a policy reads, and of their strengths."""
    return {label: strength for part in policy.parts if isinstance(part, Scored) for label, strength in part.columns}


def examples(ledger: pl.DataFrame, policy: Policy, number: int = 3) -> Table:
    """So many dropped and so many kept triples of the resource with their reasons and labels, evenly spaced over those
    about targets where there are some: typical ones, by which a false alarm is seen."""
    shown = {}
    for outcome, condition in {"dropped": pl.col("weight") == 0, "kept": pl.col("weight") > 0}.items():
        found = valid_rows(ledger).filter(OF_RESOURCE, condition)
        about = found.drop_nulls("target")
        found = about if about.height else found
        shown[outcome] = found.gather_every(max(1, found.height // number)).head(number).rows(named=True)
    statement = text("statement", lambda row: shorten(readable(row["statement"]), WIDTH, placeholder="…"))
    labels = [Column(name, name, lambda label: SIGNS.get(label, "other")) for name in _columns(policy)]
    return Table("", [statement, text("relation"), text("reason"), *labels], shown)
