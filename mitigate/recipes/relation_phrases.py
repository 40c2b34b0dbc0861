"""recipe=template: the sentiment and regard of each relation's phrase alone, and the numbers of training triples that
each policy drops with the paper's phrases and with neutral ones. load > verbalise > score > filter."""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl
from omegaconf import DictConfig

from mitigate.recipes.job import Job, perform, say, say_notes
from mitigate.recipes.loading import load_data, read_target_list
from mitigate.recipes.scorers import Scorers, make_labeller
from mitigate.runs.files import write
from mitigate.runs.fingerprints import digest_of_values
from mitigate.runs.store import Result
from mitigate.tasks.corpus import triples_of
from mitigate.tasks.label import Labeller, label_masked
from mitigate.tasks.relation_phrases import carriers, count_drops, filters, totals
from mitigate.triples import FAVOURITISM, PREJUDICE, ROLES, TEMPLATES, label_columns


def run(config: DictConfig) -> None:
    """Label the phrases and the training triples, and count what each policy would drop."""
    scorers = Scorers(config.score)
    scorers.check_roles()
    loaded = triples_of(load_data(config))
    target_list, notices = read_target_list(config)
    say_notes([*loaded.notices, *notices])
    triples, own = loaded.rows.filter(split="train"), list(loaded.own_relations)
    labeller = make_labeller(config, scorers.of_roles, target_list, own)
    name, source = f"{config.recipe.name}-{config.data.name}-{config.score.regard}", [triples, own, target_list]
    phases = partial(pipeline, triples=triples, labeller=labeller), record
    if found := perform(config, name, digest_of_values(*source), *phases, uploads=["a table of the phrases"]):
        metrics, names = found["metrics"].facts(), [scorer.name for scorer in labeller.scorers]
        say(format_phrases(table_of(found), names))
        policies = (
            f"{policy} {metrics[f'{policy}/paper']:,} ({metrics[f'{policy}/neutral']:,})" for policy in filters(names)
        )
        say(f"  dropped of {metrics['triples']:,} training triples (with the neutral phrases): {', '.join(policies)}")


def pipeline(job: Job, triples: pl.DataFrame, labeller: Labeller) -> None:
    """Run the stages in their order."""
    cached = {"cache": labeller.cache}
    job.stage("phrases", label_masked, carriers(labeller.own_relations), labeller.scorers, using=cached)
    labels = job.stage("labels", Labeller.label, labeller, triples)
    drops = job.stage("drops", count_drops, labels, [scorer.name for scorer in labeller.scorers])
    job.stage("metrics", totals, drops)


def record(job: Job) -> None:
    """Record the figures and the table, and leave the table in the run folder as template.csv."""
    table = table_of(job.results)
    write(job.folder / "template.csv", table.write_csv())
    job.tracking.summarise(job.results["metrics"].facts())
    job.tracking.table("template", table)


def table_of(results: Mapping[str, Result]) -> pl.DataFrame:
    """Each relation's phrase with its labels, and the number of triples that each policy drops."""
    drops = results["drops"].table()
    return results["phrases"].table().join(drops, on="relation", how="left", maintain_order="left")


def format_phrases(table: pl.DataFrame, scorers: Sequence[str] = ROLES) -> str:
    """The table for the terminal: each phrase's strength under both templates, an asterisk where its label is not
    neutral, and the numbers of triples dropped."""
    pair = "   paper neutral"
    policies = filters(scorers)
    drop = "".join(f"{'drops by ' + policy:>20}" for policy in policies)
    lines = [
        f"{'':<48}" + "".join(f"{name:>16}" for name in scorers) + f"{'triples':>9}" + drop,
        f"{'':<48}" + pair * len(scorers) + " " * 9 + f"{pair:>20}" * len(policies),
    ]
    columns = [label_columns(scorer, template) for scorer in scorers for template in TEMPLATES]
    polar = {PREJUDICE: "*", FAVOURITISM: "*"}
    for row in table.rows(named=True):
        strengths = (f"{row[strength]:+z.2f}{polar.get(row[label], ' ')}".rjust(8) for label, strength in columns)
        drops = (f"{row[f'{name}/paper'] or 0:>12,}{row[f'{name}/neutral'] or 0:>8,}" for name in policies)
        start = f"{row['relation']:<20}{row['phrase']:<28}{''.join(strengths)}{row['triples'] or 0:>9,}"
        lines.append(start + "".join(drops))
    return "\n".join(lines)
