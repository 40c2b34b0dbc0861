"""Dependence of a scorer's labels on the group that a sentence names, after Dixon et al. (2018, Measuring and
Mitigating Unintended Bias in Text Classification): the same frames (data/identity), filled with one identity term after
another; terms and frames that no classifier here has learnt from.

A false positive is a neutral or kind frame that is labelled prejudice, a false negative an unkind frame that is not.
A negated frame counts by its meaning: "is not a thief" is neutral, "is not honest" unkind. Every term has the same
frames, so the mean over terms is the rate over all texts. Shares are in percent."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from mitigate.measure.base import ENDS
from mitigate.measure.intervals import Bootstrap
from mitigate.score.labels import NOTHING_CACHED, label_column
from mitigate.triples import PREJUDICE, LabelCache, Scorer, label_columns
from mitigate.verbalise import MASK
from mitigate.words.identity_terms import identity_texts

FALSE_POSITIVES = "false_positives"
ERRORS = FALSE_POSITIVES, "false_negatives"
IDENTITY = {
    **dict.fromkeys(("scorer", "error"), pl.String),
    **dict.fromkeys((*(f"mean{end}" for end in ENDS), "equality_difference"), pl.Float64),
    "term": pl.String,  # the one whose share is farthest from the mean
    **dict.fromkeys(("largest", "masked"), pl.Float64),  # its share, and that of frames about “this person”
}


def term_texts(terms: int | None = None, seed: int = 0) -> pl.DataFrame:
    """Read the unseen texts of words.identity_terms.identity_texts, and those about "this person". terms: the number of
    terms, drawn by seed; None: all."""
    texts = identity_texts(MASK).filter(pl.col("term_split").fill_null("test") == "test", frame_split="test")
    named = texts.drop_nulls("term_split")["term"].unique(maintain_order=True)
    drawn = named if terms is None else named.sample(min(terms, len(named)), seed=seed)
    return texts.filter(pl.col("term").is_in(drawn.to_list()) | pl.col("term_split").is_null())


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


def identity_errors(labels: pl.DataFrame, scorers: Sequence[str], intervals: Bootstrap) -> pl.DataFrame:
    """A row of IDENTITY for each scorer and error in what label_identity_terms returns: the mean over terms with its
    interval over frames, drawn by pairs of singular and plural; equality_difference, the sum over terms of the distance
    between a term's share and the mean, 0 where all are the same (Dixon et al. 2018, Section 4.3)."""
    rows = []
    for name in scorers:
        for error in ERRORS:
            is_unkind, is_prejudice = pl.col("polarity") == "unkind", pl.col(name) == PREJUDICE
            of, wrong = (~is_unkind, is_prejudice) if error == FALSE_POSITIVES else (is_unkind, ~is_prejudice)
            found = labels.filter(of).with_columns(wrong=100.0 * wrong)
            named, masked = found.drop_nulls("term_split"), found.filter(pl.col("term_split").is_null())
            frames = named.group_by("frame", "pair", maintain_order=True).agg(pl.col("wrong").mean())
            pairs = np.unique(frames["pair"].to_numpy(), return_inverse=True)[1]
            low, high = intervals.mean(frames["wrong"].to_numpy(), pairs)
            terms = named.group_by("term", maintain_order=True).agg(pl.col("wrong").mean())
            mean = float(terms["wrong"].to_numpy().mean())
            apart = np.abs(terms["wrong"].to_numpy() - mean)
            row = {"scorer": name, "error": error, "mean": mean, "mean_low": low, "mean_high": high}
            row |= {"equality_difference": float(apart.sum()), "masked": masked["wrong"].mean()}
            rows.append(row | dict(zip(("term", "largest"), terms.row(int(apart.argmax())), strict=True)))
    return pl.DataFrame(rows, schema=IDENTITY)
