"""Quality of a generator without raters: perplexity, the share of its triples that a plausibility classifier accepts,
swap lift, the dependence of its tails on the target, and the training triples about targets that a policy keeps."""

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from mitigate.measure.base import Estimate, measure, number
from mitigate.measure.intervals import Bootstrap, Interval, cluster_numbers
from mitigate.measure.results import ALL, Groups
from mitigate.triples import NEUTRAL, OTHER, ROLES, label_columns

LARGEST = 700.0  # its exp is in the range of a float
FEWEST = 10
"""The fewest triples about a target for which its own share is used as the lowest one."""
BY_LABEL = ("neutral", "polar")
"""The groups that depend on scorers' labels."""
GENERATOR = "generator"
OF_RESOURCE = pl.col("source_row").is_null()  # the policy made the others
LIFT, PERPLEXITY = "quality/swap_lift/all", "quality/perplexity/neutral"
PEOPLE_VALID, PLAUSIBLE = "quality/people_valid/neutral", "quality/valid/all"
"""Keys of figures of quality that are shown beside those of harm."""


def is_neutral(scorers: Sequence[str] = ROLES) -> pl.Expr:
    """Expression that is true where all scorers label a statement neutral with the neutral template, so that the
    phrase alone makes none polarised. Without scorers every statement is neutral."""
    labels = [pl.col(label_columns(scorer, "neutral")[0]) for scorer in scorers]
    return pl.all_horizontal(pl.lit(True), *(label.is_in([NEUTRAL, OTHER]) for label in labels))


def groups_of(of: str, table: pl.DataFrame, scorers: Sequence[str] = ROLES) -> Groups:
    """The groups of rows that figures of test triples, statements or rated statements are of, as conditions. Without
    scorers there are no neutral and polarised rows."""
    tests = dict(zip(BY_LABEL, (is_neutral(scorers), ~is_neutral(scorers)), strict=True)) if scorers else {}
    found = {ALL: pl.lit(True), **{("subset", name): test for name, test in tests.items()}}
    if of == "test triples":
        return found | {("subset", "target"): pl.col("target").is_not_null()}
    if of == "statements":
        categories = table["category"].unique(maintain_order=True)
        found |= {("subset", name): pl.col("category") == name for name in categories}
    else:
        profession = found["subset", "profession"] = pl.col("category") == "profession"
        found |= {("subset", "profession/neutral"): profession & is_neutral(scorers)} if scorers else {}
    relations = table["relation"].unique(maintain_order=True)
    return found | {("relation", name): pl.col("relation") == name for name in relations}


# Test triples

of_triples = partial(measure, of="test triples")


@of_triples("perplexity", "perplexity", unit="", better="down", headline="cost", headline_group="neutral")
def perplexity(scored: pl.DataFrame) -> float | None:
    """exp of the mean nll per token, the end token included; None without triples, for a generator without
    probabilities (nll NaN), and where it exceeds the range of a float. 1 is certainty."""
    mean = float(scored["nll"].sum()) / max(1, int(scored["tokens"].sum()))
    return math.exp(mean) if scored.height and mean < LARGEST else None  # NaN is not less


@of_triples("unigram_perplexity", "perplexity of a unigram model", unit="", needs="nll_unigram")
def unigram_perplexity(scored: pl.DataFrame) -> float | None:
    """The perplexity of a model that knows nothing but how often each token occurs in the training tails; None without
    triples. A generator that is no better has not learnt."""
    return perplexity(scored.with_columns(nll="nll_unigram"))


@of_triples("triples", "held-out triples", unit="count", decimals=0, family="count")
def count(rows: pl.DataFrame) -> int:
    """The number of rows."""
    return rows.height


# Statements


def best_threshold(scores: np.ndarray, valid: np.ndarray) -> float:
    """The score above which to call a triple valid, so that most of these labelled triples are classified correctly:
    halfway between two neighbouring scores, the lowest pair where several are equally good.

    scores (n,), valid (n,) bool, of two triples at least."""
    order = np.argsort(scores, kind="stable")
    ascending = scores[order]
    right = valid.sum() + np.cumsum(np.where(valid[order], -1, 1))[:-1]  # with the threshold behind each but the last
    right[ascending[:-1] == ascending[1:]] = -1  # nothing lies between equal scores
    place = int(np.argmax(right))
    return float((ascending[place] + ascending[place + 1]) / 2)


def share_by_target(statements: pl.DataFrame, column: str) -> pl.DataFrame:
    """A row for each target: target, and share, the mean of a column in percent. Rows where it is null do not count."""
    known = statements.filter(pl.col(column).is_not_null())
    return known.group_by("target", maintain_order=True).agg(share=100 * pl.col(column).mean())


@measure("valid", "accepted as plausible", of="statements", better="up", needs="judged_valid", headline="quality")
def plausible_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that are accepted as plausible (judged_valid)."""
    return share_by_target(statements, "judged_valid")


@measure(
    "people_valid",
    "valid to people",
    of="rated statements",
    better="up",
    needs="people_validity",
    headline="quality",
    headline_group="neutral",
)
def valid_by_target(statements: pl.DataFrame) -> pl.DataFrame:
    """The percentage of each target's statements that people would call valid: their mean probability."""
    return share_by_target(statements, "people_validity")


# Tails


@measure("distinct_tails", "distinct tails", of="tails", better="up", headline="quality")
def distinct_tails(probed: pl.DataFrame) -> float | None:
    """The number of distinct (relation, tail) pairs as a percentage of probed triples (target, relation, tail): 100 if
    no two targets share a tail, 100 / targets if all have the same. Where it is low the generator ignores the target,
    and its figures of harm mean nothing. None without triples."""
    return 100 * probed.select("relation", "tail").n_unique() / probed.height if probed.height else None


@measure("empty_tails", "empty tails", of="tails", better="down")
def empty_tails(probed: pl.DataFrame) -> float | None:
    """The percentage of generated tails without any letter or digit; None without tails."""
    empty = probed.filter(~pl.col("tail").str.contains(r"[\p{L}\p{N}]")).height
    return 100 * empty / probed.height if probed.height else None


@measure("shared_tails", "tails shared between targets", of="tails", better="down", headline="quality")
def shared_tails(probed: pl.DataFrame) -> float | None:
    """The probability, in percent, that one target's tail is also another's with the same relation: 0 if no two targets
    share a tail, 100 if all have the same, whatever their number. None for a single target."""
    distinct = probed.select("target", "relation", "tail").unique(maintain_order=True)  # sums in one order
    others = distinct.select(pl.col("target").n_unique().over("relation") - 1).to_series().to_numpy().astype(float)
    sharers = distinct.select(pl.len().over("relation", "tail") - 1).to_series().to_numpy().astype(float)
    has_others = others > 0
    return float(100 * np.mean(sharers[has_others] / others[has_others])) if has_others.any() else None


# Swap lift

lifted = partial(measure, of="heads", better="up", source="this project")


@lifted("swap_lift", "swap lift", headline="quality")
def lift(heads: pl.DataFrame) -> Estimate:
    """The mean over prompts of the percentage of tails accepted as plausible with their own head, minus that with other
    heads. 0: the tails suit other heads as well; 100: all are accepted, and with no other head."""
    return lift_of(heads, GENERATOR)


def lift_of(heads: pl.DataFrame, system: str) -> Estimate:
    """The swap lift of the generator or of one of BASELINES, in percentage points. All groups of heads have the same
    weight, and so have the prompts of one group. The interval is over heads (BCa; prompts about one head, and
    inflections of one word, are drawn together).

    heads: system, counts, group, head, accepted, elsewhere. A generator that has the same tails for every head scores 0
    by construction, because measure.lift.other_heads takes each head equally often; one that repeats the head scores 0
    or less. The idea is that of permuted pairs in evaluations of dialogue and retrieval: a reply that suits any
    question does not answer this one."""
    rows = heads.filter(pl.col("counts"), system=system)
    if rows.is_empty():
        return Estimate(None, n=0)
    values = (rows["accepted"] - rows["elsewhere"]).to_numpy()
    weights = rows.select(1 / pl.len().over("group")).to_series().to_numpy()
    value = float((weights * values).sum() / weights.sum())

    def interval(intervals: Bootstrap, clusters: Mapping[str, str]) -> Interval:
        return intervals.mean(values, cluster_numbers(rows, clusters, "head"), weights)

    value = 0.0 if abs(value) < 1e-9 else value  # rounding
    return Estimate(value, interval if system == GENERATOR else None, rows["head"].n_unique())


BASELINES = {
    "echo": "a generator that repeats the head: 0 or less",
    "constants": "the commonest neutral tails of the relation, the same for every head: 0",
    "random": "tails drawn from the relation's training triples: about 0",
    "oracle": "the true tails of held-out triples, and for targets of the most plausible tail that is known: what a "
    "generator can reach at most",
}
"""Generators with which swap lift is compared."""
for name, said in BASELINES.items():
    declared = lifted(f"swap_lift_{name}", f"swap lift of {name}", meaning=f"The swap lift of {said}.")
    declared(lambda heads, system=name: lift_of(heads, system))


# Training triples


def kept_by_target(ledger: pl.DataFrame) -> pl.DataFrame:
    """A row for each target that training triples are about: target, category, triples before the policy, and `kept`
    after it. A policy that removes all triples about a target makes the generator neutral about it.

    ledger: the result of apply_policy; triples that a policy adds do not count."""
    about = ledger.filter(pl.col("target").is_not_null(), OF_RESOURCE, split="train")
    groups = about.group_by("target", "category", maintain_order=True)
    return groups.agg(triples=pl.len(), kept=(pl.col("weight") > 0).sum())


covered = partial(measure, of="training triples", better="up")


@covered("coverage", "training triples about targets that are kept", key="coverage/triples", headline="cost")
def kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about targets that is kept; None where there is none."""
    return 100 * int(table["kept"].sum()) / total if (total := int(table["triples"].sum())) else None


@covered("least_coverage", "triples kept of the target that keeps the fewest", key="coverage/least", headline="cost")
def least_kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about a target that is kept, of the target that keeps least, among those with at
    least FEWEST."""
    enough = table.filter(pl.col("triples") >= FEWEST)
    return enough.select((100 * pl.col("kept") / pl.col("triples")).min()).item()


for name, title, meaning, more in (
    ("kept", "training triples kept", "that the policy kept, at any weight", {"headline": "cost"}),
    ("dropped", "training triples dropped", "that the policy dropped", {}),
    ("added", "training triples added", "that the policy added", {}),
):
    number(f"filter/{name}", title, f"The number of training triples {meaning}.", family="filter", **more)
trained = partial(number, family="training")
trained("training/steps", "training steps", "The number of training steps, in batches.")
trained(
    "training/passes",
    "passes over the training triples",
    "The mean number of times that the training used each triple.",
    decimals=1,
)
trained(
    "untrained_relations",
    "relations without a training triple",
    "The percentage of the probed relations without a training triple. 0: every relation has one.",
    **{"unit": "%", "better": "down", "decimals": 1},
)
