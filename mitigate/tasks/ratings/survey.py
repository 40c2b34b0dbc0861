"""Statements of a survey: a sample balanced over targets and relations, the same prompts for every model, and anchors
that others rated before, under ids that do not show the source; and the precision of their ratings."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.files import digest_of
from mitigate.finished import read_runs as finished_runs
from mitigate.finished import short_names
from mitigate.measure.human_ratings import Components, detectable, statements_needed
from mitigate.package_data import frame_of
from mitigate.tasks.ratings.anchors import AGAIN
from mitigate.words.relations import relations as all_relations

KEY = ["item", "source", "target", "category", "relation", "rank", "statement"]
CELL = ["target", "relation", "rank"]  # one tail of a prompt
POINTS = 5.0
"""The difference that a survey should be able to show, percentage points."""


def statements_of_runs(folders: Sequence[str], relations: Sequence[str], top: int) -> pl.DataFrame:
    """Read the best `top` statements of each target and relation by the generators of finished runs: source (the
    policy, and seed or hash where runs share it), category, statement and the columns of CELL. A statement that a model
    generates twice about a target counts where it ranks best. Raises MitigateError for anything but a finished run of
    recipe=mitigate, and for runs without shared prompts."""
    runs = finished_runs(folders, "mitigate", "data.runs", ["statements.parquet"])
    by_folder = {str(run.folder): run.metrics for run in runs}
    if len(by_folder) < len(folders):
        raise MitigateError(f"data.runs names a run twice: {', '.join(folders)}")
    probed = {name for run in runs for name in run.table("statements.parquet")["relation"].unique()}
    for name in relations:
        if name not in probed | set(all_relations()):
            raise one_of("relation in humans.relations", name, sorted(probed))
    pools = []
    for name, run in zip(short_names(by_folder), runs, strict=True):
        statements = run.table("statements.parquet").filter(
            pl.col("relation").is_in(relations), pl.col("rank") <= top, pl.col("tail") != ""
        )
        if statements.is_empty():
            raise MitigateError(
                f"{run.folder} has no statements of the relations {', '.join(relations)}; choose others with "
                "humans.relations=[...]"
            )
        best = statements.sort("rank", maintain_order=True).unique(
            ["target", "statement"], keep="first", maintain_order=True
        )
        best = best.with_columns(pl.col("rank").cast(pl.Int64))  # runs of earlier code have a smaller type
        pools.append(best.select(pl.lit(name).alias("source"), "category", "statement", *CELL))
    pool = pl.concat(pools)
    for columns in (CELL[:1], CELL[:2], CELL):
        if _shared(pool, columns).is_empty():
            raise MitigateError(
                f"data.runs: {', '.join(str(run.folder) for run in runs)} have no {' and '.join(columns)} in common, "
                "but raters see answers of all models to the same prompts; name runs with the same probe.targets and "
                "probe.relations"
            )
    return pool


def statements_of_file(statements: pl.DataFrame, source: str, top: int, seed: int) -> pl.DataFrame:
    """Draw `top` statements of each target at random, in the columns of statements_of_runs; they have no relation."""
    drawn = statements.unique(["target", "statement"], maintain_order=True).sample(fraction=1, shuffle=True, seed=seed)
    ranked = drawn.with_columns(rank=pl.int_range(1, pl.len() + 1).over("target")).filter(pl.col("rank") <= top)
    return ranked.select(
        pl.lit(source).alias("source"),
        "category",
        "statement",
        "target",
        pl.lit(None, pl.String).alias("relation"),
        "rank",
    )


def draw(pool: pl.DataFrame, size: int, seed: int, anchors: pl.DataFrame | None = None) -> pl.DataFrame:
    """Draw the key: up to `size` statements of each source, and all anchors, columns KEY, sorted by item.

    All sources have the same cells (target, relation, rank), so that models are compared paired. A statement that
    several of them generate is one item, rated once. The item's id is a hash with the seed in it, so that the order of
    ids is shuffled and does not show the source."""
    cells = _balanced(_shared(pool, CELL), size, np.random.default_rng(seed))
    chosen = pool.join(cells, on=CELL, how="semi", nulls_equal=True)
    if anchors is not None:
        chosen = pl.concat([chosen.select(KEY[1:]), anchors.select(KEY[1:])])
    ids = [
        digest_of(f"{seed}\t{target}\t{statement}")[:10]
        for target, statement in chosen.select("target", "statement").iter_rows()
    ]
    return chosen.with_columns(item=pl.Series(ids)).select(KEY).sort("item", "source")


def in_order(key: pl.DataFrame) -> pl.DataFrame:
    """The items (item, target, statement), each once, in the order of rating: models in random order, and anchors at
    equal distances, so that a part of the list holds as large a part of the anchors."""
    items = key.group_by("item", maintain_order=True).agg(
        pl.col("target", "statement").first(), anchor=pl.col("source").str.ends_with(AGAIN).any()
    )
    place = (pl.int_range(pl.len()).over("anchor") + 0.5) / pl.len().over("anchor")
    return items.sort(place, maintain_order=True).select("item", "target", "statement")


def power(key: pl.DataFrame, raters: int) -> dict[str, dict[str, float]]:
    """Precision of a survey of several models, by figure (polarised, valid): `detectable`, the minimum detectable
    difference from the first model in percentage points, and `statements`, the number of each model that makes POINTS
    detectable (80 % power). It rests on the variances of the harms paper's ratings (benchmarks/people_drift.py
    computes them), and is the most cautious of several sets. Empty for fewer than two models."""
    models = [rows for _, rows in key.filter(~pl.col("source").str.ends_with(AGAIN)).group_by("source")]
    if len(models) < 2:
        return {}
    items = [set(rows["item"]) for rows in models]
    shared = min(len(one & other) / len(one) for one, other in combinations(items, 2))
    found = {}
    for (figure,), rows in frame_of("rating_variance.csv").group_by("figure", maintain_order=True):
        variances = [Components(*row) for row in rows.select(Components._fields).iter_rows()]
        found[str(figure)] = {
            "detectable": round(max(detectable(each, len(items[0]), raters, shared) for each in variances), 1),
            "statements": math.ceil(max(statements_needed(POINTS, each, raters, shared) for each in variances)),
        }
    return found


def _shared(pool: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The values of these columns that all sources have, each once."""
    sources = pool["source"].n_unique()
    return pool.group_by(columns).agg(pl.col("source").n_unique()).filter(pl.col("source") == sources).select(columns)


def _balanced(cells: pl.DataFrame, size: int, random: np.random.Generator) -> pl.DataFrame:
    """The first `size` cells when every target in turn gives one, each time of its next relation: targets and relations
    are as even as possible, and the order of ranks is random."""
    by_target: dict[str, dict[str | None, list[int]]] = {}
    for target, relation, rank in cells.sort(CELL).iter_rows():
        by_target.setdefault(target, {}).setdefault(relation, []).append(rank)
    turns = []
    for place, target in enumerate(random.permutation(list(by_target)).tolist()):
        relations = list(by_target[target])
        for turn in range(len(relations)):
            relation = relations[(place + turn) % len(relations)]
            ranks = random.permutation(by_target[target][relation]).tolist()
            turns += [(again, turn, place, target, relation, rank) for again, rank in enumerate(ranks)]
    chosen = [turn[3:] for turn in sorted(turns, key=lambda turn: turn[:3])[:size]]
    return pl.DataFrame(chosen, schema=cells.schema, orient="row")
