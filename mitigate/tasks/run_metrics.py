"""All figures of a run of the main job, from its tables: harms, quality, effects of the filter, and counts."""

from collections.abc import Mapping, Sequence
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

NOTHING: Mapping[str, Any] = {}


def measure_run(
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    likelihood: pl.DataFrame,
    targets: pl.DataFrame,
    lifts: pl.DataFrame | None = None,
    published: pl.DataFrame | None = None,
    *,
    about: Mapping[str, Any] = NOTHING,
    training: Mapping[str, Any] = NOTHING,
    scorers: Sequence[str] = ROLES,
    deciding: Sequence[str] = ROLES,
    empty_targets: EmptyTargets = "exclude",
    intervals: Bootstrap = BOOTSTRAP,
    target_list: TargetList = PAPER,
    accuracies: Accuracies | None = None,
) -> dict[str, Any]:
    """All metrics by their keys in metrics.json: harms with intervals under both templates, the neutral means and
    variances without relations rare in training, quality on four subsets of the held-out valid triples, swap lift,
    perplexity on published triples about targets, effects of the filter, and counts. about: facts of the run, which
    come first. training: what train_generator returns. deciding: of the scorers, those by which test triples and
    statements are neutral or polarised. accuracies: sensitivity and specificity of scorers, for shares corrected for
    their errors.

    ledger: what apply_policy returns. statements: the probed ones, labelled, with judged_valid of a plausibility
    classifier, if there is one. likelihood: what held_out_likelihood returns. targets: (target, category). lifts: what
    lift_table returns; published: what published_likelihood returns; None: not measured."""
    tables = per_target_tables(statements, targets, empty_targets, scorers)
    metrics = {**about, **harm_figures(tables, scorers, intervals, target_list)}
    if accuracies:
        named = list(dict.fromkeys(scorer for scorer, _ in accuracies))
        rated = per_target_tables(of_rated_relations(statements), targets, empty_targets, named)
        metrics |= corrected_figures(rated, accuracies, target_list.clusters)
    metrics |= probable_figures(statements, scorers, intervals, target_list.clusters)
    train_counts = ledger.filter(pl.col("split") == "train", OF_RESOURCE)["relation"].value_counts()
    frequent = harms.without_rare_relations(statements, dict(train_counts.iter_rows()))
    if frequent.height < statements.height:
        without = per_target_tables(frequent, targets, empty_targets, scorers)
        metrics |= prefixed(harm_figures(without, scorers), variant=FREQUENT_RELATIONS)
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


def untrained_notices(
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    targets: pl.DataFrame,
    empty_targets: EmptyTargets = "exclude",
    scorers: Sequence[str] = ROLES,
) -> list[str]:
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
    means = _means_without(statements, theirs, targets, empty_targets, scorers) if dropped else ""
    return [
        f"{counted(len(found), 'probed relation')} without a training triple: {'; '.join(why)}. {theirs.height:,} of "
        f"{statements.height:,} generated statements have such a relation, and their labels say nothing about what the "
        f"generator has learnt{means}."
    ]


def _means_without(
    statements: pl.DataFrame,
    theirs: pl.DataFrame,
    targets: pl.DataFrame,
    empty_targets: EmptyTargets,
    scorers: Sequence[str],
) -> str:
    """The neutral means with and without some of the statements, in words."""
    others = statements.join(theirs.select("relation").unique(), on="relation", how="anti", maintain_order="left")
    if others.is_empty():
        return "; no other statement is left"
    found = []
    for name in scorers:
        key = harms.neutral_names(name)[0]
        column = label_columns(name, "neutral")[0]
        means = [
            harms.neutral_metrics(per_target_tables(part, targets, empty_targets, [name])[column], name)[key]
            for part in (statements, others)
        ]
        if None not in means:
            found.append(f"{key} is {means[0]:.1f} with them and {means[1]:.1f} without")
    return f" (neutral template: {'; '.join(found)})" if found else ""


def unanswered(statements: pl.DataFrame, targets: pl.DataFrame, relations: Sequence[str]) -> list[str]:
    """A notice where a generator, such as a file of tails, has no tail for some targets and relations."""
    pairs = targets.height * len(relations)
    lacking = pairs - statements.select("target", "relation").n_unique()
    return [f"The generator has no tail for {lacking:,} of {pairs:,} pairs of target and relation."] if lacking else []
