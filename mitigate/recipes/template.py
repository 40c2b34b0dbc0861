"""What the template adds: the sentiment and regard of each relation's phrase alone, and how many training triples
each policy drops with the paper's phrases and with neutral ones. load > verbalise > score > filter."""

from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate import filter as filtering
from mitigate import relations as relation_room
from mitigate import targets
from mitigate import verbalise as verbalising
from mitigate.files import write
from mitigate.filter import Policy
from mitigate.label_cache import LabelStore
from mitigate.recipes.job import Job, build, perform, say
from mitigate.recipes.scorers import build_scorer
from mitigate.relations import comet_relations
from mitigate.score import labels as labelling
from mitigate.score.labels import with_labels
from mitigate.store import as_parquet, digest_of
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK, verbalise

STAGES = ("phrases", "labels", "drops", "metrics")
POLICIES = {"sentiment": ["sentiment"], "regard": ["regard"], "both": ["sentiment", "regard"]}
CODE = (relation_room, targets, verbalising, labelling)


def run(config: DictConfig) -> None:
    """Label the phrases and the training triples, and count what each policy would drop."""
    scorers = [build_scorer(config.score, role) for role in ROLES]
    cache = LabelStore(Path(config.paths.cache) / "labels")
    verbalising.check(config.measure.masking)
    loaded = build(config.data.load)
    for notice in loaded.notices:
        say(f"  note: {notice}")
    triples = loaded.triples.filter(split="train")
    source = digest_of(as_parquet(triples))
    name = f"{config.recipe.name}-{config.data.name}-{config.score.regard}"
    told = ["a table of the phrases"]
    metrics = perform(
        config, name, source, STAGES, lambda job: pipeline(job, triples, source, scorers, cache), uploads=told
    )
    if metrics:
        policies = (
            f"{policy} {metrics[f'{policy}/paper']:,} ({metrics[f'{policy}/neutral']:,})" for policy in POLICIES
        )
        say(f"  of {metrics['triples']:,} training triples drop (with the neutral phrases): {', '.join(policies)}")


def pipeline(job: Job, triples: pl.DataFrame, source: str, scorers: list[Scorer], cache: LabelCache) -> dict[str, Any]:
    """The stages in their order; the table is left in the run folder as template.csv."""
    masking = job.config.measure.masking
    by_whom = [scorer.fingerprint for scorer in scorers]
    phrases = job.old_stage("phrases", lambda _: label(carriers(), scorers, cache), settings=by_whom, code=CODE)
    labels = job.old_stage(
        "labels",
        lambda _: label(verbalise(triples, masking), scorers, cache),
        needs=[source],
        settings=[masking, by_whom],
        code=CODE,
    )
    drops = job.old_stage("drops", lambda _: count(labels.table()), needs=[labels.digest], code=[filtering])
    metrics = job.old_stage("metrics", lambda _: totals(drops.table()), needs=[drops.digest])
    table = phrases.table().join(drops.table(), on="relation", how="left", maintain_order="left")
    if not job.run.dry:
        write(job.folder / "template.csv", table.write_csv())
        job.tracking.summarise(metrics.facts())
        job.tracking.table("template", table)
    if not job.config.dry_run:
        say(printed(table))
    return metrics.facts()


def carriers() -> pl.DataFrame:
    """COMeT's 34 relations, each phrase behind "this person" and with nothing after it."""
    wanted = comet_relations()
    return pl.DataFrame(
        {
            "relation": [relation.name for relation in wanted],
            "phrase": [relation.phrase for relation in wanted],
            "neutral_phrase": [relation.neutral_phrase for relation in wanted],
            "masked": [f"{MASK} {relation.phrase}" for relation in wanted],
            "masked_neutral": [f"{MASK} {relation.neutral_phrase}" for relation in wanted],
        }
    )


def label(statements: pl.DataFrame, scorers: list[Scorer], cache: LabelCache) -> pl.DataFrame:
    """The statements with every scorer's labels under both templates."""
    for scorer in scorers:
        statements = with_labels(statements, scorer, cache)
    return statements


def count(labelled: pl.DataFrame) -> pl.DataFrame:
    """A row for each relation: its triples, and in the column {policy}/{template} how many of them that drops."""
    columns = [f"{policy}/{template}" for policy in POLICIES for template in TEMPLATES]
    dropped = [
        (filtering.apply(Policy(policy, scorers, template), labelled)["weight"] == 0).alias(f"{policy}/{template}")
        for policy, scorers in POLICIES.items()
        for template in TEMPLATES
    ]
    rows = labelled.select("relation").with_columns(dropped)
    return rows.group_by("relation", maintain_order=True).agg(pl.len().alias("triples"), pl.col(columns).sum())


def totals(drops: pl.DataFrame) -> dict[str, Any]:
    """The same over all relations."""
    return drops.drop("relation").sum().row(0, named=True)


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
