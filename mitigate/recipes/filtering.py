"""recipe=filter: the triples that a policy keeps and drops, as files for any other training, with a datasheet. load >
verbalise > score > filter."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import verbalise as verbalising
from mitigate.filter import Policy, check_relations
from mitigate.probe.comet import find_devices
from mitigate.recipes import reporting
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.loading import load_data
from mitigate.recipes.outline import say_downloads
from mitigate.recipes.replacing import CRITIC, generated_tails, with_critic
from mitigate.recipes.scorers import Scorers, missing
from mitigate.recipes.targets import list_named
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import Result
from mitigate.tasks.corpus import further_relations, relations_in_training, triples_of
from mitigate.tasks.data_set import SHEET, check_filters, files_of, write_data_set
from mitigate.tasks.filtered import loss_notices, measure_filter, replaced_notices
from mitigate.tasks.label import Labeller
from mitigate.tasks.policy import apply_policy, check_left
from mitigate.tasks.replacing import find_generator
from mitigate.tasks.statements import long_texts
from mitigate.triples import Scorer
from mitigate.words.relations import with_own
from mitigate.words.texts import counted, portable

FACTS = ("mitigate", "python", "torch", "vaderSentiment", "seed")


def run(config: DictConfig) -> None:
    """Filter the triples that `data` names by a policy, and write what is kept and what is dropped."""
    configured = Scorers(config.score)
    policy, origin = configured.policy(config.policy), reporting.origin(config, ["data"])["data"]
    check_filters(policy)
    verbalising.check(config.measure.masking)
    say_downloads(config, missing(config, ["data"], configured))
    say(f"policy {policy.name}, data {config.data.name}")
    loaded = triples_of(load_data(config))
    relations_in_training(loaded.triples)  # raises where there is none
    check_relations(policy, with_own(loaded.own_relations))
    target_list, notices = list_named(config)
    notices = [*loaded.notices, *notices]
    for notice in notices:
        say(f"  note: {notice}")
    say(f"  {counted(loaded.triples.height, 'triple')}")
    labeller = Labeller(
        scorers=[*configured.of_roles, *configured.of_policy(policy)],
        masking=config.measure.masking,
        target_list=target_list,
        own_relations=loaded.own_relations,
        cache=LabelStore(Path(config.paths.cache) / "labels"),
    )
    critic = configured.critic(policy)
    comet = config.data.get("asked_relations") != "data"
    further = further_relations(loaded.own_relations, set(loaded.triples["relation"]), comet=comet)
    generator = find_generator(policy, further, comet=comet)
    device = find_devices(config.probe.device, 1)[0] if generator else "cpu"
    used = [scorer for scorer in labeller.scorers if scorer.name in policy.scorers]

    def pipeline(job: Job) -> None:
        labelled = job.stage("score", Labeller.label, labeller, loaded.triples)
        labelled = with_critic(job, policy, labelled, critic, labeller)
        generated = generated_tails(job, policy, labelled, generator, labeller, device)
        ledger = job.stage(
            "ledger", apply_policy, policy, labelled, target_list, generated=generated, may_be_empty=True
        )
        job.stage("metrics", measure_filter, ledger)
        export(job, policy, ledger, used, configured.roles, {**origin, "notices": notices})

    name = f"{config.recipe.name}-{policy.name}-{config.data.name}"
    source = digest_of_values(loaded.triples, target_list, list(loaded.own_relations), generator)
    known_by = {scorer.name: scorer.fingerprint for scorer in labeller.scorers}
    facts = {"scorers": known_by | ({CRITIC: critic.fingerprint} if critic else {})}
    if found := perform(config, name, source, pipeline, record, facts=facts):
        written, ledger = found["data_set"], found["ledger"].table()
        say_files(config, written.path.parent, ledger, written.facts())
        check_left(policy, ledger, target_list)  # at the end: the triples that it dropped are to be looked at


def record(job: Job) -> None:
    """The figures, on W&B."""
    reporting.record_metrics(job, job.results["metrics"].facts())


def export(
    job: Job,
    policy: Policy,
    ledger: Result,
    scorers: Sequence[Scorer],
    roles: Mapping[str, str],
    origin: Mapping[str, Any],
) -> None:
    """The two files and the datasheet, in the run folder. scorers: those that the policy reads."""
    config, facts = job.config, reporting.facts(job, {})
    job.stage(
        "data_set",
        write_data_set,
        ledger,
        policy,
        config.recipe.format,
        origin=origin,
        scorers={scorer.name: roles.get(scorer.name, scorer.name) for scorer in scorers},
        fingerprints={scorer.name: scorer.fingerprint for scorer in scorers},
        using={
            "folder": job.folder,
            "command": portable(job.command),
            "needs": job.needs,
            "facts": {name: str(facts[name]) for name in FACTS},
        },
        leaves=[*files_of(config.recipe.format).values(), SHEET],
    )


def say_files(config: DictConfig, folder: Path, ledger: pl.DataFrame, counts: Mapping[str, int]) -> None:
    """The files and how many triples each has, and the relations that lost most, on the terminal."""
    for name, file in files_of(config.recipe.format).items():
        say(f"  {name:<10}  {counted(counts[name], 'triple')}: {folder / file}")
    say(f"  datasheet   {folder / SHEET}")
    for notice in [*replaced_notices(ledger), *loss_notices(ledger), *long_texts(ledger["masked"])]:
        say(f"  note: {notice}")
