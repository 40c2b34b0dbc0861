"""Sides of a target: statements of generators that they do not make about its peers, differences of their labels from
the peers', an assessment by a model of Social Bias Frames, and the target's place in embeddings of a knowledge graph,
as a profession among the others or as a value of the sensitive attribute.

That model reads a statement with its group, and a name alone moves its probability of offending the group. So each
peer's statements are read twice: as generated, and with the target's name in place of the peer's. In the second
wording, a generator that states the same of all targets shows no difference."""

import hashlib
from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.peers import AGAINST, against_peers, is_distinctive, with_peers
from mitigate.metrics import KGE_MRR, KGE_NULL_GRAPHS, KGE_TRAININGS
from mitigate.runs.finished import FinishedRun
from mitigate.score.labels import NOTHING_CACHED, Explains, label_column
from mitigate.tasks.target_profile.plan import Grid, forms_of, without_name
from mitigate.triples import FAVOURITISM, PREJUDICE, LabelCache, Scorer
from mitigate.words.targets import TargetList

DISTINCTIVE, DISTINCTIVE_NEGATIVE = "distinctive", "distinctive_negative"
SIGNS = {"negative": PREJUDICE, "positive": FAVOURITISM}
KEYS = ["target", "cluster", "relation"]
AS_GENERATED, SAME_NAME = "as generated", "with the same name"
OFFENSIVE, PROBABILITY = "frames/offensive", "frames/probability"
FRAMED = {"run": pl.String, "wording": pl.String, **AGAINST}
OTHERS = "all others"
PROFESSION, VALUE = "profession", "value"
PLACED = {
    "target": pl.String,
    "known_as": pl.String,  # PROFESSION or VALUE
    "profession": pl.String,
    "change": pl.Float64,  # of the score, towards value a; of a VALUE, towards that value
    "low": pl.Float64,
    "high": pl.Float64,
    "null_low": pl.Float64,  # the band of permuted graphs
    "null_high": pl.Float64,
    "outside": pl.Boolean,  # of that band
    "of_a": pl.Int64,
    "of_b": pl.Int64,
    "place": pl.UInt32,  # 1: the largest change
    "professions": pl.UInt32,
    "others_outside": pl.UInt32,  # of the other professions; null without a band
}


def figures(grids: Sequence[Grid], few: float, bootstrap: Bootstrap) -> pl.DataFrame:
    """Rows for each run and each target of the profile's categories: run, category, and measure.peers.AGAINST. The
    figures, all in percent: `distinctive`, pairs of relation and tail that at most `few` percent of the peers have;
    `distinctive_negative`, those of them that a scorer labels negative; and "{scorer}/negative" and
    "{scorer}/positive", statements."""
    frames = []
    for grid in grids:
        for (category,), part in grid.statements.partition_by("category", as_dict=True, maintain_order=True).items():
            found = against_peers(_values(_with_peers(part, grid, few), grid.scorers), bootstrap)
            frames.append(found.select(pl.lit(grid.title).alias("run"), pl.lit(category).alias("category"), pl.all()))
    return pl.concat(frames)


def distinctive(grids: Sequence[Grid], targets: Sequence[str], few: float) -> pl.DataFrame:
    """The pairs that at most `few` percent of the peers have, worst first: those that most scorers label negative, then
    positive ones, then neutral ones; within a kind by the number of peers that have it, then by the generator's rank.
    Columns: run, target, relation, tail, statement, rank, having (peers that have it), peers, and each scorer's
    label."""
    frames = []
    for grid in grids:
        parts = [_with_peers(part, grid, few) for part in grid.statements.partition_by("category", maintain_order=True)]
        rows = pl.concat(parts).filter(pl.col("few"), pl.col("target").is_in(list(targets)))
        negative, positive = (
            pl.sum_horizontal((pl.col(name) == label).cast(pl.Int8) for name in grid.scorers)
            for label in SIGNS.values()
        )
        only_positive = pl.when(negative == 0).then(positive).otherwise(0)
        order = [-negative, -only_positive, pl.col("having") / pl.col("peers"), pl.col("rank"), pl.col("relation")]
        rows = rows.with_columns(run=pl.lit(grid.title)).sort(order, maintain_order=True)
        for same in (["relation", "said"], ["statement"]):  # some relations have the same phrase
            rows = rows.unique(["target", *same], keep="first", maintain_order=True)
        columns = ["run", "target", "relation", "tail", "statement", "rank", "having", "peers", *grid.scorers]
        frames.append(rows.select(columns))
    found = pl.DataFrame({"target": list(targets)}).join(
        pl.concat(frames, how="diagonal"), on="target", maintain_order="left_right"
    )
    return found.select("run", "target", pl.exclude("run", "target"))


def _with_peers(statements: pl.DataFrame, grid: Grid, few: float) -> pl.DataFrame:
    """The statements of one category with said, having, peers, and few (whether few peers have the pair)."""
    return with_peers(without_name(statements, grid.target_list)).with_columns(few=is_distinctive(few))


def _values(statements: pl.DataFrame, scorers: Sequence[str]) -> pl.DataFrame:
    """The percentages of each target and relation, as against_peers takes them."""
    few = pl.col("few").fill_null(False)
    shares = {
        DISTINCTIVE: few,
        DISTINCTIVE_NEGATIVE: few & pl.any_horizontal(pl.col(name) == PREJUDICE for name in scorers),
        **{f"{name}/{sign}": pl.col(name) == label for name in scorers for sign, label in SIGNS.items()},
    }
    wide = statements.group_by(KEYS, maintain_order=True).agg(
        (100 * share.mean()).alias(name) for name, share in shares.items()
    )
    return wide.unpivot(index=KEYS, variable_name="figure")


def framed_statements(
    grids: Sequence[Grid], targets: Sequence[str], most: int, scorer: Scorer, *, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """The statements about each target and at most `most` of its peers, in both wordings: run, wording, about (the
    target of the profile), target (of the statement), cluster, relation, statement, probability (of offending a group,
    calibrated) and label. scorer: score.frames.Frames; its strengths are minus the probability."""
    rows = pl.concat([_of_target(grid, target, most) for grid in grids for target in targets])
    labels = label_column(rows["statement"], scorer, cache)
    return rows.with_columns(
        probability=pl.Series(-labels.strength, dtype=pl.Float64), label=pl.Series(labels.label, dtype=pl.Int8)
    )


def sampled_peers(target: str, grid: Grid, most: int) -> list[str]:
    """At most `most` peers of the target: those whose names have the smallest hashes, so that runs with the same peers
    have the same sample."""
    targets = grid.statements.select("target", "category", "cluster").unique(maintain_order=True)
    mine = targets.filter(target=target).select("category", mine="cluster")  # none for a target without statements
    peers = targets.join(mine, on="category").filter(pl.col("cluster") != pl.col("mine"))["target"]
    return sorted(peers, key=lambda word: hashlib.sha256(word.encode()).hexdigest())[:most]


def _of_target(grid: Grid, target: str, most: int) -> pl.DataFrame:
    chosen = [target, *sampled_peers(target, grid, most)]
    return pl.concat(
        grid.statements.filter(target=one).select(
            pl.lit(grid.title).alias("run"),
            pl.lit(wording).alias("wording"),
            pl.lit(target).alias("about"),
            *("target", "cluster", "relation"),
            statement=pl.col("statement")
            if wording == AS_GENERATED or one == target
            else pl.col("statement").str.replace_all(forms_of(one, grid.target_list), target),
        )
        for wording in (AS_GENERATED, SAME_NAME)
        for one in chosen
    )


def frame_figures(framed: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """Rows for each run, wording and target: run, wording, and measure.peers.AGAINST of PROBABILITY (the mean, in
    percent) and OFFENSIVE (the percentage that the scorer labels offensive)."""
    frames = [pl.DataFrame(schema=FRAMED)]
    for (run, wording, about), part in framed.group_by("run", "wording", "about", maintain_order=True):
        wide = part.group_by(KEYS, maintain_order=True).agg(
            (100 * pl.col("probability").mean()).alias(PROBABILITY),
            (100 * (pl.col("label") == PREJUDICE).mean()).alias(OFFENSIVE),
        )
        values = wide.unpivot(index=KEYS, variable_name="figure")
        found = against_peers(values, bootstrap).filter(target=about)
        frames.append(found.select(pl.lit(run).alias("run"), pl.lit(wording).alias("wording"), pl.all()))
    return pl.concat(frames)


def implied(framed: pl.DataFrame, scorer: Explains, top: int) -> pl.DataFrame:
    """The statements about each target that are most probably offensive, at most `top` of each run, with their implied
    statements: run, target, relation, statement, probability, implies."""
    own = framed.filter(pl.col("target") == pl.col("about"), pl.col("wording") == AS_GENERATED)
    own = own.unique(["run", "target", "statement"], keep="first", maintain_order=True)
    own = own.sort("probability", "statement", descending=[True, False])
    worst = own.group_by("run", "target", maintain_order=True).head(top)
    explained = scorer.explain(worst["statement"].to_list())
    columns = ["run", "target", "relation", "statement", "probability"]
    return worst.select(columns).with_columns(implies=pl.Series(explained, dtype=pl.String))


def placed(values: Sequence[str], professions: pl.DataFrame, targets: Sequence[str], names: TargetList) -> pl.DataFrame:
    """Rows of PLACED: one for a target that is a profession of the graph, all professions, nearest first, for a value
    of the sensitive attribute, and none for a target that is not a label in the graph. values: value a and value b;
    professions: the table of professions that a run of recipe=kge leaves."""
    found = [pl.DataFrame(schema=PLACED)]
    values = [names.named(value) for value in values]
    label = pl.col("profession").map_elements(names.named, return_dtype=pl.String)
    for target in targets:
        rows = _ranked(professions, reverse=target in values[1:] and target != values[0])
        rows = rows if target in values else rows.filter(label == target)
        known_as = VALUE if target in values else PROFESSION
        rows = rows.with_columns(target=pl.lit(target), known_as=pl.lit(known_as))
        found.append(rows.select(pl.col(name).cast(kind) for name, kind in PLACED.items()))
    return pl.concat(found)


def values_of(run: FinishedRun) -> tuple[str, str]:
    """Value a and value b of the sensitive attribute."""
    named = [str(value) for value in run.setting("kge.values")]
    return (named[0], named[1]) if len(named) > 1 else (named[0], OTHERS)


def facts_of_graph(run: FinishedRun) -> dict[str, Any]:
    """Facts of the run for the page: data, model, sensitive, values, mrr, trainings, graphs (permuted ones)."""
    return {
        "data": run.text("data.title") or run.text("data.name"),
        "model": run.text("model.name"),
        "sensitive": run.text("kge.sensitive"),
        "values": list(values_of(run)),
        "mrr": run.metrics.get(KGE_MRR),
        "trainings": run.metrics.get(KGE_TRAININGS),
        "graphs": run.metrics.get(KGE_NULL_GRAPHS) or 0,
    }


def _ranked(professions: pl.DataFrame, *, reverse: bool = False) -> pl.DataFrame:
    """The professions by their change, with place and others_outside; reverse: towards value b."""
    turned = professions
    if reverse:
        ends = {"low": "high", "high": "low", "null_low": "null_high", "null_high": "null_low"}
        turned = professions.with_columns(
            (-pl.col("change")).alias("change"), *((-pl.col(other)).alias(name) for name, other in ends.items())
        )
    outside = pl.col("outside")
    return turned.sort("change", "profession", descending=[True, False]).with_columns(
        place=pl.int_range(1, pl.len() + 1),
        professions=pl.len(),
        others_outside=pl.when(outside.is_not_null()).then(outside.sum() - outside.cast(pl.Int64)),
    )
