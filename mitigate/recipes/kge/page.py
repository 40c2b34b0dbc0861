"""The results of recipe=kge for readers: the page, plots and tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.measure.kge import rank_correlation
from mitigate.report.html import save
from mitigate.report.kge import Results, both_ways, front_table, render
from mitigate.runs import files


def write_report(
    metrics: Mapping[str, Any],
    professions: pl.DataFrame,
    changes: pl.DataFrame,
    null: pl.DataFrame | None,
    pairs: pl.DataFrame,
    ranks: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    *,
    left_out: Sequence[str],
    folder: Path,
    about: Mapping[str, Any],
    **what: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures. left_out: notices on people who are in neither group; what: further
    fields of the page. Returns the number of professions in each side's table."""
    unknown = []
    if changes["model"].n_unique() < 2:
        unknown.append("There is only one training, so the differences between seeds are unknown (kge.seeds).")
    if null is None:
        unknown.append(
            "There are no permuted graphs (kge.permuted), so no null band: place and sign of a single profession "
            "show nothing."
        )
    ratios = professions.select("profession", "log_ratio")
    results = Results(
        name=folder.name,
        metrics=metrics,
        professions=professions,
        changes=changes,
        null=null,
        correlations=_correlations(changes, ratios),
        null_correlations=[] if null is None else _correlations(null, ratios),
        pairs=pairs,
        ranks=ranks,
        others=others,
        notices=[*unknown, *left_out],
        **{**what, "names": tuple(what["names"])},
        **about,
    )
    files.write(folder / "kge.html", render(results))
    frames = {"professions": professions, "ranks": ranks, "pairs": pairs}
    if null is not None:
        frames["permuted"] = null
    if results.variants:
        frames["front"] = front_table(metrics, results.variants)
    save(folder, frames, results.pictures)
    return {name: len(rows) for name, rows in both_ways(professions, results.names, results.top)}


def _correlations(changes: pl.DataFrame, ratios: pl.DataFrame) -> list[float | None]:
    """The rank correlation of each model's changes with log count ratios."""
    joined = changes.join(ratios, on="profession", maintain_order="left")
    parts = joined.partition_by("model", maintain_order=True)
    return [rank_correlation(part["change"].to_numpy(), part["log_ratio"].to_numpy()) for part in parts]
