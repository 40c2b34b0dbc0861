"""recipe=filter: the triples that a policy keeps and drops, as files for any other training, with a datasheet. load >
verbalise > score > filter."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import files, verbalise
from mitigate.errors import MitigateError, counted, portable
from mitigate.load.corpus import relations_in_training, triples_of
from mitigate.measure.quality import kept_by_target
from mitigate.measure.run import measure_filter
from mitigate.policies import Policy, Scored, check_left, check_relations, choice_of
from mitigate.recipes.config import Config, Scorers
from mitigate.recipes.job import open_job, say, say_notes
from mitigate.report import cards
from mitigate.score.labeller import Labeller
from mitigate.score.labels import long_texts
from mitigate.stages import digest_of_values, in_folder, table_bytes
from mitigate.triples import valid_rows
from mitigate.words.relations import with_own

TRIPLE = ("row", "split", "head", "relation", "tail")
SHEET = "README.md"
FACTS = ("mitigate", "python", "torch", "vaderSentiment", "seed")


def run(config: Config) -> None:
    """Filter the triples that `data` names by a policy, and write what is kept and what is dropped."""
    scorers = Scorers(config.score)
    policy, origin = scorers.policy(config.policy), config.described(["data"])["data"]
    if choice_of(policy) and not policy.filters:
        raise MitigateError(
            f"policy={policy.name} acts after the training and drops no triple; choose a policy that changes the "
            "training triples, such as policy=both_neutral, or run recipe=mitigate"
        )
    verbalise.check(config.measure.masking)
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
            using=in_folder(name=place, command=portable(job.command), facts={key: str(facts[key]) for key in FACTS}),
        )
        if job.is_new():
            job.record_metrics(job.figures)
    if not config.dry_run:
        for kind, number in written.facts().items():
            say(f"  {kind:<10}  {counted(number, 'triple')}: {job.folder / kind}.{config.recipe.format}")
        say(f"  datasheet   {job.folder / SHEET}")
        say_notes(long_texts(ledger.table()["masked"]))
        check_left(policy, ledger.table())  # at the end, so that the dropped triples can be looked at


def write_data_set(
    ledger: pl.DataFrame, policy: Policy, format: str, *, origin: Mapping[str, Any], folder: Path, **fields: Any
) -> dict[str, int]:
    """Write kept.FORMAT, dropped.FORMAT and the datasheet (README.md) to a folder; returns the numbers of rows. Triples
    that the resource marks as not valid, such as the corrupted ones of ConceptNet's test set, are in neither.

    kept: row, split, head, relation, tail, weight; those that the policy added come last, with the row that each was
    made from (source_row); control tokens (token). dropped: also the reason, the statement, and the label and strength
    of each of the policy's scorers. origin: source, licence, demonstration and notices of the data. fields:
    further ones of the datasheet."""
    valid = valid_rows(ledger)
    rows = valid.filter(pl.col("weight") > 0)
    added = ["source_row"] if rows["source_row"].is_not_null().any() else []
    added += ["token"] if "token" in rows.columns else []
    labels = [name for part in policy.parts if isinstance(part, Scored) for pair in part.columns for name in pair]
    dropped = valid.filter(pl.col("weight") == 0)
    tables = {
        "kept": rows.select(*TRIPLE, "weight", *added),
        "dropped": dropped.select(*TRIPLE, "reason", "statement", *dict.fromkeys(labels)),
    }
    named = {name: f"{name}.{format}" for name in tables}
    for name, table in tables.items():
        files.write(folder / named[name], table_bytes(table, format))
    number = ledger.height - valid.height
    left_out = [f"{counted(number, 'triple')} marked as not valid by the resource: in neither file."] * bool(number)
    sheet = cards.datasheet(
        valid,
        kept_by_target(valid),
        policy=asdict(policy.parts[0]) | {"name": policy.name, "action": type(policy.parts[0]).__name__},
        data=origin["source"],
        licence=origin["licence"],
        demonstration=origin["demonstration"],
        files=named,
        **fields,
        notices=[*origin["notices"], *long_texts(valid["masked"]), *left_out],
    )
    files.write(folder / SHEET, sheet)
    return {name: table.height for name, table in tables.items()}
