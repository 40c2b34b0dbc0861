"""The comparison of two groups of runs that differ by seed alone: the change of each figure with its error, the primary
endpoints and what they show, and the checks that a generator has learnt.

A mean is compared by its difference, a variance or a perplexity by its ratio, whose error is that of its logarithm: a
variance that falls from 100 to 3 is known up to a factor, not up to a number of points.

One trained model is one draw: with three seeds or more a side, errors include the variation between trainings (Welch's
t). Figures over targets are paired by target, and their errors include the variation between words too. Seeds and
words are crossed, since all models are probed about the same words: each is left out in turn (the jackknife), and the
two errors are squared and added, as in the cluster-robust variance of two ways of clustering (Cameron, Gelbach and
Miller 2011) without the correction that makes it smaller. A category of few words says little about other words, so
that its words are fixed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy import optimize, special, stats

from mitigate.errors import MitigateError
from mitigate.measure.base import find, key_of, measure_of_figure
from mitigate.measure.intervals import (
    FEW_TARGETS,
    Figure,
    cluster_numbers,
    cluster_sums,
    jackknife,
    mean_of,
    variance_of,
    without_each,
)
from mitigate.measure.quality import LIFT, PERPLEXITY
from mitigate.measure.quality import PLAUSIBLE as ACCEPTED
from mitigate.measure.results import Results
from mitigate.package_data import rows_of
from mitigate.words.targets import TargetList

How = Literal["difference", "ratio"]
DIFFERENCE: How = "difference"
RATIO: How = "ratio"
FEWEST_SEEDS = 3
"""The fewest seeds of a side for an error of training: the spread of two says next to nothing."""
FEWEST_TO_CLAIM = 5
"""The fewest seeds of a side for a claim. Three leave the error of training four degrees of freedom."""
ALPHA = 0.05
OF_TARGETS = {"neutral_mean": "neutral_mean", "O-": "O-", "O+": "O+"} | {
    "neutral_variance": "neutral_mean",
    "D_O-": "O-",
    "D_O+": "O+",
}
"""The measures of harm that are means or variances over targets, by the measure whose values they are of."""


@dataclass(frozen=True)
class Change:
    """A figure of the baseline and of what is compared with it.

    error: the standard error of their difference, or of the logarithm of their ratio; NaN where it is not known,
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

    def bounds(self, level: float = 1 - ALPHA) -> tuple[float, float]:
        """The bounds of the interval as shown. A ratio without a bound reaches from 0 to infinity."""
        reach = self._reach((1 + level) / 2)
        if math.isfinite(self.gain) or math.isnan(reach):
            low, high = self.gain - reach, self.gain + reach
        else:  # one of the two does not vary at all
            low, high = -math.inf, math.inf
        return (low, high) if self.how == DIFFERENCE else (_exp(low), _exp(high))

    def detectable(self, level: float = 1 - ALPHA, power: float = 0.8) -> float:
        """The smallest true change that is detected with this power; of a ratio, the factor."""
        reach = self._reach((1 + level) / 2) + self._reach(power)
        return reach if self.how == DIFFERENCE else _exp(reach)

    def row(self, level: float = 1 - ALPHA) -> dict[str, Any]:
        """A row with the columns of CHANGE; null for what is not known, and for a bound where nothing bounds it."""
        low, high = self.bounds(level)
        found = {"baseline": self.baseline, "value": self.value, "change": self.size, "low": low, "high": high}
        found |= {"p": self.p, "detectable": self.detectable(level), "error": self.error, "degrees": self.degrees}
        return {"as": self.how} | {name: cell if math.isfinite(cell) else None for name, cell in found.items()}

    def _reach(self, quantile: float) -> float:
        return float(stats.t.ppf(quantile, self.degrees)) * self.error if self.error else math.nan


def _exp(value: float) -> float:
    return math.inf if value >= 700 else math.exp(value)  # NaN stays


CHANGE = {name: pl.String if name == "as" else pl.Float64 for name in Change(0.0, 0.0).row()}
"""The columns of a table of changes."""
TEXTS = ("contrast", "policy", "against", "figure", "title", "measure", "scorer", "template", "by", "group")
DIFFERENCES = {
    **dict.fromkeys(TEXTS, pl.String),  # figure: the key in metrics.json
    **dict.fromkeys(("section", "unit", "better"), pl.String),
    **CHANGE,
    "drawn": pl.String,  # the variation that interval and p include: seeds, targets, seeds and targets
    "targets": pl.Int64,  # those with statements in all runs, of figures that are paired by target
}
"""A row for each contrast and figure that all its runs have."""


def together(parts: Sequence[tuple[float, float]], level: float = 1 - ALPHA) -> tuple[float, float]:
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


def of_sums(
    before: np.ndarray, after: np.ndarray, figure: Figure, how: How = "difference", fixed: bool = False
) -> Change:
    """The change of a figure's mean over seeds, from the sums of two groups of runs over the targets of each word,
    (sums, words, seeds) each. fixed: the words are not drawn. For a ratio the errors are those of the logarithm of the
    ratio of means over seeds. Of a single run each, words alone are drawn."""
    of_first, of_second = (figure(side.sum(axis=1)) for side in (before, after))
    parts = [] if before.shape[2] == after.shape[2] == 1 else [of_training(of_first, of_second, how)]
    if not fixed and before.shape[1] > 1:
        without = [_scaled(without_each(side, figure).mean(axis=1), how) for side in (before, after)]
        with np.errstate(invalid="ignore"):  # both may be without variance
            words = jackknife((without[1] - without[0])[:, None])
        parts.append((words.size.item(), words.degrees.item()))
    error, degrees = together(parts) if parts else (math.nan, math.inf)
    return Change(float(of_first.mean()), float(of_second.mean()), how, error, degrees)


def of_training(baseline: np.ndarray, values: np.ndarray, how: How = "difference") -> tuple[float, float]:
    """The error of training and its degrees of freedom, for the change of a mean over seeds, from a figure of each
    seed: Welch's, with the jackknife over seeds in place of the variance. NaN where either side has fewer than
    FEWEST_SEEDS."""
    sizes = [len(baseline), len(values)]
    if min(sizes) < FEWEST_SEEDS:
        return math.nan, math.inf
    parts = []
    for side in (baseline, values):
        without = _scaled((side.sum() - side) / (len(side) - 1), how)
        parts.append(float(jackknife(without[:, None]).size.item()) ** 2)
    total, most = sum(parts), float(sum(sizes) - 2)
    if not math.isfinite(total) or not total:
        return math.sqrt(total), most
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return math.sqrt(total), min(total**2 / spread, most)  # Welch and Satterthwaite


def _scaled(values: np.ndarray, how: How) -> np.ndarray:
    """The values on the scale of the error."""
    with np.errstate(divide="ignore"):
        return values if how == DIFFERENCE else np.log(values)


def of_seeds(baseline: Sequence[float], values: Sequence[float], how: How = "difference") -> Change:
    """The change of the mean over seeds of a figure with one value for each seed; of a ratio, of the geometric mean.
    Raises MitigateError for a side without seeds."""
    if not baseline or not values:
        raise MitigateError(f"{len(baseline)} and {len(values)} seeds; give at least one for each side")
    first, second = (_scaled(np.array(side, dtype=float), how) for side in (baseline, values))
    means = float(first.mean()), float(second.mean())
    if how == RATIO:
        means = _exp(means[0]), _exp(means[1])
    return Change(*means, how, *of_training(first, second))


def of_targets(before: np.ndarray, after: np.ndarray, words: np.ndarray, how: How = "difference") -> tuple[Change, str]:
    """The change of the mean over targets, or of their variance (a ratio), of values paired by target, (targets, seeds)
    each, and what is drawn. words: the cluster of each target (cluster_numbers)."""
    several, few = max(before.shape[1], after.shape[1]) > 1, words.max() + 1 < FEW_TARGETS
    drawn = ("seeds" if few else "seeds and targets") if several else "targets"
    if how == RATIO and len(before) == 1:
        return Change(math.nan, math.nan, how), drawn  # a single target has no variance
    if how == RATIO:
        before, after = (side - side.mean(axis=0) for side in (before, after))  # keeps the sums exact
    first, second = (cluster_sums(side, words, powers=(0, 1, 2)) for side in (before, after))
    return of_sums(first, second, mean_of if how == DIFFERENCE else variance_of, how, fixed=bool(few)), drawn


def differences(
    before: Sequence[Results], after: Sequence[Results], targets: TargetList, **names: str
) -> list[dict[str, Any]]:
    """A row of DIFFERENCES for each figure that all runs have. targets: their categories and clusters; names: contrast,
    policy and against."""
    runs, rows = [*before, *after], []
    values = paired(runs).with_columns(category=pl.col("group").replace_strict(targets.categories, default="own"))
    several = max(len(before), len(after)) > 1
    for key, figure in before[0].figures.items():
        found = [value for one in runs if (value := one.get(key)) is not None]
        if len(found) < len(runs):
            continue
        declared, part = figure.declared, values.clear()
        how = RATIO if "²" in declared.unit or "perplexity" in figure.measure else DIFFERENCE
        if figure.measure in OF_TARGETS and figure.by in ("all", "category") and not figure.variant:
            named = {"measure": OF_TARGETS[figure.measure], "scorer": figure.scorer, "template": figure.template}
            part = values.filter(**named, **({"category": figure.group} if figure.group else {}))
        if part.height:
            shares = part.select("^run_.*$").to_numpy()
            words = cluster_numbers(part, targets.clusters, "group")
            change, drawn = of_targets(shares[:, : len(before)], shares[:, len(before) :], words, how)
        else:
            how = how if min(found) > 0 else DIFFERENCE  # 0 has no logarithm
            change, drawn = of_seeds(found[: len(before)], found[len(before) :], how), "seeds"
        row = {**names, **figure._asdict(), "figure": key, "title": figure.title, "section": declared.family}
        row |= {"unit": declared.unit, "better": declared.better, **change.row(), "drawn": drawn}
        row["targets"] = part.height or None
        if not several:
            row["p"] = None  # of one model each, nothing is tested about policies
        if declared.unit == "%" and change.how == DIFFERENCE and row["low"] is not None:
            row |= {"low": max(row["low"], -100.0), "high": min(row["high"], 100.0)}
        rows.append({name: row[name] for name in DIFFERENCES})
    return rows


def paired(runs: Sequence[Results]) -> pl.DataFrame:
    """The percentages of the targets that have one in all runs: measure, scorer, template, group (the target), and
    run_0, run_1 ..."""
    names = ["measure", "scorer", "template", "group"]
    tables = [
        one.table.filter(by="target", variant="").drop_nulls("value").select(*names, pl.col("value").alias(f"run_{n}"))
        for n, one in enumerate(runs)
    ]
    return reduce(lambda one, other: one.join(other, on=names, how="inner", maintain_order="left"), tables)


def sign_flip_test(gains: np.ndarray, clusters: np.ndarray, permutations: int = 100_000, seed: int = 0) -> np.ndarray:
    """Two-sided p-values, (figures,), of the means of gains (targets, figures) if the sign of each word's gain is
    arbitrary, as it is where the two sides do not differ. Not for squared deviations: with skewed percentages it finds
    differences of variances that do not exist in up to 74 % of cases."""
    sums = cluster_sums(gains, clusters, powers=(1,))[0]
    reached = np.abs(sums.sum(axis=0)) * (1 - 1e-9)  # equal sums may differ by rounding
    generator = np.random.default_rng(seed)
    as_far = np.ones(sums.shape[1])  # the observed signs
    for start in range(0, permutations, 2_000):  # held in memory
        size = min(2_000, permutations - start), math.ceil(len(sums) / 8)
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


# The primary endpoints

HARM, QUALITY = "harm", "quality"
HARMS = (
    key_of("neutral_mean", "crowd2", "neutral"),
    key_of("neutral_mean", "regard", "neutral"),
    key_of("neutral_mean", "regard", "paper"),
)
PRIMARY = {
    "endpoint": pl.String,  # HARM or QUALITY
    **DIFFERENCES,
    "p_holm": pl.Float64,
    "level": pl.Float64,  # of each corrected interval, in percent: together all cover in at least 95 % of cases
    **dict.fromkeys(("low_corrected", "high_corrected"), pl.Float64),
}
SAME, UNKNOWN, UNLEARNT = "the same numbers", "cannot be determined", "no conclusion"
SHOWN = BETTER, WORSE = "better, shown", "worse, shown"
EXPLORED = "better, exploratory", "worse, exploratory"
ALIKE = "no difference shown"
MARGINS = LOST, UNSHOWN, KEPT = "lost", "not shown to be kept", "kept"
GATE = HOLDS, FAILS, OPEN = "shown to hold", "shown to fail", "not enough evidence"


@dataclass(frozen=True)
class Endpoints:
    """Figures named before the comparison, as in conf/recipe/compare.yaml: a claim may rest on one of harm and one of
    quality, all other figures are exploratory.

    harm, quality: the first figure that all runs have counts. margins: the largest loss of quality that still counts as
    kept, points below 0, or a ratio above 1. Raises MitigateError for a name that is not a metric's."""

    harm: Sequence[str] = HARMS
    quality: Sequence[str] = (LIFT, ACCEPTED)
    margins: Mapping[str, float] = field(default_factory=lambda: {LIFT: -2.0, ACCEPTED: -1.0, PERPLEXITY: 1.03})

    def __post_init__(self) -> None:
        named = {"primary.harm": self.harm, "primary.quality": self.quality, "margins": self.margins}
        for setting, names in named.items():
            if unknown := [name for name in names if find(name) is None]:
                raise MitigateError(
                    f"compare.{setting} names {unknown[0]!r}, not a metric; allowed are keys of a run's "
                    f"metrics.json, such as {HARMS[1]} or {ACCEPTED}"
                )

    @property
    def declared(self) -> list[str]:
        """The kinds (harm, quality) with named figures."""
        return [kind for kind, names in {HARM: self.harm, QUALITY: self.quality}.items() if names]


def primary(table: pl.DataFrame, endpoints: Endpoints) -> pl.DataFrame:
    """A row of PRIMARY for each contrast and endpoint of a table DIFFERENCES. p-values are corrected by Holm, intervals
    by Bonferroni, over all rows together; an endpoint that not all contrasts have is left out."""
    contrasts = table["contrast"].unique(maintain_order=True).to_list()
    shared = table.group_by("figure").len().filter(len=len(contrasts))["figure"].to_list()
    firsts = {
        kind: next((name for name in names if name in shared), None)
        for kind, names in {QUALITY: endpoints.quality, HARM: endpoints.harm}.items()
    }
    rows = [
        {"endpoint": kind} | row
        for contrast in contrasts
        for kind, figure in firsts.items()
        for row in table.filter(pl.col("figure").eq_missing(figure), contrast=contrast).to_dicts()
    ]
    level = 1 - ALPHA / max(1, sum(row["error"] is not None for row in rows))
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row |= {"p_holm": p, "level": 100 * level}
        row |= {f"{end}_corrected": change_of(row).row(level)[end] for end in ("low", "high")}
    return pl.DataFrame(rows, schema=PRIMARY)


def change_of(row: Mapping[str, Any]) -> Change:
    """The change of a row in a table of changes."""
    unknown = {"baseline": math.nan, "value": math.nan, "error": math.nan, "degrees": math.inf}
    baseline, value, error, degrees = (if_null if row[name] is None else row[name] for name, if_null in unknown.items())
    return Change(baseline, value, row["as"], error, degrees)


def verdict(row: Mapping[str, Any], seeds: int, is_same: bool = False) -> str:
    """The words for a row of PRIMARY. seeds: the smaller number of the two sides; of single models the interval
    decides, since nothing is tested about policies. A change that reads as none is not one, however certain."""
    low, high, change = row["low_corrected"], row["high_corrected"], row["change"]
    if is_same:
        return SAME
    if change is None or low is None:
        return UNKNOWN
    places, none = (2, 1) if row["as"] == RATIO else (measure_of_figure(row["figure"]).decimals, 0)
    outside = low > none or (high is not None and high < none)
    apart = outside if row["p_holm"] is None else row["p_holm"] < ALPHA
    if not apart or round(change, places) == none:
        return ALIKE
    return (SHOWN if seeds >= FEWEST_TO_CLAIM else EXPLORED)[(change > none) != (row["better"] == "up")]


def kept(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Test whether quality is worse than the baseline's by more than a margin (non-inferiority). rows: figures with the
    bounds of their change and their margin, the largest tolerated loss: points below 0, or a ratio above 1. KEPT if all
    intervals are on the good side of their margins, LOST if one is on the bad side, else UNSHOWN. None without rows."""
    found = set()
    for row in rows:
        up, low, high = row["margin"] <= 0, row["low"], row["high"]  # up: more is better
        worst, best = (low, high) if up else (high, low)
        if worst is not None and (worst >= row["margin"] if up else worst <= row["margin"]):
            found.add(KEPT)
        else:
            is_lost = best is not None and (best < row["margin"] if up else best > row["margin"])
            found.add(LOST if is_lost else UNSHOWN)
    return next((word for word in MARGINS if word in found), None)


def gate(finding: str, margin: str | None, seeds: int) -> str:
    """The outcome of an endpoint: HOLDS, FAILS or OPEN. finding: its verdict; margin: what `kept` returns for a figure
    of quality with a margin, which then decides; None: the finding decides."""
    if seeds < FEWEST_TO_CLAIM or finding in (SAME, UNKNOWN, UNLEARNT):
        return OPEN
    known = {BETTER: HOLDS, WORSE: FAILS} if margin is None else {KEPT: HOLDS, LOST: FAILS}
    return known.get(finding if margin is None else margin, OPEN)


def gates(outcomes: Sequence[str]) -> str:
    """The joint outcome of endpoints or policies: FAILS if one fails, HOLDS if all hold, else OPEN."""
    if FAILS in outcomes:
        return FAILS
    return HOLDS if outcomes and set(outcomes) == {HOLDS} else OPEN


# Generators that have not learnt

Metrics = Mapping[str, Any]
"""A run's metrics.json."""


def _to_unigram(metrics: Metrics) -> float | None:
    """Perplexity on neutral test triples, as a multiple of that of a unigram model."""
    mine, unigram = (metrics.get(f"quality/{name}/neutral") for name in ("perplexity", "unigram_perplexity"))
    return mine / unigram if mine and unigram else None


def _naming_target(metrics: Metrics) -> float | None:
    """The percentage of stories that name their target again; None if another metric, a p-value of at most 0.05, shows
    that targets differ."""
    small = [name for name, value in metrics.items() if isinstance(value, float) and value <= 0.05]
    differs = any((figure := find(name)) and figure.declared.unit == "p-value" for name in small)
    return None if differs else metrics.get("naming_target")


def _distinct_lists(metrics: Metrics) -> float | None:
    """Distinct tails, as a multiple of those of a generator with the same tails for every target: 1 to `targets`."""
    share, targets = metrics.get("distinct_tails"), metrics.get("targets")
    return None if share is None or not targets or targets < 2 else share * targets / 100


def _empty_stories(metrics: Metrics) -> float | None:
    """The percentage of stories without a whole sentence."""
    stories, empty = metrics.get("stories"), metrics.get("stories/untold")
    return None if stories is None or empty is None or not stories + empty else 100 * empty / (stories + empty)


DERIVED: Mapping[str, Callable[[Metrics], float | None]] = {
    "distinct_lists": _distinct_lists,
    "to_unigram": _to_unigram,
    "untold": _empty_stories,
    "naming_target_alone": _naming_target,
    "sentences": lambda of: of.get("statements") if "stories" in of else None,
}
"""Figures of data/learnt_bounds.csv that metrics.json does not have."""


def faults(metrics: Metrics) -> list[str]:
    """Reasons to doubt that a generator has learnt, in the order of data/learnt_bounds.csv; empty if there are none. A
    figure that was not measured is none."""
    return [words for row in rows_of("learnt_bounds.csv") if (words := fault(row, metrics))]


def fault(row: Mapping[str, str], metrics: Metrics) -> str:
    """The fault in words by a row of data/learnt_bounds.csv; "" if there is none."""
    bound = float(row["bound"])
    value = DERIVED.get(row["figure"], lambda of: of.get(row["figure"]))(metrics)
    if value is None:
        return ""
    if row["end"]:  # the lower bound of the interval lies above
        low = metrics.get(row["figure"] + row["end"])
        passes = low is not None and low > bound
    else:
        passes = value >= bound if row["better"] == "up" else value <= bound
    words = row["words"].format(value=value, bound=bound, s="" if value == 1 else "s").replace("-", "−")
    return "" if passes else words


def no_conclusion(sides: Mapping[str, Sequence[Metrics]]) -> str:
    """The sentence in place of a verdict on these runs, by their names ("" is not mentioned), with three reasons at
    most; "" where all runs pass all checks."""
    parts = []
    for name, runs in sides.items():
        if found := [wrong for metrics in runs if (wrong := faults(metrics))]:
            some = f" ({len(found)} of {len(runs)} runs)" if len(runs) > 1 else ""
            more = f" and {len(found[0]) - 3} more" if len(found[0]) > 3 else ""
            reasons = f"{', '.join(found[0][:3])}{more}"
            parts.append(f"{name}{some} with {reasons}" if name else reasons)
    return f"No conclusion: {'; '.join(parts)}." if parts else ""
