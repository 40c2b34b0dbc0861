"""Figures of a run of recipe=kge: metrics, and the table of professions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from mitigate import metrics as keys
from mitigate.measure.kge import (
    agreement,
    over_seeds,
    rank_correlation,
    shared_ends,
    within,
)
from mitigate.tasks.kge.predictions import FIGURES, LEAKS
from mitigate.tasks.kge.question import Question
from mitigate.tasks.kge.training import HITS

TOP = 20  # professions at each end, in the paper's tables
LIMITS = {"correlation": (-1, 1), "ratio": (0, 1), "percent": (0, 100)}  # of figures, by unit
DIFFERENCES = tuple(map(keys.kge_key, ("predictive_parity", "amplification")))  # in percentage points


def by_model(changes: pl.DataFrame) -> np.ndarray:
    """The changes of a table (model, profession, change) as an array (models, professions)."""
    size = changes["profession"].n_unique()
    return changes["change"].to_numpy().reshape(-1, size)


def profession_table(question: Question, changes: pl.DataFrame) -> pl.DataFrame:
    """The professions, the one that value a raises most first: profession, people, of_a, of_b, log_ratio, change (mean
    over seeds), and its interval low and high."""
    found = over_seeds(by_model(changes))._asdict()
    columns = (pl.Series(name, found[key]) for name, key in (("change", "mean"), ("low", "low"), ("high", "high")))
    table = question.professions.with_columns(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.sort("change", "profession", descending=[True, False])


def measure_bias(
    question: Question,
    ranks: pl.DataFrame,
    changes: pl.DataFrame,
    pairs: pl.DataFrame,
    parity: pl.DataFrame,
    leaks: pl.DataFrame,
    others: Mapping[str, pl.DataFrame],
    mitigated: Mapping[str, pl.DataFrame],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """All metrics, by key. others: tables of professions of other models; mitigated: tables after a mitigation, by
    names such as "projected/rank"; facts: of the run."""
    found = model_figures(question, ranks, changes, parity, leaks)
    rankings = by_model(changes)
    found[keys.KGE_AGREEMENT] = agreement(rankings)
    shared = shared_ends(rankings, TOP)
    found[keys.KGE_SHARED] = None if shared is None else 100 * shared
    mine, correlations = question.professions.select("profession", change=pl.Series(rankings.mean(0))), []
    for table in others.values():
        both = mine.join(table.select("profession", other="change"), on="profession")
        correlations.append(rank_correlation(both["change"].to_numpy(), both["other"].to_numpy()))
    measured = [one for one in correlations if one is not None]
    found[keys.KGE_MODELS] = float(np.mean(measured)) if measured else None
    drawn = pairs.filter(pl.col("person_a").is_null())
    found |= _interval(keys.KGE_PAIR_CORRELATION, drawn["with_counts"])
    found |= _interval(keys.KGE_PAIR_AGREEMENT, drawn["with_pairs"])
    for variant in dict.fromkeys(name.split("/")[0] for name in mitigated):
        after = [mitigated[f"{variant}/{name}"] for name in ("rank", "changes", "parity", "leakage")]
        figures = model_figures(question, *after)
        if variant == keys.PROJECTED:  # equation 1 is 0 by construction: the rest is rounding
            figures = {key: None if key.startswith(keys.KGE_CORRELATION) else value for key, value in figures.items()}
        found |= keys.prefixed(figures, variant=variant)
    counts = {keys.KGE_PROFESSIONS: question.professions.height, keys.KGE_TRAININGS: ranks.height}
    groups = {keys.KGE_PEOPLE_A: len(question.group_a), keys.KGE_PEOPLE_B: len(question.group_b)}
    return found | counts | groups | dict(facts)


def model_figures(
    question: Question, ranks: pl.DataFrame, changes: pl.DataFrame, parity: pl.DataFrame, leaks: pl.DataFrame
) -> dict[str, Any]:
    """Figures before and after a mitigation: quality, equation 1, parity, amplification and leakage."""
    found = _interval(keys.KGE_MRR, ranks["mrr"])
    for k in HITS:
        found |= _interval(keys.kge_key(f"hits_{k}"), 100 * ranks[f"hits_{k}"])
    ratios = question.professions["log_ratio"].to_numpy()
    correlations = [rank_correlation(row, ratios) for row in by_model(changes)]
    found |= _interval(keys.KGE_CORRELATION, pl.Series(correlations, dtype=pl.Float64))
    for table, names in ((parity, FIGURES), (leaks, LEAKS)):
        for name in names:
            found |= _interval(keys.kge_key(name), table[name])
    return found


def _interval(key: str, values: pl.Series) -> dict[str, float | None]:
    """The mean over models and its bounds; None where some model has none."""
    if values.null_count() or not len(values):
        return {key: None}
    limits = (-100, 100) if key in DIFFERENCES else LIMITS[keys.metric(key).unit]
    found = within(over_seeds(values.to_numpy()), *limits)
    low, high = map(_number, (found.low, found.high))
    return {key: _number(found.mean)} | ({} if low is None else dict(zip(keys.bounds(key), (low, high), strict=True)))


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
