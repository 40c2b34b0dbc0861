"""All figures of a run of the main job, from its tables: harms, quality, effects of the filter, and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.measure import harms
from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.harms import EmptyTargets
from mitigate.metrics import (
    FREQUENT_RELATIONS,
    PUBLISHED,
    UNTRAINED_RELATIONS,
    prefixed,
    quality_key,
    unknown_relations,
)
from mitigate.tasks.caveats import few_targets
from mitigate.tasks.crowd.accuracy import Accuracies, corrected_figures, of_rated_relations, probable_figures
from mitigate.tasks.generators.swap_lift import lift_figures
from mitigate.tasks.harms import BOOTSTRAP, harm_figures, per_target_tables
from mitigate.tasks.policies.filtered import OF_RESOURCE, measure_filter, named, training_figures, untrained
from mitigate.tasks.quality import figures_by_group, measure_quality, tail_figures
from mitigate.triples import ROLES, label_columns
from mitigate.words.outside_text import counted
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
    accuracies: Accuracies | None = None  # of scorers, for shares corrected for their errors

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
    about: Mapping[str, Any],
    training: Mapping[str, Any],
) -> dict[str, Any]:
    """All metrics by their keys in metrics.json: harms with intervals under both templates, the neutral means and
    variances without relations rare in training, quality on four subsets of the held-out valid triples, swap lift,
    perplexity on published triples about targets, effects of the filter, and counts. about: facts of the run, which
    come first. training: what train_generator returns.

    ledger: what apply_policy returns. statements: the probed ones, labelled, with judged_valid of a plausibility
    classifier, if there is one. likelihood: what held_out_likelihood returns. lifts: what lift_table returns;
    published: what published_likelihood returns; None: not measured."""
    scorers, intervals, target_list = [*how.scorers, *how.extras], how.intervals, how.target_list
    tables = how.tables(statements, scorers)
    metrics = {**about, **harm_figures(tables, scorers, intervals, target_list)}
    if how.accuracies:
        rated = how.tables(of_rated_relations(statements), list(dict.fromkeys(scorer for scorer, _ in how.accuracies)))
        metrics |= corrected_figures(rated, how.accuracies, target_list.clusters)
    metrics |= probable_figures(statements, scorers, intervals, target_list.clusters)
    train_counts = ledger.filter(pl.col("split") == "train", OF_RESOURCE)["relation"].value_counts()
    frequent = harms.without_rare_relations(statements, dict(train_counts.iter_rows()))
    if frequent.height < statements.height:
        metrics |= prefixed(harm_figures(how.tables(frequent, scorers), scorers), variant=FREQUENT_RELATIONS)
    deciding = how.scorers
    metrics |= measure_quality(likelihood, statements, scorers=deciding, intervals=intervals, target_list=target_list)
    metrics |= {} if lifts is None else lift_figures(lifts, intervals, target_list)
    metrics |= {} if published is None else figures_by_group(PUBLISHED, published, deciding)
    if trained := training_figures(training):
        probed = statements["relation"].unique(maintain_order=True).to_list()
        lacking = len(untrained(ledger, probed))
        metrics |= {**trained, UNTRAINED_RELATIONS: 100 * lacking / len(probed) if probed else None}
    metrics |= measure_filter(ledger)
    metrics |= harms.counts(next(iter(tables.values())))
    return metrics | tail_figures(statements, ledger.filter(pl.col("split") == "train", pl.col("weight") > 0))


def notices(metrics: Mapping[str, Any], table: pl.DataFrame, target_list: TargetList = PAPER) -> list[str]:
    """Limits of the figures that a reader must know first. table: one of per_target_tables."""
    found = []
    if metrics[quality_key("perplexity")] is None and metrics[quality_key("triples")]:
        found.append(
            "Perplexity and bits per character are not measured: this generator is a file of tails, which gives no "
            "probabilities."
        )
    if unknown := unknown_relations(metrics):
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
        key, column = harms.neutral_names(name)[0], label_columns(name, "neutral")[0]
        means = [harms.neutral_metrics(how.tables(part, [name])[column], name)[key] for part in (statements, others)]
        if None not in means:
            found.append(f"{key} is {means[0]:.1f} with them and {means[1]:.1f} without")
    return f" (neutral template: {'; '.join(found)})" if found else ""


def unanswered(statements: pl.DataFrame, targets: pl.DataFrame, relations: Sequence[str]) -> list[str]:
    """A notice where a generator, such as a file of tails, has no tail for some targets and relations."""
    pairs = targets.height * len(relations)
    lacking = pairs - statements.select("target", "relation").n_unique()
    return [f"The generator has no tail for {lacking:,} of {pairs:,} pairs of target and relation."] if lacking else []
