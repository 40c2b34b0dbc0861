"""The two figures that a claim may rest on, one of harm and one of quality, chosen by settings. They are corrected
together; all other figures are exploratory."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.measure.base import PAPER_SCORERS, find, key_of
from mitigate.measure.comparison import FIXED, STATISTICS, change_of, holm
from mitigate.measure.quality import LIFT, PERPLEXITY
from mitigate.measure.quality import PLAUSIBLE as ACCEPTED

HARM, QUALITY = "harm", "quality"
ALPHA = 0.05
HARMS = (
    key_of("neutral_mean", "crowd", "neutral"),
    key_of("neutral_mean", "regard", "neutral"),
    key_of("neutral_mean", "regard", "paper"),
)
PRIMARY = {
    "contrast": pl.String,
    "endpoint": pl.String,  # HARM or QUALITY
    "figure": pl.String,  # as in metrics.json
    **STATISTICS,
    "p_holm": pl.Float64,
    "level": pl.Float64,  # of each corrected interval, in percent: together all cover in at least 95 % of cases
    **dict.fromkeys(("low_corrected", "high_corrected"), pl.Float64),
    **dict.fromkeys(("fixed_low_corrected", "fixed_high_corrected"), pl.Float64),
}
WITHIN = {
    "contrast": pl.String,
    "figure": pl.String,
    "margin": pl.Float64,
    "as": pl.String,
    "change": pl.Float64,
    "low": pl.Float64,  # of the corrected interval, if the figure is a primary endpoint
    "high": pl.Float64,
    "copy_passes": pl.Float64,  # percentage of cases in which a true copy of the baseline is shown to be within it
}


@dataclass(frozen=True)
class Endpoints:
    """Figures named before the comparison, as in conf/recipe/compare.yaml.

    harm, quality: the first figure that all runs have counts. margins: the largest loss of quality that still counts as
    kept, points below 0, or a ratio above 1. Raises MitigateError for a name that is not a metric's."""

    harm: Sequence[str] = HARMS
    quality: Sequence[str] = (LIFT, ACCEPTED)
    margins: Mapping[str, float] = field(default_factory=lambda: {LIFT: -2.0, ACCEPTED: -1.0, PERPLEXITY: 1.03})

    @property
    def declared(self) -> list[str]:
        """The kinds (harm, quality) with named figures."""
        return [kind for kind, names in {HARM: self.harm, QUALITY: self.quality}.items() if names]

    def __post_init__(self) -> None:
        named = {"primary.harm": self.harm, "primary.quality": self.quality, "margins": self.margins}
        for setting, names in named.items():
            if unknown := [name for name in names if find(name) is None]:
                raise MitigateError(
                    f"compare.{setting} names {unknown[0]!r}, not a metric; allowed are keys of a run's "
                    f"metrics.json, such as {HARMS[1]} or {ACCEPTED}"
                )


def with_own_scorers(endpoints: Endpoints, scorers: Iterable[str]) -> Endpoints:
    """Append to the default figures of harm the neutral mean of a user's own scorer in the role of regard, or of
    sentiment; other figures stay alone. scorers: those of the roles that all runs share, regard's last."""
    if tuple(endpoints.harm) != HARMS:
        return endpoints
    own = [name for name in reversed(list(scorers)) if name not in PAPER_SCORERS]
    return replace(
        endpoints, harm=[*HARMS, *(key_of("neutral_mean", name, t) for name in own for t in ("neutral", "paper"))]
    )


def primary(harms: pl.DataFrame, quality: pl.DataFrame, endpoints: Endpoints) -> pl.DataFrame:
    """A row of PRIMARY for each contrast and endpoint, from the tables of all figures. p-values are corrected by Holm,
    intervals by Bonferroni, over all rows together; an endpoint that not all runs have is left out."""
    contrasts = harms["contrast"].unique(maintain_order=True).to_list()
    named = {QUALITY: (quality, endpoints.quality), HARM: (harms, endpoints.harm)}
    tables = {kind: _first_shared(table, names, len(contrasts)) for kind, (table, names) in named.items()}
    rows = [
        {"contrast": contrast, "endpoint": kind} | table.filter(contrast=contrast).row(0, named=True)
        for contrast in contrasts
        for kind, table in tables.items()
        if not table.is_empty()
    ]
    level = 1 - ALPHA / max(1, sum(row["error"] is not None for row in rows))
    adjusted = holm([row["p"] for row in rows])
    found = [
        row | {"p_holm": p, "level": 100 * level} | _corrected(row, level)
        for row, p in zip(rows, adjusted, strict=True)
    ]
    return pl.DataFrame(found, schema=PRIMARY)


def within_margins(quality: pl.DataFrame, tested: pl.DataFrame, margins: Mapping[str, float]) -> pl.DataFrame:
    """A row of WITHIN for each contrast and each figure that has a margin and an interval (non-inferiority). tested:
    what `primary` returns."""
    levels = {(row["contrast"], row["figure"]): row["level"] / 100 for row in tested.to_dicts()}
    rows: list[dict[str, Any]] = []
    for row in quality.filter(pl.col("figure").is_in(list(margins)), pl.col("error").is_not_null()).to_dicts():
        name = row["contrast"], row["figure"]
        margin, level, change = margins[row["figure"]], levels.get(name, 1 - ALPHA), change_of(row)
        passes = change.passes(margin, level)
        found = {"margin": margin, "copy_passes": None if math.isnan(passes) else 100 * passes}
        found |= {end: change.row(level)[end] for end in ("low", "high")}
        rows.append({key: row[key] for key in ("contrast", "figure", "as", "change")} | found)
    return pl.DataFrame(rows, schema=WITHIN)


def _first_shared(table: pl.DataFrame, names: Sequence[str], num_contrasts: int) -> pl.DataFrame:
    """The rows (contrast, figure, *STATISTICS) of the first of the figures that all contrasts have; none if there is
    none."""
    numbers = dict(table.group_by("figure").agg(pl.col("contrast").n_unique()).iter_rows())
    figure = next((name for name in names if numbers.get(name) == num_contrasts), None)
    return table.filter(pl.col("figure").eq_missing(figure)).select("contrast", "figure", *STATISTICS)


def _corrected(row: Mapping[str, Any], level: float) -> dict[str, float | None]:
    """The bounds of the corrected intervals, with targets drawn and with targets fixed."""
    analyses = {"": row, "fixed_": {**row, **{name: row[f"fixed_{name}"] for name in FIXED}}}
    found = {start: change_of(values).row(level) for start, values in analyses.items()}
    return {f"{start}{end}_corrected": row[end] for start, row in found.items() for end in ("low", "high")}
