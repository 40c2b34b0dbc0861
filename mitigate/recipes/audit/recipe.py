"""recipe=audit: the harms of a resource as it is. load > verbalise > score > measure > report.

The page, its plots and tables, and the statements as a file are one stage, write_report."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from mitigate import files
from mitigate.measure.results import Results
from mitigate.measure.statements import Measurement, about_targets, choice, export
from mitigate.recipes import reporting
from mitigate.recipes.audit.plan import Plan, make_plan
from mitigate.recipes.job import Config, Job, may_record_texts, perform, say, say_notes
from mitigate.report import audit as page
from mitigate.report.page import write
from mitigate.stages import PartFolder
from mitigate.tasks.audit.measures import beside_the_paper, measure_resource, notices, paper_figures, paper_notes
from mitigate.tasks.audit.read import count_statements, notice_of_unlisted, read_rows
from mitigate.tasks.audit.resource import STATEMENTS, Resource, sum_counts
from mitigate.tasks.identity import identity_words_of
from mitigate.tasks.policies.drop_rules import measure_drop_rules
from mitigate.words import ambiguous
from mitigate.words.english import not_english
from mitigate.words.outside_text import counted
from mitigate.words.targets import notice_of_own

DRAWN = "Examples are of {:,} statements, chosen by chance from {:,}; figures are of all of them."


def run(config: Config) -> float | None:
    """Measure the harms of what `data` names; returns the metric that `optimized_metric` names."""
    plan = make_plan(config)
    say_notes(notice_of_own(plan.measurement.targets))
    say(f"  {plan.title}: {plan.resource.loaded.size}, {counted(plan.measurement.targets.height, 'target')}")
    by = config.data.label_column or config.score.regard or config.score.sentiment
    name = f"{config.recipe.name}-{config.data.name}-{by}"
    phases = partial(pipeline, plan=plan), partial(record, plan=plan)
    uploads = ["plots", "statements" if may_record_texts(config) else "no texts"]
    found = perform(config, name, plan.source, *phases, uploads=uploads)
    return found["metrics"].facts().get(config.optimized_metric) if found else None


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    how = plan.measurement
    rows = job.stage(
        "read",
        read_rows,
        plan.resource,
        plan.search,
        using=lambda work: {"rows": work.parts("rows"), "counted": work.parts(), "title": plan.title},
    )
    tallied = job.stage(
        "tally",
        count_statements,
        plan.labeller,
        how.labellings,
        texts=plan.search.texts,
        everywhere=plan.everywhere,
        given=plan.given,
        after=[rows],
        using=lambda work: {
            "rows": PartFolder(work.folder / "rows"),
            "num_rows": sum_counts([rows.table()])[STATEMENTS],
            "statements": work.parts("statements"),
        },
    )
    job.measure(measure_resource, tallied, rows, how, facts=plan.about)
    scorers, cached = plan.labeller.scorers, {"cache": plan.labeller.cache}
    if scorers:
        places = {"folder": tallied.folder / "statements", **cached}
        job.stage("identity", identity_words_of, scorers, how.intervals.seed, after=[tallied], using=places)
    if plan.rated is not None:
        rated = plan.rated, plan.policies, scorers, how.intervals
        job.stage("people", measure_drop_rules, *rated, using=cached)
    report(job, plan)


def report(job: Job, plan: Plan) -> None:
    """Write the page, its tables and pictures, from the stages so far."""
    done = job.results
    job.stage(
        "report",
        write_report,
        done["results"],
        done["metrics"],
        done["tally"],
        plan.measurement,
        paper_figures(plan.paper) if plan.paper else None,
        done.get("people"),
        paper_notes(plan.paper) if plan.paper else [],
        plan.resource,
        done["read"],
        done.get("identity"),
        title=plan.title,
        demonstration=page.DEMONSTRATED if plan.data["demonstration"] else False,
        chosen=plan.shown,
        after=[done["tally"], job.folder.name],
        using=lambda work: {"folder": work.folder, "about": reporting.about(job, _facts(plan))},
    )


def record(job: Job, plan: Plan) -> None:
    """Record the figures, statements and pictures on W&B, and print the figures."""
    metrics = job.figures
    reporting.record_metrics(job, metrics)
    columns = ["target", "category", "statement", *plan.measurement.wordings]
    if job.records_texts:
        statements, _ = choice(job.folder / "statements", plan.measurement.intervals.seed)
        reporting.record_statements(job, statements.select(columns))
    reporting.record_plots(job)
    found = job.results["report"].facts()
    reporting.say_verdict(found["verdict"], "")
    say("\n" + page.console(metrics.table, ["D_R"], verbose=not job.brief))
    say_notes(found["notices"])
    say(f"  report      {job.folder / 'audit.html'}")


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "data": reporting.source_of(plan.data),
        "data fingerprint": plan.source,
        "masking": plan.labeller.masking,
        "targets without statements": {"zero": "count as 0 %", "exclude": "left out"}[plan.measurement.empty_targets],
        "match": "as the file says" if plan.resource.kind == "statements" else plan.search.match,
        "texts": {"targets": "about a target", "all": "all"}[plan.search.texts],
        **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.labeller.scorers},
    }


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    tallied: pl.DataFrame,
    how: Measurement,
    stated: pl.DataFrame | None,
    people: pl.DataFrame | None,
    explained: Sequence[str],
    resource: Resource,
    rows: pl.DataFrame,
    words: Mapping[str, Any] | None,
    *,
    folder: Path,
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, and statements.tsv, of statements drawn by the seed. stated: what
    paper_figures returns; rows: counts of the resource's rows; words: notices of labels that depend on identity words;
    fields: further ones of the page. Returns the page's verdict and notices."""
    statements, height = choice(folder / "statements", how.intervals.seed)
    metrics, frames, counts = Results.of(figures, flat), how.tables(tallied), sum_counts([rows])
    has_relations = "relation" in statements.columns
    relations = page.by_relation(about_targets(folder / "statements"), how.wordings) if has_relations else None
    beside = None if stated is None else beside_the_paper(metrics, stated)
    tables = {"measures": metrics.shown(), "relations": relations, "beside_the_paper": beside}
    tables |= {"policies_against_people": people, "targets": how.target_list.table(how.targets)}
    tables |= {f"targets_{column}": frame for column, frame in frames.items()}
    made = page.page(
        metrics,
        scorers=how.scorers,
        frames=frames,
        statements=statements,
        relations=relations,
        beside=beside,
        explained=explained,
        people=people,
        notices=[
            *not_english(statements["statement"]),
            *ambiguous.notice(next(iter(frames.values()))),
            *notice_of_unlisted(counts),
            *notices(tallied, how),
            *(words or {"notices": ()})["notices"],
            *resource.loaded.describe(counts),
            *([] if statements.height == height else [DRAWN.format(statements.height, height)]),
        ],
        tables={name: frame for name, frame in tables.items() if frame is not None},
        **fields,
        **about,
    )
    write(made, folder, "audit.html")
    files.write(folder / "statements.tsv", export(statements))
    return {"verdict": f"{made.state}. {made.hedge}", "notices": list(made.notices)}
