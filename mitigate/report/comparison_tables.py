"""The names and formats of a comparison's figures, in tables and in sentences."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from mitigate import metrics as table
from mitigate.metrics import Metric, parse, relation_of
from mitigate.report.legend import PROBED, SUBSETS, VALID, number

PERPLEXITY = "perplexity"


class QualityRow(NamedTuple):
    """One line of a table of quality."""

    section: str
    name: str
    baseline: str
    value: str
    change: str
    interval: str
    items: int | None


def measure_named(row: Mapping[str, Any]) -> str:
    """A row of harms in words: "NSM, neutral sentiment, mean ↑"."""
    measure = table.metric(row["measure"])
    if measure.scorer in table.PAPER_SCORERS:
        return f"{measure.title} {measure.arrow} {measure.name}"
    return f"{measure.title} {measure.arrow}"


def quality_rows(quality: pl.DataFrame) -> list[QualityRow]:
    """The lines, grouped by measure, in the order of the figures; single relations are in relation_rows."""
    rows = [_quality_row(row) for row in quality.iter_rows(named=True) if relation_of(row["figure"]) is None]
    order = list(dict.fromkeys(row.section for row in rows))
    return sorted(rows, key=lambda row: order.index(row.section))


def relation_rows(quality: pl.DataFrame) -> dict[str, dict[str, dict[str, Any]]]:
    """By relation, those with most held-out triples first: its rows of quality by measure, "perplexity" or "valid"."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in quality.iter_rows(named=True):
        if relation := relation_of(row["figure"]):
            found.setdefault(relation, {})[table.measure_of_quality(row["figure"])] = row
    return dict(sorted(found.items(), key=lambda item: -item[1].get(PERPLEXITY, {"items": 0})["items"]))


def _quality_row(row: Mapping[str, Any]) -> QualityRow:
    decimals = _decimals(row["figure"])
    known = row["low"] is not None
    return QualityRow(
        *_names(row["figure"]),
        number(row["baseline"], decimals),
        number(row["value"], decimals),
        change(row, decimals),
        f"[{span(row['low'], row['high'], decimals)}]" if known else "–",
        row["items"],
    )


def change(row: Mapping[str, Any], decimals: int) -> str:
    """ "× 1.27" or "+2.10"."""
    if row["as"] == "ratio":
        return f"× {number(row['change'], 2)}"
    return ("+" if row["change"] >= 0 else "") + number(row["change"], decimals)


def span(low: float, high: float, decimals: int) -> str:
    """The bounds of an interval."""
    return f"{number(low, decimals)}, {number(high, decimals)}"


def said_margins(margins: Mapping[str, float]) -> str:
    """ "accepted as plausible, all probed statements, at least −1.00; perplexity, ..., at most × 1.03"."""
    parts = []
    for figure, margin in margins.items():
        bound = f"at most × {number(margin, 2)}" if margin > 0 else f"at least {number(margin, 2)}"
        section, name = _names(figure)
        parts.append(f"{section.rstrip(' ↑↓')} ({name}) {bound}")
    return "; ".join(parts)


def target_columns(moves: pl.DataFrame) -> list[tuple[str, str]]:
    """The contrasts and scorers of the table of targets."""
    return moves.select("contrast", "scorer").unique(maintain_order=True).rows()


def target_rows(moves: pl.DataFrame) -> list[dict[str, Any]]:
    """target, category, and the differences in the order of target_columns."""
    found: dict[str, dict[str, Any]] = {}
    for row in moves.sort("target").iter_rows(named=True):
        mine = found.setdefault(row["target"], {"target": row["target"], "category": row["category"], "moved": {}})
        mine["moved"][row["contrast"], row["scorer"]] = row["difference"]
    return list(found.values())


def _names(figure: str) -> tuple[str, str]:
    key = parse(figure)
    if not key.metric.part:
        return "generated statements about targets", _with_unit(key.metric)
    parts = PROBED if key.metric == VALID else SUBSETS
    return key.metric.named, parts.get(key.part, key.part)


def _with_unit(metric: Metric) -> str:
    return f"{metric.name}, %" if metric.unit == "percent" else metric.name


def _decimals(figure: str) -> int:
    return parse(figure).metric.decimals
