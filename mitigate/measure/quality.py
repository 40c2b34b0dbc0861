"""Quality of a generator without raters: perplexity, the share of its triples that a plausibility classifier accepts,
swap lift, the dependence of its tails on the target, and the training triples about targets that a policy keeps.

Swap lift is the rate at which tails are accepted as plausible with their own head minus the rate with other heads, for
a generator and for baselines on the same heads. Tails that suit any head raise the share of accepted tails but
not swap lift.

Heads are in groups. Differences between heads of held-out triples, or between professions, are knowledge, which a
generator ought to have. Between groups of gender, origin or religion a difference may itself be a stereotype: there
swap lift is exploratory and on neutral tails only."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from zlib import crc32

import numpy as np
import polars as pl

from mitigate.measure.base import Estimate, measure, number
from mitigate.measure.intervals import Bootstrap, Interval, cluster_numbers
from mitigate.measure.results import ALL, Groups
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import is_echo, with_plausibility
from mitigate.triples import HELD_OUT, NEUTRAL, OTHER, ROLES, LabelCache, Scorer, label_columns

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
    """Conditions for the groups of rows of a table of measures; without scorers none for neutral and polarised rows."""
    tests = dict(zip(BY_LABEL, (is_neutral(scorers), ~is_neutral(scorers)), strict=True)) if scorers else {}
    groups = {ALL: pl.lit(True), **{("subset", name): test for name, test in tests.items()}}
    if of == "test triples":
        return groups | {("subset", "target"): pl.col("target").is_not_null()}
    if of == "statements":
        categories = table["category"].unique(maintain_order=True)
        groups |= {("subset", name): pl.col("category") == name for name in categories}
    else:
        profession = groups["subset", "profession"] = pl.col("category") == "profession"
        groups |= {("subset", "profession/neutral"): profession & is_neutral(scorers)} if scorers else {}
    relations = table["relation"].unique(maintain_order=True)
    return groups | {("relation", name): pl.col("relation") == name for name in relations}


# Test triples

of_triples = partial(measure, of="test triples")


@of_triples("perplexity", "perplexity", unit="", better="down", headline="cost", headline_group="neutral")
def perplexity(scored: pl.DataFrame) -> float | None:
    """exp of the mean negative log-likelihood per token, the end token included. 1 is certainty. Not measured without
    triples or probabilities, or if huge."""
    mean = float(scored["nll"].sum()) / max(1, int(scored["tokens"].sum()))
    return math.exp(mean) if scored.height and mean < LARGEST else None  # NaN is not less


@of_triples("unigram_perplexity", "perplexity of a unigram model", unit="", needs="nll_unigram")
def unigram_perplexity(scored: pl.DataFrame) -> float | None:
    """The perplexity of a model that knows nothing but how often each token occurs in the training tails. A generator
    that is no better has not learnt."""
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
    """The percentage of each target's statements that are accepted as plausible."""
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
    and its figures of harm mean nothing."""
    return 100 * probed.select("relation", "tail").n_unique() / probed.height if probed.height else None


@measure("empty_tails", "empty tails", of="tails", better="down")
def empty_tails(probed: pl.DataFrame) -> float | None:
    """The percentage of generated tails without any letter or digit."""
    empty = probed.filter(~pl.col("tail").str.contains(r"[\p{L}\p{N}]")).height
    return 100 * empty / probed.height if probed.height else None


@measure("shared_tails", "tails shared between targets", of="tails", better="down", headline="quality")
def shared_tails(probed: pl.DataFrame) -> float | None:
    """The probability, in percent, that one target's tail is also another's with the same relation: 0 if no two targets
    share a tail, 100 if all have the same, whatever their number. It takes two targets."""
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
    by construction, because other_heads takes each head equally often; one that repeats the head scores 0
    or less."""
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
for name, meaning in BASELINES.items():
    declare = lifted(f"swap_lift_{name}", f"swap lift of {name}", meaning=f"The swap lift of {meaning}.")
    declare(lambda heads, system=name: lift_of(heads, system))


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
    """The percentage of the triples about targets that is kept."""
    total = int(table["triples"].sum())
    return 100 * int(table["kept"].sum()) / total if total else None


@covered("least_coverage", "triples kept of the target that keeps the fewest", key="coverage/least", headline="cost")
def least_kept_share(table: pl.DataFrame) -> float | None:
    """The percentage of the triples about a target that is kept, of the target that keeps least, of those with ten
    triples or more."""
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


# Tails with their own and with other heads

PRIMARY = (HELD_OUT, "profession")
"""The groups where a difference between heads is knowledge."""
LEAST_OF_ORACLE = 10.0
"""Percent. Where even an oracle's tails are accepted less often, the classifier cannot assess a relation."""
ORACLE = "oracle"
NEUTRAL_TAILS = ~pl.col("group").is_in(PRIMARY)
OTHERS = 4
"""The number of other heads with which the tails of a head are combined."""
PROMPT, PAIR = ["group", "head", "relation"], ["relation", "tail"]
TOP = 10  # tails of a prompt
POOL = 100  # random tails of a relation


def other_heads(prompts: pl.DataFrame, count: int = OTHERS, seed: int = 1) -> pl.DataFrame:
    """Draw `count` other heads for each prompt (group, head, relation), of its group and with the same relation: a
    table (group, head, relation, other).

    The heads of a relation are put into a circle in an order drawn by seed, and the others of a head are those behind
    it, so that each head is drawn equally often. Relations with too few heads are left out."""
    circles = []
    for (group, relation), rows in prompts.group_by("group", "relation", maintain_order=True):
        heads = rows["head"].unique().sort().to_numpy()
        if len(heads) <= count:
            continue
        draws = np.random.default_rng([seed, crc32(f"{group}\t{relation}".encode())])
        circle = heads[draws.permutation(len(heads))]
        circles += [
            pl.DataFrame({"group": group, "head": circle, "relation": relation, "other": np.roll(circle, -step)})
            for step in range(1, count + 1)
        ]
    schema = dict.fromkeys([*PROMPT, "other"], pl.String)
    return pl.concat([pl.DataFrame(schema=schema), *(circle.cast(pl.Schema(schema)) for circle in circles)])


def shares(
    prompts: pl.DataFrame,
    tails: pl.DataFrame,
    others: pl.DataFrame,
    classify: Callable[[pl.DataFrame], pl.DataFrame],
    num_tails: int | None = None,
) -> pl.DataFrame:
    """The prompts (group, head, relation) with `accepted`, the percentage of their tails (group, head, relation, tail)
    that is accepted with their own head, and `elsewhere`, the same with the other heads (other_heads).

    classify: adds judged_valid to triples. A tail that repeats its head (is_echo) is not accepted, whatever it returns.
    num_tails: of each prompt; missing tails count as not accepted, so that a generator does not gain by leaving out
    uncertain tails. None: only the tails present count, and prompts without any are left out."""
    own = tails.join(prompts, on=PROMPT, how="semi", maintain_order="left").select(*PROMPT, "tail")
    swapped = own.join(others, on=PROMPT, maintain_order="left")
    classified = classify(pl.concat([own.select("head", *PAIR), swapped.select(pl.col("other").alias("head"), *PAIR)]))
    valid = classified["judged_valid"].fill_null(False).alias("accepted")
    here = own.with_columns(valid[: own.height]).with_columns(pl.col("accepted") & ~is_echo())
    there = swapped.with_columns(valid[own.height :]).with_columns(pl.col("accepted") & ~is_echo("other"))
    mine = here.group_by(PROMPT).agg(pl.len(), pl.col("accepted").sum())
    theirs = there.group_by(PROMPT).agg(pl.col("accepted").sum().alias("elsewhere"), pl.col("other").n_unique())
    table = prompts.select(PROMPT).unique(maintain_order=True)
    for counts in (mine, theirs):
        table = table.join(counts, on=PROMPT, how="left" if num_tails else "inner", maintain_order="left")
    size = pl.lit(num_tails) if num_tails else pl.col("len")
    return table.select(
        *PROMPT,
        accepted=(100 * pl.col("accepted") / size).fill_null(0.0),
        elsewhere=(100 * pl.col("elsewhere") / (size * pl.col("other"))).fill_null(0.0),
    )


def lift_table(
    statements: pl.DataFrame,
    heads: pl.DataFrame,
    labelled: pl.DataFrame,
    targets: pl.DataFrame,
    relations: Iterable[str],
    prompts: pl.DataFrame,
    plausibility: Scorer,
    *,
    scorers: Sequence[str] = ROLES,
    top: int = TOP,
    seed: int = 1,
    cache: LabelCache = NOTHING_CACHED,
) -> pl.DataFrame:
    """A row for each system and prompt: system (GENERATOR, those of BASELINES), group, head, relation, `accepted` and
    `elsewhere` (shares), and `counts`, whether an oracle reaches LEAST_OF_ORACLE percent with the group and relation,
    without which there are rows of the oracle alone.

    statements: the probed ones, labelled; targets, (target, category), and relations: those of the probe. heads: what
    probe_heads returns for prompts, (head, relation). labelled: all triples, labelled by the scorers. top: tails of a
    prompt in the probe."""
    of_targets = targets.select(group="category", head="target").join(
        pl.DataFrame({"relation": list(relations)}, schema={"relation": pl.String}), how="cross", maintain_order="left"
    )
    every_prompt = pl.concat([prompts.select(pl.lit(HELD_OUT).alias("group"), "head", "relation"), of_targets])
    others = other_heads(every_prompt, seed=seed)
    every_prompt = every_prompt.join(others, on=PROMPT, how="semi", maintain_order="left")

    def measured(tails: pl.DataFrame, of: pl.DataFrame, size: int | None = None) -> pl.DataFrame:
        return shares(of, tails, others, lambda triples: with_plausibility(triples, plausibility, cache), size)

    constants = every_prompt.join(constant_tails(labelled, scorers=scorers), on="relation", maintain_order="left")
    oracle = measured(_oracle(every_prompt, labelled, constants, plausibility, cache), every_prompt)
    reached = oracle.group_by("group", "relation").agg(counts=pl.col("accepted").mean() >= LEAST_OF_ORACLE)
    counting = every_prompt.join(reached.filter("counts"), on=["group", "relation"], how="semi", maintain_order="left")
    named = {"group": "category", "head": "target"}
    about = statements.select(*PAIR, neutral=is_neutral(scorers), **named)
    about = about.filter(~NEUTRAL_TAILS | pl.col("neutral"))  # in exploratory groups tails of neutral statements
    generated = pl.concat([part.select(*PROMPT, "tail") for part in (heads.select(*PAIR, **named), about)])
    generated = generated.filter(pl.col("tail") != "").unique(maintain_order=True)
    there = counting.join(generated, on="group", how="semi", maintain_order="left")  # no group without any tail
    of_all, of_neutral = there.filter(~NEUTRAL_TAILS), there.filter(NEUTRAL_TAILS)
    echoes = counting.join(echo_tails(counting), on=["head", "relation"], maintain_order="left")
    systems = {
        GENERATOR: pl.concat([measured(generated, of_all, top), measured(generated, of_neutral)]),
        "echo": measured(echoes, counting),
        "constants": measured(constants, counting),
        "random": measured(random_tails(labelled, counting, seed=seed, scorers=scorers), counting),
        ORACLE: oracle,
    }
    tables = [table.select(pl.lit(name).alias("system"), pl.all()) for name, table in systems.items()]
    return pl.concat(tables).join(reached, on=["group", "relation"], how="left", maintain_order="left")


def lift_groups(table: pl.DataFrame) -> Groups:
    """The groups of heads: all (those of PRIMARY, with equal weights), every group, and each relation of all."""
    primary = pl.col("group").is_in(PRIMARY)
    counting = table.filter("counts") if "counts" in table.columns else table
    groups = {("subset", str(name)): pl.col("group") == name for name in counting["group"].unique(maintain_order=True)}
    relations = counting.filter(primary)["relation"].unique().sort()
    of_relations = {("relation", name): primary & (pl.col("relation") == name) for name in relations}
    return {ALL: primary, **groups, **of_relations}


def _oracle(
    prompts: pl.DataFrame, labelled: pl.DataFrame, constants: pl.DataFrame, plausibility: Scorer, cache: LabelCache
) -> pl.DataFrame:
    """(group, head, relation, tail): all true tails of a held-out head; for a target the tail that the classifier finds
    most plausible among those of the triples and the commonest of the relation."""
    triples = labelled.filter("valid").select(pl.col("head").str.to_lowercase(), "relation", "tail", "split")
    true = prompts.with_columns(key=pl.col("head").str.to_lowercase()).join(
        triples, left_on=["key", "relation"], right_on=["head", "relation"], maintain_order="left"
    )
    held_out = true.filter(pl.col("group") == HELD_OUT, pl.col("split") == "test").select(*PROMPT, "tail")
    candidates = pl.concat([true.select(*PROMPT, "tail"), constants.select(*PROMPT, "tail")])
    candidates = candidates.filter(pl.col("group") != HELD_OUT, ~is_echo()).unique(maintain_order=True)
    likely = with_plausibility(candidates, plausibility, cache).sort(
        "plausibility", descending=True, maintain_order=True
    )
    best = likely.unique(PROMPT, keep="first", maintain_order=True).select(*PROMPT, "tail")
    return pl.concat([held_out.unique(maintain_order=True), best])


def constant_tails(labelled: pl.DataFrame, top: int = TOP, scorers: Sequence[str] = ROLES) -> pl.DataFrame:
    """The `top` commonest tails of each relation among the neutral training triples, the commonest first, the same for
    every head: (relation, tail). labelled: triples labelled by the scorers, such as a run's score.parquet."""
    counted = _training(labelled, scorers).group_by("relation", "tail").len()
    ranked = counted.sort("relation", "len", "tail", descending=[False, True, False])
    return ranked.group_by("relation", maintain_order=True).head(top).select("relation", "tail")


def echo_tails(prompts: pl.DataFrame) -> pl.DataFrame:
    """For each prompt (head, relation) its head as the tail: (head, relation, tail)."""
    return prompts.select("head", "relation", tail="head").unique(maintain_order=True)


def random_tails(
    labelled: pl.DataFrame, prompts: pl.DataFrame, seed: int = 1, scorers: Sequence[str] = ROLES
) -> pl.DataFrame:
    """Draw TOP tails for each prompt (head, relation, and other columns), without repeats, from POOL tails that were
    drawn from the relation's neutral training triples, a common tail more often: the prompts with `tail`."""
    training = _training(labelled, scorers).sort("relation", "tail").partition_by("relation", as_dict=True)
    drawn = []
    for (relation,), rows in prompts.unique(maintain_order=True).group_by("relation", maintain_order=True):
        if (relation,) not in training:
            continue
        random = np.random.default_rng([seed, crc32(str(relation).encode())])
        pool = random.choice(training[relation,]["tail"].to_numpy(), POOL)
        tails = random.choice(pool, (len(rows), TOP)).tolist()
        drawn.append(rows.with_columns(tail=pl.Series(tails, dtype=pl.List(pl.String))))
    empty = prompts.clear().with_columns(tail=pl.lit(None, pl.List(pl.String)))
    return pl.concat([empty, *drawn]).explode("tail").unique(maintain_order=True)


def _training(labelled: pl.DataFrame, scorers: Sequence[str]) -> pl.DataFrame:
    return labelled.filter(pl.col("split") == "train", is_neutral(scorers))
