"""Effects of the experiment, from the rows of experiment.csv alone: how much less harm than under a reference, and how
much quality is left, with intervals over seeds and words, and the test of benchmarks/plan.md."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import polars as pl
from scipy import stats

from benchmarks.corrected import Accuracy, known_accuracy
from benchmarks.experiment_row import SHARE, unpack
from mitigate.errors import MitigateError
from mitigate.measure.compare import change_of_sums, holm
from mitigate.measure.intervals import mean_of

ALPHA = 0.05
HOPED = 5.0
"""Percentage points less harm that the experiment is planned to find."""
MARGIN = 3.0
"""Percentage points of swap lift: a loss smaller than this counts as none."""
FEWEST_SEEDS = 5
"""Of each side, for a claim."""


@dataclass(frozen=True)
class Effect:
    """How far a policy is ahead of a reference, in percentage points: above 0 is better. error: its standard error;
    degrees: of freedom of Student's t; relative: the standard error of a factor that the value holds, as a share of
    the value, which is part of the error and grows with the effect."""

    value: float
    error: float
    degrees: float
    relative: float = 0.0

    def error_of(self, truth: float) -> float:
        """The standard error if the effect is truly so large."""
        return math.sqrt(self._apart_from_factor + (self.relative * truth) ** 2)

    @property
    def _apart_from_factor(self) -> float:
        """The part of the squared error that does not grow with the effect."""
        return max(0.0, self.error**2 - (self.relative * self.value) ** 2)

    def bounds(self, level: float = 1 - ALPHA) -> tuple[float, float]:
        """Of the two-sided interval."""
        reach = float(stats.t.ppf((1 + level) / 2, self.degrees)) * self.error
        return self.value - reach, self.value + reach

    def p(self, above: float = 0.0) -> float:
        """Of the test that it is above a bound: twice the one-sided p, at most 1, so that p < 0.05 where the lower
        bound of the 95 % interval lies above it."""
        if not self.error > 0:
            return 1.0
        return min(1.0, 2 * float(stats.t.sf((self.value - above) / self.error, self.degrees)))

    def power(self, truth: float, above: float = 0.0, level: float = 1 - ALPHA) -> float:
        """How probable it is to find it above a bound if it is truly so large."""
        reach = float(stats.t.ppf((1 + level) / 2, self.degrees))
        return float(stats.t.cdf((truth - above) / self.error_of(truth) - reach, self.degrees))

    def detectable(self, power: float = 0.8, level: float = 1 - ALPHA) -> float:
        """The smallest true effect that is found with this power; infinite where the factor is too uncertain."""
        errors = float(stats.t.ppf((1 + level) / 2, self.degrees) + stats.t.ppf(power, self.degrees))
        left = 1 - (errors * self.relative) ** 2
        return errors * math.sqrt(self._apart_from_factor / left) if left > 0 else math.inf


@dataclass(frozen=True)
class Tested:
    """A policy by the test of the plan."""

    policy: str
    control: str
    harm: Effect  # against the control
    quality: Mapping[str, Effect]  # by reference
    p: float  # the largest of the three
    p_holm: float
    level: float  # of the intervals: that at which Holm's method tests this policy

    @property
    def succeeds(self) -> bool:
        """Whether all three are shown, corrected for all policies tested."""
        return self.p_holm < ALPHA


def of_arm(rows: pl.DataFrame, arm: str) -> pl.DataFrame:
    """The rows of an arm by seed. Raises MitigateError where there is none."""
    found = rows.filter(arm=arm).sort("seed")
    if found.is_empty():
        raise MitigateError(f"no finished run of the arm {arm}")
    return found


def harm(rows: pl.DataFrame, reference: str, policy: str, end: str = "_alike", corrected: bool = True) -> Effect:
    """How much smaller the share of polarised statements is than the reference's. end: "_alike" for the relations that
    the scorer's sensitivity and specificity are known of, "" for all; corrected: divided by what is left of a true
    difference in labels, sensitivity + specificity - 1, whose error is part of the effect's."""
    columns = f"statements{end}", f"polarised{end}"
    found = ratio_change(rows, reference, policy, "clusters", columns, 100.0)
    less = Effect(-found.value, found.error, found.degrees)
    return corrected_effect(less, known_accuracy("COMeT", template="neutral")[""]) if corrected else less


def lift(rows: pl.DataFrame, reference: str, policy: str) -> Effect:
    """How much higher swap lift is than the reference's, on heads that are no targets."""
    return ratio_change(rows, reference, policy, "heads", ("prompts", "lift"), SHARE)


def over_seeds(rows: pl.DataFrame, reference: str, policy: str, column: str) -> Effect | None:
    """How much higher a figure is than the reference's, with seeds drawn alone (Welch's t): for figures whose units the
    file has no counts of. None where a run lacks it."""
    before, after = (of_arm(rows, arm)[column].cast(pl.Float64) for arm in (reference, policy))
    if before.has_nulls() or after.has_nulls():
        return None
    error = math.hypot(*(stats.sem(side.to_numpy()) for side in (before, after)))
    degrees = float(stats.ttest_ind(after, before, equal_var=False).df)
    return Effect(fmean(after) - fmean(before), error, degrees)


def ratio_change(
    rows: pl.DataFrame, reference: str, policy: str, digest: str, columns: tuple[str, str], scale: float
) -> Effect:
    """Of the ratio of two packed columns, (weight, sum), with units and seeds drawn."""
    sides = [of_arm(rows, arm) for arm in (reference, policy)]
    for column in (digest, *(name for name in ("corpus", "scorers") if name in rows.columns)):
        if len(known := {str(text) for side in sides for text in side[column]}) > 1:
            arms = f"runs of {reference} and {policy}"
            raise MitigateError(f"{arms} are of different {column} and not compared: {', '.join(sorted(known))}")
    before, after = (np.stack([counts(side, name) for name in columns]) for side in sides)
    found = change_of_sums(before, after, mean_of)
    return Effect(scale * found.gain, scale * found.error, found.degrees)


def corrected_effect(labelled: Effect, accuracy: Accuracy) -> Effect:
    """An effect on the share of statements that are polarised from that on the share labelled so (Rogan and Gladen
    1978), by the delta method."""
    gain = accuracy.sensitivity + accuracy.specificity - 1
    of_gain = math.hypot(accuracy.sensitivity_error, accuracy.specificity_error)
    value = labelled.value / gain
    relative = of_gain / gain
    return Effect(value, math.hypot(labelled.error / gain, value * relative), labelled.degrees, relative)


def tests(rows: pl.DataFrame, controls: Mapping[str, str], short: str, planned: int) -> list[Tested]:
    """The policies that a claim may be made of, each by three tests that must all be passed: less harm than its
    control, and no less quality, by MARGIN, than its control and than `short`. Corrected by Holm's method over
    the planned number of policies: those that are not finished count as not shown."""
    found = []
    for policy, control in controls.items():
        quality = {reference: lift(rows, reference, policy) for reference in (control, short)}
        of_harm = harm(rows, control, policy)
        p = max(of_harm.p(), *(effect.p(-MARGIN) for effect in quality.values()))
        enough = min(of_arm(rows, arm).height for arm in (policy, control, short)) >= FEWEST_SEEDS
        found.append((policy, control, of_harm, quality, p if enough else 1.0))
    adjusted = holm([one[-1] for one in found] + [1.0] * (planned - len(found)))
    order = sorted(range(len(found)), key=lambda place: found[place][-1])
    levels = {place: 1 - ALPHA / (planned - rank) for rank, place in enumerate(order)}
    return [
        Tested(*one, p_holm=p if p is not None else 1.0, level=levels[place])
        for place, (one, p) in enumerate(zip(found, adjusted, strict=False))
    ]


def worst(rows: pl.DataFrame, chosen_by: str, share: float = 0.1) -> list[int]:
    """The places of the tenth of clusters of which the arm `chosen_by` says most that is polarised."""
    polarised, statements = (counts(of_arm(rows, chosen_by), name).sum(1) for name in ("polarised", "statements"))
    most = np.argsort(-polarised / np.maximum(statements, 1), kind="stable")
    return sorted(most[: math.ceil(share * len(most))].tolist())


def share_of(rows: pl.DataFrame, arm: str, places: Sequence[int] | None = None, end: str = "") -> list[float]:
    """The percentage labelled polarised of these clusters (None: of all), of each run of an arm. end: as in `harm`."""
    chosen = slice(None) if places is None else list(places)
    polarised, statements = (
        counts(of_arm(rows, arm), f"{name}{end}")[chosen].sum(0) for name in ("polarised", "statements")
    )
    return (100 * polarised / statements).tolist()


def counts(rows: pl.DataFrame, column: str) -> np.ndarray:
    """A packed column as (units, seeds)."""
    return np.array([unpack(text) for text in rows[column]]).T
