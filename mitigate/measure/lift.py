"""Swap lift of a generator and of baselines on the same heads: the rate at which tails are accepted as plausible with
their own head minus the rate with other heads. Tails that suit any head, which need no knowledge, raise the share of
accepted tails but not swap lift.

Heads are in groups. Differences between heads of held-out triples, or between professions, are knowledge, which a
generator ought to have. Between groups of gender, origin or religion a difference may itself be a stereotype: there
swap lift is exploratory and on neutral tails only."""

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

import numpy as np
import polars as pl

from mitigate.measure.quality import GENERATOR, is_neutral
from mitigate.measure.results import ALL, Groups
from mitigate.probe.beams import HELD_OUT
from mitigate.score.labels import NOTHING_CACHED
from mitigate.score.plausibility import is_echo, with_plausibility
from mitigate.triples import ROLES, LabelCache, Scorer

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
POOL = 100  # random tails of a relation: a classifier reads each phrase, and many phrases take long


def other_heads(prompts: pl.DataFrame, count: int = OTHERS, seed: int = 1) -> pl.DataFrame:
    """Draw `count` other heads for each prompt (group, head, relation), of its group and with the same relation: a
    table (group, head, relation, other).

    The heads of a relation are put into a circle in an order drawn by seed, and the others of a head are those behind
    it, so that each head is drawn equally often. Relations with too few heads are left out."""
    found = []
    for (group, relation), rows in prompts.group_by("group", "relation", maintain_order=True):
        heads = rows["head"].unique().sort().to_numpy()
        if len(heads) <= count:
            continue
        draws = np.random.default_rng([seed, crc32(f"{group}\t{relation}".encode())])
        circle = heads[draws.permutation(len(heads))]
        found += [
            pl.DataFrame({"group": group, "head": circle, "relation": relation, "other": np.roll(circle, -step)})
            for step in range(1, count + 1)
        ]
    schema = dict.fromkeys([*PROMPT, "other"], pl.String)
    return pl.concat([pl.DataFrame(schema=schema), *(frame.cast(pl.Schema(schema)) for frame in found)])


def shares(
    prompts: pl.DataFrame,
    tails: pl.DataFrame,
    others: pl.DataFrame,
    classify: Callable[[pl.DataFrame], pl.DataFrame],
    num_tails: int | None = None,
) -> pl.DataFrame:
    """The prompts (group, head, relation) with `accepted`, the percentage of their tails (group, head, relation, tail)
    that is accepted with their own head, and `elsewhere`, the same with the other heads (other_heads).

    classify: adds judged_valid to triples. A tail that repeats its head (is_echo) is not accepted, whatever it returns:
    a generator that repeats heads would otherwise score by phrases such as "a dog is a dog". num_tails: of each prompt;
    missing tails count as not accepted, so that a generator does not gain by leaving out uncertain tails. None: only
    the tails present count, and prompts without any are left out."""
    own = tails.join(prompts, on=PROMPT, how="semi", maintain_order="left").select(*PROMPT, "tail")
    swapped = own.join(others, on=PROMPT, maintain_order="left")
    found = classify(pl.concat([own.select("head", *PAIR), swapped.select(pl.col("other").alias("head"), *PAIR)]))
    valid = found["judged_valid"].fill_null(False).alias("accepted")
    here = own.with_columns(valid[: own.height]).with_columns(pl.col("accepted") & ~is_echo())
    there = swapped.with_columns(valid[own.height :]).with_columns(pl.col("accepted") & ~is_echo("other"))
    mine = here.group_by(PROMPT).agg(pl.len(), pl.col("accepted").sum())
    theirs = there.group_by(PROMPT).agg(pl.col("accepted").sum().alias("elsewhere"), pl.col("other").n_unique())
    table = prompts.select(PROMPT).unique(maintain_order=True)
    for found in (mine, theirs):
        table = table.join(found, on=PROMPT, how="left" if num_tails else "inner", maintain_order="left")
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
    """The groups of heads: all (those of PRIMARY, with equal weights), every group, and each relation of all. table:
    with group and relation."""
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
