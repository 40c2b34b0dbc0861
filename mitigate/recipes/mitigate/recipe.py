"""The main job: load > verbalise > score > filter > train > probe > verbalise > score > measure > report."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.probe.comet import find_devices
from mitigate.recipes.accuracies import accuracies
from mitigate.recipes.job import Job, is_said, perform, plain, say
from mitigate.recipes.mitigate import decoding, reporting
from mitigate.recipes.mitigate.plan import Plan, make_plan, say_labels
from mitigate.recipes.replacing import generated_tails
from mitigate.recipes.scorers import missing
from mitigate.recipes.start import training_settings
from mitigate.store import Result
from mitigate.targets import notice_of_own
from mitigate.tasks.about import published_likelihood
from mitigate.tasks.crowd.known import GENERATED
from mitigate.tasks.heads import probe_heads
from mitigate.tasks.label import label_probed, label_statements
from mitigate.tasks.lift import lift_table
from mitigate.tasks.likelihood import held_out_likelihood
from mitigate.tasks.people.validity import with_validity
from mitigate.tasks.policy import apply_policy
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.run import measure_run
from mitigate.tasks.start import Start, origin_facts
from mitigate.tasks.train import as_it_is, train_generator, trained
from mitigate.texts import counted
from mitigate.triples import Scorer

SEARCH = ("beams", "top", "max_length", "precision")  # of the group `probe`


def run(config: DictConfig) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration and not is_said(config):
        say("A demonstration on a small corpus written for it: it shows how things work and claims nothing.")
    addresses = missing(config, ["data", "model"])
    for address in addresses:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {address}")
    if config.dry_run and addresses:
        say("  all stages are to be run, once that is at hand")
        return None
    say(f"policy {config.policy.name}, data {config.data.name}, model {config.model.name}, seed {config.seed}")
    plan = make_plan(config)
    for notice in [*plan.notices, *notice_of_own(plan.targets)]:
        say(f"  note: {notice}")
    say(f"  {counted(plan.corpus.triples.height, 'triple')}; {_size(plan)} statements to probe")
    if config.dry_run:
        say_labels(plan)
    name = f"{config.recipe.name}-{plan.policy.name}-{config.data.name}-{config.model.name}-seed{config.seed}"
    found = perform(
        config,
        name,
        plan.inputs,
        lambda job: pipeline(job, plan),
        lambda job: reporting.record(job, plan),
        uploads=reporting.uploads(config),
        facts={"scorers": plan.fingerprints, **origin_facts(plan.start)},
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def _size(plan: Plan) -> str:
    """How many statements are probed, and what makes them so many."""
    num_targets, num_relations, top = plan.targets.height, len(plan.corpus.relations), plan.config.probe.top
    targets, relations = counted(num_targets, "target"), counted(num_relations, "relation")
    if plan.events is None:
        return f"{targets} x {relations} x {top} = {num_targets * num_relations * top:,}"
    prompts = num_targets * num_relations - plan.events.n_unique(["target", "relation"]) + plan.events.height
    return f"{targets} in {counted(prompts, 'prompt')} of {relations} x {top} = {prompts * top:,}"


def measures_lift(plan: Plan) -> bool:
    """Whether there is who accepts, and whom to ask about."""
    return plan.plausibility is not None and plan.config.probe.heads > 0 and bool(plan.lifted)


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order, each read from the run folder when it is there."""
    filtering = [*plan.scorers, *plan.policy_scorers]
    labelled = _label(job, plan, "score", label_statements, plan.corpus.triples, filtering)
    generated = generated_tails(job, plan.policy, labelled, plan.tail_generator, filtering, plan.cache, **plan.worded)
    ledger = job.stage("ledger", apply_policy, plan.policy, labelled, plan.target_list, generated=generated)
    decoding.check_ledger(plan, ledger)
    training, generator = train(job, plan, ledger)
    generator = decoding.steer(job, plan, ledger, generator)
    probed = probe(job, plan, generator)
    heads = None
    if measures_lift(plan):
        heads = decoding.chosen_of_heads(job, plan, probe_held_out(job, plan, generator), filtering)
    probed = decoding.chosen(job, plan, probed, filtering)
    scorers = [*plan.scorers, *plan.extras]
    statements = _label(job, plan, "statements", label_probed, probed, scorers)
    cached = {"cache": plan.cache}
    if plan.plausibility is not None or plan.people is not None:
        statements = job.stage(
            "validity", with_validity, statements, plan.plausibility, plan.people, plan.target_list, using=cached
        )
    lifts = None if heads is None else lift(job, plan, statements, heads, labelled)
    device = find_devices(plan.config.probe.device, 1)[0]
    here = {"cache": plan.cache, "device": device}
    likelihood = job.stage(
        "likelihood", held_out_likelihood, generator, labelled, plan.plausibility, using=lambda _: here
    )
    published = None
    if plan.published is not None:
        published = job.stage(
            "published",
            published_likelihood,
            generator,
            plan.published,
            plan.scorers,
            **plan.worded,
            using=lambda _: here,
        )
    metrics = job.stage(
        "metrics",
        measure_run,
        ledger,
        statements,
        likelihood,
        plan.targets,
        lifts,
        published,
        about=plan.about,
        training=training,
        scorers=[scorer.name for scorer in scorers],
        deciding=[scorer.name for scorer in plan.scorers],
        empty_targets=plan.config.measure.empty_targets,
        intervals=reporting.intervals(plan.config),
        target_list=plan.target_list,
        accuracies=accuracies(plan.config.score, scorers, GENERATED),
    )
    reporting.report(job, plan, ledger, training, statements, lifts, metrics)


def _label(
    job: Job, plan: Plan, stage: str, label: Callable[..., pl.DataFrame], rows: object, scorers: Sequence[Scorer]
) -> Result:
    """Triples, or what a probe returned as triples, as statements with their labels."""
    return job.stage(stage, label, rows, list(scorers), **plan.worded, using={"cache": plan.cache})


def train(job: Job, plan: Plan, ledger: Result) -> tuple[Result, Start]:
    """The generator, retrained on what the ledger keeps; in the run folder as model/. With train=false, as it is."""
    if not plan.config.train:
        return job.stage("train", as_it_is, plan.start), plan.start
    settings, where = training_settings(plan.config)
    result = job.stage(
        "train",
        train_generator,
        ledger,
        plan.start,
        settings,
        using=lambda work: {
            "model": work.folder / "model",
            "checkpoints": work.folder / "checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, "train"),
            "where": where,
        },
        leaves=["model"],
        scratch=["checkpoints"],
        may_be_kept=True,
    )
    return result, trained(plan.start, job.folder / "model", result.digest)


def probe(job: Job, plan: Plan, generator: Start) -> Result:
    """The generator's best tails for every target and relation."""
    settings = plain(plan.config.probe)
    return job.stage(
        "probe",
        probe_generator,
        generator,
        plan.targets,
        {relation.name: plan.start.asked[relation.name] for relation in plan.corpus.relations},
        **_search(plan),
        heads=plan.events,
        using=lambda work: {
            "parts": work.parts("parts"),
            "devices": find_devices(settings["device"], settings["processes"]),
        },
        scratch=["parts"],
        may_be_kept=True,
    )


def probe_held_out(job: Job, plan: Plan, generator: Start) -> Result:
    """The same for heads of held-out triples, for quality alone."""
    return job.stage(
        "heads",
        probe_heads,
        generator,
        plan.heads,
        {relation.name: plan.start.asked[relation.name] for relation in plan.corpus.relations},
        **_search(plan),
        using=lambda _: {"device": find_devices(plan.config.probe.device, 1)[0]},
    )


def lift(job: Job, plan: Plan, statements: Result, heads: Result, labelled: Result) -> Result:
    """Swap lift of the generator and of baselines, prompt by prompt."""
    return job.stage(
        "lift",
        lift_table,
        statements,
        heads,
        labelled,
        plan.targets,
        plan.lifted,
        plan.heads,
        plan.plausibility,
        scorers=[scorer.name for scorer in plan.scorers],
        top=plan.config.probe.top,
        seed=plan.config.probe.heads_seed,
        using={"cache": plan.cache},
    )


def _search(plan: Plan) -> dict[str, Any]:
    """How tails are searched for."""
    settings = plain(plan.config.probe)
    return decoding.search(plan, {name: settings[name] for name in SEARCH})
