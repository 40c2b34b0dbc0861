"""Statements that generators make about a target and not about its peers, and differences of its labels from theirs."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.peers import against_peers, is_distinctive, with_peers
from mitigate.tasks.target_profile.plan import Grid, without_name
from mitigate.triples import FAVOURITISM, PREJUDICE

DISTINCTIVE, DISTINCTIVE_NEGATIVE = "distinctive", "distinctive_negative"
SIGNS = {"negative": PREJUDICE, "positive": FAVOURITISM}
KEYS = ["target", "cluster", "relation"]


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
