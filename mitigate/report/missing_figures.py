"""Reasons for missing figures: in place of a bare dash on pages and cards, in tables and on the terminal. They are
derived from the other figures of a run alone; change_formats has those of comparisons."""

import math
import textwrap
from collections.abc import Iterator, Mapping

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
    found = table.find(key)
    if found is None or (found.metric.family, found.metric.statistic) != ("harm", "mean"):
        return ""
    if metrics.get(key) is None or metrics.get(table.bounds(key)[0], 0) is not None:
        return ""
    return ALL_ALIKE if _counts(metrics, found)[1] > 1 else ""


def note(metrics: Metrics, key: str) -> str | None:
    """A note on a figure in a table of numbers: why it is missing, or that its interval has no upper bound."""
    low, high = (metrics.get(bound) for bound in table.bounds(key))
    return why(metrics, key) or (NO_UPPER_BOUND if low is not None and high in (None, math.inf) else None)


def explained(runs: Mapping[str, Metrics], named: Mapping[str, str], width: int = 100) -> Iterator[str]:
    """Lines, one for each reason: the names of the figures (key -> name) that are missing, and if there are several
    runs, the runs without them."""
    missing: dict[str, list[tuple[str, str]]] = {}
    for run, metrics in runs.items():
        for key, name in named.items():
            if reason := why(metrics, key):
                missing.setdefault(reason, []).append((run, name))
    for reason, found in missing.items():
        without, names = (list(dict.fromkeys(one)) for one in zip(*found, strict=True))
        of_runs = "" if len(without) == len(runs) else f"; in {', '.join(without)}"
        line = f"–  {reason}: {', '.join(names)}{of_runs}"
        yield textwrap.fill(line, width, initial_indent="  ", subsequent_indent="     ", break_on_hyphens=False)


def _counts(metrics: Metrics, key: table.Key) -> tuple[int | None, int]:
    """The number of targets of a figure of harm, None where it is unknown, and of those with statements."""
    targets, empty = (metrics.get(table.with_part(name, key.part)) for name in (table.TARGETS, table.EMPTY_TARGETS))
    return (targets, targets - int(empty or 0)) if isinstance(targets, int) else (None, 0)


def _of_harm(metrics: Metrics, key: table.Key) -> str:
    """A mean or variance over targets."""
    targets, counted = _counts(metrics, key)
    if key.stem == table.REPRESENTATION:
        counted = targets or 0
    is_variance = key.stem == table.REPRESENTATION or key.metric.statistic == "variance"
    if is_variance and counted == 1:
        return ONE_TARGET if targets == 1 else "one target only has statements"
    return "" if targets is None or counted else NO_STATEMENTS


def _of_group(metrics: Metrics, key: table.Key) -> str:
    """A figure of a group of rows: the group is empty, or a classifier knows none of its relations."""
    if key.metric.rows == table.TEST_TRIPLES:
        empty = "all" if metrics.get(table.quality_key("triples", "all")) == 0 else key.part
        return "" if metrics.get(table.quality_key("triples", empty)) else _absent(key, empty)
    if (key.metric.part, key.metric.rows) == ("group", table.RATED):
        return _of_people(metrics, key)
    return _of_probe(metrics, key) if (key.metric.part, key.metric.rows) == ("group", table.PROBED) else ""


def _absent(key: table.Key, name: str) -> str:
    group = table.groups(key.metric.rows).get(name)
    return group.absent if group else ""


def _of_probe(metrics: Metrics, key: table.Key) -> str:
    """A share of generated statements that plausibility accepts."""
    unknown = table.unknown_relations(metrics)
    if relation := table.relation_of(str(key)):
        return f"{PLAUSIBILITY} {relation}" if relation in unknown else ""
    if missing := _absent(key, key.part):
        return f"{missing} and a relation that plausibility was trained on" if unknown else missing
    return f"{PLAUSIBILITY} {', '.join(unknown)}" if unknown else ""


def _of_people(metrics: Metrics, key: table.Key) -> str:
    """A share of statements that people would call valid."""
    if relation := table.relation_of(str(key)):
        return f"nobody rated statements with {relation}"
    if metrics.get(table.quality_key(table.PEOPLE_VALID)) is None:
        return "nobody rated statements with these relations"
    missing = _absent(key, key.part)
    return f"{missing} and a relation that people rated" if missing else "no such statement"
