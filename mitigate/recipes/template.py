"""recipe=template: the sentiment and regard of each relation's phrase alone, and how many training triples each policy
drops with the paper's phrases and with neutral ones. load > verbalise > score > filter."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.files import write
from mitigate.label_cache import LabelStore
from mitigate.recipes.job import Job, build, perform, say
from mitigate.recipes.scorers import build_scorer
from mitigate.store import as_parquet, digest_of
from mitigate.tasks.label import label_masked, label_statements
from mitigate.tasks.template import POLICIES, carriers, count_drops, totals
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, Scorer, label_columns

STAGES = ("phrases", "labels", "drops", "metrics")


def run(config: DictConfig) -> None:
    """Label the phrases and the training triples, and count what each policy would drop."""
    scorers = [build_scorer(config.score, role) for role in ROLES]
    loaded = build(config.data.load)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    triples = loaded.triples.filter(split="train")
    name = f"{config.recipe.name}-{config.data.name}-{config.score.regard}"
    metrics = perform(
        config,
        name,
        digest_of(as_parquet(triples)),
        STAGES,
        lambda job: pipeline(job, triples, scorers),
        uploads=["a table of the phrases"],
    )
    if metrics:
        policies = (
            f"{policy} {metrics[f'{policy}/paper']:,} ({metrics[f'{policy}/neutral']:,})" for policy in POLICIES
        )
        say(f"  of {metrics['triples']:,} training triples drop (with the neutral phrases): {', '.join(policies)}")


def pipeline(job: Job, triples: pl.DataFrame, scorers: list[Scorer]) -> dict[str, Any]:
    """The stages in their order; the table is left in the run folder as template.csv."""
    using = {"cache": LabelStore(Path(job.config.paths.cache) / "labels")}
    phrases = job.stage("phrases", label_masked, carriers(), scorers, using=using)
    masking = job.config.measure.masking
    labels = job.stage("labels", label_statements, triples, scorers, masking=masking, using=using)
    drops = job.stage("drops", count_drops, labels)
    metrics = job.stage("metrics", totals, drops)
    table = phrases.table().join(drops.table(), on="relation", how="left", maintain_order="left")
    if not job.run.dry:
        write(job.folder / "template.csv", table.write_csv())
        job.tracking.summarise(metrics.facts())
        job.tracking.table("template", table)
    if not job.config.dry_run:
        say(printed(table))
    return metrics.facts()


def printed(table: pl.DataFrame) -> str:
    """The table for the terminal: each phrase's strength under both templates, an asterisk where its label is not
    neutral, and the numbers of triples dropped."""
    pair = "   paper neutral"
    policies = "".join(f"{'drops by ' + policy:>20}" for policy in POLICIES)
    lines = [
        f"{'':<48}" + "".join(f"{name:>16}" for name in ROLES) + f"{'triples':>9}" + policies,
        f"{'':<48}" + pair * len(ROLES) + " " * 9 + f"{pair:>20}" * len(POLICIES),
    ]
    for row in table.rows(named=True):
        lines.append(
            f"{row['relation']:<20}{row['phrase']:<28}" + _strengths(row) + f"{row['triples'] or 0:>9,}" + _drops(row)
        )
    return "\n".join(lines)


def _strengths(row: dict[str, Any]) -> str:
    columns = [label_columns(scorer, template) for scorer in ROLES for template in TEMPLATES]
    polar = {PREJUDICE: "*", FAVOURITISM: "*"}
    return "".join(f"{row[strength]:+.2f}{polar.get(row[label], ' ')}".rjust(8) for label, strength in columns)


def _drops(row: dict[str, Any]) -> str:
    counts = [row[f"{policy}/{template}"] or 0 for policy in POLICIES for template in TEMPLATES]
    return "".join(f"{paper:>12,}{neutral:>8,}" for paper, neutral in zip(counts[::2], counts[1::2], strict=True))
