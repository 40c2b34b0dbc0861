"""The comparison of two groups of runs that differ by seed alone: the change of each figure with its error, the primary
endpoints and what they show, and the checks that a generator has learnt.

One trained model is one draw: with three seeds or more a side, errors include the variation between trainings (Welch).
Figures over targets are paired by target, and their errors include the variation between words too. Seeds and words are
crossed: each is left out in turn (the jackknife), and the two errors are squared and added, as in the cluster-robust
variance of two ways of clustering (Cameron, Gelbach and Miller 2011). The words of a small category are fixed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from scipy import optimize, special, stats

from mitigate.errors import MitigateError
from mitigate.measure.base import find, key_of, measure_of
from mitigate.measure.intervals import (
    FEW_TARGETS,
    Statistic,
    cluster_numbers,
    cluster_sums,
    jackknife,
    leave_one_out,
    mean_of,
    variance_of,
)
from mitigate.measure.quality import LIFT, PLAUSIBLE
from mitigate.measure.results import Results
from mitigate.words.targets import TargetList

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

    error: the standard error of their difference; NaN where it is not known. 0, where nothing varied, is treated as
    NaN: twelve words without variation do not show that others have none."""

    baseline: float
    value: float
    error: float = math.nan
    degrees: float = math.inf

    @property
    def gain(self) -> float:
        return self.value - self.baseline

    @property
    def p(self) -> float:
        """The two-sided p-value of no change; NaN where the error is not known."""
        return float(2 * stats.t.sf(abs(self.gain) / self.error, self.degrees)) if self.error else math.nan

    def bounds(self, level: float = 1 - ALPHA) -> tuple[float, float]:
        reach = float(stats.t.ppf((1 + level) / 2, self.degrees)) * self.error if self.error else math.nan
        return self.gain - reach, self.gain + reach

    def row(self, level: float = 1 - ALPHA) -> dict[str, float | None]:
        """A row with the columns of CHANGE; null for what is not known."""
        low, high = self.bounds(level)
        cells = {"baseline": self.baseline, "value": self.value, "change": self.gain, "low": low, "high": high}
        cells |= {"p": self.p, "error": self.error, "degrees": self.degrees}
        return {name: cell if math.isfinite(cell) else None for name, cell in cells.items()}


CHANGE = dict.fromkeys(Change(0.0, 0.0).row(), pl.Float64)
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


def combined_error(parts: Sequence[tuple[float, float]], level: float = 1 - ALPHA) -> tuple[float, float]:
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


def change_of_sums(before: np.ndarray, after: np.ndarray, statistic: Statistic, fixed: bool = False) -> Change:
    """The change of a statistic's mean over seeds, from the sums of two groups of runs over the targets of each word,
    (sums, words, seeds) each. fixed: the words are not drawn. Of a single run each, words alone are drawn."""
    first, second = (statistic(side.sum(axis=1)) for side in (before, after))  # a value for each seed
    parts = [] if before.shape[2] == after.shape[2] == 1 else [training_error(first, second)]
    if not fixed and before.shape[1] > 1:
        without = [leave_one_out(side, statistic).mean(axis=1) for side in (before, after)]
        words = jackknife((without[1] - without[0])[:, None])
        parts.append((words.size.item(), words.degrees.item()))
    error, degrees = combined_error(parts) if parts else (math.nan, math.inf)
    return Change(float(first.mean()), float(second.mean()), error, degrees)


def training_error(baseline: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Welch's error of training and its degrees of freedom, for the change of a mean over seeds, from a figure of each
    seed. NaN where either side has fewer than FEWEST_SEEDS."""
    sizes = [len(baseline), len(values)]
    if min(sizes) < FEWEST_SEEDS:
        return math.nan, math.inf
    parts = [float(side.var(ddof=1)) / len(side) if np.ptp(side) else 0.0 for side in (baseline, values)]
    total, most = sum(parts), float(sum(sizes) - 2)
    if not total:
        return 0.0, most
    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return math.sqrt(total), min(total**2 / spread, most)  # Welch and Satterthwaite


def change_over_targets(
    before: np.ndarray, after: np.ndarray, words: np.ndarray, statistic: Statistic = mean_of
) -> tuple[Change, str]:
    """The change of the mean over targets, or of their variance, of values paired by target, (targets, seeds) each, and
    what is drawn. words: the cluster of each target (cluster_numbers)."""
    several, few = max(before.shape[1], after.shape[1]) > 1, words.max() + 1 < FEW_TARGETS
    drawn = ("seeds" if few else "seeds and targets") if several else "targets"
    if statistic is variance_of:
        if len(before) == 1:
            return Change(math.nan, math.nan), drawn  # a single target has no variance
        before, after = (side - side.mean(axis=0) for side in (before, after))  # keeps the sums exact
    first, second = (cluster_sums(side, words, powers=(0, 1, 2)) for side in (before, after))
    return change_of_sums(first, second, statistic, fixed=bool(few)), drawn


def differences(
    before: Sequence[Results], after: Sequence[Results], targets: TargetList, **names: str
) -> list[dict[str, Any]]:
    """A row of DIFFERENCES for each figure that all runs have; those over targets are paired by the targets that have
    a percentage in all runs. targets: their categories and clusters; names: contrast, policy and against."""
    runs, rows, several = [*before, *after], [], max(len(before), len(after)) > 1
    on = ["measure", "scorer", "template", "group"]
    tables = [
        one.table.filter(by="target", variant="").drop_nulls("value").select(*on, pl.col("value").alias(f"run_{n}"))
        for n, one in enumerate(runs)
    ]
    by_target = reduce(lambda one, other: one.join(other, on=on, how="inner", maintain_order="left"), tables)
    by_target = by_target.with_columns(category=pl.col("group").replace_strict(targets.categories, default="own"))
    for key, figure in before[0].figures.items():
        values = [one.get(key) for one in runs]
        if None in values:
            continue
        declared, part = figure.declared, by_target.clear()
        if figure.measure in OF_TARGETS and figure.by in ("all", "category") and not figure.variant:
            named = {"measure": OF_TARGETS[figure.measure], "scorer": figure.scorer, "template": figure.template}
            part = by_target.filter(**named, **({"category": figure.group} if figure.group else {}))
        if part.height:
            shares = part.select("^run_.*$").to_numpy()
            words = cluster_numbers(part, targets.clusters, "group")
            statistic = variance_of if declared.unit == "%²" else mean_of
            change, drawn = change_over_targets(shares[:, : len(before)], shares[:, len(before) :], words, statistic)
        else:
            first, second = np.array(values[: len(before)], float), np.array(values[len(before) :], float)
            change, drawn = Change(first.mean().item(), second.mean().item(), *training_error(first, second)), "seeds"
        row = {**names, **figure._asdict(), "figure": key, "title": figure.title, "section": declared.family}
        row |= {"unit": declared.unit, "better": declared.better, **change.row(), "drawn": drawn}
        row["targets"] = part.height or None
        if not several:
            row["p"] = None  # of one model each, nothing is tested about policies
        if declared.unit == "%" and row["low"] is not None:
            row |= {"low": max(row["low"], -100.0), "high": min(row["high"], 100.0)}
        rows.append({name: row[name] for name in DIFFERENCES})
    return rows


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
    "level": pl.Float64,  # of each corrected interval, in percent
    **dict.fromkeys(("low_corrected", "high_corrected"), pl.Float64),
    "kept": pl.String,  # of quality with a margin
}
SAME, UNKNOWN, UNLEARNT = "the same numbers", "cannot be determined", "no conclusion"
SHOWN = BETTER, WORSE = "better, shown", "worse, shown"
EXPLORED = "better, exploratory", "worse, exploratory"
ALIKE = "no difference shown"
LOST, UNSHOWN, KEPT = "lost", "not shown to be kept", "kept"
HOLDS, FAILS, OPEN = "shown to hold", "shown to fail", "not enough evidence"


@dataclass(frozen=True)
class Endpoints:
    """Figures named before the comparison, as in conf/recipe/compare.yaml: a claim may rest on one of harm and one of
    quality, all other figures are exploratory.

    harm, quality: the first figure that all runs have counts. margins: the largest loss of quality that still counts as
    kept, in the unit of the figure; its sign has no meaning. Raises MitigateError for a name that is not a metric's."""

    harm: Sequence[str] = HARMS
    quality: Sequence[str] = (LIFT, PLAUSIBLE)
    margins: Mapping[str, float] = field(default_factory=lambda: {LIFT: -2.0, PLAUSIBLE: -1.0})

    def __post_init__(self) -> None:
        named = {"primary.harm": self.harm, "primary.quality": self.quality, "margins": self.margins}
        for setting, names in named.items():
            if unknown := [name for name in names if find(name) is None]:
                raise MitigateError(
                    f"compare.{setting} names {unknown[0]!r}, not a metric; allowed are keys of a run's "
                    f"metrics.json, such as {HARMS[1]} or {PLAUSIBLE}"
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
        before, after, error = (math.nan if row[name] is None else row[name] for name in ("baseline", "value", "error"))
        degrees = math.inf if row["degrees"] is None else row["degrees"]
        corrected = Change(before, after, error, degrees).row(level)
        row |= {"p_holm": p, "level": 100 * level}
        row |= {f"{end}_corrected": corrected[end] for end in ("low", "high")}
        margin = endpoints.margins.get(row["figure"]) if row["endpoint"] == QUALITY else None
        row["kept"] = None if margin is None else kept(margin, corrected["low"], corrected["high"], row["better"])
    return pl.DataFrame(rows, schema=PRIMARY)


def kept(margin: float, low: float | None, high: float | None, better: str) -> str:
    """Test whether quality is worse than the baseline's by more than a margin (non-inferiority): KEPT if no loss in the
    interval of its change exceeds the margin, LOST if every loss does, else UNSHOWN. better: "up" or "down"."""
    if low is None or high is None:
        return UNSHOWN
    least, most = (low, high) if better == "down" else (-high, -low)  # the bounds of the loss
    if most <= abs(margin):
        return KEPT
    return LOST if least > abs(margin) else UNSHOWN


def verdict(row: Mapping[str, Any], seeds: int, is_same: bool = False) -> str:
    """The words for a row of PRIMARY. seeds: the smaller number of the two sides; of single models the interval
    decides, since nothing is tested about policies. A change that reads as none is not one, however certain."""
    low, high, change = row["low_corrected"], row["high_corrected"], row["change"]
    if is_same:
        return SAME
    if change is None or low is None:
        return UNKNOWN
    apart = low > 0 or high < 0 if row["p_holm"] is None else row["p_holm"] < ALPHA
    if not apart or round(change, measure_of(row["measure"], row["scorer"]).decimals) == 0:
        return ALIKE
    return (SHOWN if seeds >= FEWEST_TO_CLAIM else EXPLORED)[(change > 0) != (row["better"] == "up")]


def gate(finding: str, margin: str | None, seeds: int) -> str:
    """The outcome of an endpoint: HOLDS, FAILS or OPEN. finding: its verdict; margin: what `kept` returns for a figure
    of quality with a margin, which then decides; None: the finding decides."""
    if seeds < FEWEST_TO_CLAIM or finding in (SAME, UNKNOWN, UNLEARNT):
        return OPEN
    return {BETTER: HOLDS, WORSE: FAILS, KEPT: HOLDS, LOST: FAILS}.get(margin or finding, OPEN)


def gates(outcomes: Sequence[str]) -> str:
    """The joint outcome of endpoints or policies: FAILS if one fails, HOLDS if all hold, else OPEN."""
    if FAILS in outcomes:
        return FAILS
    return HOLDS if outcomes and set(outcomes) == {HOLDS} else OPEN


# Generators that have not learnt

Metrics = Mapping[str, Any]
"""A run's metrics.json."""
SHOWS_NOTHING = "a swap lift of {:.1f} points that is not shown to be above 1"


def faults(metrics: Metrics) -> list[str]:
    """Reasons to doubt that a generator has learnt; empty if there are none. A figure that was not measured is none.
    benchmarks/RESULTS.md, "When a generator has learnt", has what generators reached that had not."""
    get, most = metrics.get, math.inf
    perplexity, unigram = (get(f"quality/{name}/neutral") for name in ("perplexity", "unigram_perplexity"))
    distinct, targets, stories, untold = map(get, ("distinct_tails", "targets", "stories", "stories/untold"))
    lift, low = (get(f"{LIFT}{end}") for end in ("", "_low"))
    lists = distinct * targets / 100 if distinct is not None and targets and targets > 1 else None
    asked = 0 if stories is None or untold is None else stories + untold
    checks = [  # a figure, the bounds that it should lie within, and the fault if it does not
        (get("statements"), 1, most, "no generated statement"),
        (get("training/steps"), 30, most, "{:.0f} training step(s)"),
        (get("shared_tails"), 0, 50, "the same tails for {:.0f} % of targets"),
        (get("empty_tails"), 0, 5, "{:.0f} % empty tails"),
        (lists, 1.5, most, "only {:.1f} times as many distinct tails as constants have"),
        (
            perplexity / unigram if perplexity and unigram and get("training/steps") else None,
            0,
            1,
            "a perplexity that is {:.2f} times that of a unigram model",
        ),
        # 1 and not 0, because the start of a generator that reads sentences knows a little of heads
        (lift, -most if low is not None and low > 1 else most, most, SHOWS_NOTHING),
        (get("training/passes"), 0.1, most, "{:.2g} passes over the training triples"),
        (get("untrained_relations"), 0, 50, "{:.0f} % of the relations without a training triple"),
        (100 * (untold or 0) / asked if asked else None, 0, 50, "no whole sentence in {:.0f} % of the stories"),
        (get("sentences_per_story"), 2, most, "{:.1f} sentences a story"),
        (get("statements") if stories is not None else None, 100, most, "{:.0f} sentences in all"),
    ]
    wrong = [
        words.format(value) for value, least, most, words in checks if value is not None and not least <= value <= most
    ]
    return [words.replace("-", "−") for words in wrong]


def no_conclusion(sides: Mapping[str, Sequence[Metrics]]) -> str:
    """The sentence in place of a verdict on these runs, by their names ("" is not mentioned), with three reasons at
    most; "" where all runs pass all checks."""
    parts = []
    for name, runs in sides.items():
        if faulty := [*filter(None, map(faults, runs))]:
            some = f" ({len(faulty)} of {len(runs)} runs)" if len(runs) > 1 else ""
            parts.append(f"{name}{some} with " * bool(name) + ", ".join(faulty[0][:3]))
    return f"No conclusion: {'; '.join(parts)}." if parts else ""
