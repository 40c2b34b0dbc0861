"""Reasons for missing figures: in place of a bare dash on pages and cards, in tables and on the terminal.

They are derived from the other figures of a run, or from the row of a comparison, alone."""

import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from mitigate import metrics as table
from mitigate.report.metric_display import NO_UPPER_BOUND, Metrics

NO_STATEMENTS = "no statement about a target"
ONE_TARGET = "one target only"
ALL_ALIKE = "no interval: the same for all targets"
PLAUSIBILITY = "plausibility was trained on ConceptNet's relations and does not know"


def why(metrics: Metrics, key: str) -> str:
    """The reason why a figure is missing; "" if it has a value or the reason is unknown."""
    found = table.find(key)
    if found is None or found.end or metrics.get(key) is not None:
        return ""
    has_others = found.metric.family == "filter" and found.stem in metrics  # of those categories that it has
    if key not in metrics and not has_others:
        return ""
    if found.variant == table.FREQUENT_RELATIONS:
        return "no relation with enough training triples"
    if found.metric.family == "harm":
        return _of_harm(metrics, found)
    return _of_group(metrics, found) or found.metric.absent


def without_interval(metrics: Metrics, key: str) -> str:
    """The reason why a mean over several targets has no interval: all have the same value. "" otherwise."""
    found, low = table.find(key), table.bounds(key)[0]
    if found is None or found.metric.family != "harm" or found.metric.statistic != "mean":
        return ""
    if metrics.get(key) is None or metrics.get(low, 0) is not None:
        return ""
    targets, empty = (metrics.get(table.with_part(name, found.part)) for name in (table.TARGETS, table.EMPTY_TARGETS))
    return ALL_ALIKE if isinstance(targets, int) and targets - int(empty or 0) > 1 else ""


def note(metrics: Metrics, key: str) -> str | None:
    """A note on a figure in a table of numbers: why it is missing, or that its interval has no upper bound."""
    low, high = (metrics.get(bound) for bound in table.bounds(key))
    return why(metrics, key) or (NO_UPPER_BOUND if low is not None and high in (None, math.inf) else None)


def explained(runs: Mapping[str, Metrics], named: Mapping[str, str], width: int = 100) -> Iterator[str]:
    """Lines, one for each reason: the names of the figures (key -> name) that are missing, and if there are several
    runs, the runs without them."""
    lacking = {run: _by_reason(metrics, named) for run, metrics in runs.items()}
    for reason in dict.fromkeys(reason for found in lacking.values() for reason in found):
        whose = [run for run, found in lacking.items() if reason in found]
        which = dict.fromkeys(name for run in whose for name in lacking[run][reason])
        of_runs = "" if len(whose) == len(runs) else f"; in {', '.join(whose)}"
        line = f"–  {reason}: {', '.join(which)}{of_runs}"
        yield textwrap.fill(line, width, initial_indent="  ", subsequent_indent="     ", break_on_hyphens=False)


def _by_reason(metrics: Metrics, named: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, name in named.items():
        if reason := why(metrics, key):
            found.setdefault(reason, []).append(name)
    return found


def _of_harm(metrics: Metrics, key: table.Key) -> str:
    """A mean or variance over targets."""
    targets, empty = (metrics.get(table.with_part(name, key.part)) for name in (table.TARGETS, table.EMPTY_TARGETS))
    if not isinstance(targets, int):
        return ""
    counted = targets if key.stem == table.REPRESENTATION else targets - int(empty or 0)
    is_variance = key.stem == table.REPRESENTATION or key.metric.statistic == "variance"
    if is_variance and counted == 1:
        return ONE_TARGET if targets == 1 else "one target only has statements"
    return "" if counted else NO_STATEMENTS


def _of_group(metrics: Metrics, key: table.Key) -> str:
    """A figure of a group of rows: the group is empty, or a classifier knows none of its relations."""
    if key.metric.rows == table.TEST_TRIPLES:
        counts = {group: metrics.get(table.quality_key("triples", group)) for group in ("all", key.part)}
        empty = "all" if counts["all"] == 0 else key.part
        return "" if counts[empty] else _absent(key, empty)
    if key.metric.part == "group" and key.metric.rows == table.RATED:
        return _of_people(metrics, key)
    return _of_probe(metrics, key) if key.metric.part == "group" and key.metric.rows == table.PROBED else ""


def _absent(key: table.Key, name: str) -> str:
    group = table.groups(key.metric.rows).get(name)
    return group.absent if group else ""


def _of_probe(metrics: Metrics, key: table.Key) -> str:
    """A share of generated statements that plausibility accepts."""
    unknown = table.unknown_relations(metrics)
    if relation := table.relation_of(str(key)):
        return f"{PLAUSIBILITY} {relation}" if relation in unknown else ""
    missing = _absent(key, key.part)
    if missing and unknown:
        return f"{missing} and a relation that plausibility was trained on"
    return missing or (f"{PLAUSIBILITY} {', '.join(unknown)}" if unknown else "")


def _of_people(metrics: Metrics, key: table.Key) -> str:
    """A share of statements that people would call valid."""
    if relation := table.relation_of(str(key)):
        return f"nobody rated statements with {relation}"
    if metrics.get(table.quality_key(table.PEOPLE_VALID)) is None:
        return "nobody rated statements with these relations"
    missing = _absent(key, key.part)
    return f"{missing} and a relation that people rated" if missing else "no such statement"


# Of the rows of a comparison

ONE_SEED = "a single seed"
FEW_WORDS = "too few different words"
FEW_ITEMS = "too few different heads"
ALIKE = "nothing varied"
NO_VARIATION = "one of the two does not vary"
NO_SHARED_TARGET = "no target with statements in all"
NOT_ASKED = "not in all runs"
UNBOUNDED_RATIO = "the baseline does not vary"
OF_TARGETS, OF_SEEDS = "targets", "seeds"  # what an interval holds, as measure.comparison has it


def why_no_change(row: Mapping[str, Any]) -> str:
    """The reason why a row has no change; "" if it has one."""
    if row["change"] is not None:
        return ""
    return ONE_TARGET if row["value"] is None else UNBOUNDED_RATIO


def why_no_interval(row: Mapping[str, Any], seeds: int) -> str:
    """The reason why a row with a change has no interval; "" if it has one. seeds: the smaller number of the two
    sides."""
    if row["low"] is not None or row["high"] is not None or row["change"] is None:
        return ""
    if row.get("error", 0) == 0:  # of a row without it, the error is known
        return ALIKE
    if "drawn" not in row and "items" not in row:  # of two resources, which have no seeds
        return FEW_WORDS
    if seeds > 1:
        return NO_VARIATION
    if "items" in row and row["items"] is None:
        return ONE_SEED
    return f"{FEW_WORDS}, {ONE_SEED}" if row.get("drawn") in (OF_TARGETS, OF_SEEDS) else FEW_ITEMS


def why_not_fixed(row: Mapping[str, Any], seeds: int) -> str:
    """The reason why a row has no interval with fixed targets, which covers seeds alone."""
    return ONE_SEED if seeds == 1 else ALIKE if row.get("fixed_error") == 0 else NO_VARIATION


def why_no_p(p: float | None, seeds: int) -> str:
    """The reason why nothing was tested; "" if something was."""
    if p is not None:
        return ""
    return ONE_SEED if seeds == 1 else ALIKE
