"""Statements about a target assessed by a model of Social Bias Frames: the probability that they offend a group, beside
those about its peers, and the implications of the worst.

The model reads a statement with its group, and a name alone moves its probability. So each peer's statements are read
twice: as generated, and with the target's name in place of the peer's. In the second wording, a generator that states
the same of all targets shows no difference."""

import hashlib
from collections.abc import Sequence

import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.peers import AGAINST, against_peers
from mitigate.score.labels import NOTHING_CACHED, Explains, label_column
from mitigate.tasks.target_profile.plan import Grid, forms_of
from mitigate.triples import PREJUDICE, LabelCache, Scorer

AS_GENERATED, SAME_NAME = "as generated", "with the same name"
OFFENSIVE, PROBABILITY = "frames/offensive", "frames/probability"
FRAMED = {"run": pl.String, "wording": pl.String, **AGAINST}
KEYS = ["run", "wording", "about"]


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
    for (run, wording, about), part in framed.partition_by(KEYS, as_dict=True, maintain_order=True).items():
        wide = part.group_by("target", "cluster", "relation", maintain_order=True).agg(
            (100 * pl.col("probability").mean()).alias(PROBABILITY),
            (100 * (pl.col("label") == PREJUDICE).mean()).alias(OFFENSIVE),
        )
        values = wide.unpivot(index=["target", "cluster", "relation"], variable_name="figure")
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
