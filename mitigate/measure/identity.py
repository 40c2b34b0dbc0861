"""Dependence of a scorer's labels on the group that a sentence names, after Dixon et al. (2018, Measuring and
Mitigating Unintended Bias in Text Classification): the same frames (data/identity), filled with one identity term after
another.

A false positive is a neutral or kind frame that is labelled prejudice, a false negative an unkind frame that is not.
A negated frame counts by its meaning: "is not a thief" is neutral, "is not honest" unkind. Every term has the same
frames, so the mean over terms is the rate over all texts, and a term's gap to it is Dixon's |FPR - FPR_t|, signed.
Intervals are over frames, drawn by pairs of singular and plural. Shares are in percent, gaps in percentage points."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.base import ENDS, bounds
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.statements import choice, long_texts
from mitigate.score.base import IDENTITY
from mitigate.score.labeller import with_identity_words
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.triples import PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import identity_texts

PARTS: Mapping[str, tuple[str | None, str | None]] = {  # splits of terms and of frames; None: both
    "all": (None, None),
    "seen": ("train", "train"),
    "unseen": ("test", "test"),
    "unseen_terms": ("test", "train"),
    "unseen_frames": ("train", "test"),
}
"""The combinations of terms and frames."""
FALSE_POSITIVES, FALSE_NEGATIVES = "false_positives", "false_negatives"
GAPS = {FALSE_POSITIVES: "positives_gap", FALSE_NEGATIVES: "negatives_gap"}
WRONG = {
    FALSE_POSITIVES: (pl.col("polarity") != "unkind", pl.col("label") == PREJUDICE),
    FALSE_NEGATIVES: (pl.col("polarity") == "unkind", pl.col("label") != PREJUDICE),
}
"""The frames that an error can happen in, and the labels that are one."""
LARGEST = 5.0  # percentage points that a term may be from the mean without a notice
SHOWN = 3  # words of a notice
IS_TERM = pl.col("axis").is_not_null()
BY_TERM: dict[str, Any] = {
    "part": pl.String,
    "term": pl.String,
    "axis": pl.String,  # null for the row of masked frames, which no mean includes
    FALSE_POSITIVES: pl.Float64,
    FALSE_NEGATIVES: pl.Float64,
    **{f"{gap}{end}": pl.Float64 for gap in GAPS.values() for end in ENDS},
}
FIGURES = {
    **{"": "mean", "_equality_difference": "equality_difference", "_farthest": "term", "_beyond": "beyond"},
    **{"_masked": "masked", **{f"_{column}": column for column in ("largest", *bounds("largest"))}},
}
"""Endings of the keys of an error's figures, and the columns of identity_summary that hold them."""


def term_texts(terms: int | None = None, seed: int = 0) -> pl.DataFrame:
    """Read the texts of words.identity_terms.identity_texts. terms: the number of unseen terms that are drawn, with the
    unseen frames alone; None: all terms and frames."""
    texts = identity_texts(MASK)
    if terms is None:
        return texts
    unseen = texts.filter(frame_split="test")
    named = unseen.filter(term_split="test")["term"].unique(maintain_order=True)
    drawn = named.sample(min(terms, len(named)), seed=seed).to_list()
    return unseen.filter(pl.col("term").is_in(drawn) | pl.col("term_split").is_null())


def label_identity_terms(
    scorers: Sequence[Scorer], texts: pl.DataFrame | None = None, *, cache: LabelCache = NOTHING_CACHED
) -> pl.DataFrame:
    """Label texts of term_texts, all of them by default, by each scorer: its label and strength. Unlike statements,
    texts are labelled as they are: no demographic word is masked, except in the frames about "this person"."""
    texts = term_texts() if texts is None else texts
    for scorer in scorers:
        label, strength = label_columns(scorer.name, "paper")
        found = label_column(texts["text"], scorer, cache)
        texts = texts.with_columns(pl.Series(label, found.label), pl.Series(strength, found.strength))
    return texts


def measure_identity_terms(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """Errors by term in what label_identity_terms returns, a row for each scorer, part and term, the masked row last:
    scorer, and the columns BY_TERM."""
    tables = []
    for name in scorers:
        labelled = labels.with_columns(label=pl.col(name))
        for part, splits in PARTS.items():
            terms, frames = (
                pl.lit(True) if wanted is None else pl.col(column) == wanted
                for column, wanted in zip(("term_split", "frame_split"), splits, strict=True)
            )
            rows = labelled.filter(terms | pl.col("term_split").is_null(), frames)
            if rows.filter(IS_TERM).height:
                tables.append(_by_term(rows, intervals).with_columns(scorer=pl.lit(name), part=pl.lit(part)))
    kinds = {"scorer": pl.String, **BY_TERM}
    return pl.concat(tables).select(pl.col(column).cast(kind) for column, kind in kinds.items())


def _by_term(rows: pl.DataFrame, intervals: Bootstrap) -> pl.DataFrame:
    shares = [(100 * wrong.filter(counts).mean()).alias(name) for name, (counts, wrong) in WRONG.items()]
    table = rows.group_by("term", "axis", maintain_order=True).agg(shares).sort(~IS_TERM, maintain_order=True)
    for name, (counts, wrong) in WRONG.items():
        gaps = _gaps(rows.filter(counts).with_columns(wrong=wrong), GAPS[name], intervals)
        table = table.join(gaps, on="term", how="left", maintain_order="left")
    return table


def _gaps(rows: pl.DataFrame, name: str, intervals: Bootstrap) -> pl.DataFrame:
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
    interval = intervals.mean(gaps, np.unique(wide["pair"].to_numpy(), return_inverse=True)[1])
    found = dict(zip(columns, (gaps.mean(axis=0), *interval), strict=True))
    return pl.DataFrame({"term": values.columns, **found}).with_columns(pl.col(columns).fill_nan(None))


def identity_summary(terms: pl.DataFrame) -> pl.DataFrame:
    """Summarise measure_identity_terms in a row for each scorer, part and error: scorer, part, error, mean over terms,
    equality_difference (Dixon's sum over terms of the distances to the mean), largest (the gap of the term that is
    farthest from the mean, with its interval largest_low, largest_high), term, terms, beyond (terms farther than
    LARGEST), masked (the share where the phrase is masked). The term is chosen by its gap, so its interval is
    somewhat too narrow."""
    rows = []
    for (scorer, part), found in terms.group_by("scorer", "part", maintain_order=True):
        named, hidden = found.filter(IS_TERM), found.filter(~IS_TERM)
        for error, gap in GAPS.items():
            if named[gap].has_nulls():  # no frame of this kind
                continue
            gaps, shares = named[gap].to_numpy(), named[error].to_numpy()
            at = int(np.abs(gaps).argmax())
            row = {"scorer": scorer, "part": part, "error": error, "mean": float(shares.mean())}
            row |= {"equality_difference": equality_difference(shares), "term": named["term"][at]}
            largest = named.select(gap, *bounds(gap)).row(at)
            row |= dict(zip(("largest", *bounds("largest")), largest, strict=True))
            row |= {"terms": named.height, "beyond": int((np.abs(gaps) > LARGEST).sum())}
            rows.append(row | {"masked": hidden[error].first() if hidden.height else None})
    return pl.DataFrame(rows, infer_schema_length=None)


def equality_difference(shares: np.ndarray) -> float:
    """The sum over terms of the distance between a term's share and the mean of all, (terms,); 0 where all are the same
    (Dixon et al. 2018, Section 4.3: false positive and false negative equality difference)."""
    return float(np.abs(shares - shares.mean()).sum())


def identity_metrics(summed: pl.DataFrame) -> dict[str, Any]:
    """Return the rows of identity_summary as metrics: {scorer}/identity/{part}/{error}, the mean over terms, and the
    row's other figures with the endings _largest, _farthest (the term), _equality_difference, _beyond and _masked."""
    return {
        "{scorer}/identity/{part}/{error}".format_map(row) + ending: row[column]
        for row in summed.rows(named=True)
        for ending, column in FIGURES.items()
    }


def mean_false_positives(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> dict[str, float | None]:
    """Each scorer's mean share of false positives on unseen terms and frames, in percent, and its interval over frames,
    by their metrics: {scorer}/identity/unseen/false_positives, _low and _high. labels: of label_identity_terms."""
    found: dict[str, float | None] = {}
    for name in scorers:
        rows = labels.filter(IS_TERM, term_split="test", frame_split="test").with_columns(label=pl.col(name))
        counts, wrong = WRONG[FALSE_POSITIVES]
        by_frame = rows.filter(counts).group_by("frame", "pair", maintain_order=True).agg(share=100.0 * wrong.mean())
        values = by_frame["share"].to_numpy()[:, None]
        ends = intervals.mean(values, np.unique(by_frame["pair"].to_numpy(), return_inverse=True)[1])
        figures = (float(values.mean()), *(None if np.isnan(end.item()) else end.item() for end in ends))
        place = f"{name}/identity/unseen/{FALSE_POSITIVES}"
        found |= {place + end: value for end, value in zip(ENDS, figures, strict=True)}
    return found


def identity_notices(summed: pl.DataFrame) -> Iterator[str]:
    """Yield a notice for each scorer and error of unseen terms and frames where a term is farther than LARGEST from
    the mean."""
    wrongly = {FALSE_POSITIVES: ("neutral and kind", "prejudice"), FALSE_NEGATIVES: ("unkind", "no prejudice")}
    for row in summed.filter(pl.col("part") == "unseen", pl.col("beyond") > 0).rows(named=True):
        kind, label = wrongly[row["error"]]
        yield (
            f"labels of {row['scorer']} depend on the group that a sentence names: {row['mean']:.1f} % of the {kind} "
            f"sentences are labelled {label}, of those about “{row['term']}” {row['mean'] + row['largest']:.1f} %; "
            f"unseen terms that are more than {LARGEST:g} points from the mean: {row['beyond']} of {row['terms']}"
        )


def identity_word_notices(labels: pl.DataFrame) -> Iterator[str]:
    """Yield a notice for each scorer with labels that depend on identity words: the words, and how many labels."""
    for column in filter(lambda name: name.endswith(IDENTITY), labels.columns):
        found = labels[column].drop_nulls()
        if found.is_empty():
            continue
        counts = found.value_counts().sort("count", column, descending=[True, False]).rows()
        named = [f"{words} ({count:,})" for words, count in counts[:SHOWN]] + ["..."] * (len(counts) > SHOWN)
        yield (
            f"{len(found):,} of {labels.height:,} labels of {column.removesuffix(IDENTITY)} depend on an identity "
            f"word: with the word masked, the text has another label ({', '.join(named)}). Words that probe.targets "
            "names are masked"
        )


def identity_words_of(scorers: Sequence[Scorer], seed: int, *, folder: Path, cache: LabelCache) -> dict[str, list[str]]:
    """Notices about the labelled statements in a folder of parts (of very many, those that choice takes): long texts,
    and labels that depend on identity terms of data/identity that are not targets."""
    labelled = choice(folder, seed)[0].select("masked", *(scorer.name for scorer in scorers))
    words = identity_word_notices(with_identity_words(labelled, scorers, None, cache=cache))
    return {"notices": [*long_texts(labelled["masked"]), *words]}
