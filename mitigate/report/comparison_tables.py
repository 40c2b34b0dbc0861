"""The names and formats of a comparison's figures, in tables and in sentences."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from mitigate.report.legend import HARMS, PROBED, QUALITY, SUBSETS, VALID, number

OF_THE_PROBE = {
    "distinct_tails": "distinct tails, %",
    "shared_tails": "tails shared between targets, %",
    "novelty/T_sro": "new triples, %",
    "novelty/T_o": "triples with a new tail, %",
    "novelty/U_o": "new among distinct tails, %",
}

RELATION = "/relation/"


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
    for measure in HARMS:
        if measure.key == row["measure"]:
            return f"{measure.key} {measure.arrow} {measure.name}"
    scorer, _, name = row["measure"].rpartition("/")
    return f"{scorer}: {name.replace('_', ' ')} {'↓' if name.endswith('variance') else '↑'}"


def quality_rows(quality: pl.DataFrame) -> list[QualityRow]:
    """The lines, grouped by measure, in the order of the figures; single relations are in relation_rows."""
    rows = [_quality_row(row) for row in quality.iter_rows(named=True) if RELATION not in row["figure"]]
    order = list(dict.fromkeys(row.section for row in rows))
    return sorted(rows, key=lambda row: order.index(row.section))


def relation_rows(quality: pl.DataFrame) -> dict[str, dict[str, dict[str, Any]]]:
    """By relation, those with most held-out triples first: its rows of quality by measure, "perplexity" or "valid"."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in quality.filter(pl.col("figure").str.contains(RELATION, literal=True)).iter_rows(named=True):
        measure, relation = row["figure"].removeprefix("quality/").split(RELATION)
        found.setdefault(relation, {})[measure] = row
    return dict(sorted(found.items(), key=lambda item: -item[1].get("perplexity", {"items": 0})["items"]))


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
    if figure in OF_THE_PROBE:
        return "generated statements about targets", OF_THE_PROBE[figure]
    _, key, part = figure.split("/")
    for measure in (*QUALITY, VALID):
        if measure.key == key:
            parts = PROBED if measure is VALID else SUBSETS
            return f"{measure.name} {measure.arrow}", parts.get(part, part)
    raise KeyError(figure)


def _decimals(figure: str) -> int:
    return next((measure.decimals for measure in QUALITY if f"/{measure.key}/" in figure), 2)
