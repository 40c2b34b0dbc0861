"""All figures of a run of the main job, from its tables: harms, quality, effects of the filter, and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.measure.base import key_of
from mitigate.measure.caveats import few_targets
from mitigate.measure.filtered import measure_filter, named, untrained
from mitigate.measure.harms import EmptyTargets, harm_results, neutral_mean
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.lift import lift_groups
from mitigate.measure.quality import groups_of, with_known
from mitigate.measure.results import Results, measured
from mitigate.measure.tables import BOOTSTRAP, per_target_tables, wordings
from mitigate.triples import ROLES, label_columns
from mitigate.words.outside_text import counted
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER, TargetList


@dataclass(frozen=True)
class RunMeasurement:
    """The targets and scorers that the harms of a run are measured with, and how."""

    targets: pl.DataFrame  # (target, category)
    scorers: Sequence[str] = ROLES  # by which test triples and statements are also neutral or polarised
    extras: Sequence[str] = ()  # held-out scorers
    target_list: TargetList = PAPER
    intervals: Bootstrap = BOOTSTRAP
    empty_targets: EmptyTargets = "exclude"

    def tables(self, statements: pl.DataFrame, scorers: Sequence[str] | None = None) -> dict[str, pl.DataFrame]:
        """The result of per_target_tables, by default for the scorers without the extras."""
        return per_target_tables(
            statements, self.targets, self.empty_targets, self.scorers if scorers is None else scorers
        )


def measure_run(
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    likelihood: pl.DataFrame,
    lifts: pl.DataFrame | None,
    published: pl.DataFrame | None,
    how: RunMeasurement,
    *,
    training: Mapping[str, Any],
) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): harms with intervals under both templates, quality on four subsets of the
    held-out valid triples, swap lift, perplexity on published triples about targets, effects of the filter, and counts.

    ledger: what apply_policy returns. statements: the probed ones, labelled, with judged_valid of a plausibility
    classifier, if there is one. likelihood: what held_out_likelihood returns. lifts: what lift_table returns;
    published: what published_likelihood returns; None: not measured. training: what train_generator returns."""
    scorers, deciding = [*how.scorers, *how.extras], how.scorers
    drawn: dict[str, Any] = {"clusters": how.target_list.clusters, "intervals": how.intervals}
    tables = how.tables(statements, scorers)
    found = [harm_results(tables, wordings(tables, scorers), how.target_list.clusters, how.intervals)]
    more: dict[str, Any] = {"intervals": how.intervals, "target_list": how.target_list}
    found.append(measure_quality(likelihood, statements, scorers=deciding, **more).table)
    if lifts is not None:
        found.append(measured("heads", lifts, lift_groups(lifts), **drawn))
    if published is not None:
        found.append(measured("published triples", published, groups_of("published triples", published, deciding)))
    probed = statements["relation"].unique(maintain_order=True).to_list()
    if "steps" in training and probed:
        share = 100 * len(untrained(ledger, probed)) / len(probed)
        found.append(measured("training", {**training, "untrained_relations": share}))
    known = with_known(statements, ledger.filter(pl.col("split") == "train", pl.col("weight") > 0))
    return pl.concat([*found, measure_filter(ledger), measured("tails", known)])


def measure_quality(
    likelihood: pl.DataFrame,
    statements: pl.DataFrame | None = None,
    *,
    scorers: Sequence[str] = ROLES,
    intervals: Bootstrap = BOOTSTRAP,
    target_list: TargetList = PAPER,
) -> Results:
    """A generator's quality: figures of test triples, and of statements that a classifier labelled, as a mapping by
    their keys in metrics.json.

    likelihood: what held_out_likelihood returns, of labelled triples. statements: labelled ones that were probed,
    perhaps with judged_valid (score.plausibility) and people_validity (score.people). scorers: those by whose labels a
    triple is neutral or polarised."""
    tables = {"test triples": likelihood}
    if statements is not None:
        tables |= {"statements": statements, "rated statements": statements.filter(pl.col("relation").is_in(RATED))}
    drawn: dict[str, Any] = {"clusters": target_list.clusters, "intervals": intervals}
    found = [measured(of, rows, groups_of(of, rows, scorers), **drawn) for of, rows in tables.items()]
    return Results(pl.concat(found))


def notices(metrics: Results, table: pl.DataFrame, target_list: TargetList = PAPER) -> list[str]:
    """Limits of the figures that a reader must know first. table: one of per_target_tables."""
    found = []
    if metrics[key_of("perplexity")] is None and metrics[key_of("triples")]:
        found.append(
            "Perplexity and bits per character are not measured: this generator is a file of tails, which gives no "
            "probabilities."
        )
    no_valid = metrics.table.filter(pl.col("value").is_null(), measure="valid", by="relation")
    if unknown := no_valid["group"].to_list():
        found.append(
            "The plausibility classifier was trained on ConceptNet's relations and does not know "
            f"{', '.join(unknown)}: plausible shares are of the other statements."
        )
    found += few_targets(table, target_list)
    found.append("This is a single training run: a claim about the policy needs several seeds of each policy.")
    return found


def untrained_notices(ledger: pl.DataFrame, statements: pl.DataFrame, how: RunMeasurement) -> list[str]:
    """A notice where relations are probed that the generator was not trained on: their names, the policy's part in it,
    their statements, and the neutral means without them. ledger: what apply_policy returns; statements: the probed
    ones, labelled."""
    found = untrained(ledger, statements["relation"].unique(maintain_order=True).to_list())
    if not found:
        return []
    theirs = statements.filter(pl.col("relation").is_in(list(found)))
    dropped = [f"{relation} ({triples:,})" for relation, triples in found.items() if triples]
    absent = [relation for relation, triples in found.items() if not triples]
    why = [f"the policy dropped all of {named(dropped)}"] if dropped else []
    why += [f"the data has none of {named(absent)}"] if absent else []
    means = _means_without(statements, theirs, how) if dropped else ""
    return [
        f"{counted(len(found), 'probed relation')} without a training triple: {'; '.join(why)}. {theirs.height:,} of "
        f"{statements.height:,} generated statements have such a relation, and their labels say nothing about what the "
        f"generator has learnt{means}."
    ]


def _means_without(statements: pl.DataFrame, theirs: pl.DataFrame, how: RunMeasurement) -> str:
    """The neutral means with and without some of the statements, in words."""
    others = statements.join(theirs.select("relation").unique(), on="relation", how="anti", maintain_order="left")
    if others.is_empty():
        return "; no other statement is left"
    found = []
    for name in how.scorers:
        column = label_columns(name, "neutral")[0]
        means = [neutral_mean(how.tables(part, [name])[column]).value for part in (statements, others)]
        if None not in means:
            found.append(f"{key_of('neutral_mean', name)} is {means[0]:.1f} with them and {means[1]:.1f} without")
    return f" (neutral template: {'; '.join(found)})" if found else ""


def unanswered(statements: pl.DataFrame, targets: pl.DataFrame, relations: Sequence[str]) -> list[str]:
    """A notice where a generator, such as a file of tails, has no tail for some targets and relations."""
    pairs = targets.height * len(relations)
    lacking = pairs - statements.select("target", "relation").n_unique()
    return [f"The generator has no tail for {lacking:,} of {pairs:,} pairs of target and relation."] if lacking else []
