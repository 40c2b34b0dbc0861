"""recipe=template: the sentiment and regard of each relation's phrase alone, and how many training triples each policy
drops with the paper's phrases and with neutral ones. load > verbalise > score > filter."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.loading import list_named, load_data
from mitigate.recipes.scorers import Scorers
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import Result
from mitigate.tasks.corpus import triples_of
from mitigate.tasks.label import Labeller, label_masked
from mitigate.tasks.template import carriers, count_drops, filters, totals
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, label_columns


def run(config: DictConfig) -> None:
    """Label the phrases and the training triples, and count what each policy would drop."""
    configured = Scorers(config.score)
    configured.check_roles()
    scorers = configured.of_roles
    loaded = triples_of(load_data(config))
    for notice in loaded.notices:
        say(f"  note: {notice}")
    target_list, notices = list_named(config)
    for notice in notices:
        say(f"  note: {notice}")
    triples, own = loaded.rows.filter(split="train"), list(loaded.own_relations)
    labeller = Labeller(
        scorers, config.measure.masking, target_list, own, cache=LabelStore(Path(config.paths.cache) / "labels")
    )
    name = f"{config.recipe.name}-{config.data.name}-{config.score.regard}"
    found = perform(
        config,
        name,
        digest_of_values(triples, own, target_list),
        lambda job: pipeline(job, triples, labeller),
        record,
        uploads=["a table of the phrases"],
    )
    if found:
        metrics, names = found["metrics"].facts(), [scorer.name for scorer in scorers]
        say(printed(table_of(found), names))
        policies = (
            f"{policy} {metrics[f'{policy}/paper']:,} ({metrics[f'{policy}/neutral']:,})" for policy in filters(names)
        )
        say(f"  of {metrics['triples']:,} training triples drop (with the neutral phrases): {', '.join(policies)}")


def pipeline(job: Job, triples: pl.DataFrame, labeller: Labeller) -> None:
    """The stages in their order."""
    cached = {"cache": labeller.cache}
    job.stage("phrases", label_masked, carriers(labeller.own_relations), labeller.scorers, using=cached)
    labels = job.stage("labels", Labeller.label, labeller, triples)
    drops = job.stage("drops", count_drops, labels, [scorer.name for scorer in labeller.scorers])
    job.stage("metrics", totals, drops)


def record(job: Job) -> None:
    """The figures and the table, which is left in the run folder as template.csv."""
    table = table_of(job.results)
    write(job.folder / "template.csv", table.write_csv())
    job.tracking.summarise(job.results["metrics"].facts())
    job.tracking.table("template", table)


def table_of(results: Mapping[str, Result]) -> pl.DataFrame:
    """Each relation's phrase with its labels, and how many triples each policy drops."""
    drops = results["drops"].table()
    return results["phrases"].table().join(drops, on="relation", how="left", maintain_order="left")


def printed(table: pl.DataFrame, scorers: Sequence[str] = ROLES) -> str:
    """The table for the terminal: each phrase's strength under both templates, an asterisk where its label is not
    neutral, and the numbers of triples dropped."""
    pair = "   paper neutral"
    policies = filters(scorers)
    drop = "".join(f"{'drops by ' + policy:>20}" for policy in policies)
    lines = [
        f"{'':<48}" + "".join(f"{name:>16}" for name in scorers) + f"{'triples':>9}" + drop,
        f"{'':<48}" + pair * len(scorers) + " " * 9 + f"{pair:>20}" * len(policies),
    ]
    for row in table.rows(named=True):
        lines.append(
            f"{row['relation']:<20}{row['phrase']:<28}"
            + _strengths(row, scorers)
            + f"{row['triples'] or 0:>9,}"
            + _drops(row, policies)
        )
    return "\n".join(lines)


def _strengths(row: dict[str, Any], scorers: Sequence[str]) -> str:
    columns = [label_columns(scorer, template) for scorer in scorers for template in TEMPLATES]
    polar = {PREJUDICE: "*", FAVOURITISM: "*"}
    return "".join(f"{row[strength]:+z.2f}{polar.get(row[label], ' ')}".rjust(8) for label, strength in columns)


def _drops(row: dict[str, Any], policies: Iterable[str]) -> str:
    counts = [row[f"{policy}/{template}"] or 0 for policy in policies for template in TEMPLATES]
    return "".join(f"{paper:>12,}{neutral:>8,}" for paper, neutral in zip(counts[::2], counts[1::2], strict=True))
