"""The main job: label triples, filter them by a policy, retrain a generator, probe it and measure its statements.

`run` is the whole job in its order; each stage writes NAME.parquet or NAME.json into the run folder. `make_plan` reads
and checks everything before the first stage, so that faults of settings and input appear at once and not after an hour
of training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate import verbalise
from mitigate.errors import MitigateError
from mitigate.files import digest_of
from mitigate.finished import find_beside
from mitigate.load.corpus import Corpus, corpus_of, digest_of_relations
from mitigate.load.statements import harms_triples
from mitigate.measure.caveats import of_critic, same_sources
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.lift import lift_table
from mitigate.measure.results import Results
from mitigate.measure.run import RunMeasurement, measure_run
from mitigate.policies import Policy, apply_policy, check_relations, choice_of, needs_of
from mitigate.probe import corpus as likelihood
from mitigate.probe.candidates import choose_of_heads, label_candidates, with_contrast
from mitigate.probe.comet import check_search, find_devices, prompts
from mitigate.probe.corpus import held_out_likelihood, published_likelihood
from mitigate.probe.generator import event_heads, held_out_prompts, probe_generator, probe_heads
from mitigate.recipes import model_spec, reporting
from mitigate.recipes.config import Config
from mitigate.recipes.instantiate import build
from mitigate.recipes.job import Job, is_repeat_in_sweep, may_record_texts, open_job, say, say_downloads, say_notes
from mitigate.recipes.scorers import Scorers
from mitigate.report import cards
from mitigate.report import mitigate as page
from mitigate.score.labeller import Labeller, not_neutral
from mitigate.score.plausibility import TrainedOnRelations
from mitigate.score.validity import with_validity
from mitigate.stages import Result, as_parquet
from mitigate.tracking.headlines import beside
from mitigate.train import base_model, launch
from mitigate.train.base_model import Start, origin_facts
from mitigate.train.comet import Settings
from mitigate.train.generator import as_it_is, check_training, train_generator, trained
from mitigate.triples import Scorer, label_columns
from mitigate.words.outside_text import counted
from mitigate.words.relations import with_own
from mitigate.words.targets import TargetList, choose_targets, list_of, notice_of_own
from models.hf import Seq2Seq, chat_prompt, load_tokenizer
from models.tail_prompts import tagged

HEADS_SEED = 1  # which heads, and which other heads their tails are paired with: the same in runs of any seed
RECORDED_COLUMNS = ["target", "category", "relation", "tail", "rank"]  # and each scorer's labels and strengths
NO_DEV = "– (no dev triples)"
NO_LIFT = (
    "Swap lift is not measured: its plausibility classifier was trained on ConceptNet's relations, and no probed "
    "relation with targets as heads is one of them. Perplexity on test triples shows how good the generator is."
)
AS_IT_IS = "The model was not trained here: neither corpus nor policy affected it."
DECODED = (
    "The policy acts when tails are generated ({}). The folder model/ holds the generator without the "
    "policy; `recipe=ask` on this run applies the policy."
)


def run(config: Config) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration and not is_repeat_in_sweep(config):
        say("Demonstration on a small corpus written for it: its results say nothing about the world.")
    scorers, downloads = Scorers(config.score), config.missing(["data", "model"])
    say_downloads(config, downloads)
    if config.dry_run and downloads:
        return None
    plan = make_plan(config, scorers)
    policy, ask, labeller = plan.policy, plan.probe, plan.labeller
    chooses, by_contrast = choice_of(policy) is not None, needs_of(policy) == "contrast"
    here: dict[str, Any] = {"device": plan.devices[0]}  # of a single process
    cached: dict[str, Any] = {"cache": labeller.cache}
    say(f"policy {config.policy.name}, {_about(config)}, seed {config.seed}; {plan.size}")
    say_notes([*plan.notices, *notice_of_own(ask.targets)])
    name = "-".join([config.recipe.name, policy.name, config.data.name, config.model.name, f"seed{config.seed}"])
    facts = {"scorers": plan.fingerprints, **origin_facts(plan.start)}
    with open_job(config, name, plan.inputs, uploads=uploads(config), facts=facts) as job:
        labelled = job.stage("score", Labeller.label, labeller, plan.corpus.triples)
        ledger = job.stage("ledger", apply_policy, policy, labelled, plan.target_list)

        if plan.trains:
            tags, using = policy.tags(plan.target_list), job.training("train", "model", where=plan.where)
            more = {} if tags is None else {"tags": tags}
            training = job.stage("train", train_generator, ledger, plan.start, plan.settings, **more, using=using)
            generator = trained(plan.start, job.folder / "model", training.digest)
        else:
            training, generator = job.stage("train", as_it_is, plan.start), plan.start

        using, about = _parts(plan.devices), (ask.targets, ask.relations)
        tails = job.stage("probe", probe_generator, generator, *about, **plan.search, heads=ask.events, using=using)
        if by_contrast:
            tails = job.stage("contrast", with_contrast, tails, generator, using=here)
        if chooses:
            candidates = job.stage("candidates", label_candidates, tails, labeller, plan.critic)
            tails = job.stage("rerank", policy.choose, candidates, ask.top)
        heads = None  # tails of held-out heads, for swap lift alone
        if ask.measures_lift:
            heads = job.stage("heads", probe_heads, generator, ask.held_out_prompts, **plan.search, using=here)
            if by_contrast:
                heads = job.stage("heads_contrast", with_contrast, heads, generator, using=here)
            if chooses:
                heads = job.stage("heads_rerank", choose_of_heads, policy, heads, labeller, ask.top, plan.critic)

        assessing = labeller.by([*plan.scorers, *plan.extras])
        statements = job.stage("statements", Labeller.label, assessing, tails)
        if plan.plausibility or plan.people:
            by = (plan.plausibility, plan.people, plan.target_list)
            statements = job.stage("validity", with_validity, statements, *by, using=cached)
        lifts = published = None
        if heads is not None:
            asked = (ask.targets, ask.lifted, ask.held_out_prompts, plan.plausibility)
            how = {"scorers": plan.measurement.scorers, "top": ask.top, "seed": ask.seed}
            lifts = job.stage("lift", lift_table, statements, heads, labelled, *asked, **how, using=cached)
        both = here | cached
        of_held_out = job.stage("likelihood", held_out_likelihood, generator, labelled, plan.plausibility, using=both)
        if ask.published is not None:
            by_roles = labeller.by(plan.scorers)
            published = job.stage("published", published_likelihood, generator, ask.published, by_roles, using=here)

        tables = (ledger, statements, of_held_out, lifts, published)
        job.measure(measure_run, *tables, plan.measurement, training=training, facts=plan.about)
        report = _report(job, plan, statements, ledger, training)
        if job.is_new():
            record(job, plan, report.facts(), statements)
    return None if config.dry_run else job.results["metrics"].facts().get(config.optimized_metric)


def _about(config: Config) -> str:
    return f"data {config.data.name}, model {config.model.name}"


def _parts(devices: Sequence[str]) -> Any:
    return lambda work: {"parts": work.parts(), "devices": devices}


@dataclass(frozen=True)
class Probe:
    """The prompts for the generator."""

    targets: pl.DataFrame  # (target, category)
    relations: dict[str, str]  # with the wording of each in prompts
    events: pl.DataFrame | None  # (target, relation, head): the events of targets; None: targets are the heads
    held_out_prompts: pl.DataFrame  # (head, relation) of held-out triples that are not about targets, for quality alone
    published: pl.DataFrame | None  # triples about targets that are not in the corpus; None: not measured
    lifted: list[str]  # the relations that swap lift can be measured on
    measures_lift: bool
    top: int  # tails that are kept for each prompt
    seed: int  # of held-out heads


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    policy: Policy
    corpus: Corpus
    target_list: TargetList  # the paper's, and those of the probed ones that are the run's own
    roles: Mapping[str, str]  # the configured scorers of the roles, by their names in tables
    scorers: list[Scorer]  # of the roles, which label the corpus and generated triples
    extras: list[Scorer]  # held-out scorers, which label only generated triples
    labeller: Labeller  # by the scorers of the roles, and by those that the policy reads besides
    critic: Scorer | None  # classifies validity by people's ratings, for a policy that ranks by it
    probe: Probe
    search: dict[str, Any]  # for tails: beams, top, max_length, precision, as probe_generator takes them
    devices: list[str]  # of the processes that search
    plausibility: Scorer | None  # classifies generated triples, if configured
    people: Scorer | None  # classifies them by people's ratings, if configured
    measurement: RunMeasurement
    start: Start  # the model that is trained, or probed as it is
    trains: bool
    settings: Settings  # of a training
    where: Mapping[str, Any]  # accelerator, devices and strategy of a training
    about: dict[str, Any]  # seed, policy, data, model and fingerprint, as metrics.json begins
    notices: list[str]  # of what was read, and of what is not measured
    shown: list[str]  # targets whose bars the page draws
    origin: dict[str, dict[str, Any]]  # data and model, for the page and the card

    @property
    def fingerprint(self) -> str:
        """The hash of the corpus and the targets."""
        return str(self.about["fingerprint"])

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of all that label or classify, by their names in tables."""
        named = {scorer.name: scorer.fingerprint for scorer in (*self.labeller.scorers, *self.extras)}
        classifying = {"plausibility": self.plausibility, "people_valid": self.people, "critic": self.critic}
        return named | {name: found.fingerprint for name, found in classifying.items() if found is not None}

    @property
    def inputs(self) -> list[object]:
        """All that affects results besides the settings."""
        return [self.fingerprint, *([] if self.probe.published is None else [self.probe.published])]

    @property
    def size(self) -> str:
        """The numbers of triples, targets and statements: "900 triples, 10 targets: 3,400 statements"."""
        ask = self.probe
        pairs = ask.targets.height * len(ask.relations)
        if ask.events is not None:
            pairs += ask.events.height - ask.events.n_unique(["target", "relation"])
        triples, targets = counted(self.corpus.triples.height, "triple"), counted(ask.targets.height, "target")
        return f"{triples}, {targets}: {counted(pairs * ask.top, 'statement')}"


def make_plan(config: Config, scorers: Scorers) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    scorers.check_roles()
    policy, described = scorers.policy(config.policy), config.described()
    verbalise.check(config.measure.masking)
    settings, where = config.training()
    launch.check(settings, **where)
    search = _search(config, policy)
    devices = find_devices(config.probe.device, config.probe.processes)
    data, score = config.data, config.score
    corpus = corpus_of(
        config.load_data(),
        config.probe.relations,
        only_in_data=data.probe_relations == "data",
        comet=data.asked_relations != "data",
        holdout=data.holdout,
    )
    check_relations(policy, with_own(corpus.own_relations))
    chosen = choose_targets(config.probed_targets(), corpus.triples, config.probe.fewest)
    target_list = list_of(chosen)
    start = _start(config, policy, corpus, settings, where)
    plausibility = build(score.plausibility, "score.plausibility") if score.plausibility else None
    people = build(score.people_valid, "score.people_valid") if score.people_valid else None
    critic = scorers.critic(policy)
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    labeller = config.labeller(labelling, target_list, corpus.own_relations)
    probe, not_measured = _probe(config, corpus, chosen, start, plausibility)
    asked = prompts(probe.targets, list(probe.relations.items()), probe.events)
    trained_on = corpus.triples.filter("valid", split="train") if config.train else corpus.triples.clear()
    unlifted = [] if plausibility is None or probe.lifted else [NO_LIFT]
    own = corpus.own_relations
    content = as_parquet(corpus.triples) + as_parquet(probe.targets) + target_list.content
    about = {
        "seed": config.seed,
        "policy": policy.name,
        "data": data.name,
        "model": config.model.name,
        "fingerprint": digest_of(content + digest_of_relations(own)),
    }
    plan = Plan(
        policy=policy,
        corpus=corpus,
        target_list=target_list,
        roles=scorers.roles,
        scorers=scorers.of_roles,
        extras=scorers.extras,
        labeller=labeller,
        critic=critic,
        probe=probe,
        search=search,
        devices=devices,
        plausibility=plausibility,
        people=people,
        measurement=RunMeasurement(
            targets=probe.targets,
            scorers=list(scorers.roles),
            extras=[scorer.name for scorer in scorers.extras],
            target_list=target_list,
            intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
            empty_targets=config.measure.empty_targets,
        ),
        start=start,
        trains=bool(config.train),
        settings=settings,
        where=where,
        about=about | ({"held_out": corpus.held_out.triples} if corpus.held_out else {}),
        notices=[
            *corpus.notices,
            *(not_neutral(own, scorers.of_roles, labeller.cache) if own else []),
            *not_measured,
            *base_model.cut_notices(start, asked, trained_on),
            *unlifted,
        ],
        shown=config.shown_targets(probe.targets),
        origin=described,
    )
    plan.notices.extend([*same_sources(plan.fingerprints), *of_critic(critic, people)])
    return plan


def _search(config: Config, policy: Policy) -> dict[str, Any]:
    """The settings of the search for tails, with as many beams as the policy chooses among."""
    probe, choice = config.probe, choice_of(policy)
    check_search(probe.beams, probe.top, probe.precision)
    beams, top = probe.beams, probe.top
    if choice is not None and choice.candidates < top:
        raise MitigateError(
            f"policy.candidates={choice.candidates} must be at least probe.top={top}: the kept tails are chosen "
            "from them"
        )
    if choice is not None:
        beams = top = choice.candidates
    return {"beams": beams, "top": top, "max_length": probe.max_length, "precision": probe.precision}


def _start(config: Config, policy: Policy, corpus: Corpus, settings: Settings, where: Mapping[str, Any]) -> Start:
    """The model, checked: it can be trained and probed with these settings."""
    train = bool(config.train)
    if train and settings.keep == "best" and corpus.triples.filter("valid", split="dev").is_empty():
        raise MitigateError(
            "trainer.keep=best needs dev triples, and the data has none; set trainer.keep=last, or give triples of "
            "split dev"
        )
    model_spec.check_trained(config.model, train, policy)
    start = model_spec.find_start(config.model, train, corpus.further, comet=corpus.comet)
    if train:
        check_training(start, settings, **where)
    if train and policy.tags() is not None and start.options.get("lora"):
        raise MitigateError(
            f"policy={policy.name} adds tokens to the vocabulary, which adapters do not train; set model.lora.rank=0"
        )
    if needs_of(policy) == "contrast" and (policy.tags() if train else start.regimen.tags) is None:
        raise MitigateError(
            f"policy={policy.name} needs a generator with control tokens: set policy=then "
            "policy@policy.first=tagged policy@policy.second=contrast, or train=false model.base=RUN/model of a run "
            "with policy=tagged"
        )
    base_model.check_length(start, config.probe.max_length)
    base_model.check_distinct_relations(start)
    return start


def _probe(
    config: Config, corpus: Corpus, chosen: pl.DataFrame, start: Start, plausibility: Scorer | None
) -> tuple[Probe, list[str]]:
    """The prompts, and sentences on what is not measured."""
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    relations = {relation.name: start.phrases[relation.name] for relation in corpus.relations}
    names = list(relations)
    events = event_heads(targets, names, target_list) if config.data.events else None
    trained_on = corpus.triples.filter("valid")  # or predicted
    asked = prompts(targets, list(relations.items()), events)
    heads = pl.concat([rows.select("head", "relation") for rows in (trained_on, asked)])
    base_model.check_heads(start, heads, config.probe.max_length)
    published, not_measured = _published(config, corpus.triples, targets, target_list, names)
    in_events = set() if events is None else set(events["relation"])
    lifted = [] if plausibility is None else [name for name in names if name not in in_events]
    if not corpus.comet and isinstance(plausibility, TrainedOnRelations):
        lifted = [name for name in lifted if name in plausibility.relations]
    probe = Probe(
        targets=targets,
        relations=relations,
        events=events,
        held_out_prompts=held_out_prompts(corpus.triples, target_list, names, config.probe.heads, HEADS_SEED),
        published=published,
        lifted=lifted,
        measures_lift=bool(lifted) and config.probe.heads > 0,
        top=config.probe.top,
        seed=HEADS_SEED,
    )
    return probe, not_measured


def _published(
    config: Config, corpus: pl.DataFrame, targets: pl.DataFrame, target_list: TargetList, relations: list[str]
) -> tuple[pl.DataFrame | None, list[str]]:
    """The published triples about targets that are to be predicted, or None and the reason."""
    path, reason = likelihood.published_file(config.probe.published, config.data.root)
    if path is None and config.probe.published is None:
        return None, []  # as configured; the page states this
    if path is not None:
        how = {"size": config.probe.published_triples, "seed": HEADS_SEED}
        rows = harms_triples(path, "skip").rows  # other lines are left out: the file is not the user's own
        found = likelihood.target_triples(rows, corpus, targets, relations, target_list, **how)
        if found.height:
            return found, []
        reason = f"{path} has no new ones"
    return None, [f"Perplexity on published triples about targets is not measured: {reason}."]


def _report(job: Job, plan: Plan, statements: Result, ledger: Result, training: Result) -> Result:
    """Write the page, its tables and pictures, and the card. A run of policy none or of the control that finishes later
    is a new input of this stage, so the page is written again."""
    limits = [] if plan.trains else [AS_IT_IS]
    if choice := choice_of(plan.policy):
        limits = [DECODED.format(type(choice).__name__)]
    data = plan.origin["data"]
    facts = {
        "data": reporting.source_of({"name": plan.about["data"], **data}),
        "data fingerprint": plan.fingerprint,
        **origin_facts(plan.start),
        **plan.corpus.facts,
        **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers},
    }
    options = plan.start.options
    model = {
        **plan.origin["model"],
        "seq2seq": plan.start.code == Seq2Seq.load,
        "chat": options.get("prompt") == "chat",
        "adapter": options.get("lora", {}).get("save") == "adapter",
    }

    def using(work: Any) -> dict[str, Any]:
        trained_by = {name: NO_DEV if value is None else value for name, value in training.facts().items()}
        about = reporting.about(job, facts | {"training": trained_by})
        return {"folder": work.folder, "needs": job.needs, **about}

    return job.stage(
        "report",
        page.write_report,
        job.results["results"],
        job.results["metrics"],
        ledger,
        statements,
        plan.measurement,
        relations=list(plan.probe.relations),
        chosen=plan.shown,
        scorers=plan.roles,
        data=data,
        model=model if plan.trains else None,
        prompt=_prompt(plan),
        also=[*limits, *plan.notices],
        beside=find_beside(job.folder.parent, job.settings, plan.fingerprint),
        after=[training, job.folder.name],
        using=using,
    )


def _prompt(plan: Plan) -> str:
    """A prompt of a head and a relation, in the form that the model was trained on."""
    probe, form = plan.probe, plan.start.options.get("prompt")
    relation = "CapableOf" if "CapableOf" in probe.relations else next(iter(probe.relations))
    target = probe.targets["target"][0]
    events = [] if probe.events is None else probe.events.filter(target=target, relation=relation)["head"].to_list()
    tags = plan.policy.tags(plan.target_list) if plan.trains else plan.start.regimen.tags
    (head,) = tagged([[*events, target][0]], tags)
    text = f"{head} {probe.relations[relation]}"
    if form == "chat":
        return chat_prompt(load_tokenizer(plan.start.folder), text)
    return f"{text} [GEN]" if form == "gen" else text


def uploads(config: Config) -> list[str]:
    """The uploads to W&B besides metrics, in words."""
    texts = "statements and the ledger" if may_record_texts(config) else "no texts"
    return ["charts", "plots", texts, *["the generator"] * bool(config.tracking.model and config.train)]


def record(job: Job, plan: Plan, report: Mapping[str, Any], statements: Result) -> None:
    """Record the results in W&B, and print the verdict and its cost, the headlines or with verbose=true all figures,
    and the place of the page."""
    results, policy, data = job.figures, plan.policy.name, plan.origin["data"]
    others = find_beside(job.folder.parent, job.settings, plan.fingerprint)
    baseline = [others["none"].metrics] if "none" in others else []
    reporting.record_metrics(job, results, *baseline, also={"verdict": report["verdict"]})
    pairs: list[Mapping[str, Any]] = [*baseline, results]
    reporting.record_charts(job, beside({f"{run['policy']}, seed {run['seed']}": run for run in pairs}))
    labels = [column for scorer in plan.scorers for column in label_columns(scorer.name, "paper")]
    reporting.record_statements(job, statements.table().select(*RECORDED_COLUMNS, *labels))
    reporting.record_plots(job)
    origin = {"licence": data["licence"], "attribution": data["attribution"], "policy": policy}
    if job.records_texts:
        job.tracking.artifact(f"ledger-{job.folder.name}", "dataset", job.folder / "ledger.parquet", origin)
    if job.records_model and plan.trains:
        licence = cards.licence_of(data["licence"], plan.origin["model"]["licence"])
        about = origin | {"licence": licence, "metrics": results.flat}
        job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", about)
    reporting.say_verdict(report["verdict"], report["cost"])
    if not job.brief:
        say("\n" + page.side_by_side({policy: results}))
    elif not job.sweeps:  # a sweep ends with the figures of all its runs
        runs = {name: Results.of_run(run) for name, run in others.items()}
        say(page.console({**runs, policy: results}, list(plan.roles), policy))
    if job.brief:
        say_notes(report["untrained"])  # the figures cannot be read without them
    job.say_page_notes(report["notices"])
    say(f"  report      {job.folder / 'report.html'}")
