"""The main job: filter triples by a policy, retrain a generator, probe it and measure its statements.

Stages: score, ledger, train, probe, heads, statements, validity, lift, likelihood, published, results, metrics,
report; other policies add some, and settings leave some out. Each writes NAME.parquet or NAME.json into the run
folder."""

from functools import partial

from mitigate.measure.lift import lift_table
from mitigate.measure.run import measure_run
from mitigate.policies import apply_policy, choice_of, needs_of
from mitigate.probe.candidates import choose_of_heads, label_candidates, with_contrast
from mitigate.probe.corpus import held_out_likelihood, published_likelihood
from mitigate.probe.generator import probe_generator, probe_heads
from mitigate.recipes.job import Config, Job, is_repeat_in_sweep, perform, say, say_notes
from mitigate.recipes.loading import say_downloads
from mitigate.recipes.mitigate import results
from mitigate.recipes.mitigate.plan import Plan, Probe, make_plan
from mitigate.recipes.scorers import Scorers, missing
from mitigate.score.labeller import Labeller
from mitigate.score.validity import with_validity
from mitigate.stages import Result
from mitigate.train.base_model import Start, origin_facts
from mitigate.train.generator import as_it_is, train_generator, trained
from mitigate.words.outside_text import counted
from mitigate.words.targets import notice_of_own


def run(config: Config) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration and not is_repeat_in_sweep(config):
        say("Demonstration on a small corpus written for it: its results say nothing about the world.")
    scorers = Scorers(config.score)
    downloads = missing(config, ["data", "model"])
    say_downloads(config, downloads)
    if config.dry_run and downloads:
        return None
    plan = make_plan(config, scorers)
    named = f"policy {config.policy.name}, data {config.data.name}, model {config.model.name}, seed {config.seed}"
    say(f"{named}; {counted(plan.corpus.triples.height, 'triple')}, {_size(plan.probe)}")
    say_notes([*plan.notices, *notice_of_own(plan.probe.targets)])
    found = perform(
        config,
        f"{config.recipe.name}-{plan.policy.name}-{config.data.name}-{config.model.name}-seed{config.seed}",
        plan.inputs,
        partial(pipeline, plan=plan),
        partial(results.record, plan=plan),
        uploads=results.uploads(config),
        facts={"scorers": plan.fingerprints, **origin_facts(plan.start)},
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def _size(probe: Probe) -> str:
    """The numbers of targets and of statements that are probed: "10 targets: 3,400 statements"."""
    prompts = probe.targets.height * len(probe.relations)
    if probe.events is not None:
        prompts += probe.events.height - probe.events.n_unique(["target", "relation"])
    return f"{counted(probe.targets.height, 'target')}: {counted(prompts * probe.top, 'statement')}"


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order, each read from the run folder when it is there."""
    labelled = job.stage("score", Labeller.label, plan.labeller, plan.corpus.triples)
    ledger = job.stage("ledger", apply_policy, plan.policy, labelled, plan.target_list)
    training, generator = train(job, plan, ledger)
    probed = probe(job, plan, generator)
    of_heads = probe_held_out(job, plan, generator) if plan.probe.measures_lift else None
    statements = label(job, plan, chosen_tails(job, plan, generator, probed))
    lifts = None if of_heads is None else lift(job, plan, statements, of_heads, labelled)
    likelihood, published = predict(job, plan, generator, labelled)
    tables = (ledger, statements, likelihood, lifts, published)
    job.measure(measure_run, *tables, plan.measurement, training=training, facts=plan.about)
    results.report(job, plan)


def train(job: Job, plan: Plan, ledger: Result) -> tuple[Result, Start]:
    """The generator, retrained on what the ledger keeps, in the run folder as model/; with train=false, as it is."""
    if not plan.trains:
        return job.stage("train", as_it_is, plan.start), plan.start
    tags = plan.policy.tags(plan.target_list)
    result = job.stage(
        "train",
        train_generator,
        ledger,
        plan.start,
        plan.settings,
        **({} if tags is None else {"tags": tags}),
        using=job.training("train", "model", where=plan.where),
    )
    return result, trained(plan.start, job.folder / "model", result.digest)


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
        using=lambda work: {"parts": work.parts(), "devices": plan.devices},
    )


def contrasted(job: Job, plan: Plan, stage: str, generator: Start, tails: Result) -> Result:
    """The tails with the contrast of the control tokens, for a policy that chooses by it."""
    if needs_of(plan.policy) != "contrast":
        return tails
    return job.stage(stage, with_contrast, tails, generator, using={"device": plan.device})


def chosen_tails(job: Job, plan: Plan, generator: Start, probed: Result) -> Result:
    """The tails for targets that the policy chooses; all where it does not."""
    if choice_of(plan.policy) is None:
        return probed
    probed = contrasted(job, plan, "contrast", generator, probed)
    candidates = job.stage("candidates", label_candidates, probed, plan.labeller, plan.critic)
    return job.stage("rerank", plan.policy.choose, candidates, plan.probe.top)


def probe_held_out(job: Job, plan: Plan, generator: Start) -> Result:
    """The generator's best tails for heads of held-out triples, for quality alone; of a policy that chooses, those that
    it chooses."""
    values, using = (generator, plan.probe.held_out_prompts), {"device": plan.device}
    heads = job.stage("heads", probe_heads, *values, **plan.search, using=using)
    if choice_of(plan.policy) is None:
        return heads
    heads = contrasted(job, plan, "heads_contrast", generator, heads)
    return job.stage("heads_rerank", choose_of_heads, plan.policy, heads, plan.labeller, plan.probe.top, plan.critic)


def label(job: Job, plan: Plan, probed: Result) -> Result:
    """The probed triples as statements with their labels, and with their validity where a classifier is configured."""
    labeller = plan.labeller.by([*plan.scorers, *plan.extras])
    statements = job.stage("statements", Labeller.label_probed, labeller, probed)
    if plan.plausibility is None and plan.people is None:
        return statements
    values = statements, plan.plausibility, plan.people, plan.target_list
    return job.stage("validity", with_validity, *values, using={"cache": labeller.cache})


def lift(job: Job, plan: Plan, statements: Result, of_heads: Result, labelled: Result) -> Result:
    """Swap lift of the generator and of baselines, prompt by prompt."""
    return job.stage(
        "lift",
        lift_table,
        statements,
        of_heads,
        labelled,
        plan.probe.targets,
        plan.probe.lifted,
        plan.probe.held_out_prompts,
        plan.plausibility,
        scorers=plan.measurement.scorers,
        top=plan.probe.top,
        seed=plan.probe.seed,
        using={"cache": plan.labeller.cache},
    )


def predict(job: Job, plan: Plan, generator: Start, labelled: Result) -> tuple[Result, Result | None]:
    """The likelihood of held-out triples under the generator, and of published triples about targets, if any."""
    using = {"device": plan.device}
    cached = {**using, "cache": plan.labeller.cache}
    likelihood = job.stage("likelihood", held_out_likelihood, generator, labelled, plan.plausibility, using=cached)
    if plan.probe.published is None:
        return likelihood, None
    values = generator, plan.probe.published, plan.labeller.by(plan.scorers)
    return likelihood, job.stage("published", published_likelihood, *values, using=using)
