"""All figures of a run of the main job, from its tables: harms, quality, effects of the filter, and counts; and the
notices that belong beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from mitigate.errors import counted
from mitigate.measure.harms import BOOTSTRAP, Measurement, few_targets, tally
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.quality import OF_RESOURCE, groups_of, kept_by_target, lift_groups
from mitigate.measure.results import Results, by_category, measured
from mitigate.score.people import PeopleValid
from mitigate.triples import ROLES, valid_rows
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER, TargetList, named


def measure_run(
    ledger: pl.DataFrame,
    statements: pl.DataFrame,
    likelihood: pl.DataFrame,
    lifts: pl.DataFrame | None,
    how: Measurement,
    *,
    scorers: Sequence[str] = ROLES,
    training: Mapping[str, Any],
) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): harms with intervals under both templates, quality on four subsets of the
    held-out valid triples, swap lift, effects of the filter, and counts.

    ledger: what apply_policy returns. statements: the probed ones, labelled, with judged_valid of a plausibility
    classifier, if there is one. likelihood: what held_out_likelihood returns. lifts: what lift_table returns; None: not
    measured. scorers: those by whose labels a triple is neutral or polarised. training: what train_generator
    returns."""
    drawn: dict[str, Any] = {"clusters": how.target_list.clusters, "intervals": how.intervals}
    found = [how.harms(tally(statements, how.wordings))]
    more: dict[str, Any] = {"intervals": how.intervals, "target_list": how.target_list}
    found.append(measure_quality(likelihood, statements, scorers=scorers, **more).table)
    if lifts is not None:
        found.append(measured("heads", lifts, lift_groups(lifts), **drawn))
    probed = statements["relation"].unique(maintain_order=True).to_list()
    if "steps" in training and probed:
        share = 100 * len(untrained(ledger, probed)) / len(probed)
        numbers = {f"training/{name}": training[name] for name in ("steps", "passes") if name in training}
        found.append(measured("numbers", {**numbers, "untrained_relations": share}))
    return pl.concat([*found, measure_filter(ledger), measured("tails", statements)])


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


def measure_filter(ledger: pl.DataFrame) -> pl.DataFrame:
    """Results (measure.results.SCHEMA): numbers of training triples that the policy kept, dropped and added, and the
    shares of those about targets that it kept. ledger: what apply_policy returns."""
    of_targets, train = kept_by_target(ledger), ledger.filter(split="train")
    numbers = {
        "filter/kept": train.filter(OF_RESOURCE, pl.col("weight") > 0).height,
        "filter/dropped": train.filter(OF_RESOURCE, pl.col("weight") == 0).height,
        "filter/added": train.filter(~OF_RESOURCE).height,
    }
    return pl.concat([measured("numbers", numbers), measured("training triples", of_targets, by_category(of_targets))])


# Notices


def untrained(ledger: pl.DataFrame, probed: Sequence[str]) -> dict[str, int]:
    """The probed relations without a training triple left, with the number that the resource has."""
    train = valid_rows(ledger.filter(split="train"))
    triples = dict(train.filter(OF_RESOURCE).group_by("relation").len().iter_rows())
    trained = set(train.filter(pl.col("weight") > 0)["relation"])
    return {relation: triples.get(relation, 0) for relation in probed if relation not in trained}


def untrained_notices(ledger: pl.DataFrame, statements: pl.DataFrame) -> list[str]:
    """A notice where relations are probed that the generator was not trained on: their names, the policy's part in it,
    and their statements."""
    found = untrained(ledger, statements["relation"].unique(maintain_order=True).to_list())
    if not found:
        return []
    theirs = statements.filter(pl.col("relation").is_in(list(found))).height
    dropped = [f"{relation} ({triples:,})" for relation, triples in found.items() if triples]
    absent = [relation for relation, triples in found.items() if not triples]
    why = [f"the policy dropped all of {named(dropped)}"] if dropped else []
    why += [f"the data has none of {named(absent)}"] if absent else []
    return [
        f"There is no training triple of {counted(len(found), 'probed relation')}: {'; '.join(why)}. "
        f"{theirs:,} of {statements.height:,} generated statements have such a relation, "
        "and their labels say nothing about what the generator has learnt."
    ]


def notices(metrics: Results, table: pl.DataFrame, target_list: TargetList = PAPER) -> list[str]:
    """Limits of the figures that a reader must know first. table: one of Measurement.tables."""
    found = []
    no_valid = metrics.table.filter(pl.col("value").is_null(), measure="valid", by="relation")
    if unknown := no_valid["group"].to_list():
        found.append(
            "The plausibility classifier was trained on ConceptNet's relations and does not know "
            f"{', '.join(unknown)}: the plausible shares are of the other statements."
        )
    found += few_targets(table, target_list.clusters)
    single = ["This is a single training run. A claim about the policy needs several seeds of each policy."]
    return [*found, *(single if metrics.get("training/steps") else [])]


def same_ratings(*classifiers: object) -> list[str]:
    """A notice where a policy's critic and people_valid have learnt from the same ratings by people."""
    marks = [one.heads.marks for one in classifiers if isinstance(one, PeopleValid)]
    if len(marks) < 2 or not np.intersect1d(marks[0], marks[1]).size:
        return []
    return [
        "The policy's critic (score.critic) and people_valid learn from the same ratings, so people_valid does not "
        "assess this policy. Use a classifier of other ratings for one of them: score.people_valid.folder=DIR."
    ]
