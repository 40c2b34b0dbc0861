"""The results of a finished run for readers: metrics.json, the page, plots and tables, the generator's card, and the
record in W&B."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from mitigate import files
from mitigate.errors import MitigateError
from mitigate.finished import FinishedRun, open_run
from mitigate.measure.quality import kept_by_target
from mitigate.measure.results import Results
from mitigate.measure.run import RunMeasurement, notices, unanswered, untrained_notices
from mitigate.measure.statements import long_texts
from mitigate.policies import choice_of
from mitigate.recipes import reporting
from mitigate.recipes.job import Config, Job, may_record_texts, say, say_notes
from mitigate.recipes.mitigate.plan import Plan
from mitigate.report import cards
from mitigate.report import mitigate as page
from mitigate.report.ledger import most_polarised, summary
from mitigate.report.page import Page, write
from mitigate.stages import Result
from mitigate.tasks.compare.run_groups import differing
from mitigate.tracking.charts import beside
from mitigate.train.base_model import origin_facts
from mitigate.triples import label_columns
from mitigate.words.outside_text import portable, without_folders
from models.hf import Seq2Seq, chat_prompt, load_tokenizer
from models.tail_prompts import tagged

RECORDED_COLUMNS = ["target", "category", "relation", "tail", "rank"]  # and each scorer's labels and strengths
BASELINE = "none"  # the policy
NO_DEV = "– (no dev triples)"
AS_IT_IS = "The model was not trained here: neither corpus nor policy affected it."
DECODED = (
    "The policy acts when tails are generated ({}). The folder model/ holds the generator without the "
    "policy; `recipe=ask` on this run applies the policy."
)


def report(job: Job, plan: Plan) -> None:
    """Write the page, its tables and pictures, and the card. A run of policy none or of the control that finishes later
    is a new input of this stage, so the page is written again."""
    done = job.results
    limits = [] if plan.trains else [AS_IT_IS]
    if choice := choice_of(plan.policy):
        limits = [DECODED.format(type(choice).__name__)]
    job.stage(
        "report",
        write_report,
        done["results"],
        done["metrics"],
        done["ledger"],
        _statements(job),
        plan.measurement,
        relations=list(plan.probe.relations),
        chosen=plan.shown,
        scorers=plan.roles,
        data=plan.origin["data"],
        model=_trained_model(plan) if plan.trains else None,
        prompt=_prompt(plan),
        also=[*limits, *plan.notices],
        beside=find_beside(job.folder.parent, job.settings, plan.data_fingerprint),
        after=[done["train"], job.folder.name],
        using=lambda work: {
            "folder": work.folder,
            "needs": job.needs,
            **reporting.about(job, _facts(plan, done["train"])),
        },
    )


def _statements(job: Job) -> Result:
    """The generated statements, with their validity where a classifier is configured."""
    return job.results.get("validity", job.results["statements"])


def record(job: Job, plan: Plan) -> None:
    """Record the results in W&B, and print the verdict and its cost, the headlines or with verbose=true all figures,
    and the place of the page."""
    results, found = job.figures, job.results["report"].facts()
    beside = find_beside(job.folder.parent, job.settings, plan.data_fingerprint)
    _upload(job, plan, results, found["verdict"], beside.get("none"))
    reporting.say_verdict(found["verdict"], found["cost"])
    if not job.brief:
        say("\n" + page.side_by_side({plan.policy.name: results}))
    elif not job.sweeps:  # a sweep ends with the figures of all its runs
        runs = {name: Results.of_run(run) for name, run in beside.items()}
        say(page.console({**runs, plan.policy.name: results}, list(plan.roles), plan.policy.name))
    if job.brief:
        say_notes(found["untrained"])  # the figures cannot be read without them
    job.say_page_notes(found["notices"])
    say(f"  report      {job.folder / 'report.html'}")


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    how: RunMeasurement,
    *,
    relations: Sequence[str],
    scorers: Mapping[str, str],
    chosen: Sequence[str],
    data: Mapping[str, Any],
    model: Mapping[str, Any] | None,
    prompt: str,
    also: Sequence[str],
    beside: Mapping[str, FinishedRun],
    folder: Path,
    needs: Mapping[str, str],
    **about: Any,
) -> dict[str, Any]:
    """Write the page, pictures and tables in the run folder, and for a model that was trained there the card.

    also: notices besides those that the figures call for; scorers: the configured scorers of the roles, by their names
    in tables; prompt: an example for the card; needs: the files of the command (arguments.inputs); about: further
    fields of Page. Returns the verdict with its cost, all notices, and those about untrained relations."""
    results, others = Results.of(figures, flat), {name: Results.of_run(run) for name, run in beside.items()}
    rows, frames, target_list = ledger.filter(split="train"), how.tables(statements), how.target_list
    untrained = untrained_notices(ledger, statements, how) if model else []
    shown = [
        *untrained,
        *also,
        *unanswered(statements, how.targets, relations),
        *notices(results, next(iter(frames.values())), target_list),
        *long_texts(pl.concat([rows["masked"], statements["masked"]])),
    ]
    found = page.verdict(results, others, list(scorers))
    tables = {"measures": results.shown(), "targets": target_list.table(how.targets)}
    tables |= {f"ledger_by_{by}": summary(rows, by) for by in ("relation", "target", "reason")}
    tables |= {"coverage": kept_by_target(rows), "ledger_most_polarised": most_polarised(rows, list(scorers))}
    made = page.page(
        results,
        found,
        others=others,
        scorers=list(scorers),
        frames=frames,
        statements=statements,
        ledger=rows,
        chosen=chosen,
        tables=tables,
        demonstration=data["demonstration"],
        notices=shown,
        links={f"Run of {name}": f"../{quote(run.folder.name)}/report.html" for name, run in beside.items()},
        **about,
    )
    write(made, folder)
    if model:
        card = _card_of(made, results, rows, list(scorers), data, model, how.targets["target"].to_list(), prompt, needs)
        files.write(folder / "model" / "README.md", cards.generator(card))
    return {"verdict": found.sentence, "cost": found.cost, "notices": shown, "untrained": untrained}


def _card_of(
    made: Page,
    results: Results,
    ledger: pl.DataFrame,
    scorers: Sequence[str],
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    targets: Sequence[str],
    prompt: str,
    needs: Mapping[str, str],
) -> cards.Generator:
    """The card of a trained model, in most parts as the page."""
    return cards.Generator(
        name=made.name,
        license=data["licence"],
        base_model=without_folders(str(model["base"])),
        base_license=model["licence"],
        data=data["source"],
        prompt=prompt,
        policy=str(results["policy"]),
        command=portable(made.command),
        needs=needs,
        demonstration=bool(made.demonstration),
        metrics=results,
        verdict=f"{made.state}. {made.hedge}",
        ledger=ledger,
        targets=targets,
        notices=made.notices,
        scorers=scorers,
        seq2seq=model["seq2seq"],
        adapter=model["adapter"],
        chat=model["chat"],
    )


def _trained_model(plan: Plan) -> dict[str, Any]:
    """The description of the model for the card."""
    options = plan.start.options
    kind = {"seq2seq": plan.start.code == Seq2Seq.load, "chat": options.get("prompt") == "chat"}
    return {**plan.origin["model"], **kind, "adapter": options.get("lora", {}).get("save") == "adapter"}


def _prompt(plan: Plan) -> str:
    """A prompt of a head and a relation, in the form that the model was trained on."""
    probe = plan.probe
    relation = "CapableOf" if "CapableOf" in probe.relations else next(iter(probe.relations))
    form = plan.start.options.get("prompt")
    target = probe.targets["target"][0]
    events = [] if probe.events is None else probe.events.filter(target=target, relation=relation)["head"].to_list()
    tags = plan.policy.tags(plan.target_list) if plan.trains else plan.start.regimen.tags
    (head,) = tagged([[*events, target][0]], tags)
    text = f"{head} {probe.relations[relation]}"
    if form == "chat":
        return chat_prompt(load_tokenizer(plan.start.folder), text)
    return f"{text} [GEN]" if form == "gen" else text


def _facts(plan: Plan, training: Result) -> dict[str, Any]:
    return {
        "data": reporting.source_of({"name": plan.about["data"], **plan.origin["data"]}),
        "data fingerprint": plan.data_fingerprint,
        **origin_facts(plan.start),
        **plan.corpus.facts,
        **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.scorers},
        "training": {name: NO_DEV if value is None else value for name, value in training.facts().items()},
    }


def uploads(config: Config) -> list[str]:
    """The uploads to W&B besides metrics, in words."""
    texts = "statements and the ledger" if may_record_texts(config) else "no texts"
    return ["charts", "plots", texts, *["the generator"] * bool(config.tracking.model and config.train)]


def _upload(job: Job, plan: Plan, metrics: Results, verdict: str, baseline: FinishedRun | None) -> None:
    """Record verdict, metrics beside the baseline's, statements, pictures, and artifacts with the licence of their
    origin."""
    tracking, data = job.tracking, plan.origin["data"]
    others = [baseline.metrics] if baseline else []
    reporting.record_metrics(job, metrics, *others, also={"verdict": verdict})
    runs = {f"{run['policy']}, seed {run['seed']}": run for run in (*others, metrics)}
    reporting.record_charts(job, beside(runs))
    labels = [column for scorer in plan.scorers for column in label_columns(scorer.name, "paper")]
    reporting.record_statements(job, _statements(job).table().select(*RECORDED_COLUMNS, *labels))
    reporting.record_plots(job)
    origin = {"licence": data["licence"], "attribution": data["attribution"], "policy": plan.policy.name}
    if job.records_texts:
        tracking.artifact(f"ledger-{job.folder.name}", "dataset", job.folder / "ledger.parquet", origin)
    if job.records_model and plan.trains:
        licence = cards.licence_of(data["licence"], plan.origin["model"]["licence"])
        about = origin | {"licence": licence, "metrics": metrics.flat}
        tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", about)


def find_beside(outputs: Path, settings: Mapping[str, Any], fingerprint: str) -> dict[str, FinishedRun]:
    """The latest finished runs of policy none and of the policy's control that differ from a run of the main job by
    their policy alone: same data, targets, seed and settings. By their policies' names; empty where the folder has no
    such run.

    settings: those of the run, as a plain dict. fingerprint: of its data and targets, as in its metrics."""
    mine = FinishedRun(outputs, str(settings["recipe"]["name"]), dict(settings), {}, {})
    found = {}
    for policy in (BASELINE, f"{mine.policy}-control"):
        name = f"{mine.recipe}-{policy}-{mine.text('data.name')}-{mine.text('model.name')}-seed{mine.seed}-*"
        finished = outputs.glob(f"{name}/manifest.json")
        for manifest in sorted(finished, key=lambda path: path.stat().st_mtime):
            try:
                other = open_run(manifest.parent, mine.recipe)
            except MitigateError:  # a damaged folder is not compared, and no reason to stop
                continue
            same = other.seed == mine.seed and other.metrics["fingerprint"] == fingerprint
            if same and mine.policy != other.policy == policy and not differing([other, mine]):
                found[policy] = other
    return found
