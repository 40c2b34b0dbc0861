"""The main job: load > verbalise > score > filter > train > probe > verbalise > score > measure > report."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import filter as filtering
from mitigate import relations as relation_room
from mitigate import targets as target_room
from mitigate import verbalise as verbalising
from mitigate.probe import comet as probing
from mitigate.probe import grid
from mitigate.probe import likelihood as judging
from mitigate.probe import rerank as reranking
from mitigate.probe.generator import Generator
from mitigate.recipes.job import Job, perform, plain, say
from mitigate.recipes.mitigate import measures, reporting
from mitigate.recipes.mitigate.plan import Plan, downloads, make_plan, say_labels, training_settings
from mitigate.score import labels as labelling
from mitigate.score import plausibility as plausibility_scoring
from mitigate.store import PartFolder, Result, as_parquet, digest_of
from mitigate.train import batches, checkpoints, harness, launch, memory, module
from mitigate.train import comet as training
from mitigate.triples import Scorer
from mitigate.verbalise import verbalise
from models import (
    beam,
    comet,
    compiled,
    decoder,
    dropout,
    encoding,
    layouts,
    minilm,
    packing,
    products,
    top_tokens,
    tree,
)
from models.comet import Comet

STAGES = (
    *("score", "ledger", "train", "probe", "candidates", "rerank"),
    *("statements", "validity", "likelihood", "metrics", "report"),
)
NETWORK = (comet, decoder, dropout, encoding, layouts, minilm, packing)
SEARCH = (beam, products, top_tokens, tree)
MODEL_FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
WORDING = (relation_room, target_room, verbalising, labelling)  # the sources that decide what is labelled


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
    told = reporting.uploads(config)
    metrics = perform(config, name, plan.source, stages_of(plan), lambda job: pipeline(job, plan), uploads=told)
    return metrics.get(config.optimized_metric) if metrics else None


def stages_of(plan: Plan) -> list[str]:
    """The stages that the settings ask for."""
    absent = {"validity"} if plan.plausibility is None else set()
    if not plan.policy.reranks:
        absent |= {"candidates", "rerank"}
    return [stage for stage in STAGES if stage not in absent]


def pipeline(job: Job, plan: Plan) -> dict[str, Any]:
    """The stages in their order, each read from the run folder when it is there; returns the metrics."""
    labelled = score(job, plan, "score", plan.source, plan.corpus.triples, also=plan.policy_scorers)
    ledger = job.old_stage(
        "ledger",
        lambda _: filtering.apply(plan.policy, labelled.table()),
        needs=[labelled.digest],
        settings=plan.config.policy,
        code=[filtering],
    )
    generator = train(job, plan, ledger)
    probed = rerank(job, plan, probe(job, plan, generator))
    statements = score(
        job, plan, "statements", probed.digest, probed.table().with_columns(head="target"), also=plan.extras
    )
    statements = validity(job, plan, statements)
    likelihood = judge(job, plan, generator, labelled)
    metrics = job.old_stage(
        "metrics",
        lambda _: measures.measure(plan, ledger.table(), statements.table(), likelihood.table()),
        needs=[ledger.digest, statements.digest, likelihood.digest],
        settings=plan.config.measure,
        code=measures.CODE,
    )
    reporting.report(job, plan, ledger, generator, statements, metrics.facts())
    return metrics.facts()


def score(job: Job, plan: Plan, stage: str, source: str, triples: pl.DataFrame, also: Sequence[Scorer] = ()) -> Result:
    """Triples, or what a probe returned as triples, as statements with their labels."""
    scorers = [*plan.scorers, *also]

    def compute(_: str) -> pl.DataFrame:
        statements = verbalise(triples, plan.config.measure.masking, plan.own_targets)
        for scorer in scorers:
            statements = labelling.with_labels(statements, scorer, plan.cache)
        return statements

    settings = {
        "masking": plan.config.measure.masking,
        "own_targets": plan.own_targets,
        "scorers": [scorer.fingerprint for scorer in scorers],
    }
    return job.old_stage(stage, compute, needs=[source], settings=settings, code=WORDING)


def validity(job: Job, plan: Plan, statements: Result) -> Result:
    """The probed statements with whether each is judged valid; as they are, if nobody judges."""
    scorer = plan.plausibility
    if scorer is None:
        return statements
    return job.old_stage(
        "validity",
        lambda _: plausibility_scoring.with_plausibility(statements.table(), scorer, plan.cache),
        needs=[statements.digest],
        settings=scorer.fingerprint,
        code=(plausibility_scoring, labelling),
    )


def train(job: Job, plan: Plan, ledger: Result) -> Result:
    """The generator, retrained on what the ledger keeps; in the run folder as model/. With train=false, as it is."""
    if not plan.config.train:
        facts = {"trained": False, "weights": plan.start.weights}
        return job.old_stage("train", lambda _: facts, settings=plan.start.identity, code=(plan.start.code,))
    how, where = training_settings(plan.config)

    def compute(fingerprint: str) -> dict[str, Any]:
        rows = ledger.table().filter(pl.col("weight") > 0, "valid")
        generator: Comet = plan.start.load()
        if plan.start.regimen.relation == "token":
            generator.add(list(plan.start.asked.values()))
        fitted = launch.fit(
            generator,
            _examples(rows.filter(split="train"), plan.start.asked),
            how,
            job.folder / "checkpoints",
            fingerprint=fingerprint,
            dev=_examples(rows.filter(split="dev"), plan.start.asked),
            log=lambda values, step: job.tracking.log(values, step, "train"),
            **where,
        )
        _save(generator, job.folder / "model")
        shutil.rmtree(job.folder / "checkpoints", ignore_errors=True)  # a short training leaves none
        return fitted._asdict()

    settings = {**asdict(how), "checkpoint_every": None, "model": plan.start.identity}
    leaves = [f"model/{name}" for name in MODEL_FILES]
    code = (training, batches, checkpoints, harness, memory, module, compiled, plan.start.code, *NETWORK)
    needs = [ledger.digest, str(plan.start.asked)]
    return job.old_stage("train", compute, needs=needs, settings=settings, code=code, leaves=leaves)


def probe(job: Job, plan: Plan, generator: Result) -> Result:
    """What the generator says of every target, for every relation."""
    settings = plain(plan.config.probe)
    search = {name: settings[name] for name in ("beams", "top", "max_length", "precision")}
    if plan.policy.reranks:
        search |= {"beams": plan.policy.candidates, "top": plan.policy.candidates}
    phrases = [(relation.name, plan.start.asked[relation.name]) for relation in plan.relations]

    def compute(fingerprint: str) -> pl.DataFrame:
        parts = PartFolder(job.folder / "parts" / fingerprint[:16])
        devices = probing.find_devices(settings["device"], settings["processes"])
        probing.probe(_generator(job, plan), plan.targets, phrases, parts=parts, devices=devices, **search)
        probed = pl.concat(list(parts))
        shutil.rmtree(job.folder / "parts")
        return probed

    return job.old_stage(
        "probe",
        compute,
        needs=[generator.digest, digest_of(as_parquet(plan.targets)), str(phrases)],
        settings=search,
        code=(probing, grid, plan.start.code, *SEARCH, *NETWORK),
    )


def rerank(job: Job, plan: Plan, probed: Result) -> Result:
    """What was probed, its neutral tails first, if the policy asks for that; else as it is."""
    if not plan.policy.reranks:
        return probed
    asked = probed.table().with_columns(head="target")
    candidates = score(job, plan, "candidates", probed.digest, asked, also=plan.policy_scorers)
    top, polarised = plan.config.probe.top, filtering.polarised(plan.policy)
    return job.old_stage(
        "rerank",
        lambda _: reranking.neutral_first(candidates.table(), polarised, top),
        needs=[candidates.digest],
        settings=[plan.config.policy, top],
        code=(filtering, reranking),
    )


def judge(job: Job, plan: Plan, generator: Result, labelled: Result) -> Result:
    """How likely the generator finds the held-out valid triples, what it would have said in their tail's place, and
    whether that is judged valid."""
    phrases, scorer = plan.start.asked, plan.plausibility

    def compute(_: str) -> pl.DataFrame:
        held_out = labelled.table().filter("valid", split="test")
        (device,) = probing.find_devices(plan.config.probe.device, 1)
        model = _generator(job, plan).to(device)
        scored = judging.likelihood(model, held_out, phrases)
        said = judging.completions(model, held_out, phrases)
        if scorer:
            judged = plausibility_scoring.with_plausibility(said.rename({"generated": "tail"}), scorer, plan.cache)
            said = said.with_columns(generated_valid=judged["judged_valid"])
        return scored.join(said, on=["head", "relation"], how="left", maintain_order="left")

    return job.old_stage(
        "likelihood",
        compute,
        needs=[generator.digest, labelled.digest, str(phrases)],
        settings=scorer and scorer.fingerprint,
        code=(judging, plan.start.code, plausibility_scoring, *SEARCH, *NETWORK),
    )


def _generator(job: Job, plan: Plan) -> Generator:
    """The one that is probed: trained here, or the one at hand."""
    return Comet.load(job.folder / "model") if plan.config.train else plan.start.load()


def _examples(ledger: pl.DataFrame, asked: Mapping[str, str]) -> training.Examples:
    """Rows of a ledger as what to learn from, relations worded as they will be asked."""
    return training.Examples(
        heads=ledger["head"].to_list(),
        phrases=[asked[relation] for relation in ledger["relation"]],
        tails=ledger["tail"].to_list(),
        weights=ledger["weight"].to_numpy(),
    )


def _save(generator: Comet, folder: Path) -> None:
    """The generator's folder, replaced as a whole."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    generator.save(part)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
