"""The main job: label triples, filter them by a policy, retrain a generator, probe it and measure its statements.

`run` is the whole job in its order; each stage writes NAME.parquet or NAME.json into the run folder. `make_plan` reads
and checks everything before the first stage, so that faults of settings and input appear at once and not after an hour
of training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate import verbalise
from mitigate.errors import MitigateError, counted
from mitigate.files import digest_of
from mitigate.finished import find_beside, source_of
from mitigate.load.corpus import Corpus, corpus_of, digest_of_relations
from mitigate.measure.harms import Measurement, wordings
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.quality import lift_table
from mitigate.measure.results import Results
from mitigate.measure.run import measure_run, same_ratings
from mitigate.models.hf import Seq2Seq, chat_prompt, load_tokenizer
from mitigate.models.tail_prompts import tagged
from mitigate.policies import Policy, apply_policy, check_relations, choice_of, needs_of
from mitigate.probe.beams import (
    check_search,
    event_heads,
    find_device,
    held_out_likelihood,
    held_out_prompts,
    label_candidates,
    probe_generator,
    probe_heads,
    with_contrast,
)
from mitigate.recipes.config import Config, Scorers, build, check_trained, find_start
from mitigate.recipes.job import Job, open_job, say, say_notes, say_verdict
from mitigate.report import cards
from mitigate.report import mitigate as page
from mitigate.report.table import as_text
from mitigate.score.labeller import Labeller
from mitigate.score.plausibility import with_validity
from mitigate.stages import Result, Work, as_parquet
from mitigate.train import base_model, launch
from mitigate.train.base_model import Start, origin_facts
from mitigate.train.comet import Settings
from mitigate.train.generator import as_it_is, check_training, train_generator, trained
from mitigate.triples import Scorer, label_columns
from mitigate.words.relations import with_own
from mitigate.words.targets import TargetList, choose_targets, list_of, notice_of_own

HEADS_SEED = 1  # which heads, and which other heads their tails are paired with: the same in runs of any seed
RECORDED_COLUMNS = ["target", "category", "relation", "tail", "rank"]  # and each scorer's labels and strengths
NO_DEV = "– (no dev triples)"
DECODED = "The policy acts when tails are generated ({}): `recipe=ask` applies it, the generator in model/ does not."


def run(config: Config) -> float | None:
    """Filter by a policy, retrain, probe and measure; returns the metric that `optimized_metric` names."""
    if config.data.demonstration:
        say("Demonstration on a small corpus written for it: its results say nothing about the world.")
    plan = make_plan(config, Scorers(config.score))
    policy, labeller, top = plan.policy, plan.labeller, config.probe.top
    chooses, by_contrast = choice_of(policy) is not None, needs_of(policy) == "contrast"
    on_device: dict[str, Any] = {"device": plan.device}
    with_cache: dict[str, Any] = {"cache": labeller.cache}
    counts = counted(plan.corpus.triples.height, "triple"), counted(plan.targets.height, "target")
    about = f"policy {policy.name}, data {config.data.name}, model {config.model.name}, seed {config.seed}"
    say(f"{about}; {counts[0]}, {counts[1]}")
    say_notes([*plan.notices, *notice_of_own(plan.targets)])
    name = "-".join([config.recipe.name, policy.name, config.data.name, config.model.name, f"seed{config.seed}"])
    named: dict[str, Scorer | None] = {scorer.name: scorer for scorer in (*labeller.scorers, *plan.extras)}
    named |= {"plausibility": plan.plausibility, "people_valid": plan.people, "critic": plan.critic}
    fingerprints = {name: found.fingerprint for name, found in named.items() if found is not None}
    facts = {"scorers": fingerprints, **origin_facts(plan.start)}
    with open_job(config, name, plan.about["fingerprint"], facts=facts) as job:
        labelled = job.stage("score", Labeller.label, labeller, plan.corpus.triples)
        ledger = job.stage("ledger", apply_policy, policy, labelled, plan.target_list)

        if plan.trains:
            tags, using = policy.tags(plan.target_list), job.training("train", "model", where=plan.where)
            more = {} if tags is None else {"tags": tags}
            training = job.stage("train", train_generator, ledger, plan.start, plan.settings, **more, using=using)
            generator = trained(plan.start, job.folder / "model", training.digest)
        else:
            training, generator = job.stage("train", as_it_is, plan.start), plan.start

        asked = {"targets": plan.targets, "phrases": plan.relations, "heads": plan.events, **plan.search}

        def in_parts(work: Work) -> dict[str, Any]:
            return {"parts": work.parts(), "device": plan.device}

        tails = job.stage("probe", probe_generator, generator, **asked, using=in_parts)
        if by_contrast:
            tails = job.stage("contrast", with_contrast, tails, generator, using=on_device)
        if chooses:
            candidates = job.stage("candidates", label_candidates, tails, labeller, plan.critic)
            tails = job.stage("rerank", policy.choose, candidates, top)
        heads = None  # tails of held-out heads, for swap lift alone
        if plan.lifted and config.probe.heads:
            heads = job.stage("heads", probe_heads, generator, plan.held_out_prompts, **plan.search, using=on_device)
            if by_contrast:
                heads = job.stage("heads_contrast", with_contrast, heads, generator, using=on_device)
            if chooses:
                candidates = job.stage("heads_candidates", label_candidates, heads, labeller, plan.critic)
                heads = job.stage("heads_rerank", policy.choose, candidates, top)

        assessing = labeller.by([*plan.scorers, *plan.extras])
        statements = job.stage("statements", Labeller.label, assessing, tails)
        if plan.plausibility or plan.people:
            by = (plan.plausibility, plan.people, plan.target_list)
            statements = job.stage("validity", with_validity, statements, *by, using=with_cache)
        lifts = None
        if heads is not None:
            of = (statements, heads, labelled, plan.targets, plan.lifted, plan.held_out_prompts, plan.plausibility)
            how = {"scorers": list(plan.roles), "top": top, "seed": HEADS_SEED}
            lifts = job.stage("lift", lift_table, *of, **how, using=with_cache)
        of_held_out = job.stage("likelihood", held_out_likelihood, generator, labelled, using=on_device)

        tables = (ledger, statements, of_held_out, lifts)
        how = {"scorers": list(plan.roles), "training": training}
        job.measure(measure_run, *tables, plan.measurement, **how, facts=plan.about)
        report = _report(job, plan, statements, ledger, training)
        if job.is_new():
            record(job, plan, report.facts(), statements)
    return None if config.dry_run else job.results["metrics"].facts().get(config.optimized_metric)


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
    targets: pl.DataFrame  # (target, category)
    relations: dict[str, str]  # with the wording of each in prompts
    events: pl.DataFrame | None  # (target, relation, head): the events of targets; None: targets are the heads
    held_out_prompts: pl.DataFrame  # (head, relation) of held-out triples that are not about targets, for quality alone
    lifted: list[str]  # the relations that swap lift can be measured on
    search: dict[str, Any]  # for tails: beams, top, max_length, precision, as probe_generator takes them
    device: str  # that the generator searches on
    plausibility: Scorer | None  # classifies generated triples, if configured
    people: Scorer | None  # classifies them by people's ratings, if configured
    measurement: Measurement
    start: Start  # the model that is trained, or probed as it is
    trains: bool
    settings: Settings  # of a training
    where: Mapping[str, Any]  # accelerator, devices and strategy of a training
    about: dict[str, Any]  # seed, policy, data, model and fingerprint, as metrics.json begins
    notices: list[str]  # of what was read, and of limits
    shown: list[str]  # targets whose bars the page draws
    origin: dict[str, dict[str, Any]]  # data and model, for the page and the card


def make_plan(config: Config, scorers: Scorers) -> Plan:
    """Everything the stages need, with all faults of settings and input raised here."""
    if not scorers.roles:
        raise MitigateError("score.sentiment and score.regard are both null; set one, such as score.sentiment=vader")
    policy, described = scorers.policy(config.policy), config.described()
    verbalise.check(config.measure.masking)
    settings, where = config.training()
    launch.check(settings, **where)
    probe, choice = config.probe, choice_of(policy)
    check_search(probe.beams, probe.top)
    if choice is not None and choice.candidates < probe.top:
        raise MitigateError(
            f"policy.candidates={choice.candidates} must be at least probe.top={probe.top}: the kept tails are chosen "
            "from them"
        )
    beams, top = (probe.beams, probe.top) if choice is None else (choice.candidates, choice.candidates)
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

    targets, names = chosen.select("target", "category"), [relation.name for relation in corpus.relations]
    events = event_heads(targets, names, target_list) if data.events else None
    in_events = set() if events is None else set(events["relation"])
    lifted = [] if plausibility is None else [name for name in names if name not in in_events]
    if not corpus.comet:
        lifted = [name for name in lifted if name in getattr(plausibility, "relations", lifted)]
    content = as_parquet(corpus.triples) + as_parquet(targets) + target_list.digest.encode()
    about = {
        "seed": config.seed,
        "policy": policy.name,
        "data": data.name,
        "model": config.model.name,
        "fingerprint": digest_of(content + digest_of_relations(corpus.own_relations)),
    }
    return Plan(
        policy=policy,
        corpus=corpus,
        target_list=target_list,
        roles=scorers.roles,
        scorers=scorers.of_roles,
        extras=scorers.extras,
        labeller=labeller,
        critic=critic,
        targets=targets,
        relations={name: start.phrases[name] for name in names},
        events=events,
        held_out_prompts=held_out_prompts(corpus.triples, target_list, names, config.probe.heads, HEADS_SEED),
        lifted=lifted,
        search={"beams": beams, "top": top, "max_length": probe.max_length, "precision": probe.precision},
        device=find_device(config.probe.device),
        plausibility=plausibility,
        people=people,
        measurement=Measurement(
            targets=targets,
            wordings=wordings([*scorers.roles, *(scorer.name for scorer in scorers.extras)]),
            target_list=target_list,
            intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
            empty_targets=config.measure.empty_targets,
        ),
        start=start,
        trains=bool(config.train),
        settings=settings,
        where=where,
        about=about | ({"held_out": corpus.triples.filter(split="test").height} if corpus.held_out else {}),
        notices=[*corpus.notices, *same_ratings(critic, people)],
        shown=config.shown_targets(targets),
        origin=described,
    )


def _start(config: Config, policy: Policy, corpus: Corpus, settings: Settings, where: Mapping[str, Any]) -> Start:
    """The model, checked: it can be trained and probed with these settings."""
    train = bool(config.train)
    check_trained(config.model, train, policy)
    start = find_start(config.model, train, corpus.further, comet=corpus.comet)
    if train:
        check_training(start, **where)
    if train and policy.tags() is not None and start.options.get("lora"):
        raise MitigateError(
            f"policy={policy.name} adds tokens to the vocabulary, which adapters do not train; set model.lora.rank=0"
        )
    if needs_of(policy) == "contrast" and (policy.tags() if train else start.prompt_format.tags) is None:
        raise MitigateError(
            f"policy={policy.name} needs a generator with control tokens: set policy=then "
            "policy@policy.first=tagged policy@policy.second=contrast, or train=false model.base=RUN/model of a run "
            "with policy=tagged"
        )
    base_model.check_distinct_relations(start)
    return start


def _report(job: Job, plan: Plan, statements: Result, ledger: Result, training: Result) -> Result:
    """Write the page, its tables and pictures, and the card. A run of policy none or of the control that finishes later
    is a new input of this stage, so the page is written again."""
    limits = [] if plan.trains else ["The model was not trained here: neither corpus nor policy affected it."]
    if choice := choice_of(plan.policy):
        limits = [DECODED.format(type(choice).__name__)]
    data = plan.origin["data"]
    facts = {
        "data": source_of({"name": plan.about["data"], **data}),
        "data fingerprint": plan.about["fingerprint"],
        **origin_facts(plan.start),
        **plan.corpus.facts,
        **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers},
    }
    options = plan.start.options
    model = plan.origin["model"] | {"seq2seq": plan.start.code == Seq2Seq.load, "chat": options.get("prompt") == "chat"}

    def using(work: Any) -> dict[str, Any]:
        trained_by = {name: NO_DEV if value is None else value for name, value in training.facts().items()}
        about = job.about(facts | {"training": trained_by})
        return {"folder": work.folder, **about}

    return job.stage(
        "report",
        page.write_report,
        job.results["results"],
        job.results["metrics"],
        ledger,
        statements,
        plan.measurement,
        relations=list(plan.relations),
        chosen=plan.shown,
        scorers=plan.roles,
        data=data,
        model=model if plan.trains else None,
        prompt=_prompt(plan),
        also=[*limits, *plan.notices],
        beside=find_beside(job.folder.parent, job.settings, plan.about["fingerprint"]),
        after=[training, job.folder.name],
        using=using,
    )


def _prompt(plan: Plan) -> str:
    """A prompt of a head and a relation, in the form that the model was trained on."""
    form = plan.start.options.get("prompt")
    relation = "CapableOf" if "CapableOf" in plan.relations else next(iter(plan.relations))
    target = plan.targets["target"][0]
    events = [] if plan.events is None else plan.events.filter(target=target, relation=relation)["head"].to_list()
    tags = plan.policy.tags(plan.target_list) if plan.trains else plan.start.prompt_format.tags
    (head,) = tagged([[*events, target][0]], tags)
    text = f"{head} {plan.relations[relation]}"
    if form == "chat":
        return chat_prompt(load_tokenizer(plan.start.folder), text)
    return f"{text} [GEN]" if form == "gen" else text


def record(job: Job, plan: Plan, report: Mapping[str, Any], statements: Result) -> None:
    """Record the results in W&B, and print the verdict and its cost, the headlines or with verbose=true all figures,
    and the place of the page."""
    results, policy, data = job.figures, plan.policy.name, plan.origin["data"]
    others = find_beside(job.folder.parent, job.settings, plan.about["fingerprint"])
    job.record_metrics(results, also={"verdict": report["verdict"]})
    labels = [column for scorer in plan.scorers for column in label_columns(scorer.name, "paper")]
    job.record_statements(statements.table().select(*RECORDED_COLUMNS, *labels))
    job.record_plots()
    origin = {"licence": data["licence"], "attribution": data["attribution"], "policy": policy}
    if job.records_texts:
        job.tracking.artifact(f"ledger-{job.folder.name}", "dataset", job.folder / "ledger.parquet", origin)
    if job.sends_model and plan.trains:
        licence = cards.licence_of(data["licence"], plan.origin["model"]["licence"])
        about = origin | {"licence": licence, "metrics": results.flat}
        job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", about)
    say_verdict(report["verdict"], report["cost"])
    if job.brief:
        runs = {name: Results.of_run(run) for name, run in others.items()}
        if table := page.comparison({**runs, policy: results}, list(plan.roles), policy):
            say(as_text(table, 110))
        say_notes(report["untrained"])  # the figures cannot be read without them
    else:
        say("\n" + page.every_figure(results))
    job.say_page_notes(report["notices"])
    say(f"  report      {job.folder / 'report.html'}")
