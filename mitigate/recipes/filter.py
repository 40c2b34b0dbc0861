"""recipe=filter: the triples that a policy keeps and drops, as files for any other training, with a datasheet. load >
verbalise > score > filter."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

import polars as pl

from mitigate import files, verbalise
from mitigate.errors import MitigateError
from mitigate.load.corpus import relations_in_training, triples_of
from mitigate.measure.filtered import loss_notices, measure_filter
from mitigate.measure.quality import OF_RESOURCE, kept_by_target
from mitigate.measure.statements import long_texts, table_bytes
from mitigate.policies import Policy, Scored, check_left, check_relations, choice_of
from mitigate.recipes import reporting
from mitigate.recipes.config import Config
from mitigate.recipes.job import open_job, say, say_downloads, say_notes
from mitigate.recipes.scorers import Scorers
from mitigate.report import cards
from mitigate.report.table import Column, Table, as_text, text
from mitigate.score.labeller import Labeller
from mitigate.stages import digest_of_values, in_folder
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE, valid_rows
from mitigate.words.outside_text import counted, portable, readable
from mitigate.words.relations import with_own

TRIPLE = ("row", "split", "head", "relation", "tail")
SHEET = "README.md"
WIDTH = 60  # characters of an example's statement
SIGNS = {PREJUDICE: "−1", NEUTRAL: "0", FAVOURITISM: "+1"}
FACTS = ("mitigate", "python", "torch", "vaderSentiment", "seed")


def run(config: Config) -> None:
    """Filter the triples that `data` names by a policy, and write what is kept and what is dropped."""
    scorers = Scorers(config.score)
    policy, origin = scorers.policy(config.policy), config.described(["data"])["data"]
    check_filters(policy)
    verbalise.check(config.measure.masking)
    say_downloads(config, config.missing(["data"]))
    say(f"policy {policy.name}, data {config.data.name}")
    corpus = triples_of(config.load_data())
    relations_in_training(corpus.rows)  # raises where there is none
    check_relations(policy, with_own(corpus.own_relations))
    target_list, notices = config.target_list()
    notices = [*corpus.notices, *notices]
    say_notes(notices)
    say(f"  {counted(corpus.rows.height, 'triple')}")
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    labeller = config.labeller(labelling, target_list, corpus.own_relations)
    used = [scorer for scorer in labelling if scorer.name in policy.reads]
    name = f"{config.recipe.name}-{policy.name}-{config.data.name}"
    source = digest_of_values(corpus.rows, target_list, list(corpus.own_relations))
    fingerprints = {scorer.name: scorer.fingerprint for scorer in labelling}
    with open_job(config, name, source, facts={"scorers": fingerprints}) as job:
        labelled = job.stage("score", Labeller.label, labeller, corpus.rows)
        ledger = job.stage("ledger", policy.filter, labelled, target_list)
        job.measure(measure_filter, ledger)
        facts, place = job.provenance({}), job.folder.name
        about = {"name": place, "command": portable(job.command), "needs": job.needs}
        written = job.stage(
            "data_set",
            write_data_set,
            ledger,
            policy,
            config.recipe.format,
            origin={**origin, "notices": notices},
            scorers={scorer.name: scorers.roles.get(scorer.name, scorer.name) for scorer in used},
            fingerprints={scorer.name: scorer.fingerprint for scorer in used},
            after=[place],
            using=in_folder(**about, facts={name: str(facts[name]) for name in FACTS}),
        )
        if job.is_new():
            reporting.record_metrics(job, job.figures)
    if not config.dry_run:
        say_files(policy, config.recipe.format, job.folder, ledger.table(), written.facts())
        check_left(policy, ledger.table())  # at the end, so that the dropped triples can be looked at


def say_files(policy: Policy, format: str, folder: Path, ledger: pl.DataFrame, counts: Mapping[str, int]) -> None:
    """Print the files with their numbers of triples, examples, and the relations that lost most."""
    for name, file in files_of(format).items():
        say(f"  {name:<10}  {counted(counts[name], 'triple')}: {folder / file}")
    say(f"  datasheet   {folder / SHEET}")
    if counts["dropped"]:
        say(f"\n{as_text(examples(ledger, policy))}\n")
    say_notes([*loss_notices(ledger), *long_texts(ledger["masked"])])


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
