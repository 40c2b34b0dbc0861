"""A comparison in plain sentences, on the page and on the terminal: for each policy the verdict and its cost, the four
figures of harm, and all findings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mitigate.metrics import parse
from mitigate.report import brief, metric_display, verdicts
from mitigate.report.brief import COSTS, by, decimals, more, points
from mitigate.report.change_formats import CORRECTED, change, decimals_of, figure_in_words, interval, margin_in_words
from mitigate.report.contrast_findings import Pair
from mitigate.report.metric_display import number

NAMES_OF_COSTS = ("swap lift", "people-valid share of neutral statements", "perplexity on neutral test triples")
COSTS_NAMED = dict(zip(COSTS, NAMES_OF_COSTS, strict=True))
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
        return f"{found} ({change(row, 1)}{_unit(row)}; {pair.seeds_in_words})."
    return f"{name} is {_how_much(row)} than {against}{_doubt(pair)}."


def cost(pair: Pair) -> str:
    """The change of quality, and whether it is within its margins, in one sentence; "" where that was not measured. The
    same numbers are within all margins, though no interval shows it."""
    rows = {name: row for figure, name in COSTS_NAMED.items() if (row := pair.quality_row(figure))}
    parts = [
        f"{name} {change(row, 1 if row['as'] == 'difference' else 2)}{_unit(row)}"
        for name, row in rows.items()
        if row["change"] is not None
    ]
    if pair.quality_kept and not pair.is_same:
        parts.append(verdicts.SAID_OF_MARGINS[pair.quality_kept])
    return f"{'; '.join(parts)}." if parts else ""


def figures(pairs: Sequence[Pair]) -> str:
    """A line for the baseline and for each policy: the figures of harm over all targets by the scorers of the roles,
    and of quality, each with its change."""
    lines: dict[str, dict[str, str]] = {}
    templates: set[str] = set()
    for pair in pairs:
        rows = _rows(pair)
        places = {title: decimals(row["figure"]) for title, row in rows.items()}
        templates |= {row["template"] for row in rows.values() if "template" in row}
        lines.setdefault(pair.against, {title: number(row["baseline"], places[title]) for title, row in rows.items()})
        lines[pair.name] = {
            title: f"{number(row['value'], places[title])} ({change(row, places[title])})"
            for title, row in rows.items()
        }
    return "\n".join(filter(None, [brief.grid(lines), brief.explained(set(pairs[0].harms["measure"]), templates)]))


def _rows(pair: Pair) -> dict[str, Mapping[str, Any]]:
    """The rows of harm by heading, with the neutral template where that was measured, and those of quality."""
    found: dict[str, Mapping[str, Any]] = {}
    for scorer in metric_display.by_headline(pair.role_scorers):
        for row in sorted(pair.overall.filter(scorer=scorer).to_dicts(), key=lambda row: row["template"] == "paper"):
            measure = parse(row["figure"]).metric
            found.setdefault(f"{measure.title} {measure.arrow}", row)
    return found | {title: quality for figure, title in COSTS.items() if (quality := pair.quality_row(figure))}


def _how_much(row: Mapping[str, Any]) -> str:
    """The change in words: "9.8 points more neutral in regard"; of a figure that is not a mean of neutral statements
    its name and change."""
    if _is_neutral_mean(row):
        return f"{points(row['change'])} {more(row['change'])} {_what(row)}"
    return f"{'higher' if row['value'] > row['baseline'] else 'lower'} in {_what(row)} ({change(row, 2)}{_unit(row)})"


def _what(row: Mapping[str, Any]) -> str:
    is_mean = _is_neutral_mean(row)
    return f"neutral {by(parse(row['figure']).metric.scorer)}" if is_mean else figure_in_words(row["figure"])


def _is_neutral_mean(row: Mapping[str, Any]) -> bool:
    metric = parse(row["figure"]).metric
    return (metric.share, metric.statistic) == ("neutral", "mean") and row["change"] is not None


def _doubt(pair: Pair) -> str:
    """The doubt that a number of seeds leaves."""
    if pair.fewest == 1:
        return f", but with {pair.seeds_in_words} a training with another seed could differ as much"
    if pair.fewest < verdicts.FEWEST_SEEDS:
        return f", but with {pair.seeds_in_words}, variation between trainings could explain it"
    return f", shown with {pair.seeds_in_words}"


def _unit(row: Mapping[str, Any]) -> str:
    is_points = parse(row["figure"]).metric.unit == "percent" and row["as"] == "difference"
    return " points" if is_points else ""


def sentences(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the primary endpoints, each with its finding, quality by its margins, and the claims that the seeds
    allow."""
    against = verdicts.listed(list(dict.fromkeys(f"“{pair.against}”" for pair in pairs)))
    for place, first in enumerate(pairs[0].primary.to_dicts()):
        rows = [pair.primary.filter(figure=first["figure"]).row(0, named=True) for pair in pairs]
        found = {f"“{pair.name}”": pair.verdict(row) for pair, row in zip(pairs, rows, strict=True)}
        title = f"{first['endpoint'].capitalize()}, {figure_in_words(first['figure'])}"
        against_whom = f", against {against}" if place == 0 else ""
        yield f"{title}{against_whom}: {verdicts.said_together(found)}{_values(pairs, rows)}."
    kept_by = {
        word: [f"“{p.name}”" for p in pairs if p.quality_kept == word and not p.is_same] for word in verdicts.MARGINS
    }
    if said := "; ".join(
        f"{verdicts.SAID_OF_MARGINS[word]} with {verdicts.listed(names)}" for word, names in kept_by.items() if names
    ):
        yield f"{said[0].upper()}{said[1:]}."
    if strengths := dict.fromkeys((pair.seeds_in_words, pair.strength) for pair in pairs if pair.strength):
        yield "; ".join(f"{seeds}: {said}" for seeds, said in strengths).capitalize() + "."


def _values(pairs: Sequence[Pair], rows: Sequence[Mapping[str, Any]]) -> str:
    """The values of an endpoint in brackets: of one contrast with its change, of several in their order with the
    baseline's where it is one."""
    first, places = rows[0], decimals_of(rows[0])
    values, baseline = [number(row["value"], places) for row in rows], number(first["baseline"], places)
    if len(rows) == 1:
        difference = f"{change(first, places)} {interval(first, places, CORRECTED)}".rstrip()
        return f" ({values[0]}, {baseline} with “{pairs[0].against}”, {difference})"
    if len({row["baseline"] for row in rows}) > 1 or len(rows) > MOST_VALUES:
        return ""
    named = ", ".join(f"“{pair.name}” {value}" for pair, value in zip(pairs, values, strict=True))
    return f" ({named}; baseline {baseline})"


def line(pair: Pair) -> str:
    """A contrast on one line of the terminal."""
    strength = f": {pair.strength}" if pair.strength else ""
    parts = [f"{pair.name} against {pair.against} ({pair.seeds_in_words}{strength})"]
    for row in pair.primary.to_dicts():
        p = "" if row["p_holm"] is None else f", p {verdicts.p_value(row['p_holm'])}"
        known = f"{change(row, 2)} {interval(row, 2, CORRECTED)}".rstrip()
        numbers = f"{row['figure']} {number(row['baseline'])} → {number(row['value'])}"
        parts.append(f"primary, {row['endpoint']}: {numbers} ({known}{p}: {pair.verdict(row)})")
    for row in pair.within.to_dicts():
        passes = f"a true copy would pass in {number(row['copy_passes'], 0)} %"
        parts.append(f"{row['figure']}, margin {margin_in_words(row)}: {verdicts.kept([row])} ({passes})")
    others = [f"{row['figure']} {change(row, 2)} {interval(row, 2)}".rstrip() for row in pair.exploratory]
    return "; ".join([*parts, *([f"exploratory: {', '.join(others)}"] if others else [])])
