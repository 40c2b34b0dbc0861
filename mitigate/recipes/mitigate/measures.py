"""Every figure of a run, from its tables, as the one flat object that metrics.json holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.measure import bootstrap, harms, quality, uncertainty, validity
from mitigate.measure.bootstrap import Bootstrap
from mitigate.probe.likelihood import bits_per_char, perplexity
from mitigate.recipes.mitigate.plan import Plan
from mitigate.targets import clusters
from mitigate.tasks import quality as parts
from mitigate.tasks.caveats import few_targets
from mitigate.tasks.quality import MANY_SHARED_TAILS, probed_parts, relation_parts, subsets
from mitigate.triples import TEMPLATE_PREFIX, TEMPLATES, label_columns

CODE = (harms, quality, validity, uncertainty, bootstrap, parts)
SCORERS = ("sentiment", "regard")
OF_RESOURCE = pl.col("source_row").is_null()  # the others are a policy's


def measure(plan: Plan, ledger: pl.DataFrame, statements: pl.DataFrame, likelihood: pl.DataFrame) -> dict[str, Any]:
    """All metrics: harms with intervals under both templates, quality on four subsets of the held-out valid
    triples, what the filter kept, and counts."""
    settings = plan.config.measure
    intervals = Bootstrap(resamples=settings.resamples, seed=plan.config.seed)
    metrics: dict[str, Any] = {
        "seed": plan.config.seed,
        "policy": plan.policy.name,
        "data": plan.config.data.name,
        "model": plan.config.model.name,
        "fingerprint": plan.source,
    }
    judges = (*SCORERS, *(scorer.name for scorer in plan.extras))
    tables = per_target_tables(statements, plan.targets, settings.empty_targets, judges)
    metrics |= _harms(tables, judges, intervals)
    frequent = harms.without_rare_relations(statements, _train_counts(ledger))
    if frequent.height < statements.height:
        without = per_target_tables(frequent, plan.targets, settings.empty_targets, judges)
        metrics |= {f"frequent_relations/{key}": value for key, value in _harms(without, judges).items()}
    metrics |= _quality(likelihood)
    if "judged_valid" in statements.columns:
        shares = probed_parts(statements) | relation_parts(statements)
        metrics |= validity.valid_metrics(statements, shares, clusters(), intervals)
    metrics |= _filter(ledger)
    metrics |= harms.counts(tables["sentiment"])
    metrics["distinct_tails"] = quality.distinct_tails(statements)
    metrics["shared_tails"] = quality.shared_tails(statements)
    train = ledger.filter(pl.col("split") == "train", pl.col("weight") > 0)
    metrics |= quality.novelty(statements, train)
    return metrics


def per_target_tables(
    statements: pl.DataFrame,
    targets: pl.DataFrame,
    empty_targets: harms.EmptyTargets,
    scorers: Sequence[str] = SCORERS,
) -> dict[str, pl.DataFrame]:
    """One row a target with its percentages, by label column: "sentiment", "sentiment_neutral", "regard" ..."""
    columns = [label_columns(scorer, template)[0] for scorer in scorers for template in TEMPLATES]
    return {column: harms.per_target(statements, column, targets, empty_targets) for column in columns}


def notices(metrics: Mapping[str, Any], statements: pl.DataFrame, targets: pl.DataFrame) -> list[str]:
    """What a reader must know before believing the numbers."""
    found = []
    if (metrics["shared_tails"] or 0) > MANY_SHARED_TAILS:
        found.append(
            f"A tail said of one target is said of another in {metrics['shared_tails']:.0f} % of cases: this "
            "generator hardly listens to the target, so its numbers say little about harm."
        )
    found += few_targets(harms.per_target(statements, "sentiment", targets))
    found.append("One trained model is one draw: a difference from another run needs several seeds to mean the policy.")
    return found


def _harms(
    tables: Mapping[str, pl.DataFrame], scorers: Sequence[str], intervals: Bootstrap | None = None
) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for scorer in scorers:
        for template in TEMPLATES:
            table = tables[label_columns(scorer, template)[0]]
            found = harms.neutral_metrics(table, scorer)
            if intervals is not None:
                found |= uncertainty.neutral_intervals(table, scorer, clusters(), intervals)
                found |= {f"{scorer}/{key}": value for key, value in harms.overgeneralisation(table).items()}
                found |= {
                    f"{scorer}/{key}": value
                    for key, value in harms.disparity(table).items()
                    if not key.startswith("D_R")  # equal by design: every target is asked the same questions
                }
            metrics |= {TEMPLATE_PREFIX[template] + key: value for key, value in found.items()}
    return metrics


def _quality(likelihood: pl.DataFrame) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for name, condition in subsets().items():
        part = likelihood.filter(condition)
        metrics[f"quality/perplexity/{name}"] = perplexity(part)
        metrics[f"quality/bits_per_char/{name}"] = bits_per_char(part)
        metrics[f"quality/bleu2/{name}"] = _bleu2(part)
        if "generated_valid" in part.columns:
            firsts = part.unique(["head", "relation"], maintain_order=True)
            metrics[f"quality/first_valid/{name}"] = quality.valid_share(firsts["generated_valid"])
        metrics[f"quality/triples/{name}"] = part.height
    return metrics


def _bleu2(likelihood: pl.DataFrame) -> float | None:
    """Of what the generator says first, against all held-out tails of the same head and relation."""
    grouped = likelihood.group_by("head", "relation", maintain_order=True).agg("tail", pl.col("generated").first())
    references = [[tail.split() for tail in tails] for tails in grouped["tail"]]
    return quality.bleu2([said.split() for said in grouped["generated"]], references)


def _train_counts(ledger: pl.DataFrame) -> dict[str, int]:
    train = ledger.filter(pl.col("split") == "train", OF_RESOURCE)
    return dict(train["relation"].value_counts().iter_rows())


def _filter(ledger: pl.DataFrame) -> dict[str, Any]:
    """Of the resource's training triples how many the policy kept, whatever they weigh, and dropped; how many it added;
    and what all weigh together."""
    train = ledger.filter(pl.col("split") == "train")
    known, kept = train.filter(OF_RESOURCE), train.filter(OF_RESOURCE, pl.col("weight") > 0)
    return {
        "filter/kept": kept.height,
        "filter/dropped": known.height - kept.height,
        "filter/added": train.height - known.height,
        "filter/weight": float(train["weight"].cast(pl.Float64).sum()),
    }
