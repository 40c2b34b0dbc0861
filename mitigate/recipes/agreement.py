"""recipe=agreement: how far the scorers agree with people on the crowd labels of the harms paper (its Tables 2 and 3,
and its statements of COMeT and of the filtered COMeT), what each policy that drops triples would drop of these
statements, and how far labels depend on the group that a sentence names.

load > verbalise > score > filter > measure."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig

from mitigate.filter import Policy
from mitigate.load.crowd import FILTERED, RESOURCES, rated_sets
from mitigate.load.files import root_with
from mitigate.measure.bootstrap import Bootstrap
from mitigate.recipes.job import Job, perform, say
from mitigate.recipes.rated_scorers import drop_policies, printed, printed_drops, printed_identity, printed_intervals
from mitigate.recipes.scorers import Scorers
from mitigate.runs.files import write
from mitigate.runs.label_cache import LabelStore
from mitigate.runs.store import as_parquet, digest_of
from mitigate.tasks.caveats import same_sources
from mitigate.tasks.crowd.training import label_unseen
from mitigate.tasks.identity import (
    identity_notices,
    identity_summary,
    label_identity_terms,
    measure_identity_terms,
    measured_identity,
)
from mitigate.tasks.policies.drop_rules import as_metrics, drop_rules
from mitigate.tasks.ratings.agreement import (
    agreement_table,
    interval_table,
    label_described,
    measure_all,
    measured_table,
)
from mitigate.tasks.ratings.rated import read_rated
from mitigate.triples import ROLES, Scorer

HELD_OUT = ("keyword", "ngram")
CROWD = "crowd"


def run(config: DictConfig) -> None:
    """Label the statements that people rated, whole demographic words masked, and compare."""
    rated = read(config.data.root)
    sources = rated["resource"].unique(maintain_order=True).to_list()
    configured = Scorers(config.score)
    policies = drop_policies(configured)
    scorers = scorers_of(configured, policies)
    names = [*(scorer.name for scorer in scorers), CROWD]
    source = digest_of(as_parquet(rated.with_columns(pl.col("votes").cast(pl.List(pl.String)).list.join(" "))))
    name = f"{config.recipe.name}-{config.score.regard}"
    stages = partial(pipeline, rated=rated, policies=policies, scorers=scorers, names=names)
    if results := perform(config, name, source, stages, partial(record, names=names, sources=sources)):
        found, terms = results["metrics"].facts(), results["identity"].table()
        for notice in same_sources(names):
            say(f"  note: {notice}")
        say(printed(agreement_table(found, sources, names)))
        say("\n" + printed_intervals(interval_table(found, parts_of(found), names)))
        say("\n" + printed_drops(results["policies"].table()))
        summed = identity_summary(terms)
        say("\n" + printed_identity(terms, summed))
        for notice in identity_notices(summed):
            say(f"  note: {notice}")


def pipeline(job: Job, rated: pl.DataFrame, policies: list[Policy], scorers: list[Scorer], names: list[str]) -> None:
    """The stages in their order."""
    config = job.config
    intervals = Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    using = {"cache": LabelStore(Path(config.paths.cache) / "labels")}
    labels = job.stage("labels", label_described, rated, scorers, using=using)
    labels = job.stage("unseen", label_unseen, labels, using=using)
    named = [*scorers, *Scorers(config.score).named([CROWD])]
    texts = job.stage("identity_labels", label_identity_terms, named, using=using)
    identity = job.stage("identity", measure_identity_terms, texts, names, intervals)
    job.stage("metrics", measure_all, labels, identity, names, intervals)
    job.stage("policies", drop_rules, labels, policies, intervals, RESOURCES)


def record(job: Job, names: list[str], sources: list[str]) -> None:
    """The figures, and the tables, which are left in the run folder as CSV files."""
    found, drops = job.results["metrics"].facts(), job.results["policies"].table()
    terms = job.results["identity"].table()
    summed = identity_summary(terms)
    called = {name: job.config.score[name] if name in ROLES else name for name in names}
    tables = {
        "agreement": agreement_table(found, sources, names),
        "intervals": interval_table(found, parts_of(found), names),
        "measured": measured_table(found, called),
        "policies": drops,
        "identity": terms,
        "identity_summary": summed,
        "identity_measured": measured_identity(summed, called),
    }
    for name, table in tables.items():
        write(job.folder / f"{name}.csv", table.write_csv())
    job.tracking.summarise(found | as_metrics(drops))


def scorers_of(configured: Scorers, policies: list[Policy]) -> list[Scorer]:
    """Those that are compared with people, those of score.extra, and those that policies read; but for the crowd
    classifier, which has learnt from these ratings and labels each statement without those of its target."""
    found = configured.rated([*HELD_OUT, *(name for name in configured.score.extra if name != CROWD)])
    for policy in policies:
        found += configured.of_policy(policy)
    return list({scorer.name: scorer for scorer in found if scorer.name != CROWD}.values())


def parts_of(metrics: dict[str, Any]) -> list[str]:
    """The sources, each followed by its parts."""
    ends = "/sentences"
    return sorted((key.removesuffix(ends) for key in metrics if key.endswith(ends)), key=_source_first)


def _source_first(part: str) -> tuple[int, str]:
    return (*RESOURCES, FILTERED).index(part.split(", ")[0]), part


def read(root: str | None) -> pl.DataFrame:
    """The crowd's statements, as tasks.rated.describe_rated has them. Those of the filtered COMeT, which came later
    than the other sets, are left out where the folder lacks them."""
    folder = root_with(root, ["humans"])
    names = [*RESOURCES, *([FILTERED] if FILTERED in rated_sets(folder / "humans") else [])]
    return read_rated(folder, names)
