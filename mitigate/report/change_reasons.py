"""Why a comparison gives no number: in place of a bare dash on its page.

Reads the rows of a comparison's tables, and nothing else."""

from collections.abc import Iterable, Mapping
from typing import Any

from mitigate.metrics import parse, relation_of
from mitigate.report.legend import part_named
from mitigate.report.reasons import ONE_TARGET

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
    """Why a row has no change; "" where it has one."""
    if row["change"] is not None:
        return ""
    return ONE_TARGET if row["value"] is None else UNBOUNDED_RATIO


def why_no_interval(row: Mapping[str, Any], seeds: int) -> str:
    """Why a row with a change has no interval; "" where it has one. seeds: of the side that has fewer."""
    if row["low"] is not None or row["high"] is not None or row["change"] is None:
        return ""
    if row.get("error", 0) == 0:  # of a row without it, the error is known
        return ALIKE
    if seeds > 1:
        return NO_VARIATION
    if "items" in row and row["items"] is None:
        return ONE_SEED
    return f"{FEW_WORDS}, {ONE_SEED}" if row.get("drawn") in (OF_TARGETS, OF_SEEDS) else FEW_ITEMS


def why_not_fixed(row: Mapping[str, Any], seeds: int) -> str:
    """Why a row has no interval with the targets fixed, which is of the seeds alone."""
    return ONE_SEED if seeds == 1 else ALIKE if row.get("fixed_error") == 0 else NO_VARIATION


def why_no_p(p: float | None, seeds: int) -> str:
    """Why nothing was tested; "" where it was."""
    if p is not None:
        return ""
    return ONE_SEED if seeds == 1 else ALIKE


def not_compared(missing: Mapping[str, str]) -> dict[str, list[str]]:
    """By reason: the names of figures of quality that are missing (key -> reason), single relations apart."""
    found: dict[str, list[tuple[str, str]]] = {}
    for figure, reason in missing.items():
        if relation_of(figure) is None:
            found.setdefault(reason, []).append(_named(figure))
    return {reason: list(_gathered(names)) for reason, names in found.items()}


def _named(figure: str) -> tuple[str, str]:
    key = parse(figure)
    return key.metric.name, part_named(key) if key.metric.part else ""


def _gathered(names: Iterable[tuple[str, str]]) -> Iterable[str]:
    """ "perplexity (those with a polarised label; those about a target)"."""
    parts: dict[str, list[str]] = {}
    for name, part in names:
        parts.setdefault(name, []).append(part)
    for name, known in parts.items():
        said = "; ".join(filter(None, known))
        yield f"{name} ({said})" if said else name
