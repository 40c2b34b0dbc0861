"""The scorer that a run on frames leaves: which of its models, how it is calibrated, and how often its label changes
when the group is another one."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mitigate.measure.bootstrap import Bootstrap
from mitigate.measure.frames import calibrated, calibration_error, fit_calibration
from mitigate.runs.files import write
from mitigate.score.frames import FILE, Frames, logit
from mitigate.tasks.frames.posts import share_of
from mitigate.tasks.frames.predictions import truth_of
from mitigate.triples import PREJUDICE
from mitigate.words.targets import targets
from mitigate.words.word_forms import any_of

SWAPS = 3
STATEMENTS = 600  # that are swapped, at most


def choose_scorer(
    posts: pl.DataFrame, base: pl.DataFrame, folds: pl.DataFrame | None, *, folder: Path
) -> dict[str, Any]:
    """Write {folder}/scorer.json, and return it with how well it is calibrated: the model of the first fold, calibrated
    and measured on the test posts of that fold, which it has not learnt from; without folds the model that learnt from
    training posts, calibrated on dev posts and measured on test posts.

    brier and calibration_error (0 to 1) are of posts that the calibration did not see: of a fold, each half's by the
    other half. brier_constant: what the share of positives as every post's probability has."""
    if folds is None:
        model, known, asked = "models/base", posts.filter(split="dev"), posts.filter(split="test")
        parts = [(_known(known, base), _known(asked, base))]
    else:
        model, table = "models/fold_0", _known(posts.filter(pl.col("fold") == 0), folds)
        halves = table["key"].map_elements(lambda key: share_of(key, "half") < 0.5, return_dtype=pl.Boolean)
        one, two = table.filter(halves), table.filter(~halves)
        parts = [(one, two), (two, one)]
    otherwise = float(pl.concat([known for known, _ in parts])["p_targeted"].mean() or 1.0)  # type: ignore[arg-type]
    said, truth = [], []
    for known, asked in parts:
        fitted = fit_calibration(_log_odds(known, otherwise), known["truth"].to_numpy().astype(float))
        said.append(calibrated(_log_odds(asked, otherwise), fitted))
        truth.append(asked["truth"].to_numpy().astype(float))
    everything = pl.concat([known for known, _ in parts])
    scale, shift = fit_calibration(_log_odds(everything, otherwise), everything["truth"].to_numpy().astype(float))
    facts = {"model": model, "scale": scale, "shift": shift, "otherwise": otherwise}
    write(folder / FILE, json.dumps(facts, indent=2) + "\n")
    probability, positive = np.concatenate(said), np.concatenate(truth)
    return {
        **facts,
        "posts": len(positive),
        "positive": 100 * float(positive.mean()),
        "brier": float(((probability - positive) ** 2).mean()),
        "brier_constant": float(positive.var()),
        "calibration_error": calibration_error(probability, positive),
    }


def _known(posts: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    truth = posts.select("key", truth=truth_of(posts, "targeted")).drop_nulls()
    return truth.join(predicted.select("key", "p_offensive", "p_targeted"), on="key", maintain_order="left")


def _log_odds(table: pl.DataFrame, otherwise: float) -> np.ndarray:
    product = table["p_offensive"].fill_null(1.0) * table["p_targeted"].fill_null(otherwise)
    return logit(product.to_numpy())


def flip_rates(statements: pl.DataFrame, seed: int, intervals: Bootstrap, *, folder: Path) -> pl.DataFrame:
    """How often the scorer's label changes when the target is swapped for another of its category: category, pairs,
    statements, flipped (percent of pairs, with _low and _high over statements), harmful (percent of the statements that
    it labels as prejudice). A row for each category and one for all.

    statements: sentence, target, category, all with a target."""
    rows = statements.sort("sentence").filter(pl.col("target").is_not_null())
    rows = rows.unique("sentence", keep="first", maintain_order=True)
    order = rows["sentence"].map_elements(lambda text: share_of(text, f"swap{seed}"), return_dtype=pl.Float64)
    rows = rows.with_columns(_order=order).sort("_order").head(STATEMENTS).drop("_order")
    pairs = pl.DataFrame(
        [
            (text, target, category, other, _swapped(text, target, other))
            for text, target, category in rows.select("sentence", "target", "category").iter_rows()
            for other in _others(text, target, category)
        ],
        schema=["sentence", "target", "category", "other", "swapped"],
        orient="row",
    ).filter(pl.col("sentence") != pl.col("swapped"))
    scorer = Frames(folder, unsure=0.0)
    texts = pl.concat([pairs["sentence"], pairs["swapped"]]).unique(maintain_order=True)
    label = dict(zip(texts, scorer(texts.to_list()).label.tolist(), strict=True))
    pairs = pairs.with_columns(
        before=pl.col("sentence").replace_strict(label), after=pl.col("swapped").replace_strict(label)
    )
    pairs = pairs.with_columns(flipped=pl.col("before") != pl.col("after"))
    groups = [("all", pairs), *((str(name), part) for (name,), part in pairs.group_by("category", maintain_order=True))]
    return pl.DataFrame([_flips(name, part, intervals) for name, part in groups])


def _flips(name: str, pairs: pl.DataFrame, intervals: Bootstrap) -> dict[str, Any]:
    by = pairs.group_by("sentence", maintain_order=True).agg(pl.col("flipped").mean(), pl.col("before").first())
    values = 100 * by["flipped"].to_numpy()[:, None]
    bounds = intervals.mean(values, np.arange(len(values)))
    low, high = (None if np.isnan(end[0]) else float(end[0]) for end in bounds)
    harmful = 100 * float((by["before"] == PREJUDICE).mean())  # type: ignore[arg-type]
    flipped = float(values.mean())
    return {
        "category": name,
        "statements": by.height,
        "pairs": pairs.height,
        "flipped": flipped,
        "flipped_low": low,
        "flipped_high": high,
        "harmful": harmful,
    }


def _others(text: str, target: str, category: str) -> Sequence[str]:
    """The targets of the same category that are put in, always the same ones for a statement."""
    same = [word for word, kind in targets().items() if kind == category and word != target]
    return sorted(same, key=lambda word: hashlib.sha256(f"{text}/{word}".encode()).hexdigest())[:SWAPS]


def _swapped(text: str, target: str, other: str) -> str:
    return re.sub(any_of([target]), other, text, flags=re.IGNORECASE)
