"""The scorer of a run on frames: the choice of its model, its calibration, and changes of its label when the group is
swapped."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.files import write
from mitigate.measure.frames import calibrated, calibration_error, fit_calibration
from mitigate.measure.intervals import Bootstrap
from mitigate.score.frames import FILE, Frames, logit
from mitigate.tasks.frames.posts import share_of
from mitigate.tasks.frames.predictions import truth_of
from mitigate.triples import PREJUDICE
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of

SWAPS = 3
STATEMENTS = 600  # to swap, at most


def choose_scorer(
    posts: pl.DataFrame, base: pl.DataFrame, folds: pl.DataFrame | None, *, folder: Path
) -> dict[str, Any]:
    """Write {folder}/scorer.json, and return it with measures of its calibration: the model of the first fold,
    calibrated and measured on the test posts of that fold, which it has not learnt from; without folds the model that
    learnt from training posts, calibrated on dev posts and measured on test posts.

    brier and calibration_error (0 to 1) are of posts that the calibration did not see: in a fold, each half is
    calibrated by the other. brier_constant: of the share of positives as the probability of every post."""
    if folds is None:
        model = "models/base"
        dev, test = (_with_truth(posts.filter(split=split), base) for split in ("dev", "test"))
        parts = [(dev, test)]
    else:
        model, table = "models/fold_0", _with_truth(posts.filter(pl.col("fold") == 0), folds)
        halves = table["key"].map_elements(lambda key: share_of(key, "half") < 0.5, return_dtype=pl.Boolean)
        one, two = table.filter(halves), table.filter(~halves)
        parts = [(one, two), (two, one)]
    everything = pl.concat([fitted for fitted, _ in parts])
    otherwise = float(everything["p_targeted"].mean() or 1.0)  # type: ignore[arg-type]
    scale, shift = _fit(everything, otherwise)
    facts = {"model": model, "scale": scale, "shift": shift, "otherwise": otherwise}
    write(folder / FILE, json.dumps(facts, indent=2) + "\n")
    unseen = [calibrated(_log_odds(test, otherwise), _fit(fitted, otherwise)) for fitted, test in parts]
    probability = np.concatenate(unseen)
    positive = pl.concat([test for _, test in parts])["truth"].to_numpy().astype(float)
    return {
        **facts,
        "posts": len(positive),
        "positive": 100 * float(positive.mean()),
        "brier": float(((probability - positive) ** 2).mean()),
        "brier_constant": float(positive.var()),
        "calibration_error": calibration_error(probability, positive),
    }


def _with_truth(posts: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    truth = posts.select("key", truth=truth_of(posts, "targeted")).drop_nulls()
    return truth.join(predicted.select("key", "p_offensive", "p_targeted"), on="key", maintain_order="left")


def _fit(table: pl.DataFrame, otherwise: float) -> tuple[float, float]:
    return fit_calibration(_log_odds(table, otherwise), table["truth"].to_numpy().astype(float))


def _log_odds(table: pl.DataFrame, otherwise: float) -> np.ndarray:
    product = table["p_offensive"].fill_null(1.0) * table["p_targeted"].fill_null(otherwise)
    return logit(product.to_numpy())


def flip_rates(statements: pl.DataFrame, seed: int, intervals: Bootstrap, *, folder: Path) -> pl.DataFrame:
    """Changes of the scorer's label when the target is swapped for another of its category: category, pairs,
    statements, flipped (percent of pairs, with _low and _high over statements), harmful (percent of the statements that
    it labels as prejudice). A row for each category and one for all.

    statements: sentence, target, category, all with a target."""
    rows = statements.sort("sentence").filter(pl.col("target").is_not_null())
    rows = rows.unique("sentence", keep="first", maintain_order=True)
    order = rows["sentence"].map_elements(lambda text: share_of(text, f"swap{seed}"), return_dtype=pl.Float64)
    rows = rows[order.arg_sort().head(STATEMENTS)]
    pairs = pl.DataFrame(
        [
            (text, target, category, other, re.sub(any_of([target]), other, text, flags=re.IGNORECASE))
            for text, target, category in rows.select("sentence", "target", "category").iter_rows()
            for other in _others(text, target, category)
        ],
        schema=["sentence", "target", "category", "other", "swapped"],
        orient="row",
    ).filter(pl.col("sentence") != pl.col("swapped"))
    scorer = Frames(folder, unsure=0.0)
    texts = pl.concat([pairs["sentence"], pairs["swapped"]]).unique(maintain_order=True)
    label = dict(zip(texts, scorer(texts.to_list()).label.tolist(), strict=True))
    before, after = (pl.col(name).replace_strict(label) for name in ("sentence", "swapped"))
    pairs = pairs.with_columns(before=before, flipped=before != after)
    groups = [("all", pairs), *((str(name), part) for (name,), part in pairs.group_by("category", maintain_order=True))]
    return pl.DataFrame([_flips(name, part, intervals) for name, part in groups])


def _flips(name: str, pairs: pl.DataFrame, intervals: Bootstrap) -> dict[str, Any]:
    by = pairs.group_by("sentence", maintain_order=True).agg(pl.col("flipped").mean(), pl.col("before").first())
    values = 100 * by["flipped"].to_numpy()[:, None]
    bounds = intervals.mean(values, np.arange(len(values)))
    low, high = (None if np.isnan(end[0]) else float(end[0]) for end in bounds)
    harmful = 100 * float((by["before"] == PREJUDICE).mean())  # type: ignore[arg-type]
    found = {"category": name, "statements": by.height, "pairs": pairs.height, "flipped": float(values.mean())}
    return {**found, "flipped_low": low, "flipped_high": high, "harmful": harmful}


def _others(text: str, target: str, category: str) -> Sequence[str]:
    """The targets of the same category to put in, always the same ones for a statement."""
    same = [word for word, kind in targets().items() if kind == category and word != target]
    return sorted(same, key=lambda word: hashlib.sha256(f"{text}/{word}".encode()).hexdigest())[:SWAPS]
