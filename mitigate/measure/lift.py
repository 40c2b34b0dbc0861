"""Swap lift of a generator and of baselines on the same heads: score > measure.

Heads are in groups. Differences between heads of held-out triples, or between professions, are knowledge, which a
generator ought to have. Between groups of gender, origin or religion a difference may itself be a stereotype: there
swap lift is exploratory and on neutral tails only."""

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

from mitigate.measure import swap_lift
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.quality import BASELINES, GENERATOR, is_neutral
from mitigate.measure.results import ALL, Groups
from mitigate.measure.swap_lift import PROMPT
from mitigate.probe.generator import HELD_OUT
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import with_plausibility
from mitigate.score.validity import is_echo
from mitigate.triples import ROLES, LabelCache, Scorer
from mitigate.words.targets import PAPER, TargetList

PRIMARY = (HELD_OUT, "profession")
"""The groups where a difference between heads is knowledge."""
LEAST_OF_ORACLE = 10.0
"""Percent. Where even an oracle's tails are accepted less often, the classifier cannot assess a relation."""
ORACLE = "oracle"
NEUTRAL_TAILS = ~pl.col("group").is_in(PRIMARY)
TOP = 10  # tails of a prompt
POOL = 100  # random tails of a relation: a classifier reads each phrase, and many phrases take long


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
    """A row for each system and prompt: system (GENERATOR, those of BASELINES), group, head, relation, `accepted`
    and `elsewhere` (measure.swap_lift.shares), and `counts`, whether an oracle reaches LEAST_OF_ORACLE percent with the
    group and relation. Groups and relations that do not count have rows of the oracle alone.

    statements: the probed ones, labelled; targets, (target, category), and relations: those of the probe. heads: what
    probe_heads returns for prompts, (head, relation). labelled: all triples, labelled by the scorers. top: tails of a
    prompt in the probe. For held-out heads the oracle has the tails of the test triples; for targets the tail that the
    classifier finds most plausible among those of the triples and the commonest of the relation."""
    of_targets = targets.select(group="category", head="target").join(
        pl.DataFrame({"relation": list(relations)}, schema={"relation": pl.String}), how="cross", maintain_order="left"
    )
    every_prompt = pl.concat([prompts.select(pl.lit(HELD_OUT).alias("group"), "head", "relation"), of_targets])
    others = swap_lift.other_heads(every_prompt, seed=seed)
    every_prompt = every_prompt.join(others, on=PROMPT, how="semi", maintain_order="left")

    def measured(tails: pl.DataFrame, of: pl.DataFrame, size: int | None = None) -> pl.DataFrame:
        return _shares(of, tails, others, size, plausibility, cache)

    constants = every_prompt.join(constant_tails(labelled, scorers=scorers), on="relation", maintain_order="left")
    oracle = measured(_oracle(every_prompt, labelled, constants, plausibility, cache), every_prompt)
    reached = oracle.group_by("group", "relation").agg(counts=pl.col("accepted").mean() >= LEAST_OF_ORACLE)
    counting = every_prompt.join(reached.filter("counts"), on=["group", "relation"], how="semi", maintain_order="left")
    generated = _generated(statements, heads, scorers)
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
    named = [table.select(pl.lit(name).alias("system"), pl.all()) for name, table in systems.items()]
    return pl.concat(named).join(reached, on=["group", "relation"], how="left", maintain_order="left")


def lift_groups(table: pl.DataFrame) -> Groups:
    """The groups of heads: all (those of PRIMARY, with equal weights), every group, and each relation of all. table:
    with group and relation."""
    primary = pl.col("group").is_in(PRIMARY)
    counting = table.filter("counts") if "counts" in table.columns else table
    groups = {("subset", str(name)): pl.col("group") == name for name in counting["group"].unique(maintain_order=True)}
    relations = counting.filter(primary)["relation"].unique().sort()
    of_relations = {("relation", name): primary & (pl.col("relation") == name) for name in relations}
    return {ALL: primary, **groups, **of_relations}


def by_relation(table: pl.DataFrame, intervals: Bootstrap, target_list: TargetList = PAPER) -> pl.DataFrame:
    """A row for each group and relation: group, relation, heads, counts, the swap lift of each system, and the
    generator's `accepted`, `elsewhere`, `low` and `high`. table: what lift_table returns."""
    rows: list[dict[str, Any]] = []
    for (group, relation), part in table.group_by("group", "relation", maintain_order=True):
        mine = part.filter(system=GENERATOR)
        found = _measured(mine, intervals, target_list)
        row = {"group": group, "relation": relation, "heads": part["head"].n_unique(), "counts": part["counts"].all()}
        row |= {name: mine[name].mean() for name in ("accepted", "elsewhere")}
        row |= {"lift": found.value, "low": found.low, "high": found.high}
        rows.append(
            row | {name: _measured(part.filter(system=name), intervals, target_list).value for name in BASELINES}
        )
    numbers = dict.fromkeys(["accepted", "elsewhere", "lift", "low", "high", *BASELINES], pl.Float64)
    named = {"group": pl.String, "relation": pl.String, "heads": pl.Int64, "counts": pl.Boolean}
    return pl.DataFrame(rows, schema={**named, **numbers})


def _measured(rows: pl.DataFrame, intervals: Bootstrap, target_list: TargetList) -> swap_lift.Lift:
    return swap_lift.swap_lift(swap_lift.with_weights(rows), target_list.clusters, intervals)


def _generated(statements: pl.DataFrame, heads: pl.DataFrame, scorers: Sequence[str]) -> pl.DataFrame:
    """The generator's tails: (group, head, relation, tail); in exploratory groups those of neutral statements."""
    named = {"group": "category", "head": "target"}
    about = statements.select("relation", "tail", neutral=is_neutral(scorers), **named)
    about = about.filter(~NEUTRAL_TAILS | pl.col("neutral"))
    found = pl.concat([part.select(*PROMPT, "tail") for part in (heads.select("relation", "tail", **named), about)])
    return found.filter(pl.col("tail") != "").unique(maintain_order=True)


def _oracle(
    prompts: pl.DataFrame, labelled: pl.DataFrame, constants: pl.DataFrame, plausibility: Scorer, cache: LabelCache
) -> pl.DataFrame:
    """(group, head, relation, tail): a tail for each target, all true tails of a held-out head."""
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


def _shares(
    prompts: pl.DataFrame,
    tails: pl.DataFrame,
    others: pl.DataFrame,
    size: int | None,
    plausibility: Scorer,
    cache: LabelCache,
) -> pl.DataFrame:
    """measure.swap_lift.shares of a system's tails (group, head, relation, tail), classified with their own heads and
    with other heads."""
    own = tails.join(prompts, on=PROMPT, how="semi", maintain_order="left").select(*PROMPT, "tail")
    swapped = own.join(others, on=PROMPT, maintain_order="left")
    triples = pl.concat(
        [own.select("head", "relation", "tail"), swapped.select("other", "relation", "tail").rename({"other": "head"})]
    )
    accepted = with_plausibility(triples, plausibility, cache)["judged_valid"].fill_null(False).alias("accepted")
    here, there = own.with_columns(accepted[: own.height]), swapped.with_columns(accepted[own.height :])
    return swap_lift.shares(prompts, here, there, size)


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
    found = []
    for (relation,), rows in prompts.unique(maintain_order=True).group_by("relation", maintain_order=True):
        if (relation,) not in training:
            continue
        random = np.random.default_rng([seed, crc32(str(relation).encode())])
        pool = random.choice(training[relation,]["tail"].to_numpy(), POOL)
        tails = random.choice(pool, (len(rows), TOP)).tolist()
        found.append(rows.with_columns(tail=pl.Series(tails, dtype=pl.List(pl.String))))
    empty = prompts.clear().with_columns(tail=pl.lit(None, pl.List(pl.String)))
    return pl.concat([empty, *found]).explode("tail").unique(maintain_order=True)


def _training(labelled: pl.DataFrame, scorers: Sequence[str]) -> pl.DataFrame:
    return labelled.filter(pl.col("split") == "train", is_neutral(scorers))
