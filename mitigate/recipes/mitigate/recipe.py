"""The main job: load > verbalise > score > filter > train > probe > verbalise > score > measure > report."""

from omegaconf import DictConfig

from mitigate.recipes.job import Job, is_said, perform, say
from mitigate.recipes.mitigate import decoding, reporting, tuning
from mitigate.recipes.mitigate.plan import Plan, Probe, make_plan, say_labels, unread_plan
from mitigate.recipes.outline import outline, say_downloads
from mitigate.recipes.replacing import generated_tails, with_critic
from mitigate.recipes.scorers import Scorers, missing
from mitigate.runs.store import Result
from mitigate.tasks.base_model import Start, origin_facts
from mitigate.tasks.label import Labeller
from mitigate.tasks.lift import lift_table
from mitigate.tasks.likelihood import held_out_likelihood
from mitigate.tasks.people.validity import with_validity
from mitigate.tasks.policy import apply_policy
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.probe_heads import probe_heads
from mitigate.tasks.published_likelihood import published_likelihood
from mitigate.tasks.run import measure_run
from mitigate.tasks.train import as_it_is, train_generator, trained
from mitigate.words.targets import notice_of_own
from mitigate.words.texts import counted


def run(config: DictConfig) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration and not is_said(config):
        say("A demonstration on a small corpus written for it: it shows how things work and claims nothing.")
    scorers = Scorers(config.score)
    downloads = missing(config, ["data", "model"], scorers)
    say_downloads(config, downloads)
    if config.dry_run and downloads:
        outline(config, lambda job: pipeline(job, unread_plan(config, scorers)))
        return None
    say(f"policy {config.policy.name}, data {config.data.name}, model {config.model.name}, seed {config.seed}")
    plan = make_plan(config, scorers)
    for notice in [*plan.notices, *notice_of_own(plan.probe.targets)]:
        say(f"  note: {notice}")
    say(f"  {counted(plan.corpus.triples.height, 'triple')}; {_size(plan.probe)} statements to probe")
    if config.dry_run:
        say_labels(plan)
    found = perform(
        config,
        f"{config.recipe.name}-{plan.policy.name}-{config.data.name}-{config.model.name}-seed{config.seed}",
        plan.inputs,
        lambda job: pipeline(job, plan),
        lambda job: reporting.record(job, plan),
        uploads=reporting.uploads(config),
        facts={"scorers": plan.fingerprints, **origin_facts(plan.start)},
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def _size(probe: Probe) -> str:
    """How many statements are probed, and what makes them so many."""
    num_targets, num_relations, top = probe.targets.height, len(probe.relations), probe.top
    targets, relations = counted(num_targets, "target"), counted(num_relations, "relation")
    if probe.events is None:
        return f"{targets} x {relations} x {top} = {num_targets * num_relations * top:,}"
    prompts = num_targets * num_relations - probe.events.n_unique(["target", "relation"]) + probe.events.height
    return f"{targets} in {counted(prompts, 'prompt')} of {relations} x {top} = {prompts * top:,}"


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order, each read from the run folder when it is there."""
    labelled = job.stage("score", Labeller.label, plan.labeller, plan.corpus.triples)
    given = with_critic(job, plan.policy, labelled, plan.critic, plan.labeller)
    generated = generated_tails(job, plan.policy, given, plan.tail_generator, plan.labeller, plan.device)
    ledger = job.stage("ledger", apply_policy, plan.policy, given, plan.target_list, generated=generated)
    decoding.check_ledger(plan, ledger)
    tuning.check_labelled(plan, given)
    training, generator = train(job, plan, ledger)
    training, generator = tuning.tune(job, plan, given, training, generator)
    generator = decoding.steer(job, plan, ledger, generator)
    probed = probe(job, plan, generator)
    heads = None
    if plan.probe.measures_lift:
        heads = decoding.chosen_of_heads(job, plan, probe_held_out(job, plan, generator))
    statements = label(job, plan, decoding.chosen(job, plan, probed))
    lifts = None if heads is None else lift(job, plan, statements, heads, labelled)
    likelihood, published = predict(job, plan, generator, labelled)
    metrics = job.stage(
        "metrics",
        measure_run,
        ledger,
        statements,
        likelihood,
        plan.probe.targets,
        lifts,
        published,
        about=plan.about,
        training=training,
        scorers=[scorer.name for scorer in (*plan.scorers, *plan.extras)],
        deciding=[scorer.name for scorer in plan.scorers],
        empty_targets=plan.measures.empty_targets,
        intervals=plan.measures.intervals,
        target_list=plan.target_list,
        accuracies=plan.measures.accuracies,
    )
    reporting.report(job, plan, ledger, training, statements, lifts, metrics)


def train(job: Job, plan: Plan, ledger: Result) -> tuple[Result, Start]:
    """The generator, retrained on what the ledger keeps; in the run folder as model/, or as base/ where it is trained
    a second time. With train=false, as it is."""
    if not plan.trains:
        return job.stage("train", as_it_is, plan.start), plan.start
    name = tuning.trained_folder(plan.policy)
    result = job.stage(
        "train",
        train_generator,
        ledger,
        plan.start,
        plan.settings,
        using=lambda work: {
            "model": work.folder / name,
            "checkpoints": work.folder / "checkpoints",
            "fingerprint": work.fingerprint,
            "log": lambda values, step: job.tracking.log(values, step, "train"),
            "where": plan.where,
        },
        leaves=[name],
        scratch=["checkpoints"],
        may_be_kept=True,
    )
    return result, trained(plan.start, job.folder / name, result.digest)


def probe(job: Job, plan: Plan, generator: Start) -> Result:
    """The generator's best tails for every target and relation."""
    return job.stage(
        "probe",
        probe_generator,
        generator,
        plan.probe.targets,
        plan.probe.relations,
        **plan.search,
        heads=plan.probe.events,
        using=lambda work: {"parts": work.parts("parts"), "devices": plan.devices},
        scratch=["parts"],
        may_be_kept=True,
    )


def probe_held_out(job: Job, plan: Plan, generator: Start) -> Result:
    """The same for heads of held-out triples, for quality alone."""
    asked, here = (plan.probe.heads, plan.probe.relations), {"device": plan.device}
    return job.stage("heads", probe_heads, generator, *asked, **plan.search, using=here)


def label(job: Job, plan: Plan, probed: Result) -> Result:
    """What was generated as statements with their labels, and with their validity where something classifies it."""
    labeller, measures = plan.labeller.by([*plan.scorers, *plan.extras]), plan.measures
    statements = job.stage("statements", Labeller.label_probed, labeller, probed)
    if measures.plausibility is None and measures.people is None:
        return statements
    how = measures.plausibility, measures.people, plan.target_list, plan.extras
    return job.stage("validity", with_validity, statements, *how, using={"cache": labeller.cache})


def lift(job: Job, plan: Plan, statements: Result, heads: Result, labelled: Result) -> Result:
    """Swap lift of the generator and of baselines, prompt by prompt."""
    return job.stage(
        "lift",
        lift_table,
        statements,
        heads,
        labelled,
        plan.probe.targets,
        plan.probe.lifted,
        plan.probe.heads,
        plan.measures.plausibility,
        scorers=[scorer.name for scorer in plan.scorers],
        top=plan.probe.top,
        seed=plan.probe.seed,
        using={"cache": plan.labeller.cache},
    )


def predict(job: Job, plan: Plan, generator: Start, labelled: Result) -> tuple[Result, Result | None]:
    """How likely the generator finds held-out triples, and published triples about targets, where there are any."""
    plausibility, here = plan.measures.plausibility, {"device": plan.device}
    cached = {**here, "cache": plan.labeller.cache}
    likelihood = job.stage("likelihood", held_out_likelihood, generator, labelled, plausibility, using=cached)
    if plan.probe.published is None:
        return likelihood, None
    labeller = plan.labeller.by(plan.scorers)
    triples = plan.probe.published
    return likelihood, job.stage("published", published_likelihood, generator, triples, labeller, using=here)
