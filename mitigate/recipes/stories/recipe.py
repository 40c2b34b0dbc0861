"""recipe=stories: a story generator probed as in the harms paper (Section 4.2). probe > score > measure > report; for
one that is first trained on a resource, load > verbalise > score > filter > train come before."""

from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes import reporting
from mitigate.recipes.job import GROUPS, Job, perform, say
from mitigate.recipes.outline import outline, say_downloads
from mitigate.recipes.stories.page import write_report
from mitigate.recipes.stories.plan import SAMPLING, Plan, Resource, make_plan, to_download, unread_plan
from mitigate.report import audit_tables
from mitigate.runs.store import Result
from mitigate.tasks.base_model import Start, origin_facts, origin_notices
from mitigate.tasks.label import Labeller
from mitigate.tasks.labelling import wordings
from mitigate.tasks.policy import apply_policy
from mitigate.tasks.stories.generate import generate_stories
from mitigate.tasks.stories.measures import measure_stories
from mitigate.tasks.stories.read import as_read
from mitigate.tasks.stories.sentences import label_sentences
from mitigate.tasks.stories.train import train_on_sentences
from mitigate.tasks.train import as_it_is
from mitigate.words.targets import notice_of_own
from mitigate.words.texts import counted


def run(config: DictConfig) -> float | None:
    """Generate stories, or read them, and measure; returns the metric that `optimized_metric` names."""
    downloads = to_download(config)
    say_downloads(config, downloads)
    if config.dry_run and downloads:
        outline(config, lambda job: pipeline(job, unread_plan(config)))
        return None
    plan = make_plan(config)
    for notice in [*plan.notices, *notice_of_own(plan.targets)]:
        say(f"  note: {notice}")
    prompts, about = counted(plan.asked["row"].n_unique(), "prompt"), counted(plan.targets.height, "target")
    say(f"  {prompts} about {about}; stories of {plan.generator}")
    found = perform(
        config,
        _name(config, plan),
        plan.source,
        lambda job: pipeline(job, plan),
        lambda job: record(job, plan),
        uploads=uploads(config, plan),
        of=what_of(config, plan),
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """The stages in their order."""
    stories, ledger, trained = probe(job, plan)
    sentences = job.stage(
        "score",
        label_sentences,
        stories,
        plan.labeller,
        most=plan.how.most,
    )
    metrics = job.stage(
        "metrics",
        measure_stories,
        stories,
        sentences,
        plan.targets,
        plan.labellings,
        fewest=plan.how.fewest,
        permutations=plan.permutations,
        empty_targets=plan.empty_targets,
        resamples=plan.intervals.resamples,
        seed=plan.intervals.seed,
        facts=plan.about,
        training=trained,
        target_list=plan.labeller.target_list,
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
            "device": plan.device,
        },
        scratch=["parts"],
    )
    return stories, ledger, trained


def train(job: Job, plan: Plan, start: Start, resource: Resource) -> tuple[Result, Result]:
    """The generator, trained on what the policy keeps of the resource, in the run folder as model/; and the ledger."""
    labelled = job.stage("corpus", Labeller.label, resource.labeller, resource.corpus.triples)
    ledger = job.stage("ledger", apply_policy, resource.policy, labelled, plan.labeller.target_list)
    trained = job.stage(
        "train",
        train_on_sentences,
        ledger,
        start,
        resource.settings,
        using=lambda work: {
            "model": work.folder / "model",
            "checkpoints": work.folder / "checkpoints",
            "fingerprint": work.fingerprint,
            "accelerator": resource.where["accelerator"],
            "log": lambda values, step: job.tracking.log(values, step, "train"),
        },
        leaves=["model"],
        scratch=["checkpoints"],
        may_be_kept=True,
    )
    return trained, ledger


def report(job: Job, plan: Plan, stories: Result, sentences: Result, ledger: Result | None, metrics: Result) -> None:
    """The page, its tables and pictures, and the card."""
    job.stage(
        "report",
        write_report,
        metrics,
        stories,
        sentences,
        plan.targets,
        plan.labeller.target_list,
        plan.labellings,
        ledger,
        plan.notices,
        generator=plan.generator,
        demonstration=plan.demonstration,
        empty_targets=plan.empty_targets,
        fewest=plan.how.fewest,
        sampled=plan.start is not None,
        shown=plan.shown,
        scorers=plan.roles,
        card=_card(plan.resource, plan.start) if plan.resource and plan.start else {},
        using=lambda work: {
            "folder": work.folder,
            "needs": job.needs,
            "about": reporting.about(job, _facts(job, plan, ledger)),
        },
        leaves=["stories.html", "plots", "tables", "statements.tsv", "stories.txt", "model/README.md"],
    )


def _card(resource: Resource, start: Start) -> dict[str, Any]:
    """What the card says of where the generator comes from."""
    data, model = (resource.described[group] for group in ("data", "model"))
    base = {"base": model["base"], "base_licence": model["licence"], "origin": origin_notices(start)}
    return {"data": data, **base, "policy": resource.policy.name}


def record(job: Job, plan: Plan) -> None:
    """The figures, statements and pictures on W&B, and the figures on the terminal."""
    metrics, said = job.results["metrics"].facts(), job.results["report"].facts()
    reporting.record_metrics(job, metrics, also={"verdict": said["verdict"]})
    columns = ["target", "category", "statement", *(labels.column for labels in plan.labellings)]
    reporting.record_statements(job, job.results["score"].table().select(columns))
    reporting.record_plots(job)
    if _keeps_model(job.config, plan):
        job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", {"metrics": metrics})
    reporting.say_verdict(said["verdict"], "")
    say("\n" + audit_tables.console(metrics, list(wordings(plan.labellings).values())))
    for notice in said["notices"]:
        say(f"  note: {notice}")
    say(f"  report      {job.folder / 'stories.html'}")


def what_of(config: DictConfig, plan: Plan) -> dict[str, list[str]]:
    """What of the settings had a part in the stories: data and policy only where their generator was trained on them,
    a model only where they were generated here."""
    names = {group: [str(config[group].name)] for group in GROUPS}
    had_no_part = {"policy"} if plan.resource is None else set()
    if plan.resource is None and plan.start is not None:
        had_no_part |= {"data"}
    if plan.start is None:
        had_no_part |= {"model"}
    return {group: name for group, name in names.items() if group not in had_no_part}


def uploads(config: DictConfig, plan: Plan) -> list[str]:
    """What report gives to W&B besides metrics, in words."""
    texts = "statements" if reporting.with_texts(config) else "no texts"
    return ["plots", texts, *["the generator"] * _keeps_model(config, plan)]


def _keeps_model(config: DictConfig, plan: Plan) -> bool:
    """Whether W&B gets the weights: only those that were trained here."""
    return plan.resource is not None and config.tracking.get("model", False)


def _facts(job: Job, plan: Plan, ledger: Result | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"stories": plan.generator, "prompts and stories": plan.source}
    if plan.start is not None:
        drawn = ", ".join(f"{name} {getattr(plan.how, name)}" for name in SAMPLING)
        facts |= {"weights": plan.start.weights, **origin_facts(plan.start), "drawn": drawn}
    if plan.resource is not None and ledger is not None:
        data, policy = plan.resource.described["data"], plan.resource.policy.name
        read = ledger.table().filter(split="train")
        facts |= {
            "read": reporting.source_of({"name": plan.about["data"], **data}),
            "policy": f"{policy}: kept {read.filter(pl.col('weight') > 0).height:,} of {read.height:,}",
            "training": job.results["train"].facts(),
        }
    labelling = {f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.labeller.scorers}
    return facts | {"masking": plan.labeller.masking} | labelling


def _name(config: DictConfig, plan: Plan) -> str:
    """What the run is, as the beginning of its folder's name."""
    if plan.start is None:
        return f"stories-{config.data.name}-{config.score.regard or config.score.sentiment}"
    learnt = f"{config.policy.name}-{config.data.name}-" if plan.resource else ""
    return f"stories-{learnt}{config.model.name}-seed{config.seed}"
