"""Dependence of a scorer's labels on the group that a sentence names, after Dixon et al. (2018, Measuring and
Mitigating Unintended Bias in Text Classification): the same frames, filled with one identity term after another.

A false positive is a neutral or kind frame that is labelled prejudice, a false negative an unkind frame that is not.
A negated frame counts by its meaning: "is not a thief" is neutral, "is not honest" unkind. Every term has the same
frames, so the mean over terms is the rate over all texts, and a term's gap to it is Dixon's |FPR - FPR_t|, signed.
Intervals are over frames, drawn by pairs of singular and plural. Everything is in percent, gaps in percentage points;
strengths as scorers have them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.base import ENDS, bounds
from mitigate.measure.intervals import Bootstrap
from mitigate.triples import NEUTRAL, OTHER, PREJUDICE

PARTS: Mapping[str, tuple[str | None, str | None]] = {  # splits of terms and of frames; None: both
    "all": (None, None),
    "seen": ("train", "train"),
    "unseen": ("test", "test"),
    "unseen_terms": ("test", "train"),
    "unseen_frames": ("train", "test"),
}
"""The combinations of terms and frames."""
NUMBERS = ("both", "singular", "plural")
FALSE_POSITIVES, FALSE_NEGATIVES = "false_positives", "false_negatives"
GAPS = {FALSE_POSITIVES: "positives_gap", FALSE_NEGATIVES: "negatives_gap"}
WRONG = {
    FALSE_POSITIVES: (pl.col("polarity") != "unkind", pl.col("label") == PREJUDICE),
    FALSE_NEGATIVES: (pl.col("polarity") == "unkind", pl.col("label") != PREJUDICE),
}
"""The frames that an error can happen in, and the labels that are one."""
LARGEST = 5.0  # percentage points that a term may be from the mean without a notice

IS_TERM = pl.col("axis").is_not_null()

BY_TERM: dict[str, Any] = {
    "part": pl.String,
    "number": pl.String,
    "term": pl.String,
    "axis": pl.String,  # null for the row of masked frames, which no mean includes
    FALSE_POSITIVES: pl.Float64,
    FALSE_NEGATIVES: pl.Float64,
    "polarised": pl.Float64,  # of neutral frames without a negation, labelled prejudice or favouritism
    "strength": pl.Float64,  # mean over the same frames
    **{f"{gap}{end}": pl.Float64 for gap in GAPS.values() for end in ENDS},
}


def by_term(labelled: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    """A row (columns BY_TERM) for each part, number and term, the masked row last.

    labelled: term, axis, term_split, frame, frame_split, pair, number, polarity, negated, and one scorer's label and
    strength; every term in every frame. Frames whose identity phrase is masked have a term without axis and split."""
    tables = []
    for part, splits in PARTS.items():
        for number in NUMBERS:
            terms, frames, numbers = (
                pl.lit(True) if wanted in (None, "both") else pl.col(column).eq_missing(wanted)
                for column, wanted in zip(("term_split", "frame_split", "number"), (*splits, number), strict=True)
            )
            rows = labelled.filter(terms | pl.col("term_split").is_null(), frames, numbers)
            if rows.filter(IS_TERM).height:
                tables.append(_of_part(rows, bootstrap).with_columns(part=pl.lit(part), number=pl.lit(number)))
    return pl.concat(tables).select(pl.col(name).cast(dtype) for name, dtype in BY_TERM.items())


def summary(terms: pl.DataFrame) -> pl.DataFrame:
    """Summarise by_term in a row for each part, number and error: part, number, error, mean over terms,
    equality_difference (Dixon's sum over terms of the distances to the mean), largest (the gap of the term that is
    farthest from the mean, with its interval largest_low, largest_high), term, terms, beyond (terms farther than
    LARGEST), masked (the share where the phrase is masked). The term is chosen by its gap, so its interval is
    somewhat too narrow."""
    rows = []
    for (part, number), found in terms.group_by("part", "number", maintain_order=True):
        named, hidden = found.filter(IS_TERM), found.filter(~IS_TERM)
        for error, gap in GAPS.items():
            if named[gap].has_nulls():  # no frame of this kind
                continue
            gaps = named[gap].to_numpy()
            at = int(np.abs(gaps).argmax())
            low, high = bounds(gap)
            rows.append(
                {
                    "part": part,
                    "number": number,
                    "error": error,
                    "mean": float(named[error].to_numpy().mean()),
                    "equality_difference": equality_difference(named[error].to_numpy()),
                    "term": named["term"][at],
                    **dict(zip(("largest", *bounds("largest")), named.select(gap, low, high).row(at), strict=True)),
                    "terms": named.height,
                    "beyond": int((np.abs(gaps) > LARGEST).sum()),
                    "masked": hidden[error].first() if hidden.height else None,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def mean_error(labelled: pl.DataFrame, error: str, bootstrap: Bootstrap) -> dict[str, float | None]:
    """The mean over unseen terms of an error's share in unseen frames, in percent, and its interval over frames:
    {error}, {error}_low, {error}_high. labelled: as for by_term."""
    rows = labelled.filter(IS_TERM, pl.col("term_split") == "test", pl.col("frame_split") == "test")
    counts, is_wrong = WRONG[error]
    share = (100.0 * is_wrong.mean()).alias(error)
    by_frame = rows.filter(counts).group_by("frame", "pair", maintain_order=True).agg(share)
    values = by_frame[error].to_numpy()[:, None]
    interval = bootstrap.mean(values, np.unique(by_frame["pair"].to_numpy(), return_inverse=True)[1])
    ends = [None if np.isnan(end.item()) else end.item() for end in interval]
    return {error: float(values.mean()), **dict(zip(bounds(error), ends, strict=True))}


def equality_difference(shares: np.ndarray) -> float:
    """The sum over terms of the distance between a term's share and the mean of all, (terms,); 0 where all are the same
    (Dixon et al. 2018, Section 4.3: false positive and false negative equality difference)."""
    return float(np.abs(shares - shares.mean()).sum())


def _of_part(rows: pl.DataFrame, bootstrap: Bootstrap) -> pl.DataFrame:
    plain = (pl.col("polarity") == "neutral") & ~pl.col("negated")
    is_polarised = ~pl.col("label").is_in([NEUTRAL, OTHER])
    table = (
        rows.group_by("term", "axis", maintain_order=True)
        .agg(
            *((100 * is_wrong.filter(counts).mean()).alias(name) for name, (counts, is_wrong) in WRONG.items()),
            polarised=100 * is_polarised.filter(plain).mean(),
            strength=pl.col("strength").filter(plain).cast(pl.Float64).mean(),
        )
        .sort(~IS_TERM, maintain_order=True)
    )
    for name, (counts, is_wrong) in WRONG.items():
        gaps = _gaps(rows.filter(counts).with_columns(wrong=is_wrong), GAPS[name], bootstrap)
        table = table.join(gaps, on="term", how="left", maintain_order="left")
    return table


def _gaps(rows: pl.DataFrame, name: str, bootstrap: Bootstrap) -> pl.DataFrame:
    """Each term's gap to the mean over terms, and its interval over frames: term, {name}, {name}_low, {name}_high; the
    bounds are null where a single pair of frames leaves nothing to resample."""
    columns = (name, *bounds(name))
    if rows.is_empty():
        return pl.DataFrame(schema={"term": pl.String, **dict.fromkeys(columns, pl.Float64)})
    ordered = rows.sort("pair", "frame", maintain_order=True)
    wide = ordered.with_columns(wrong=100.0 * pl.col("wrong")).pivot("term", index=["frame", "pair"], values="wrong")
    values = wide.drop("frame", "pair")
    hidden = rows.filter(~IS_TERM)["term"].unique().to_list()
    mean = values.drop(hidden).to_numpy().mean(axis=1, keepdims=True)
    gaps = values.to_numpy() - mean  # (frames, terms)
    interval = bootstrap.mean(gaps, np.unique(wide["pair"].to_numpy(), return_inverse=True)[1])
    found = dict(zip(columns, (gaps.mean(axis=0), *interval), strict=True))
    return pl.DataFrame({"term": values.columns, **found}).with_columns(pl.col(columns).fill_nan(None))
