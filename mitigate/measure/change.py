"""The change of a figure from the baseline's, with the interval, p-value and detectable change that follow from its
standard error. A mean is compared by its difference, a variance or a perplexity by its ratio, whose error is that of
its logarithm: a variance that falls from 100 to 3 is known up to a factor, not up to a number of points."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from polars.datatypes import DataTypeClass
from scipy import optimize, special, stats

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


def of_row(row: Mapping[str, Any]) -> Change:
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
