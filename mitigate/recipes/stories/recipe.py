"""recipe=stories: a story generator probed as in the harms paper (Section 4.2). probe > score > measure > report; for
one that is first trained on a resource, load > verbalise > score > filter > train come before."""

from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.probe.comet import find_devices
from mitigate.recipes import reporting
from mitigate.recipes.arguments import inputs
from mitigate.recipes.job import GROUPS, Job, call, command, perform, say
from mitigate.recipes.scorers import of_roles
from mitigate.recipes.start import training_settings
from mitigate.recipes.stories.page import write_report
from mitigate.recipes.stories.plan import SAMPLING, Plan, Resource, make_plan, to_download
from mitigate.recipes.targets import shown_targets
from mitigate.report import audit_tables
from mitigate.store import Result
from mitigate.targets import notice_of_own
from mitigate.tasks.label import label_statements
from mitigate.tasks.labelling import wordings
from mitigate.tasks.policy import apply_policy
from mitigate.tasks.start import Start, origin_facts, origin_notices
from mitigate.tasks.stories.generate import generate_stories
from mitigate.tasks.stories.measures import measure_stories
from mitigate.tasks.stories.read import as_read
from mitigate.tasks.stories.sentences import label_sentences
from mitigate.tasks.stories.train import train_on_sentences
from mitigate.tasks.train import as_it_is
from mitigate.texts import counted


def run(config: DictConfig) -> float | None:
    """Generate stories, or read them, and measure; returns the metric that `optimized_metric` names."""
    addresses = to_download(config)
    for address in addresses:
        say(f"  {'would be' if config.dry_run else 'to be'} downloaded: {address}")
    if config.dry_run and addresses:
        return None
    plan = make_plan(config)
    for notice in [*plan.notices, *notice_of_own(plan.targets)]:
        say(f"  note: {notice}")
    prompts, about = counted(plan.asked["row"].n_unique(), "prompt"), counted(plan.targets.height, "target")
    say(f"  {prompts} about {about}; stories of {plan.generator}")
    found = perform(
        config,
        _name(plan),
        plan.source,
        lambda job: pipeline(job, plan),
        lambda job: record(job, plan),
        uploads=uploads(plan),
        of=what_of(plan),
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order."""
    config = plan.config
    stories, ledger, trained = probe(job, plan)
    sentences = job.stage(
        "score",
        label_sentences,
        stories,
        plan.scorers,
        most=plan.how.most,
        masking=config.measure.masking,
        target_list=plan.target_list,
        using={"cache": plan.cache},
    )
    facts = {
        "data": config.data.name,
        "fingerprint": plan.source,
        "model": plan.generator,
        "policy": config.policy.name if plan.resource else None,
    }
    metrics = job.stage(
        "metrics",
        measure_stories,
        stories,
        sentences,
        plan.targets,
        plan.labellings,
        fewest=plan.how.fewest,
        permutations=config.recipe.permutations,
        empty_targets=config.measure.empty_targets,
        resamples=config.measure.resamples,
        seed=config.seed,
        facts=facts,
        training=trained,
        target_list=plan.target_list,
    )
    report(job, plan, stories, sentences, ledger, metrics)


def probe(job: Job, plan: Plan) -> tuple[Result, Result | None, Result | None]:
    """The stories, a row each, the ledger of what their generator was trained on, and its training."""
    if plan.start is None:
        return job.stage("probe", as_read, plan.asked), None, None
    if plan.resource is None:
        trained, ledger = job.stage("train", as_it_is, plan.start), None
    else:
        trained, ledger = train(job, plan, plan.start, plan.resource)
    stories = job.stage(
        "probe",
        generate_stories,
        plan.asked,
        plan.start,
        plan.how,
        after=[trained],
        using=lambda work: {
            "model": None if plan.resource is None else work.folder / "model",
            "parts": work.parts("parts"),
            "device": find_devices(plan.config.probe.device, 1)[0],
        },
        scratch=["parts"],
    )
    return stories, ledger, trained


def train(job: Job, plan: Plan, start: Start, resource: Resource) -> tuple[Result, Result]:
    """The generator, trained on what the policy keeps of the resource, in the run folder as model/; and the ledger."""
    labelled = job.stage(
        "corpus",
        label_statements,
        resource.corpus.triples,
        resource.scorers,
        masking=plan.config.measure.masking,
        target_list=plan.target_list,
        own_relations=resource.corpus.own_relations,
        using={"cache": plan.cache},
    )
    ledger = job.stage("ledger", apply_policy, resource.policy, labelled, plan.target_list)
    settings, where = training_settings(plan.config)
    trained = job.stage(
        "train",
        train_on_sentences,
        ledger,
        start,
        settings,
        using=lambda work: {
            "model": work.folder / "model",
            "checkpoints": work.folder / "checkpoints",
            "fingerprint": work.fingerprint,
            "accelerator": where["accelerator"],
            "log": lambda values, step: job.tracking.log(values, step, "train"),
        },
        leaves=["model"],
        scratch=["checkpoints"],
        may_be_kept=True,
    )
    return trained, ledger


def report(job: Job, plan: Plan, stories: Result, sentences: Result, ledger: Result | None, metrics: Result) -> None:
    """The page, its tables and pictures, and the card."""
    config = plan.config
    job.stage(
        "report",
        write_report,
        metrics,
        stories,
        sentences,
        plan.targets,
        plan.target_list,
        plan.labellings,
        ledger,
        plan.notices,
        generator=plan.generator,
        demonstration=plan.demonstration,
        empty_targets=config.measure.empty_targets,
        fewest=plan.how.fewest,
        sampled=plan.start is not None,
        shown=shown_targets(config, plan.targets),
        scorers=of_roles(config.score),
        card={
            "data": reporting.origin(config)["data"],
            "base": config.model.base,
            "origin": origin_notices(plan.start) if plan.start else [],
            "base_licence": reporting.origin(config)["model"]["licence"],
            "policy": config.policy.name,
        }
        if plan.resource
        else {},
        using=lambda work: {
            "folder": work.folder,
            "needs": inputs(call(config)["arguments"]),
            "about": {
                "command": command(config),
                "stages": reporting.stages(job),
                "facts": _facts(job, plan, ledger),
            },
        },
        leaves=["stories.html", "plots", "tables", "statements.tsv", "stories.txt", "model/README.md"],
    )


def record(job: Job, plan: Plan) -> None:
    """The figures, statements and pictures on W&B, and the figures on the terminal."""
    metrics, said = job.results["metrics"].facts(), job.results["report"].facts()
    reporting.record_metrics(job, metrics, also={"verdict": said["verdict"]})
    columns = ["target", "category", "statement", *(labels.column for labels in plan.labellings)]
    reporting.record_statements(job, job.results["score"].table().select(columns))
    reporting.record_plots(job)
    if _keeps_model(plan):
        job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", {"metrics": metrics})
    reporting.say_verdict(said["verdict"], "")
    say("\n" + audit_tables.console(metrics, list(wordings(plan.labellings).values())))
    for notice in said["notices"]:
        say(f"  note: {notice}")
    say(f"  report      {job.folder / 'stories.html'}")


def what_of(plan: Plan) -> dict[str, list[str]]:
    """What of the settings had a part in the stories: data and policy only where their generator was trained on them,
    a model only where they were generated here."""
    names = {group: [str(plan.config[group].name)] for group in GROUPS}
    had_no_part = {"policy"} if plan.resource is None else set()
    if plan.resource is None and plan.start is not None:
        had_no_part |= {"data"}
    if plan.start is None:
        had_no_part |= {"model"}
    return {group: name for group, name in names.items() if group not in had_no_part}


def uploads(plan: Plan) -> list[str]:
    """What report gives to W&B besides metrics, in words."""
    texts = "statements" if reporting.with_texts(plan.config) else "no texts"
    return ["plots", texts, *["the generator"] * _keeps_model(plan)]


def _keeps_model(plan: Plan) -> bool:
    """Whether W&B gets the weights: only those that were trained here."""
    return plan.resource is not None and plan.config.tracking.get("model", False)


def _facts(job: Job, plan: Plan, ledger: Result | None) -> dict[str, Any]:
    config, data = plan.config, plan.config.data
    facts: dict[str, Any] = {"stories": plan.generator, "prompts and stories": plan.source}
    if plan.start is not None:
        drawn = ", ".join(f"{name} {config.recipe[name]}" for name in SAMPLING)
        facts |= {"weights": plan.start.weights, **origin_facts(plan.start), "drawn": drawn}
    if ledger is not None:
        read = ledger.table().filter(split="train")
        facts |= {
            "read": reporting.source_of(data),
            "policy": f"{config.policy.name}: kept {read.filter(pl.col('weight') > 0).height:,} of {read.height:,}",
            "training": job.results["train"].facts(),
        }
    facts |= {"masking": config.measure.masking}
    return reporting.facts(job, facts | {f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers})


def _name(plan: Plan) -> str:
    """What the run is, as the beginning of its folder's name."""
    config = plan.config
    if plan.start is None:
        return f"stories-{config.data.name}-{config.score.regard or config.score.sentiment}"
    learnt = f"{config.policy.name}-{config.data.name}-" if plan.resource else ""
    return f"stories-{learnt}{config.model.name}-seed{config.seed}"
