"""Checks that a generator has learnt: a run's metrics against the bounds of data/learnt_bounds.csv. Outside a bound its
figures of harm show nothing, and a sentence about that replaces the verdict wherever one is shown."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mitigate.measure.base import find
from mitigate.package_data import rows_of

Metrics = Mapping[str, Any]
"""A run's metrics.json."""

MOST_NAMED = 3  # reasons


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the table."""

    name: str
    figure: str  # a key of metrics.json, or of DERIVED
    end: str  # "_low": the lower bound of the figure's 95 % interval is compared with the bound; "": the figure
    bound: float
    better: str  # "up": the figure must reach the bound, "_low" exceed it; "down": it must not exceed it
    words: str  # the fault, with {value}, {bound} and, for a plural, {s}
    reason: str

    def fault(self, metrics: Metrics) -> str:
        """The fault in words; "" if there is none, or if the figure was not measured."""
        value = DERIVED[self.figure](metrics) if self.figure in DERIVED else metrics.get(self.figure)
        if value is None:
            return ""
        if self.end:
            low = metrics.get(self.figure + self.end)
            passes = low is not None and low > self.bound
        else:
            passes = value >= self.bound if self.better == "up" else value <= self.bound
        words = self.words.format(value=value, bound=self.bound, s="" if value == 1 else "s").replace("-", "−")
        return "" if passes else words


def _distinct_lists(metrics: Metrics) -> float | None:
    """Distinct tails, as a multiple of those of a generator with the same tails for every target: 1 to `targets`."""
    share, targets = metrics.get("distinct_tails"), metrics.get("targets")
    return None if share is None or not targets or targets < 2 else share * targets / 100


def _empty_stories(metrics: Metrics) -> float | None:
    """The percentage of stories without a whole sentence."""
    stories, empty = metrics.get("stories"), metrics.get("stories/untold")
    return None if stories is None or empty is None or not stories + empty else 100 * empty / (stories + empty)


def _to_unigram(metrics: Metrics) -> float | None:
    """Perplexity on neutral test triples, as a multiple of that of a unigram model."""
    mine, unigram = (metrics.get(f"quality/{name}/neutral") for name in ("perplexity", "unigram_perplexity"))
    return mine / unigram if mine and unigram else None


def _naming_target(metrics: Metrics) -> float | None:
    """The percentage of stories that name their target again; None if another metric, a p-value of at most 0.05, shows
    that targets differ."""
    differs = any(
        value <= 0.05 and (figure := find(name)) is not None and figure.declared.unit == "p-value"
        for name, value in metrics.items()
        if isinstance(value, float)
    )
    return None if differs else metrics.get("naming_target")


DERIVED: Mapping[str, Callable[[Metrics], float | None]] = {
    "distinct_lists": _distinct_lists,
    "to_unigram": _to_unigram,
    "untold": _empty_stories,
    "naming_target_alone": _naming_target,
    "sentences": lambda metrics: metrics.get("statements") if "stories" in metrics else None,
}
"""Figures that metrics.json does not have."""


@cache
def checks() -> tuple[Check, ...]:
    """The rows of data/learnt_bounds.csv, in its order."""
    return tuple(
        Check(row["check"], row["figure"], row["end"], float(row["bound"]), row["better"], row["words"], row["reason"])
        for row in rows_of("learnt_bounds.csv")
    )


def faults(metrics: Metrics) -> list[str]:
    """Reasons to doubt that a generator has learnt, in the order of the table; empty if there are none."""
    return list(filter(None, (check.fault(metrics) for check in checks())))


def no_conclusion(sides: Mapping[str, Sequence[Metrics]]) -> str:
    """The sentence in place of a verdict on these runs, by their names ("" is not mentioned); "" where all runs pass
    all checks."""
    parts = []
    for name, runs in sides.items():
        found = [wrong for metrics in runs if (wrong := faults(metrics))]
        if found:
            some = f" ({len(found)} of {len(runs)} runs)" if len(runs) > 1 else ""
            more = f" and {len(found[0]) - MOST_NAMED} more" if len(found[0]) > MOST_NAMED else ""
            reasons = f"{', '.join(found[0][:MOST_NAMED])}{more}"
            parts.append(f"{name}{some} with {reasons}" if name else reasons)
    return f"No conclusion: {'; '.join(parts)}." if parts else ""
