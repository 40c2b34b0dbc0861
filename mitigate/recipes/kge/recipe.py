"""recipe=kge: bias in knowledge-graph embeddings. load > train > rank > measure > report."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.load.graph.trained_embeddings import TrainedEmbeddings
from mitigate.recipes import reporting
from mitigate.recipes.job import Job, folder_name, may_record_texts, perform, say, say_notes
from mitigate.recipes.kge.plan import Plan, make_plan
from mitigate.report import kge as page
from mitigate.report.html import save
from mitigate.report.kge import Results, both_ways, front_table, render
from mitigate.runs import files
from mitigate.runs.store import Result
from mitigate.tasks.kge.figures import correlations, join_null, measure_bias, profession_table
from mitigate.tasks.kge.graphs import Triples
from mitigate.tasks.kge.mitigation import CONTROL, MITIGATIONS, RelationalBias, change_vectors, changed_name
from mitigate.tasks.kge.predictions import compare_pairs, measure_leakage, parity_figures, predict_professions
from mitigate.tasks.kge.training import (
    change_scores,
    keep_embeddings,
    rank_test_triples,
    train_embeddings,
    train_on_permuted,
)


def run(config: DictConfig) -> float | None:
    """Train, measure and report; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    say_notes(plan.notices)
    question = plan.question
    (a, b), sizes = question.names, question.sizes
    say(f"  {a} ({sizes[0]:,} people) and {b} ({sizes[1]:,}); {question.professions.height:,} professions")
    found = perform(
        config,
        folder_name("kge", config.data.name, config.model.name, config.kge.sensitive.rsplit("/", 1)[-1]),
        [plan.source, plan.foreign] if plan.foreign else plan.source,
        partial(pipeline, plan=plan),
        partial(record, plan=plan),
        uploads=["plots", "professions" if may_record_texts(config) else "no texts"],
    )
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    question, seed = plan.question, plan.settings.seed
    names = [f"seed_{seed}" for seed in plan.seeds]
    trained = [
        train(job, plan, plan.triples, seed, f"train_{seed}", name)
        if plan.foreign is None
        else import_embeddings(job, plan, plan.foreign, name)
        for seed, name in zip(plan.seeds, names, strict=True)
    ]
    base = measure(job, plan, names, trained)
    pairs = job.stage(
        "pairs", compare_pairs, question, plan.pairs, names, seed, after=trained, using={"folder": job.folder}
    )
    mitigated = {}
    for name in plan.mitigations:
        changed, after = mitigate(job, plan, name, names, trained)
        variant = MITIGATIONS[name].variant
        mitigated[variant] = measure(job, plan, changed, after, f"_{variant}")
    null = train_nulls(job, plan)
    job.stage("professions", profession_table, question, base["changes"], null)
    job.stage(
        "metrics",
        measure_bias,
        question,
        base["rank"],
        base["changes"],
        null,
        pairs,
        base["parity"],
        base["leakage"],
        plan.others,
        {f"{variant}/{name}": found[name] for variant, found in mitigated.items() for name in found},
        plan.about,
    )
    report(job, plan)


def train(
    job: Job, plan: Plan, triples: Triples, seed: int, stage: str, name: str, penalty: RelationalBias | None = None
) -> Result:
    """A training, whose embeddings are left in embeddings/{name}/."""
    return job.stage(
        stage,
        train_embeddings,
        triples,
        plan.shape,
        plan.trained_by(seed),
        name,
        penalty,
        using=job.training(stage, accelerator=plan.device),
        leaves=[f"embeddings/{name}"],
        scratch=[f"checkpoints/{name}"],
        may_be_kept=True,
    )


def import_embeddings(job: Job, plan: Plan, foreign: TrainedEmbeddings, name: str) -> Result:
    """Embeddings that another program trained, left in embeddings/{name}/."""
    leaves = [f"embeddings/{name}"]
    return job.stage("import", keep_embeddings, foreign, plan.graph, name, using={"folder": job.folder}, leaves=leaves)


def train_nulls(job: Job, plan: Plan) -> Result | None:
    """The trainings on graphs with permuted attributes, in one table; None with kge.permuted=0."""
    found = []
    for number in range(1, plan.permuted + 1):
        name = f"permuted_{number}"
        found.append(
            job.stage(
                name,
                train_on_permuted,
                plan.triples,
                plan.question,
                plan.shape,
                plan.trained_by(plan.settings.seed + number - 1),
                plan.step,
                number,
                name,
                using=job.training(name, accelerator=plan.device),
                scratch=[f"checkpoints/{name}"],
                may_be_kept=True,
            )
        )
    return job.stage("null", join_null, found) if found else None


def measure(job: Job, plan: Plan, names: Sequence[str], trained: Sequence[Result], end: str = "") -> dict[str, Result]:
    """The measures before or after a mitigation, of models in embeddings/."""
    question, seed = plan.question, plan.settings.seed
    places: dict[str, Any] = {"after": trained, "using": {"folder": job.folder}}
    found = {
        "rank": job.stage(f"rank{end}", rank_test_triples, plan.triples, names, **places),
        "changes": job.stage(f"changes{end}", change_scores, question, names, plan.step, **places),
    }
    predictions = job.stage(f"predictions{end}", predict_professions, plan.triples, question, names, **places)
    found["parity"] = job.stage(f"parity{end}", parity_figures, predictions, question, seed)
    found["leakage"] = job.stage(f"leakage{end}", measure_leakage, plan.triples, question, names, seed, **places)
    return found


def mitigate(
    job: Job, plan: Plan, mitigation: str, names: Sequence[str], trained: Sequence[Result]
) -> tuple[list[str], list[Result]]:
    """The models after a mitigation, by name, and the stages that made them."""
    found, seed = MITIGATIONS[mitigation], plan.settings.seed
    changed = [changed_name(mitigation, name) for name in names]
    if found.change is None:
        triples = found.triples(plan.triples, plan.question, seed) if found.triples else plan.triples
        penalty = plan.penalty if found.penalised else None
        return changed, [
            train(job, plan, triples, seed, name, name, penalty) for seed, name in zip(plan.seeds, changed, strict=True)
        ]
    movers = [one for one in plan.mitigations if MITIGATIONS[one].change and one != CONTROL]
    others = movers if mitigation == CONTROL else []
    before = [job.results[MITIGATIONS[one].variant] for one in others]
    values = (mitigation, plan.question, names, seed, plan.filter_weight, others)
    places: dict[str, Any] = {"using": {"folder": job.folder}, "leaves": [f"embeddings/{name}" for name in changed]}
    return changed, [job.stage(found.variant, change_vectors, *values, after=[*trained, *before], **places)]


def report(job: Job, plan: Plan) -> None:
    """Write kge.html, its tables and plots, from the stages so far."""
    done = job.results
    job.stage(
        "report",
        write_report,
        done["metrics"],
        done["professions"],
        done["changes"],
        done.get("null"),
        done["pairs"],
        done["rank"],
        plan.others,
        **plan.page,
        variants=[MITIGATIONS[name].variant for name in plan.mitigations],
        demonstration=plan.demonstration,
        using=lambda _: {
            "folder": job.folder,
            "about": reporting.about(job, {"data": plan.provenance, "data fingerprint": plan.source}),
        },
        leaves=["kge.html", "plots", "tables"],
    )


def record(job: Job, plan: Plan) -> None:
    """Record the figures in W&B, and print them."""
    metrics, professions = job.results["metrics"].facts(), job.results["professions"].table()
    reporting.record_metrics(job, metrics)
    if job.records_texts:
        job.tracking.table("professions", professions)
    reporting.record_plots(job)
    say("\n" + page.console(metrics, professions, plan.question.names, plan.page["top"]))
    if null := job.results.get("null"):
        say(f"  permuted    {plan.permuted} graphs, {page.training_seconds(null.table()):,.0f} s of training")
    say(f"  report      {job.folder / 'kge.html'}")


def write_report(
    metrics: Mapping[str, Any],
    professions: pl.DataFrame,
    changes: pl.DataFrame,
    null: pl.DataFrame | None,
    pairs: pl.DataFrame,
    ranks: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    *,
    left_out: Sequence[str],
    folder: Path,
    about: Mapping[str, Any],
    **what: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures. left_out: notices on people who are in neither group; what: further
    fields of the page. Returns the number of professions in each side's table."""
    unknown = []
    if changes["model"].n_unique() < 2:
        unknown.append("There is only one training, so the differences between seeds are unknown (kge.seeds).")
    if null is None:
        unknown.append(
            "There are no permuted graphs (kge.permuted), so no null band: place and sign of a single profession "
            "show nothing."
        )
    results = Results(
        name=folder.name,
        metrics=metrics,
        professions=professions,
        changes=changes,
        null=null,
        correlations=correlations(changes, professions),
        null_correlations=[] if null is None else correlations(null, professions),
        pairs=pairs,
        ranks=ranks,
        others=others,
        notices=[*unknown, *left_out],
        **{**what, "names": tuple(what["names"])},
        **about,
    )
    files.write(folder / "kge.html", render(results))
    frames = {"professions": professions, "ranks": ranks, "pairs": pairs}
    if null is not None:
        frames["permuted"] = null
    if results.variants:
        frames["front"] = front_table(metrics, results.variants)
    save(folder, frames, results.pictures)
    return {name: len(rows) for name, rows in both_ways(professions, results.names, results.top)}
