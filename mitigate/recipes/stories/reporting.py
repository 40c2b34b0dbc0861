"""What a finished probe of stories leaves for people: the page, plots and tables, the stories and their sentences as
files that other recipes read, and the record in W&B."""

from typing import Any

import polars as pl

from mitigate import report as room
from mitigate.files import write
from mitigate.load.stories import BETWEEN
from mitigate.measure.stories import STORY, shares
from mitigate.measure.tally import tally
from mitigate.recipes.audit import measures as audit_measures
from mitigate.recipes.audit import reporting as audit_reporting
from mitigate.recipes.audit import statements as audit_statements
from mitigate.recipes.job import Job, command, plain, provenance, say
from mitigate.recipes.scorers import ROLES
from mitigate.recipes.stories import card as stories_card
from mitigate.recipes.stories import measures as stories_measures
from mitigate.recipes.stories.plan import StoryPlan
from mitigate.report import audit_tables, gallery, tables
from mitigate.report import stories as page
from mitigate.report.audit import Audit
from mitigate.report.page import Stage
from mitigate.store import Result


def report(
    job: Job, plan: StoryPlan, stories: Result, said: Result, ledger: Result | None, metrics: dict[str, Any]
) -> Result:
    """Write everything, and record it."""
    columns = [labels.column for labels in plan.audit.labellings]
    wordings = {labels.column: (labels.scorer, labels.template) for labels in plan.audit.labellings}

    def compute(_: str) -> dict[str, Any]:
        statements, told = said.table(), stories.table()
        tallied = tally(statements, columns)
        found = stories_measures.notices(plan, statements, metrics)
        about = Audit(
            name=job.folder.name,
            title=f"the stories told by {plan.teller}",
            command=command(job.config),
            demonstration=plan.demonstration,
            metrics=metrics,
            labellings=wordings,
            targets=audit_measures.per_target_tables(plan.audit, tallied, plan.config.measure.empty_targets),
            statements=statements,
            shown=plain(plan.config.recipe.shown),
            scorers={role: plan.config.score[role] for role in ROLES if plan.config.score[role]},
            stages=[Stage(result.stage, result.seconds, result.from_cache) for result in job.run.results],
            facts=_facts(job, plan, ledger),
            notices=found,
        )
        per_story = shares(statements, STORY, columns).join(told.select("row", "target", "story"), on=["row", "target"])
        tale = page.Stories(about, plan.teller, per_story)
        page.write(job.folder / "stories.html", tale)
        gallery.save(tale.pictures, job.folder / "plots")
        write(job.folder / "statements.tsv", audit_statements.export(statements))
        write(job.folder / "stories.txt", export(told))
        extra = {"stories": per_story, "prompts": page.prompts(per_story, columns)}
        for name, frame in (audit_reporting.tables_of(about) | extra).items():
            tables.save_csv(frame, job.folder / "tables" / f"{name}.csv")
        if ledger is not None:
            read = ledger.table().filter(split="train")
            card = stories_card.render(job.folder.name, plan.config, command(job.config), read, metrics)
            write(job.folder / "model" / "README.md", card)
        return {"notices": found}

    result = job.old_stage(
        "report",
        compute,
        needs=[stories.digest, said.digest],
        settings=[metrics, plain(plan.config.recipe.shown)],
        code=[room, audit_statements, stories_card, stories_measures],
        leaves=["stories.html", "plots", "tables", "statements.tsv", "stories.txt", "model/README.md"],
    )
    if not job.run.dry:
        audit_reporting.record(job, plan.audit, metrics, said.table())
        if _keeps_model(plan):
            job.tracking.artifact(f"model-{job.folder.name}", "model", job.folder / "model", {"metrics": metrics})
        say("\n" + audit_tables.console(metrics, list(wordings.values())))
        for notice in result.facts()["notices"]:
            say(f"  note: {notice}")
        say(f"  report      {job.folder / 'stories.html'}")
    return result


def export(told: pl.DataFrame) -> str:
    """The stories as lines `prompt|||story`: what recipe=stories reads with data=stories."""
    one_line = [pl.col(name).str.replace_all(r"\s+", " ") for name in ("prompt", "story")]
    rows = told.filter(pl.col("story") != "").unique("row", keep="first", maintain_order=True)
    return "".join(f"{line}\n" for line in rows.select(pl.concat_str(one_line, separator=BETWEEN)).to_series())


def uploads(plan: StoryPlan) -> list[str]:
    """What report gives to W&B besides metrics, in words."""
    return [*audit_reporting.uploads(plan.config), *["the generator"] * _keeps_model(plan)]


def _keeps_model(plan: StoryPlan) -> bool:
    """Whether W&B gets the weights: only those that were trained here."""
    return plan.resource is not None and plan.config.tracking.get("model", False)


def _facts(job: Job, plan: StoryPlan, ledger: Result | None) -> dict[str, Any]:
    config, data = plan.config, plan.config.data
    facts: dict[str, Any] = {"stories": plan.teller, "prompts and stories": plan.audit.source}
    if plan.start is not None:
        names = ("temperature", "top_k", "max_tokens", "fewest", "most")
        facts |= {"weights": plan.start.weights, "drawn": ", ".join(f"{name} {config.recipe[name]}" for name in names)}
    if ledger is not None:
        read = ledger.table().filter(split="train")
        facts |= {
            "read": f"{data.name}, {data.attribution}, licence {data.licence}",
            "policy": f"{config.policy.name}: kept {read.filter(pl.col('weight') > 0).height:,} of {read.height:,}",
            "training": next(result for result in job.run.results if result.stage == "train").facts(),
        }
    peak = max(result.peak_memory for result in job.run.results)
    more = {
        "masking": config.measure.masking,
        **{f"{scorer.name} scorer": scorer.fingerprint for scorer in plan.audit.scorers},
        "peak memory": f"{peak / 2**30:.2f} GiB",
    }
    return provenance(config, facts | more)
