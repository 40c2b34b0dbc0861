"""recipe=filter: the triples that a policy keeps and drops, as files for any other training, with a datasheet. load >
verbalise > score > filter."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import verbalise
from mitigate.load.stream import Loaded, Streamed
from mitigate.policies import Policy, check_left, check_relations
from mitigate.recipes import reporting
from mitigate.recipes.job import Config, Job, perform, say, say_notes
from mitigate.recipes.loading import load_data, read_target_list, say_downloads
from mitigate.recipes.scorers import Scorers, make_labeller, missing
from mitigate.report.table import as_text
from mitigate.stages import digest_of_values, in_folder
from mitigate.tasks.corpus import relations_in_training, triples_of
from mitigate.tasks.label import Labeller
from mitigate.tasks.labelled_statements import long_texts
from mitigate.tasks.policies import filtered
from mitigate.words.outside_text import counted, portable
from mitigate.words.relations import with_own

FACTS = ("mitigate", "python", "torch", "vaderSentiment", "seed")


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    policy: Policy
    corpus: Loaded | Streamed
    labeller: Labeller  # by the scorers of the roles, and by those that the policy reads besides
    roles: Mapping[str, str]  # the configured scorers of the roles, by their names in tables
    origin: Mapping[str, Any]  # the description of the data for the datasheet
    format: str

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of all that label, by their names."""
        return {scorer.name: scorer.fingerprint for scorer in self.labeller.scorers}


def run(config: Config) -> None:
    """Filter the triples that `data` names by a policy, and write what is kept and what is dropped."""
    scorers = Scorers(config.score)
    policy, origin = scorers.policy(config.policy), reporting.origin(config, ["data"])["data"]
    filtered.check_filters(policy)
    verbalise.check(config.measure.masking)
    say_downloads(config, missing(config, ["data"]))
    say(f"policy {policy.name}, data {config.data.name}")
    plan = make_plan(config, scorers, policy, origin)
    target_list, relations = plan.labeller.target_list, list(plan.corpus.own_relations)
    name = f"{config.recipe.name}-{policy.name}-{config.data.name}"
    source = digest_of_values(plan.corpus.rows, target_list, relations)
    found = perform(config, name, source, partial(pipeline, plan=plan), record, facts={"scorers": plan.fingerprints})
    if found:
        written, ledger = found["data_set"], found["ledger"].table()
        say_files(plan, written.path.parent, ledger, written.facts())
        check_left(policy, ledger)  # at the end, so that the dropped triples can be looked at


def make_plan(config: Config, scorers: Scorers, policy: Policy, origin: Mapping[str, Any]) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    corpus = triples_of(load_data(config))
    relations_in_training(corpus.rows)  # raises where there is none
    check_relations(policy, with_own(corpus.own_relations))
    target_list, notices = read_target_list(config)
    notices = [*corpus.notices, *notices]
    say_notes(notices)
    say(f"  {counted(corpus.rows.height, 'triple')}")
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    return Plan(
        policy=policy,
        corpus=corpus,
        labeller=make_labeller(config, labelling, target_list, corpus.own_relations),
        roles=scorers.roles,
        origin={**origin, "notices": notices},
        format=config.recipe.format,
    )


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    policy, labeller = plan.policy, plan.labeller
    labelled = job.stage("score", Labeller.label, labeller, plan.corpus.rows)
    ledger = job.stage("ledger", policy.filter, labelled, labeller.target_list)
    job.measure(filtered.measure_filter, ledger)
    facts = job.provenance({})
    used = [scorer for scorer in labeller.scorers if scorer.name in policy.reads]
    job.stage(
        "data_set",
        filtered.write_data_set,
        ledger,
        policy,
        plan.format,
        origin=plan.origin,
        scorers={scorer.name: plan.roles.get(scorer.name, scorer.name) for scorer in used},
        fingerprints={scorer.name: scorer.fingerprint for scorer in used},
        after=[job.folder.name],
        using=in_folder(
            name=job.folder.name,
            command=portable(job.command),
            needs=job.needs,
            facts={name: str(facts[name]) for name in FACTS},
        ),
    )


def record(job: Job) -> None:
    """Record the figures on W&B."""
    reporting.record_metrics(job, job.figures)


def say_files(plan: Plan, folder: Path, ledger: pl.DataFrame, counts: Mapping[str, int]) -> None:
    """Print the files with their numbers of triples, examples, and the relations that lost most."""
    for name, file in filtered.files_of(plan.format).items():
        say(f"  {name:<10}  {counted(counts[name], 'triple')}: {folder / file}")
    say(f"  datasheet   {folder / filtered.SHEET}")
    if counts["dropped"]:
        say(f"\n{as_text(filtered.examples(ledger, plan.policy))}\n")
    say_notes([*filtered.loss_notices(ledger), *long_texts(ledger["masked"])])
