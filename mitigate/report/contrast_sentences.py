"""A comparison in plain sentences: for each policy how much more neutral its statements are than the baseline's, how
certain that is, and its cost; the four figures of harm; and all findings, on the page and on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mitigate.metrics import parse
from mitigate.report import brief, legend, verdicts
from mitigate.report.brief import COSTS, by, decimals, more, points
from mitigate.report.change_formats import CORRECTED, change, figure_named, interval, said_margin
from mitigate.report.contrast_findings import Pair
from mitigate.report.legend import number

MOST_VALUES = 4  # contrasts whose values stand in one sentence


def verdict(pair: Pair) -> str:
    """The finding on the primary endpoint of harm in one sentence, with what as many seeds allow one to say; where a
    generator cannot be said to have learnt, that."""
    if pair.unlearnt:
        return pair.unlearnt
    name, against = f"“{pair.name}”", f"“{pair.against}”"
    row = next(iter(pair.primary.filter(endpoint="harm").to_dicts()), None)
    said = verdicts.SAME if pair.is_same else verdicts.UNKNOWN if row is None else pair.verdict(row)
    if said == verdicts.SAME:
        return f"{name} has the same numbers as {against}: there is nothing to compare."
    if row is None or said == verdicts.UNKNOWN:
        return f"{name} against {against}: these runs do not show which of them does less harm."
    if said in (verdicts.NO_EFFECT, verdicts.ALIKE):
        either = "more or less" if _is_neutral_mean(row) else "higher or lower in"
        found = f"{name} is not shown to be {either} {_what(row)} than {against}"
        return f"{found} ({change(row, 1)}{_unit(row)}; {pair.said_seeds})."
    return f"{name} is {_how_much(row)} than {against}{_doubt(pair)}."


def cost(pair: Pair) -> str:
    """How quality changed, and whether it is within its margins, in one sentence; "" where that was not measured. The
    same numbers are within all margins, though no interval shows it."""
    named = {COSTS_NAMED[figure]: pair.quality_row(figure) for figure in COSTS}
    parts = [
        f"{name} {change(row, 1 if row['as'] == 'difference' else 2)}{_unit(row)}"
        for name, row in named.items()
        if row and row["change"] is not None
    ]
    if pair.quality_kept and not pair.is_same:
        parts.append(verdicts.SAID_OF_MARGINS[pair.quality_kept])
    return f"{'; '.join(parts)}." if parts else ""


NAMES_OF_COSTS = ("swap lift", "people-valid share of neutral statements", "perplexity on neutral test triples")
COSTS_NAMED = dict(zip(COSTS, NAMES_OF_COSTS, strict=True))


def figures(pairs: Sequence[Pair]) -> str:
    """A line for the baseline and for each policy: the figures of harm over all targets by the scorers of the roles,
    and of quality, each with its change."""
    rows: dict[str, dict[str, str]] = {}
    templates: set[str] = set()
    for pair in pairs:
        found = _rows(pair)
        templates |= {row["template"] for row in found.values() if "template" in row}
        rows.setdefault(pair.against, {title: _number(row, "baseline") for title, row in found.items()})
        rows[pair.name] = {
            title: f"{_number(row, 'value')} ({change(row, decimals(row['figure']))})" for title, row in found.items()
        }
    return "\n".join(filter(None, [brief.grid(rows), brief.explained(set(pairs[0].harms["measure"]), templates)]))


def _rows(pair: Pair) -> dict[str, Mapping[str, Any]]:
    """By heading, the rows of harm with the neutral template where that was measured, and those of quality."""
    found: dict[str, Mapping[str, Any]] = {}
    for scorer in legend.by_headline(pair.places):
        mine = pair.overall.filter(scorer=scorer).to_dicts()
        for row in sorted(mine, key=lambda row: row["template"] == "paper"):
            measure = parse(row["figure"]).metric
            found.setdefault(f"{measure.title} {measure.arrow}", row)
    quality = {title: pair.quality_row(figure) for figure, title in COSTS.items()}
    return found | {title: row for title, row in quality.items() if row}


def _how_much(row: Mapping[str, Any]) -> str:
    """ "9.8 points more neutral in regard"; of a figure that is no mean of neutral statements its name and change."""
    if _is_neutral_mean(row):
        return f"{points(row['change'])} {more(row['change'])} {_what(row)}"
    return f"{'higher' if row['value'] > row['baseline'] else 'lower'} in {_what(row)} ({change(row, 2)}{_unit(row)})"


def _what(row: Mapping[str, Any]) -> str:
    if _is_neutral_mean(row):
        return f"neutral {by(parse(row['figure']).metric.scorer)}"
    return figure_named(row["figure"])


def _is_neutral_mean(row: Mapping[str, Any]) -> bool:
    metric = parse(row["figure"]).metric
    return (metric.share, metric.statistic) == ("neutral", "mean") and row["change"] is not None


def _doubt(pair: Pair) -> str:
    """The doubt that a number of seeds leaves."""
    if pair.fewest == 1:
        return f", but with {pair.said_seeds} a training with another seed could differ as much"
    if pair.fewest < verdicts.FEWEST_SEEDS:
        return f", but with {pair.said_seeds}, variation between trainings could explain it"
    return f", shown with {pair.said_seeds}"


def _unit(row: Mapping[str, Any]) -> str:
    metric = parse(row["figure"]).metric
    return " points" if metric.unit == "percent" and row["as"] == "difference" else ""


def _number(row: Mapping[str, Any], column: str) -> str:
    return number(row[column], decimals(row["figure"]))


def sentences(pairs: Sequence[Pair]) -> Iterator[str]:
    """The primary endpoints, each with its finding, quality by its margins, and the claims that the seeds allow."""
    against = verdicts.listed(list(dict.fromkeys(f"“{pair.against}”" for pair in pairs)))
    for place, row in enumerate(pairs[0].primary.to_dicts()):
        rows = {
            f"“{pair.name}”": (pair, pair.primary.filter(figure=row["figure"]).row(0, named=True)) for pair in pairs
        }
        said = verdicts.said_together({name: pair.verdict(mine) for name, (pair, mine) in rows.items()})
        numbers = "".join(_in_brackets(*known) for known in rows.values()) if len(rows) == 1 else _values(rows)
        title = f"{row['endpoint'].capitalize()}, {figure_named(row['figure'])}"
        yield f"{title}{f', against {against}' if place == 0 else ''}: {said}{numbers}."
    kept_by = {
        word: [f"“{p.name}”" for p in pairs if p.quality_kept == word and not p.is_same] for word in verdicts.MARGINS
    }
    if said := "; ".join(
        f"{verdicts.SAID_OF_MARGINS[word]} with {verdicts.listed(names)}" for word, names in kept_by.items() if names
    ):
        yield f"{said[0].upper()}{said[1:]}."
    if strengths := dict.fromkeys((pair.said_seeds, pair.strength) for pair in pairs if pair.strength):
        yield "; ".join(f"{seeds}: {said}" for seeds, said in strengths).capitalize() + "."


def _values(rows: Mapping[str, tuple[Pair, Mapping[str, Any]]]) -> str:
    """The values of several contrasts in their order, and the baseline's where it is one."""
    figures = [row for _, row in rows.values()]
    places = parse(figures[0]["figure"]).metric.decimals
    if len({row["baseline"] for row in figures}) > 1 or len(figures) > MOST_VALUES:
        return ""
    values = ", ".join(f"{name} {number(row['value'], places)}" for name, (_, row) in rows.items())
    return f" ({values}; baseline {number(figures[0]['baseline'], places)})"


def _in_brackets(pair: Pair, row: Mapping[str, Any]) -> str:
    places = parse(row["figure"]).metric.decimals
    numbers = f"{number(row['value'], places)}, {number(row['baseline'], places)} with “{pair.against}”"
    return f" ({numbers}, {change(row, places)} {interval(row, places, CORRECTED)}".rstrip() + ")"


def line(pair: Pair) -> str:
    """A contrast on one line of the terminal."""
    strength = f": {pair.strength}" if pair.strength else ""
    parts = [f"{pair.name} against {pair.against} ({pair.said_seeds}{strength})"]
    for row in pair.primary.to_dicts():
        p = "" if row["p_holm"] is None else f", p {verdicts.p_value(row['p_holm'])}"
        known = f"{change(row, 2)} {interval(row, 2, CORRECTED)}".rstrip()
        numbers = f"{row['figure']} {number(row['baseline'])} → {number(row['value'])}"
        parts.append(f"primary, {row['endpoint']}: {numbers} ({known}{p}: {pair.verdict(row)})")
    for row in pair.within.to_dicts():
        passes = f"a true copy would pass in {number(row['copy_passes'], 0)} %"
        parts.append(f"{row['figure']}, margin {said_margin(row)}: {verdicts.kept([row])} ({passes})")
    others = [f"{row['figure']} {change(row, 2)} {interval(row, 2)}".rstrip() for row in pair.exploratory]
    return "; ".join([*parts, *([f"exploratory: {', '.join(others)}"] if others else [])])
