"""The change of a figure from the baseline's, with the interval, p-value and detectable change that follow from its
standard error; changes between two models over the same targets; and the tests and corrections that comparisons share.

A mean is compared by its difference, a variance or a perplexity by its ratio, whose error is that of its logarithm: a
variance that falls from 100 to 3 is known up to a factor, not up to a number of points. One trained model is one draw,
so differences between two models have no known cause; seeds.py compares policies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from polars.datatypes import DataTypeClass
from scipy import optimize, special, stats

from mitigate.errors import MitigateError
from mitigate.measure.intervals import (
    Figure,
    cluster_sums,
    exact_variance,
    jackknife,
    log_variance,
    mean_of,
    without_each,
)

How = Literal["difference", "ratio"]
DIFFERENCE: How = "difference"
RATIO: How = "ratio"
POWER = 0.8


@dataclass(frozen=True)
class Change:
    """A figure of the baseline and of the run that is compared with it.

    error: the standard error of their difference, or of the logarithm of their ratio; NaN where it cannot be known,
    infinite where it has no bound. 0, where nothing varied, is treated as NaN: twelve words without variation do not
    show that others have none."""

    baseline: float
    value: float
    how: How = "difference"
    error: float = math.nan
    degrees: float = math.inf

    @property
    def gain(self) -> float:
        """The change on the scale of the error."""
        if self.how == DIFFERENCE:
            return self.value - self.baseline
        if self.baseline == self.value:
            return 0.0
        if not (self.baseline and self.value):
            return math.inf if self.value else -math.inf
        return math.log(self.value / self.baseline)

    @property
    def size(self) -> float:
        """The change as shown: the difference, or the ratio."""
        return self.gain if self.how == DIFFERENCE else _exp(self.gain)

    @property
    def p(self) -> float:
        """The two-sided p-value of no change; NaN where the error is not known."""
        if not math.isfinite(self._reach(0.975)) or not math.isfinite(self.gain):
            return math.nan
        return float(2 * stats.t.sf(abs(self.gain) / self.error, self.degrees))

    def bounds(self, level: float = 0.95) -> tuple[float, float]:
        """The bounds of the interval as shown. A ratio without a bound reaches from 0 to infinity."""
        reach = self._reach((1 + level) / 2)
        if math.isfinite(self.gain) or math.isnan(reach):
            low, high = self.gain - reach, self.gain + reach
        else:  # one of the two does not vary at all
            low, high = -math.inf, math.inf
        return (low, high) if self.how == DIFFERENCE else (_exp(low), _exp(high))

    def detectable(self, level: float = 0.95, power: float = POWER) -> float:
        """The smallest true change that is detected with this power."""
        reach = self._reach((1 + level) / 2) + self._reach(power)
        return reach if self.how == DIFFERENCE else _exp(reach)

    def passes(self, margin: float, level: float = 0.95) -> float:
        """The probability that the whole interval of a true copy of the baseline is no worse than the margin, which is
        points below 0 or a ratio above 1: the power of a non-inferiority test."""
        within = abs(margin) if self.how == DIFFERENCE else abs(math.log(margin))
        if not math.isfinite(self._reach(0.975)):
            return math.nan
        return float(stats.t.cdf(within / self.error - stats.t.ppf((1 + level) / 2, self.degrees), self.degrees))

    def row(self, level: float = 0.95) -> dict[str, Any]:
        """A row with the columns of CHANGE; null for what is not known, and for a bound where nothing bounds it."""
        low, high = self.bounds(level)
        found: dict[str, Any] = {
            "baseline": self.baseline,
            "value": self.value,
            "as": self.how,
            "change": self.size,
            "low": low,
            "high": high,
            "p": self.p,
            "detectable": self.detectable(level),  # up or down; of a ratio, the factor
            "error": self.error,
            "degrees": self.degrees,
        }
        return {name: cell if isinstance(cell, str) or math.isfinite(cell) else None for name, cell in found.items()}

    def _reach(self, quantile: float) -> float:
        return float(stats.t.ppf(quantile, self.degrees)) * self.error if self.error else math.nan


CHANGE: dict[str, DataTypeClass] = {
    name: pl.String if isinstance(cell, str) else pl.Float64 for name, cell in Change(0.0, 0.0).row().items()
}
"""The columns of a table of changes."""


def change_of(row: Mapping[str, Any]) -> Change:
    """The change of a row in a table of changes."""
    unknown = {"baseline": math.nan, "value": math.nan, "error": math.nan, "degrees": math.inf}
    baseline, value, error, degrees = (if_null if row[name] is None else row[name] for name, if_null in unknown.items())
    return Change(baseline, value, row["as"], error, degrees)


def together(parts: Sequence[tuple[float, float]], level: float = 0.95) -> tuple[float, float]:
    """The error and the degrees of freedom of a sum of independent parts, (error, degrees) each. The reach of its
    interval is the root of the summed squares of the reach of each part's (square-and-add, Zou and Donner 2008). Unlike
    Satterthwaite's, it does not treat an error that three seeds happen to make small as a well-known one."""
    error = math.hypot(*(size for size, _ in parts))
    known = [(size, degrees) for size, degrees in parts if size > 0]
    if not math.isfinite(error) or not known:
        return error, min((degrees for _, degrees in parts), default=math.inf)
    reach = math.hypot(*(stats.t.ppf((1 + level) / 2, degrees) * size for size, degrees in known)) / error
    fewest, most = min(degrees for _, degrees in known), max(degrees for _, degrees in known)
    if fewest == most:
        return error, fewest
    return error, float(
        optimize.brentq(lambda d: special.stdtrit(d, (1 + level) / 2) - reach, fewest - 1e-9, most + 1e-9)
    )


def _exp(value: float) -> float:
    return math.inf if value >= 700 else math.exp(value)  # NaN stays


FIGURE = {
    "figure": pl.String,  # "NSM", "NSV/origin" ...
    "targets": pl.Int64,  # those with statements in all compared runs
}
FIXED = ("low", "high", "p", "error", "degrees")
BOTH, SEEDS, TARGETS = "seeds and targets", "seeds", "targets"
STATISTICS = CHANGE | {
    "drawn": pl.String,  # the variation that the interval and p include: BOTH, SEEDS, TARGETS
    **{f"fixed_{name}": pl.Float64 for name in FIXED},  # of the analysis of seeds with fixed targets
}
COMPARED = FIGURE | STATISTICS
"""The columns of each figure in a comparison of policies, or of two models."""

NO_VARIANCE = Change(math.nan, math.nan, "ratio")
"""The change of the variance over a single target."""
PERMUTATIONS = 100_000
"""Permutations of the sign-flip test: the smallest p is 1 / (1 + PERMUTATIONS)."""
AT_ONCE = 2_000  # permutations held in memory


def row_of(figure: str, num_targets: int, change: Change) -> dict:
    """A row of FIGURE and CHANGE."""
    return {"figure": figure, "targets": num_targets, **change.row()}


def in_range(row: dict[str, Any], unit: str) -> dict[str, Any]:
    """A row of STATISTICS whose intervals of a change of a share stay within 100 points up or down."""
    if unit == "%" and row["as"] == DIFFERENCE:
        for name in ("low", "high", "fixed_low", "fixed_high"):
            row[name] = None if row.get(name) is None else min(max(row[name], -100.0), 100.0)
    return row


def mean_change(first: np.ndarray, second: np.ndarray, clusters: np.ndarray) -> Change:
    """The change of the mean of values of the same targets, (targets, 1)."""
    before, after = (cluster_sums(side, clusters, powers=(0, 1)) for side in (first, second))
    return paired(before, after, mean_of)


def variance_change(first: np.ndarray, second: np.ndarray, clusters: np.ndarray) -> Change:
    """The change of the population variance; without values for a single target, which has none."""
    if len(first) == 1:
        return NO_VARIANCE
    before, after = (cluster_sums(side - side.mean(), clusters, powers=(0, 1, 2)) for side in (first, second))
    found = paired(before, after, log_variance, "ratio")
    return Change(exact_variance(first), exact_variance(second), "ratio", found.error, found.degrees)


def paired(before: np.ndarray, after: np.ndarray, figure: Figure, how: How = "difference") -> Change:
    """The change of a figure of sums over the targets of each word, (sums, words, 1); figure: for a ratio, its
    logarithm."""
    first, second = (float(figure(side.sum(axis=1)).item()) for side in (before, after))
    error, degrees = math.nan, math.inf
    if before.shape[1] > 1:
        with np.errstate(invalid="ignore"):  # both may be without variance
            found = jackknife(without_each(after, figure) - without_each(before, figure))
        error, degrees = found.size.item(), found.degrees.item()
    if how == "ratio":
        first, second = math.exp(first), math.exp(second)
    return Change(first, second, how, error, degrees)


def neutral_side_by_side(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """target, category and each table's percentage neutral as run_0, run_1 ..., of the targets that have
    statements in all. Raises MitigateError when there is none."""
    joined = tables[0].select("target", "category", run_0="neutral")
    for number, table in enumerate(tables[1:], start=1):
        column = table.select("target", pl.col("neutral").alias(f"run_{number}"))
        joined = joined.join(column, on="target", how="inner", maintain_order="left")
    joined = joined.drop_nulls()
    if joined.is_empty():
        raise MitigateError("the runs cannot be compared: no target has statements in all of them")
    return joined


def sign_flip_test(
    gains: np.ndarray, clusters: np.ndarray, permutations: int = PERMUTATIONS, seed: int = 0
) -> np.ndarray:
    """Two-sided p-values, (figures,), of the means of gains (targets, figures) if the sign of each word's gain is
    arbitrary, as it is where the two sides do not differ. Not for squared deviations: with skewed percentages it finds
    differences of variances that do not exist in up to 74 % of cases."""
    sums = cluster_sums(gains, clusters, powers=(1,))[0]
    reached = np.abs(sums.sum(axis=0)) * (1 - 1e-9)  # equal sums may differ by rounding
    generator = np.random.default_rng(seed)
    as_far = np.ones(sums.shape[1])  # the observed signs
    for start in range(0, permutations, AT_ONCE):
        size = min(AT_ONCE, permutations - start), math.ceil(len(sums) / 8)
        drawn = generator.integers(256, size=size, dtype=np.uint8)  # a bit for each sign, the fastest way to draw them
        signs = 2.0 * np.unpackbits(drawn, axis=1, count=len(sums)) - 1
        as_far += (np.abs(signs @ sums) >= reached).sum(axis=0)
    return as_far / (1 + permutations)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values: if those below alpha are called real, the probability that any of them is not is at
    most alpha. None (no comparison) stays None and does not count."""
    ascending = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, place) in enumerate(ascending):
        largest = max(largest, min(1.0, (len(ascending) - rank) * value))
        adjusted[place] = largest
    return adjusted
