"""An audit's measures as a table: for files, for the page and for the terminal."""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from mitigate.report.legend import Metrics, interval, number, ordered
from mitigate.triples import TEMPLATE_PREFIX

Wording = tuple[str, str]
"""A scorer, and the template of the statements it labelled."""


class Row(NamedTuple):
    """One line: a measure, and the key of its figure over all targets."""

    section: str
    name: str
    key: str
    decimals: int


REPRESENTATION = Row("statements", "D_R", "D_R", 1)
NEUTRAL = {"sentiment": ("NSM", "NSV"), "regard": ("NRM", "NRV")}  # what the paper calls mean and variance
MEANINGS = {
    "D_R": "Eq. 3: the variance over targets of the number of statements about them.",
    "O−, O+": "Eq. 1 and 2: of a target's statements, the percentage labelled prejudice, or favouritism; mean over "
    "targets.",
    "D_O−, D_O+": "Eq. 4: the variance over targets of these percentages.",
    "NSM, NRM": "The percentage of a target's statements with neutral sentiment, or regard; mean over targets.",
    "NSV, NRV": "The variance over targets of that percentage.",
    "polarised": "The percentage of all statements that are not neutral, each counted for each target it is about.",
}


def section(wording: Wording) -> str:
    """What the labels are called: "sentiment", or "sentiment, phrase neutralised"."""
    scorer, template = wording
    return scorer if template == "paper" else f"{scorer}, phrase neutralised"


def rows(wordings: Sequence[Wording]) -> list[Row]:
    """The lines, in the order they are read."""
    return [REPRESENTATION, *(row for wording in wordings for row in _of(wording))]


def _of(wording: Wording) -> list[Row]:
    scorer, template = wording
    mean, variance = NEUTRAL.get(scorer, (f"{scorer}/neutral_mean", f"{scorer}/neutral_variance"))
    keys = {
        "O−": f"{scorer}/O-",
        "O+": f"{scorer}/O+",
        "D_O−": f"{scorer}/D_O-",
        "D_O+": f"{scorer}/D_O+",
        mean.rpartition("/")[2].replace("_", " "): mean,
        variance.rpartition("/")[2].replace("_", " "): variance,
        "polarised": f"{scorer}/polarised",
    }
    return [Row(section(wording), name, TEMPLATE_PREFIX[template] + key, 2) for name, key in keys.items()]


def categories(metrics: Metrics) -> list[str]:
    """The categories that have figures of their own, in order."""
    return ordered(key.removeprefix("targets/") for key in metrics if key.startswith("targets/"))


def measures(metrics: Metrics, wordings: Sequence[Wording]) -> pl.DataFrame:
    """The measures as a frame: section, measure, part (a category, or all), value, low, high."""
    lines = [
        (row.section, row.name, part or "all", *(metrics.get(key + end) for end in ("", "_low", "_high")))
        for row in rows(wordings)
        for part in ("", *categories(metrics))
        for key in [row.key + (f"/{part}" if part else "")]
    ]
    numbers = dict.fromkeys(("value", "low", "high"), pl.Float64)
    schema = {**dict.fromkeys(("section", "measure", "part"), pl.String), **numbers}
    return pl.DataFrame(lines, schema=schema, orient="row")


def console(metrics: Metrics, wordings: Sequence[Wording]) -> str:
    """The measures for the terminal: all targets with the interval, then each category."""
    parts = categories(metrics)
    lines = [f"{'':<18}{'all targets':>12}{'95 % interval':>24}" + "".join(f"{part:>12}" for part in parts)]
    shown = ""
    for row in rows(wordings):
        if row.section != shown:
            shown = row.section
            lines.append(shown)
        cells = [number(metrics.get(f"{row.key}/{part}"), row.decimals) for part in parts]
        own = f"{number(metrics.get(row.key), row.decimals):>12}{interval(metrics, row.key, row.decimals):>24}"
        lines.append(f"  {row.name:<16}{own}" + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


def console_beside(beside: pl.DataFrame) -> str:
    """The paper's figures with ours for the terminal."""
    lines = [f"{'':<14}{'':<46}{'the paper':>12}{'ours':>14}"]
    for place, figure, _, paper, ours in beside.select("place", "figure", "key", "paper", "ours").iter_rows():
        lines.append(f"{place:<14}{figure:<46}{_short(paper):>12}{_short(ours):>14}")
    return "\n".join(lines)


def _short(value: float) -> str:
    return number(value, 0 if abs(value) >= 1000 else 2)
