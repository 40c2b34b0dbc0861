"""Quality of a generator: likelihood of test triples, completions of them, plausible shares of generated statements and
their dependence on the target; and the parts of the data that these figures are on."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from mitigate.measure import accepted_share, quality
from mitigate.measure.bootstrap import Bootstrap
from mitigate.metrics import DISTINCT_TAILS, EMPTY_TAILS, PEOPLE_VALID, SHARED_TAILS, quality_key, relation_part
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns
from mitigate.words.target_list import PAPER, TargetList

BOOTSTRAP = Bootstrap()

BY_LABEL = ("neutral", "polar")
"""The parts that depend on scorers' labels."""


def is_neutral(scorers: Sequence[str] = ROLES) -> pl.Expr:
    """Expression that is true where all scorers label a statement neutral with the neutral template, so that the
    phrase alone makes none polarised. Without scorers every statement is neutral."""
    labels = [pl.col(label_columns(scorer, "neutral")[0]) for scorer in scorers]
    return pl.all_horizontal(pl.lit(True), *(label.is_in([NEUTRAL, OTHER]) for label in labels))


def subsets(scorers: Sequence[str] = ROLES) -> dict[str, pl.Expr]:
    """The held-out triples that each quality figure is on. Without scorers there are no neutral and polarised ones."""
    found = {"all": pl.lit(True)}
    if scorers:
        found |= dict(zip(BY_LABEL, (is_neutral(scorers), ~is_neutral(scorers)), strict=True))
    return found | {"target": pl.col("target").is_not_null()}


def probed_parts(statements: pl.DataFrame, scorers: Sequence[str] = ROLES) -> dict[str, pl.Expr]:
    """The generated statements that a plausible share is on: all, neutral, polarised, of a category."""
    parts = {name: condition for name, condition in subsets(scorers).items() if name != "target"}  # all are about one
    categories = statements["category"].unique(maintain_order=True)
    return parts | {category: pl.col("category") == category for category in categories}


def relation_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The statements of each relation."""
    relations = statements["relation"].unique(maintain_order=True)
    return {relation_part(relation): pl.col("relation") == relation for relation in relations}


def people_parts(statements: pl.DataFrame, scorers: Sequence[str] = ROLES) -> dict[str, pl.Expr]:
    """The generated statements that a people-valid share is on: all, neutral, polarised, those about professions, and
    of each relation. For other categories it would partly be the share of stereotypes that people hold."""
    parts = {name: condition for name, condition in subsets(scorers).items() if name != "target"}
    professions = pl.col("category") == "profession"
    neutral = {"profession/neutral": professions & is_neutral(scorers)} if scorers else {}
    return parts | {"profession": professions} | neutral | relation_parts(statements)


def measure_quality(
    likelihood: pl.DataFrame,
    statements: pl.DataFrame | None = None,
    *,
    scorers: Sequence[str] = ROLES,
    intervals: Bootstrap = BOOTSTRAP,
    target_list: TargetList = PAPER,
) -> dict[str, Any]:
    """A generator's quality by its keys in metrics.json: held_out_figures, and plausible_figures and people_figures of
    statements that a classifier labelled.

    likelihood: what held_out_likelihood returns, of labelled triples. statements: labelled ones that were probed,
    perhaps with judged_valid (score.plausibility) and people_validity (score.people). scorers: those by whose labels a
    triple is neutral or polarised."""
    metrics = held_out_figures(likelihood, scorers)
    if statements is not None and "judged_valid" in statements.columns:
        metrics |= plausible_figures(statements, intervals, scorers, target_list)
    if statements is not None and "people_validity" in statements.columns:
        metrics |= people_figures(statements, intervals, scorers, target_list)
    return metrics


def held_out_figures(likelihood: pl.DataFrame, scorers: Sequence[str] = ROLES) -> dict[str, Any]:
    """Perplexity, bits per character, BLEU-2, the plausible share of completions, and how many triples these rest on,
    for each of the subsets, by their keys in metrics.json.

    likelihood: what held_out_likelihood returns."""
    metrics: dict[str, Any] = {}
    for name, condition in subsets(scorers).items():
        part = likelihood.filter(condition)
        metrics[quality_key("perplexity", name)] = quality.perplexity(part)
        metrics[quality_key("bits_per_char", name)] = quality.bits_per_char(part)
        prompts = part.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
        references = [[tail.split() for tail in tails] for tails in prompts["tail"]]  # all tails of a prompt
        generated = [tail.split() for tail in prompts["generated"]]
        metrics[quality_key("bleu2", name)] = quality.bleu2(generated, references)
        if "generated_valid" in part.columns:
            firsts = part.unique(["head", "relation"], maintain_order=True)
            metrics[quality_key("first_valid", name)] = quality.valid_share(firsts["generated_valid"])
        metrics[quality_key("triples", name)] = part.height
    return metrics


def plausible_figures(
    statements: pl.DataFrame,
    intervals: Bootstrap,
    scorers: Sequence[str] = ROLES,
    target_list: TargetList = PAPER,
) -> dict[str, float | None]:
    """Percentages of probed statements that are accepted as plausible (judged_valid), with intervals over targets, for
    each of probed_parts and relation_parts."""
    parts = probed_parts(statements, scorers) | relation_parts(statements)
    return accepted_share.valid_metrics(statements, parts, target_list.clusters, intervals)


def people_figures(
    statements: pl.DataFrame,
    intervals: Bootstrap,
    scorers: Sequence[str] = ROLES,
    target_list: TargetList = PAPER,
) -> dict[str, float | None]:
    """Percentages of probed statements that people would call valid, the mean of their probabilities (people_validity),
    with intervals over targets, for each of people_parts."""
    parts, key = people_parts(statements, scorers), partial(quality_key, PEOPLE_VALID)
    return accepted_share.valid_metrics(statements, parts, target_list.clusters, intervals, key, "people_validity")


def tail_figures(statements: pl.DataFrame, train: pl.DataFrame) -> dict[str, Any]:
    """Dependence of generated tails on the target, and the shares of statements that the training triples lack."""
    return {
        DISTINCT_TAILS: quality.distinct_tails(statements),
        SHARED_TAILS: quality.shared_tails(statements),
        EMPTY_TAILS: quality.empty_tails(statements),
        **quality.novelty(statements, train),
    }
