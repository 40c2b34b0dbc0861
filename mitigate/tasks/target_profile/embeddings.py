"""Place of a target in the embeddings of a finished run of recipe=kge: as a profession among the others, or as a value
of the sensitive attribute among professions."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from mitigate.metrics import KGE_MRR, KGE_NULL_GRAPHS, KGE_TRAININGS
from mitigate.runs.finished import FinishedRun
from mitigate.words.targets import TargetList

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


def about(run: FinishedRun) -> dict[str, Any]:
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
