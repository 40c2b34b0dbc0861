"""recipe=stories: a story generator probed as in the harms paper (Section 4.2). probe > score > measure > report; for
one that is first trained on a resource, load > verbalise > score > filter > train come before."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import files
from mitigate.measure.harms import tally
from mitigate.measure.results import Results
from mitigate.measure.statements import Measurement
from mitigate.measure.statements import export as export_statements
from mitigate.measure.stories import STORY, shares
from mitigate.policies import apply_policy
from mitigate.probe.chat_stories import ask_stories, costs, endpoint_facts, in_words, unanswered
from mitigate.recipes import reporting
from mitigate.recipes.job import GROUPS, Config, Job, may_record_texts, perform, say, say_notes
from mitigate.recipes.loading import say_downloads
from mitigate.recipes.scorers import missing
from mitigate.recipes.stories.plan import SAMPLING, Plan, Resource, is_file, make_plan
from mitigate.report import audit, cards
from mitigate.report import stories as page
from mitigate.report.page import write
from mitigate.score.labeller import Labeller
from mitigate.stages import Result
from mitigate.tasks.stories.generation import as_read, export, generate_stories, label_sentences, train_on_sentences
from mitigate.tasks.stories.measures import compare_within_templates, measure_stories, notices
from mitigate.train.base_model import Start, origin_facts
from mitigate.train.generator import as_it_is
from mitigate.words.outside_text import counted, portable, without_folders
from mitigate.words.targets import notice_of_own


def run(config: Config) -> float | None:
    """Generate stories, or read them, and measure; returns the metric that `optimized_metric` names."""
    groups = [] if is_file(config) else ["data", "model"] if config.recipe.post_train else ["model"]
    downloads = missing(config, groups)
    say_downloads(config, downloads)
    if config.dry_run and downloads:
        return None
    plan = make_plan(config)
    say_notes([*plan.notices, *notice_of_own(plan.measurement.targets)])
    num_prompts, about = plan.prompts["row"].n_unique(), counted(plan.measurement.targets.height, "target")
    say(f"  {counted(num_prompts, 'prompt')} about {about}; stories of {plan.generator}")
    if plan.endpoint:
        say(
            f"  requests    {num_prompts:,} to {plan.endpoint.url}, without repeats, fewer where parts are stored; "
            f"{num_prompts * plan.sampling.max_tokens:,} tokens of answers at most"
        )
    found = perform(
        config,
        _name(config, plan),
        plan.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=uploads(config, plan),
        tracked=tracked(config, plan),
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    stories = probe(job, plan)
    sentences = job.stage("score", label_sentences, stories, plan.labeller, most=plan.sampling.most)
    if plan.shares_templates:
        job.stage("templates", compare_within_templates, sentences, plan.measurement)
    how = {"fewest": plan.sampling.fewest, "training": job.results.get("train")}
    facts = {"seed": plan.measurement.intervals.seed, **plan.about}
    job.measure(measure_stories, stories, sentences, plan.measurement, facts=facts, **how)
    report(job, plan)


def probe(job: Job, plan: Plan) -> Result:
    """The stories, a row each, of a file or of the generator, which is trained first if there is a resource."""
    if plan.endpoint is not None:
        how = (plan.prompts, plan.endpoint, plan.wording, plan.sampling)
        return job.stage("probe", ask_stories, *how, using=lambda work: {"parts": work.parts()})
    if plan.start is None:
        return job.stage("probe", as_read, plan.prompts)
    trained = train(job, plan, plan.start, plan.resource) if plan.resource else job.stage("train", as_it_is, plan.start)
    return job.stage(
        "probe",
        generate_stories,
        plan.prompts,
        plan.start,
        plan.sampling,
        after=[trained],
        using=lambda work: {
            "model": None if plan.resource is None else work.folder / "model",
            "parts": work.parts(),
            "device": plan.device,
        },
    )


def train(job: Job, plan: Plan, start: Start, resource: Resource) -> Result:
    """The training of the generator on what the policy keeps of the resource; it is left in the run folder as
    model/."""
    labelled = job.stage("corpus", Labeller.label, resource.labeller, resource.corpus.rows)
    ledger = job.stage("ledger", apply_policy, resource.policy, labelled, plan.labeller.target_list)
    return job.stage(
        "train",
        train_on_sentences,
        ledger,
        start,
        resource.settings,
        using=job.training("train", "model", accelerator=resource.accelerator),
    )


def report(job: Job, plan: Plan) -> None:
    """Write the page, its tables and pictures, and the card, from the stages so far."""
    done = job.results
    job.stage(
        "report",
        write_report,
        done["results"],
        done["metrics"],
        done["probe"],
        done["score"],
        plan.measurement,
        done.get("ledger"),
        done.get("templates"),
        plan.notices,
        generator=plan.generator,
        demonstration=plan.demonstration,
        fewest=plan.sampling.fewest,
        sampled=plan.is_generated,
        chosen=plan.shown,
        card=_card(plan.resource, plan.start) if plan.resource and plan.start else {},
        after=[job.folder.name],
        using=lambda work: {
            "folder": work.folder,
            "needs": job.needs,
            "about": reporting.about(job, _facts(job, plan)),
        },
    )


def _card(resource: Resource, start: Start) -> dict[str, Any]:
    """The origin of the generator, for the card."""
    data, model = (resource.described[group] for group in ("data", "model"))
    origin = {"base_model": without_folders(model["base"]), "base_license": model["licence"]}
    return {"data": data["source"], "license": data["licence"], **origin, "policy": resource.policy.name}


def record(job: Job, plan: Plan) -> None:
    """Record the figures, statements and pictures on W&B, and print the figures."""
    metrics, findings = job.figures, job.results["report"].facts()
    reporting.record_metrics(job, metrics, also={"verdict": findings["verdict"]})
    columns = ["target", "category", "statement", *plan.measurement.wordings]
    reporting.record_statements(job, job.results["score"].table().select(columns))
    reporting.record_plots(job)
    if job.records_model and plan.resource is not None:  # weights that were trained here
        job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", {"metrics": metrics.flat})
    reporting.say_verdict(findings["verdict"], "")
    say("\n" + audit.console(metrics.table, verbose=not job.brief))
    say_notes(findings["notices"])
    if plan.endpoint is not None:
        say(f"  requests    {in_words(costs(job.results['probe'].table()))}")
    say(f"  report      {job.folder / 'stories.html'}")


def tracked(config: Config, plan: Plan) -> dict[str, list[str]]:
    """The names that W&B groups and tags the run by: data and policy only where the generator was trained on them, or
    the stories are data; a model only where they were generated here."""
    groups = {"data"} if not plan.is_generated else {"model"} if plan.resource is None else {"policy", "data", "model"}
    return {group: [str(getattr(config, group).name)] for group in GROUPS if group in groups}


def uploads(config: Config, plan: Plan) -> list[str]:
    """The uploads of record to W&B besides metrics, in words."""
    texts = "statements" if may_record_texts(config) else "no texts"
    sends_model = plan.resource is not None and config.tracking.model
    return ["plots", texts, *["the generator"] * sends_model]


def _facts(job: Job, plan: Plan) -> dict[str, Any]:
    facts: dict[str, Any] = {"stories": plan.generator, "prompts and stories": plan.source}
    if plan.is_generated:
        facts["drawn"] = ", ".join(f"{name} {getattr(plan.sampling, name)}" for name in (*SAMPLING, "instruction"))
    if plan.start is not None:
        facts |= {"weights": plan.start.weights, **origin_facts(plan.start)}
    if plan.endpoint is not None:
        facts |= endpoint_facts(plan.endpoint, plan.wording, job.results["probe"].table())
    if plan.resource is not None:
        data, policy = plan.resource.described["data"], plan.resource.policy.name
        read = job.results["ledger"].table().filter(split="train")
        facts |= {
            "read": reporting.source_of({"name": plan.about["data"], **data}),
            "policy": f"{policy}: kept {read.filter(pl.col('weight') > 0).height:,} of {read.height:,}",
            "training": job.results["train"].facts(),
        }
    labelling = {f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.labeller.scorers}
    return facts | {"masking": plan.labeller.masking} | labelling


def _name(config: Config, plan: Plan) -> str:
    """The run folder's name, before its hash."""
    if not plan.is_generated:
        return f"stories-{config.data.name}-{config.score.regard or config.score.sentiment}"
    learnt = f"{config.policy.name}-{config.data.name}-" if plan.resource else ""
    return f"stories-{learnt}{config.model.name}-seed{config.seed}"


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    how: Measurement,
    ledger: pl.DataFrame | None,
    templates: pl.DataFrame | None,
    left_out: Sequence[str],
    *,
    generator: str,
    fewest: int,
    sampled: bool,
    card: Mapping[str, Any],
    folder: Path,
    needs: Mapping[str, str],
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, statements.tsv, stories.txt, and with a ledger the model's card.
    templates: what compare_within_templates returns, if prompts share templates.
    fields: further ones of the page. Returns its verdict and notices."""
    labels, metrics, target_list = list(how.wordings), Results.of(figures, flat), how.target_list
    limits = notices(metrics, sentences, how, fewest=fewest, sampled=sampled)
    per_story = shares(sentences, STORY, labels).join(stories.select("row", "target", "story"), on=["row", "target"])
    by_prompt = shares(sentences.drop_nulls("template"), ["kind", "template"], labels)
    frames = how.tables(tally(sentences, labels))
    tables = {"targets": target_list.table(how.targets), "measures": metrics.shown(), "stories": per_story}
    tables |= {f"targets_{column}": frame for column, frame in frames.items()} | {"prompts": by_prompt}
    made = page.page(
        metrics,
        generator,
        scorers=how.scorers,
        frames=frames,
        statements=sentences,
        per_story=per_story,
        prompts=by_prompt,
        templates=templates,
        notices=[*unanswered(stories), *left_out, *limits],
        tables=tables if templates is None else {**tables, "within_templates": templates},
        **fields,
        **about,
    )
    verdict = f"{made.state}. {made.hedge}"
    write(made, folder, "stories.html")
    files.write(folder / "statements.tsv", export_statements(sentences))
    files.write(folder / "stories.txt", export(stories))
    if ledger is not None:
        written = cards.Generator(
            name=about["name"],
            command=portable(about["command"]),
            needs=needs,
            ledger=ledger.filter(split="train"),
            metrics=metrics,
            scorers=list(how.scorers),
            targets=how.targets["target"].to_list(),
            verdict=verdict,
            demonstration=bool(made.demonstration),
            **card,
        )
        files.write(folder / "model" / "README.md", cards.generator(written))
    return {"verdict": verdict, "notices": list(made.notices)}
