"""The main job: load > verbalise > score > filter > train > probe > verbalise > score > measure > report."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.measure.bootstrap import Bootstrap
from mitigate.probe.comet import find_devices
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.mitigate import reporting
from mitigate.recipes.mitigate.plan import Plan, downloads, make_plan, say_labels
from mitigate.recipes.start import training_settings
from mitigate.score.plausibility import with_plausibility
from mitigate.store import Result
from mitigate.tasks.label import label_probed, label_statements
from mitigate.tasks.likelihood import held_out_likelihood
from mitigate.tasks.policy import apply_policy
from mitigate.tasks.probe import probe_generator
from mitigate.tasks.rerank import rerank_neutral_first
from mitigate.tasks.run import measure_run
from mitigate.tasks.start import Start
from mitigate.tasks.train import as_it_is, train_generator, trained
from mitigate.triples import Scorer

STAGES = (
    *("score", "ledger", "train", "probe", "candidates", "rerank"),
    *("statements", "validity", "likelihood", "metrics", "report"),
)
SEARCH = ("beams", "top", "max_length", "precision")  # of the group `probe`


def run(config: DictConfig) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration:
        say("A demonstration on a small corpus written for it: it shows how things work and claims nothing.")
    addresses = downloads(config)
    for address in addresses:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {address}")
    if config.dry_run and addresses:
        say("  all stages are to be run, once that is at hand: " + ", ".join(STAGES))
        return None
    say(f"policy {config.policy.name}, data {config.data.name}, model {config.model.name}, seed {config.seed}")
    plan = make_plan(config)
    for notice in plan.corpus.notices:
        say(f"  note: {notice}")
    say(
        f"  {plan.corpus.triples.height:,} triples; {plan.targets.height} targets x {len(plan.relations)} relations "
        f"x {config.probe.top} = {plan.targets.height * len(plan.relations) * config.probe.top:,} statements to probe"
    )
    if config.dry_run:
        say_labels(plan)
    name = f"{config.recipe.name}-{plan.policy.name}-{config.data.name}-{config.model.name}-seed{config.seed}"
    uploads = reporting.uploads(config)
    metrics = perform(config, name, plan.source, stages_of(plan), lambda job: pipeline(job, plan), uploads=uploads)
    return metrics.get(config.optimized_metric) if metrics else None


def stages_of(plan: Plan) -> list[str]:
    """The stages that the settings ask for."""
    absent = {"validity"} if plan.plausibility is None else set()
    if not plan.policy.reranks:
        absent |= {"candidates", "rerank"}
    return [stage for stage in STAGES if stage not in absent]


def pipeline(job: Job, plan: Plan) -> dict[str, Any]:
    """The stages in their order, each read from the run folder when it is there; returns the metrics."""
    filtering = [*plan.scorers, *plan.policy_scorers]
    labelled = _label(job, plan, "score", label_statements, plan.corpus.triples, filtering)
    ledger = job.stage("ledger", apply_policy, plan.policy, labelled)
    training, generator = train(job, plan, ledger)
    probed = probe(job, plan, generator)
    if plan.policy.reranks:
        candidates = _label(job, plan, "candidates", label_probed, probed, filtering)
        probed = job.stage("rerank", rerank_neutral_first, plan.policy, candidates, plan.config.probe.top)
    scorers = [*plan.scorers, *plan.extras]
    statements = _label(job, plan, "statements", label_probed, probed, scorers)
    if plan.plausibility is not None:
        statements = job.stage(
            "validity", with_plausibility, statements, plan.plausibility, using={"cache": plan.cache}
        )
    likelihood = job.stage(
        "likelihood",
        held_out_likelihood,
        generator,
        labelled,
        plan.plausibility,
        using=lambda _: {"cache": plan.cache, "device": find_devices(plan.config.probe.device, 1)[0]},
    )
    metrics = job.stage(
        "metrics",
        measure_run,
        ledger,
        statements,
        likelihood,
        plan.targets,
        about=plan.about,
        scorers=[scorer.name for scorer in scorers],
        empty_targets=plan.config.measure.empty_targets,
        intervals=Bootstrap(resamples=plan.config.measure.resamples, seed=plan.config.seed),
    )
    reporting.report(job, plan, ledger, training, statements, metrics)
    return metrics.facts()


def _label(
    job: Job, plan: Plan, stage: str, label: Callable[..., pl.DataFrame], rows: object, scorers: Sequence[Scorer]
) -> Result:
    """Triples, or what a probe returned as triples, as statements with their labels."""
    return job.stage(
        stage,
        label,
        rows,
        list(scorers),
        masking=plan.config.measure.masking,
        own_targets=plan.own_targets,
        using={"cache": plan.cache},
    )


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
    search = {name: settings[name] for name in SEARCH}
    if plan.policy.reranks:
        search |= {"beams": plan.policy.candidates, "top": plan.policy.candidates}
    return job.stage(
        "probe",
        probe_generator,
        generator,
        plan.targets,
        {relation.name: plan.start.asked[relation.name] for relation in plan.relations},
        **search,
        using=lambda work: {
            "parts": work.parts("parts"),
            "devices": find_devices(settings["device"], settings["processes"]),
        },
        scratch=["parts"],
        may_be_kept=True,
    )
