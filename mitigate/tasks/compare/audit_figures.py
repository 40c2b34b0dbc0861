"""The figures of two resources side by side: where they differ, by how much, and whether they rank targets alike."""

from collections.abc import Sequence

import polars as pl

from mitigate.measure.between_resources import rank_correlation, representation, shares
from mitigate.measure.bootstrap import Bootstrap
from mitigate.metrics import TEMPLATE_PREFIX, Share, harm_key
from mitigate.report.audit_tables import Wording
from mitigate.targets import clusters
from mitigate.tasks.compare.audits import ComparedAudit, both
from mitigate.tasks.compare.figures import corrected

POLARISED: tuple[Share, ...] = ("prejudice", "favouritism")


def differences(audits: Sequence[ComparedAudit], wordings: Sequence[Wording], bootstrap: Bootstrap) -> pl.DataFrame:
    """scorer ("" for the number of statements), template, key as in metrics.json, category ("" for all targets), the
    other columns of comparison.DIFFERENCES, `p_holm`, for which all figures over all targets are one family, all of
    categories another, and the figures over all of each audit's own targets, as first_alone and second_alone."""
    first = both(audits, wordings[0])
    categories = first["category"].unique().to_list()
    found = [_named(audits, categories, representation(first, clusters(), bootstrap), "", "paper")]
    for scorer, template in wordings:
        rows = shares(both(audits, (scorer, template)), scorer, clusters(), bootstrap)
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
