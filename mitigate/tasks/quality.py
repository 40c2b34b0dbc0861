"""Quality of a generator: how likely it finds test triples, what it generates in their tails' place, how much of what
it generates is plausible, and whether that depends on the target at all; and the parts that these figures are on."""

from typing import Any

import polars as pl

from mitigate.measure import quality, validity
from mitigate.measure.bootstrap import Bootstrap
from mitigate.metrics import DISTINCT_TAILS, SHARED_TAILS, quality_key, relation_part
from mitigate.targets import clusters
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns

BOOTSTRAP = Bootstrap()
MANY_SHARED_TAILS = 50.0
"""Percent; beyond it what is generated is much the same for every target."""


def subsets() -> dict[str, pl.Expr]:
    """The held-out triples that each quality figure is on. Neutral is neutral under both scorers with the phrase
    neutralised: what the phrase alone would make polar is not."""
    neutral = pl.all_horizontal(pl.col(label_columns(scorer, "neutral")[0]).is_in([NEUTRAL, OTHER]) for scorer in ROLES)
    return {"all": pl.lit(True), "neutral": neutral, "polar": ~neutral, "target": pl.col("target").is_not_null()}


def probed_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The generated statements that a share of plausible ones is on: all, neutral, polar, of a category."""
    parts = {name: condition for name, condition in subsets().items() if name != "target"}  # all are about one
    categories = statements["category"].unique(maintain_order=True)
    return parts | {category: pl.col("category") == category for category in categories}


def relation_parts(statements: pl.DataFrame) -> dict[str, pl.Expr]:
    """The same for each relation."""
    relations = statements["relation"].unique(maintain_order=True)
    return {relation_part(relation): pl.col("relation") == relation for relation in relations}


def measure_quality(
    likelihood: pl.DataFrame, statements: pl.DataFrame | None = None, *, intervals: Bootstrap = BOOTSTRAP
) -> dict[str, Any]:
    """A generator's quality by its keys in metrics.json: held_out_figures, and where a plausibility classifier labelled
    what it generates, plausible_figures.

    likelihood: what held_out_likelihood returns, of triples labelled by sentiment and regard. statements: labelled ones
    that were probed, with judged_valid (score.plausibility) or without."""
    metrics = held_out_figures(likelihood)
    if statements is not None and "judged_valid" in statements.columns:
        metrics |= plausible_figures(statements, intervals)
    return metrics


def held_out_figures(likelihood: pl.DataFrame) -> dict[str, Any]:
    """Perplexity, bits per character, BLEU-2, the plausible share of completions, and how many triples these rest on,
    for each of the subsets, by their keys in metrics.json.

    likelihood: what tasks.likelihood.held_out_likelihood returns."""
    metrics: dict[str, Any] = {}
    for name, condition in subsets().items():
        part = likelihood.filter(condition)
        metrics[quality_key("perplexity", name)] = quality.perplexity(part)
        metrics[quality_key("bits_per_char", name)] = quality.bits_per_char(part)
        metrics[quality_key("bleu2", name)] = _bleu2(part)
        if "generated_valid" in part.columns:
            firsts = part.unique(["head", "relation"], maintain_order=True)
            metrics[quality_key("first_valid", name)] = quality.valid_share(firsts["generated_valid"])
        metrics[quality_key("triples", name)] = part.height
    return metrics


def plausible_figures(statements: pl.DataFrame, intervals: Bootstrap) -> dict[str, float | None]:
    """The share of probed statements (judged_valid) that is accepted as plausible, with its interval over targets, for
    each of probed_parts and relation_parts."""
    parts = probed_parts(statements) | relation_parts(statements)
    return validity.valid_metrics(statements, parts, clusters(), intervals)


def tail_figures(statements: pl.DataFrame, train: pl.DataFrame) -> dict[str, Any]:
    """How much what is generated depends on the target, and how much of it is not in the training triples."""
    return {
        DISTINCT_TAILS: quality.distinct_tails(statements),
        SHARED_TAILS: quality.shared_tails(statements),
        **quality.novelty(statements, train),
    }


def _bleu2(likelihood: pl.DataFrame) -> float | None:
    """Of what is generated first, against all held-out tails of the same head and relation."""
    grouped = likelihood.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
    references = [[tail.split() for tail in tails] for tails in grouped["tail"]]
    return quality.bleu2([tail.split() for tail in grouped["generated"]], references)
