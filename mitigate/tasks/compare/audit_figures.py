"""The figures of two resources side by side: where they differ, by how much, and whether they rank targets alike."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.between_resources import rank_correlation, representation, shares
from mitigate.measure.change import of_row
from mitigate.measure.comparison import holm
from mitigate.metrics import TEMPLATE_PREFIX, Share, harm_key
from mitigate.report.audit_tables import Wording
from mitigate.report.verdicts import ALPHA
from mitigate.tasks.compare.audits import ComparedAudit, both
from mitigate.tasks.targets import list_of_runs

POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")
CORRECTED = ("p_holm", "low_corrected", "high_corrected")


def differences(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer ("" for the number of statements), template, key as in metrics.json, category ("" for all targets), the
    other columns of comparison.DIFFERENCES, `p_holm`, for which all figures over all targets are one family, all of
    categories another, and the figures over all of each audit's own targets, as first_alone and second_alone."""
    first = both(audits, wordings[0])
    categories = first["category"].unique().to_list()
    clusters = list_of_runs(audit.run for audit in audits).clusters
    found = [_named(audits, categories, representation(first, clusters), "", "paper")]
    for scorer, template in wordings:
        rows = shares(both(audits, (scorer, template)), scorer, clusters)
        found.append(_named(audits, categories, rows, scorer, template))
    return corrected(pl.concat(found))


def both_sides(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> pl.DataFrame:
    """scorer, template, target, category, and the figures of the targets that both have statements about, as
    side_by_side."""
    return pl.concat(
        both(audits, (scorer, template)).select(
            pl.lit(scorer).alias("scorer"), pl.lit(template).alias("template"), pl.all()
        )
        for scorer, template in wordings
    )


def agreements(audits: Sequence[ComparedAudit], wordings: Sequence[Wording]) -> dict[str, float | None]:
    """Whether the two rank targets alike: "sentiment/O-/rank_correlation" ..."""
    return {
        harm_key(scorer, "rank correlation", share, template): rank_correlation(both(audits, (scorer, template)), share)
        for scorer, template in wordings
        for share in POLARISED
    }


def _named(
    audits: Sequence[ComparedAudit], categories: Sequence[str], rows: pl.DataFrame, scorer: str, template: str
) -> pl.DataFrame:
    last = pl.col("figure").str.split("/").list.last()
    return rows.select(
        pl.lit(scorer).alias("scorer"),
        pl.lit(template).alias("template"),
        (pl.lit(TEMPLATE_PREFIX[template]) + pl.col("figure")).alias("key"),
        pl.when(last.is_in(categories)).then(last).otherwise(pl.lit("")).alias("category"),
        pl.exclude("figure"),
        *(
            pl.Series(
                f"{side}_alone", [audit.alone((scorer, template), figure) for figure in rows["figure"]], pl.Float64
            )
            for side, audit in zip(("first", "second"), audits, strict=True)
        ),
    )


def corrected(table: pl.DataFrame) -> pl.DataFrame:
    """With `p_holm`, and the bounds of intervals that are corrected too, low_corrected and high_corrected (Bonferroni:
    of m figures together they all cover in at least 95 % of cases). A row's category is "" for all targets."""
    columns: dict[str, list[float | None]] = {name: [None] * table.height for name in CORRECTED}
    for family in (pl.col("category") == "", pl.col("category") != ""):
        places = table.select(family.arg_true()).to_series().to_list()
        rows = [table.row(place, named=True) for place in places]
        adjusted = holm([row["p"] for row in rows])
        level = 1 - ALPHA / max(1, sum(p is not None for p in adjusted))
        for place, row, p in zip(places, rows, adjusted, strict=True):
            known = of_row(row).row(level)
            for name, value in zip(CORRECTED, (p, known["low"], known["high"]), strict=True):
                columns[name][place] = value
    return table.with_columns(pl.Series(name, values, dtype=pl.Float64) for name, values in columns.items())
