"""recipe=agreement: agreement of scorers with people on the crowd labels of the harms paper (its Tables 2 and 3, and
its statements of COMeT and of the filtered COMeT), the statements that each policy would drop, and the dependence of
labels on the group that a sentence names.

load > verbalise > score > filter > measure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import polars as pl

from mitigate.files import digest_of, write
from mitigate.load.ratings import FILTERED, RESOURCES, rated_sets
from mitigate.load.statements import root_with
from mitigate.measure.caveats import same_sources
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import of_study
from mitigate.policies import Policy
from mitigate.recipes import rated_scorers
from mitigate.recipes.job import Config, Job, perform, say, say_notes
from mitigate.recipes.scorers import Scorers, label_cache
from mitigate.report.table import as_markdown, as_text
from mitigate.score.labeller import abstentions, texts_to_ask
from mitigate.stages import Result, as_parquet
from mitigate.tasks import identity
from mitigate.tasks.crowd.training import label_unseen
from mitigate.tasks.policies.drop_rules import as_metrics, drop_rules
from mitigate.tasks.ratings import agreement as rating_agreement
from mitigate.tasks.ratings.paper_statements import read_rated
from mitigate.triples import ROLES, LabelCache, Scorer

HELD_OUT = ("keyword", "ngram")
CROWD = "crowd"


@dataclass(frozen=True)
class Plan:
    """All that is read and checked before the first stage."""

    rated: pl.DataFrame
    policies: list[Policy]  # that drop triples
    scorers: list[Scorer]  # that label the rated statements
    crowd: Scorer  # labels identity terms besides
    configured: Mapping[str, str]  # by each name in tables, the name of the scorer in the configuration
    learnt_from: Mapping[str, str]  # by each name in tables, the sources of the scorer's labels
    terms: pl.DataFrame  # texts with identity terms
    intervals: Bootstrap
    cache: LabelCache

    @property
    def names(self) -> list[str]:
        """The names of all scorers in tables."""
        return list(self.configured)


def run(config: Config) -> None:
    """Label the statements that people rated, whole demographic words masked, and compare."""
    plan = make_plan(config)
    if config.dry_run:
        say_notes(texts_to_ask(plan.scorers, plan.rated, plan.cache, [plan.terms["text"]]))
    source = digest_of(as_parquet(plan.rated.with_columns(pl.col("votes").cast(pl.List(pl.String)).list.join(" "))))
    name = f"{config.recipe.name}-{config.score.regard}"
    if results := perform(config, name, source, partial(pipeline, plan=plan), partial(record, plan=plan)):
        tables = tables_of(results, plan)
        say_notes(same_sources(plan.names))
        shown = [
            rated_scorers.agreement(tables["agreement"]),
            rated_scorers.classifiers(tables["intervals"], plan.learnt_from),
            rated_scorers.drops(tables["policies"]),
            rated_scorers.identity_errors(tables["identity"], tables["identity_summary"]),
        ]
        say("\n\n".join(map(as_text, shown)))
        say_notes(identity.identity_notices(tables["identity_summary"]))
        say_notes(abstentions(plan.scorers, plan.rated, [plan.terms["text"]]))


def make_plan(config: Config) -> Plan:
    """Read the rated statements, and build all that labels or filters them."""
    rated, scorers = drawn(read(config.data.root), config.recipe.statements, config.seed), Scorers(config.score)
    policies = rated_scorers.drop_policies(scorers)
    labelling = scorers_of(scorers, policies)
    names = [*(scorer.name for scorer in labelling), CROWD]
    configured = {name: getattr(config.score, name) if name in ROLES else name for name in names}
    return Plan(
        rated=rated,
        policies=policies,
        scorers=labelling,
        crowd=scorers.named([CROWD])[0],
        configured=configured,
        learnt_from={name: rating_agreement.sources(scorers.nodes[node]) for name, node in configured.items()},
        terms=identity.term_texts(config.recipe.terms, config.seed),
        intervals=Bootstrap(resamples=config.measure.resamples, seed=config.seed),
        cache=label_cache(config),
    )


def pipeline(job: Job, plan: Plan) -> None:
    """Run the stages in their order."""
    using, intervals = {"cache": plan.cache}, plan.intervals
    labels = job.stage("labels", rating_agreement.label_described, plan.rated, plan.scorers, using=using)
    labels = job.stage("unseen", label_unseen, labels, using=using)
    scorers = [*plan.scorers, plan.crowd]
    texts = job.stage("identity_labels", identity.label_identity_terms, scorers, plan.terms, using=using)
    terms = job.stage("identity", identity.measure_identity_terms, texts, plan.names, intervals)
    found = job.stage("metrics", rating_agreement.measure_all, labels, texts, terms, plan.names, intervals)
    job.stage("results", of_study, found)
    job.stage("speed", rating_agreement.measure_speed, plan.rated, scorers)
    job.stage("policies", drop_rules, labels, plan.policies, intervals, RESOURCES)


def record(job: Job, plan: Plan) -> None:
    """Record the figures, and leave the tables in the run folder as CSV files."""
    tables = tables_of(job.results, plan)
    for name, table in tables.items():
        write(job.folder / f"{name}.csv", table.write_csv())
    classifiers = rated_scorers.classifiers(tables["intervals"], plan.learnt_from)
    write(job.folder / "classifiers.md", as_markdown(classifiers))
    job.tracking.summarise(job.results["metrics"].facts() | as_metrics(tables["policies"]))


def tables_of(results: Mapping[str, Result], plan: Plan) -> dict[str, pl.DataFrame]:
    """The tables of a run by the names of their files."""
    found, terms = results["metrics"].facts(), results["identity"].table()
    speed = dict(results["speed"].table().select("scorer", rating_agreement.SPEED).iter_rows())
    sources = plan.rated["resource"].unique(maintain_order=True).to_list()
    parts = [key.removesuffix("/sentences") for key in found if key.endswith("/sentences")]
    parts.sort(key=lambda part: (sources.index(part.split(", ")[0]), part))  # each source, then its parts
    return {
        "agreement": rating_agreement.agreement_table(found, sources, plan.names),
        "intervals": rating_agreement.interval_table(found, parts, plan.names, speed),
        "measured": rating_agreement.measured_table(found, plan.configured),
        "policies": results["policies"].table(),
        "identity": terms,
        "identity_summary": identity.identity_summary(terms),
    }


def scorers_of(configured: Scorers, policies: list[Policy]) -> list[Scorer]:
    """The scorers that are compared with people, those of score.extra, and those that policies read. Without the crowd
    classifier, which has learnt from these ratings and labels each statement without those of its target."""
    found = configured.rated([*HELD_OUT, *(name for name in configured.score.extra if name != CROWD)])
    for policy in policies:
        found += configured.of_policy(policy)
    return list({scorer.name: scorer for scorer in found if scorer.name != CROWD}.values())


def drawn(rated: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Draw so many rated statements of each source by the seed; None: all."""
    if size is None:
        return rated
    parts = rated.partition_by("resource", maintain_order=True)
    return pl.concat(part.sample(min(size, part.height), seed=seed, shuffle=False) for part in parts)


def read(root: str | None) -> pl.DataFrame:
    """The crowd's statements (ratings.rated.read_rated). Those of the filtered COMeT, which were published later than
    the other sets, are left out where the folder lacks them."""
    folder = root_with(root, ["humans"])
    names = [*RESOURCES, *([FILTERED] if FILTERED in rated_sets(folder / "humans") else [])]
    return read_rated(folder, names)
