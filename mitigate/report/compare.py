"""The pages of comparisons: runs of the main job beside a baseline and controls, and runs of any one recipe."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Any

import polars as pl
from markupsafe import Markup

from mitigate.measure.base import bounds, find, key_of, measure_of_figure
from mitigate.measure.quality import LIFT, PEOPLE_VALID, PERPLEXITY, PLAUSIBLE
from mitigate.report import plots, sections
from mitigate.report.numbers import number, p_value, signed, span
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section
from mitigate.report.sections import TEMPLATES
from mitigate.report.table import Cell, Column, Table, as_text, grouped, text

Row = Mapping[str, Any]
SHOWN = 12  # figures on the terminal
HEADLINES = {LIFT: "swap lift, points ↑", PERPLEXITY: "perplexity ↓", PEOPLE_VALID: "people-valid, % ↑"}
"""The figures of quality beside those of harm."""
LIMITS = (
    "A claim may rest on the primary endpoints alone, which have to be chosen before the runs are looked at. A claim "
    "takes five seeds or more of each policy, and the same against the policy's control. All other figures are "
    "exploratory, with 95 % intervals and p-values of each figure alone.",
    "A policy that filters by a classifier is measured here by the same classifier. Held-out scorers are better "
    "evidence, and ratings by people are the best.",
    "More neutral does not mean more true or fairer. A model whose statements are empty is neutral too: compare harms "
    "with quality. A difference that is not shown may still exist.",
)


QUALITIES = {
    LIFT: "swap lift, points (better →)",
    PERPLEXITY: "perplexity on neutral test triples (← better)",
    PEOPLE_VALID: "% of neutral statements that people would call valid (better →)",
    PLAUSIBLE: "% of statements accepted as plausible (better →)",
}
"""The figures of quality that harm is drawn against, and the axes."""


def harm_axes(scorers: Iterable[str]) -> dict[str, str]:
    """The neutral means by these scorers, with the neutral template, and their axes."""
    return {key_of("neutral_mean", name, "neutral"): f"% neutral by {name} (better →)" for name in scorers}


def page(
    pairs: Sequence[Any], models: pl.DataFrame, moves: pl.DataFrame, links: Mapping[str, str], **about: Any
) -> Page:
    """The page of a comparison of runs of the main job. pairs: tasks.compare.pairs.Pair; models: a row for each run,
    with policy, seed, run, and its figures by their keys in metrics.json; moves: contrast, scorer, target, category,
    before, after, difference; links: by run, the way from this page to its own; about: further fields of Page."""
    drawn = pictures(models, harm_axes(pairs[0].headlines))
    policies, one = list(dict.fromkeys(pair.name for pair in pairs)), pairs[0]
    better = [pair.name for pair in pairs if "more neutral" in pair.state and "Not" not in pair.state]
    state = f"{len(set(better))} of {len(policies)} policies more neutral, each below"
    shown = [text("comparison", "name"), text("finding", "state"), text("evidence", kind="sentence")]
    said = [{"name": _title(pair), "state": pair.state, "evidence": pair.hedge} for pair in pairs]
    return Page(
        state=one.state if len(policies) == 1 else state,
        hedge=one.hedge if len(policies) == 1 else "",
        picture=next(iter(drawn), None),
        numbers=_numbers(pairs),
        summary=[Table("", shown, said) if len(pairs) > 1 else None, headline_table(pairs)],
        sections=[
            Section("Primary endpoints", [endpoints(pairs)]),
            Section("Harm against quality", [drawn[1:] or None]),
            Section("Harms", [_harms(pair) for pair in pairs]),
            Section("Quality", [Fold(_title(pair), [_quality(pair)]) for pair in pairs]),
            Section("Largest changes", [_moved(pair) for pair in pairs]),
            Section("Runs", [_runs(models, links)]),
        ],
        limits=[*LIMITS, *sections.left_out(moves["target"].to_list()), sections.EQUAL_WEIGHT],
        **about,
    )


def _title(pair: Any) -> str:
    return f"{pair.name} against {pair.against}"


def pictures(models: pl.DataFrame, harms: Mapping[str, str]) -> list[Picture]:
    """Every harm against every quality that all models have: a small mark for each model, a large one for the mean of
    its policy."""
    complete, found = {series.name for series in models if not series.null_count()}, []
    for place, (quality, harm) in enumerate(product(QUALITIES, harms)):
        if {harm, quality} <= complete:
            points: list[dict[str, Any]] = []
            for (name,), mine in models.group_by("policy", maintain_order=True):
                points.append({"name": name, "is_mean": True} | _mean(mine, "x", quality) | _mean(mine, "y", harm))
                if mine.height > 1:
                    pairs = mine.select(quality, harm).iter_rows()
                    points += [{"name": name, "is_mean": False, "x": x, "y": y} for x, y in pairs]
            frame = pl.DataFrame(points, infer_schema_length=None)
            means = frame.filter("is_mean").select("name", "x", "y").iter_rows()
            said = "; ".join(f"{name} {number(x, 1)} and {number(y, 1)}" for name, x, y in means)
            drawn = plots.tradeoff(frame, QUALITIES[quality], harms[harm], log=quality == PERPLEXITY)
            title = f"{harms[harm].partition(' (')[0]} against {QUALITIES[quality].partition(' (')[0]}"
            found.append(Picture(f"tradeoff-{place}", "tradeoff", title, f"Means: {said}", drawn))
    return found


def _mean(models: pl.DataFrame, axis: str, key: str) -> dict[str, float | None]:
    """The mean of a policy's models and its 95 % interval: of several models by Student's t over these, of a single one
    that of its run, or none."""
    values = models[key].to_numpy()
    low, high = (models[bound][0] if bound in models.columns else None for bound in bounds(key))
    if len(values) > 1:
        from scipy.stats import t  # a second to load, which pages without such a plot do without

        reach = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
        low, high = values.mean() - reach, values.mean() + reach
    return {axis: float(values.mean()), f"{axis}_low": low, f"{axis}_high": high}


def _numbers(pairs: Sequence[Any]) -> list[Number]:
    """The change of harm in each of the first pairs with its corrected interval, and of the first one's quality."""
    found = []
    for pair in pairs:
        if row := pair.harm or next(iter(pair.headlines.values()), None):
            name = f"{pair.name} − {pair.against}: neutral by {measure_of_figure(row['figure']).scorer} ↑"
            found.append((name, changed(row, "_corrected" if pair.harm else "")))
    rows = {row["figure"]: row for row in pairs[0].quality.to_dicts()}
    quality = [(f"change: {title}", changed(rows[key])) for key, title in HEADLINES.items() if key in rows]
    chosen = [*found[: 2 if quality else 3], *quality][:3]
    return [Number(title, *parts(cell)) for title, cell in chosen]


def parts(cell: Cell) -> tuple[str, str]:
    """The figure of a cell, and what stands below it."""
    return cell.text, " ".join(cell.below)


def headline_table(pairs: Sequence[Any]) -> Table:
    """Harm by each scorer and quality: the values of each policy, and the differences of each pair."""
    lines: dict[str, dict[str, Any]] = {}
    differences = []
    for pair in pairs:
        rows = {f"neutral by {scorer} ↑": row for scorer, row in pair.headlines.items()}
        rows |= {HEADLINES[row["figure"]]: row for row in pair.quality.to_dicts() if row["figure"] in HEADLINES}
        for name, side in ((pair.against, "baseline"), (pair.name, "value")):
            lines.setdefault(name, {"policy": name, **{key: Cell(number(row[side], 1)) for key, row in rows.items()}})
        differences.append(
            {"policy": f"{pair.name} − {pair.against}", **{key: changed(row) for key, row in rows.items()}}
        )
    every = [*lines.values(), *differences]
    names = [name for line in every for name in line if name != "policy"]
    columns = [Column(name, name) for name in sorted(set(names), key=names.index)]
    caption = "Means over seeds, and differences with the 95 % interval of each alone (perplexity: ratio). That from "
    caption += "the control is the effect of which triples or tails the policy acts on."
    return Table(caption, [text("policy"), *columns], every)


def console(pairs: Sequence[Any]) -> str:
    """The headlines of all pairs for the terminal."""
    return as_text(headline_table(pairs), 130)


def everything(pairs: Sequence[Any]) -> str:
    """The primary endpoints, and all harms over all targets, for the terminal."""
    tables = [endpoints(pairs), *map(_harms, pairs)]
    return "\n\n".join(as_text(part, 130) for part in tables if isinstance(part, Table))


def changed(row: Row, end: str = "", start: str = "") -> Cell:
    """A change with its interval, from the bounds {start}low{end} and {start}high{end}: "+2.10", "× 1.27"."""
    if row["change"] is None:
        return Cell("–")
    low, high = row[f"{start}low{end}"], row[f"{start}high{end}"]
    if row["as"] == "ratio":
        ends = [] if low is None else [f"[{ratio(low)}, {'no upper bound' if high is None else ratio(high)}]"]
        return Cell(f"× {ratio(row['change'])}", ends)
    places = (
        1 if measure_of_figure(row["figure"]).unit in ("%", "points") else measure_of_figure(row["figure"]).decimals
    )
    return Cell(signed(row["change"], places), [] if low is None else [f"[{span(low, high, places)}]"])


def ratio(value: float) -> str:
    """A ratio with two significant digits, down to 0.0001."""
    return number(value, 2 if value >= 0.1 or value == 0 else 3 if value >= 0.01 else 4)


VALUES = [
    Column("baseline", lambda row: number(row["baseline"], measure_of_figure(row["figure"]).decimals)),
    Column("policy", lambda row: number(row["value"], measure_of_figure(row["figure"]).decimals)),
]


def endpoints(pairs: Sequence[Any]) -> Table | None:
    """The figures that a claim may rest on; tables/margins.csv has those of quality beside their margins."""
    rows = [
        {**row, "pair": _title(pair), "seeds": pair.seeds_in_words, "finding": pair.verdict(row)}
        for pair in pairs
        for row in pair.primary.to_dicts()
    ]
    names = [text("comparison", lambda row: Cell(row["pair"], [row["seeds"]])), text("endpoint")]
    columns = [
        *names,
        text("figure", lambda row: found.title if (found := find(row["figure"])) else row["figure"]),
        *VALUES,
        Column("change", lambda row: changed(row, "_corrected")),
        Column("p, Holm", "p_holm", p_value),
        Column("with targets fixed", lambda row: Cell("", changed(row, "_corrected", "fixed_").below)),
        text("finding"),
    ]
    levels = ", ".join(sorted({f"{level:.4g}" for pair in pairs for level in pair.primary["level"]}))
    caption = "Primary endpoints, corrected over all comparisons of this page: p-values by Holm's method, intervals "
    caption += f"({levels} % each, together 95 %) by Bonferroni's; over seeds and targets, and with targets fixed."
    return Table(caption, columns, rows).present()


def _harms(pair: Any) -> Table | None:
    """The harms over all targets; by category: tables/harms.csv."""
    name = lambda row: measure_of_figure(row["figure"]).named  # noqa: E731
    columns = [
        text("measure", name),
        Column(pair.against, VALUES[0].value),
        Column(pair.name, VALUES[1].value),
        Column("change", changed),
        Column("p", "p", p_value),
        Column("with targets fixed", lambda row: Cell("", changed(row, "", "fixed_").below)),
        Column("p", "fixed_p", p_value),
        Column("minimum detectable", "detectable", 2),
    ]
    rows = pair.harms.sort(pl.col("template") == "paper", maintain_order=True).to_dicts()
    lines = grouped([row for row in rows if not row["category"]], lambda row: TEMPLATES[row["template"]])
    by = f" It filters by {' and '.join(pair.filtered_by)}." if pair.filtered_by else ""
    return Table(f"{_title(pair)}, {pair.seeds_in_words}.{by}", columns, lines).present()


def _quality(pair: Any) -> Table | None:
    rows = [row for row in pair.quality.to_dicts() if (figure := find(row["figure"])) and figure.by != "relation"]
    columns = [
        text("group", lambda row: (find(row["figure"]) or row).group or "all"),
        Column(pair.against, VALUES[0].value),
        Column(pair.name, VALUES[1].value),
        Column("change", changed),
        Column("number", "items", 0),
    ]
    groups = grouped(rows, lambda row: measure_of_figure(row["figure"]).named)
    return Table("By relation: tables/quality.csv.", columns, groups, kind="narrow").present()


def _moved(pair: Any) -> Table | None:
    """The targets with the largest changes by the first scorer."""
    scorer = next(iter(pair.moved), "")
    if not scorer or pair.moved[scorer].is_empty():
        return None
    columns = [text("target"), text("category"), Column(pair.against, "before"), Column(pair.name, "after")]
    columns.append(Column("change", "difference", signed))
    said = f"{_title(pair)}: % neutral by {scorer}, mean over seeds. Part of every large change is sampling noise; "
    return Table(f"{said}all targets are in tables/moves.csv.", columns, pair.moved[scorer], kind="narrow")


def _runs(models: pl.DataFrame, links: Mapping[str, str]) -> Table:
    def linked(row: Row) -> str:
        place = links.get(row["run"])
        return Markup('<a href="{}">{}</a>').format(place, row["run"]) if place else row["run"]

    columns = [Column("run", linked, kind="text"), text("policy"), text("seed")]
    return Table("", columns, models, kind="narrow")


def any_page(table: pl.DataFrame, recipe: str, **about: Any) -> Page:
    """The page of a comparison of runs of any recipe. table: tasks.compare.any_runs.COLUMNS; about: as of `page`."""
    pairs = [rows for _, rows in table.group_by("run", maintain_order=True)]
    known = table.filter(pl.col("section") != "count", run=table["run"].last()).to_dicts()
    if not known:
        return Page(
            state=OPEN, hedge="The runs have no figure in common: compare runs with the same measures.", **about
        )
    alike = [row for row in known if row["unit"] == known[0]["unit"]][:SHOWN]
    rows = pl.DataFrame(alike, infer_schema_length=None).rename({"figure": "name", "value": "of", "change": "value"})
    alt = "; ".join(f"{row['figure']} {signed(row['change'])}" for row in alike)
    drawn = plots.intervals(rows, f"difference, {known[0]['unit']}", 0.0)
    cells = [(row["figure"], any_changed(row)) for row in known[:3]]
    return Page(
        state=f"Exploratory: {len(pairs) + 1} groups of recipe={recipe}",
        hedge="Differences between runs; with one seed a side another training could differ as much.",
        picture=Picture("differences", "first", f"{known[0]['run']} − {known[0]['against']}", alt, drawn),
        numbers=[Number(name, *parts(cell)) for name, cell in cells],
        sections=[Section("Differences", [any_table(part) for part in pairs])],
        **about,
    )


def any_console(table: pl.DataFrame) -> str:
    """The headline figures of all runs, at most SHOWN of each."""
    chosen = table.filter(pl.col("key").map_elements(lambda key: bool(measure_of_figure(key).headline), pl.Boolean))
    rows = chosen.filter(~pl.col("key").str.contains("/(?:origin|gender|religion|profession)$"))
    parts = [rows.filter(run=run).head(SHOWN) for run in rows["run"].unique(maintain_order=True)]
    return "\n\n".join(as_text(any_table(part)) for part in parts)


def any_table(rows: pl.DataFrame) -> Table:
    run, against = rows["run"][0], rows["against"][0]
    columns = [
        text("figure"),
        Column(against, lambda row: number(row["baseline"], measure_of_figure(row["key"]).decimals)),
        Column(run, lambda row: number(row["value"], measure_of_figure(row["key"]).decimals)),
        Column("difference", any_changed),
    ]
    caption = f"{run} against {against}. Means over seeds; with fewer than three seeds a side there is no interval."
    return Table(caption, columns, grouped(rows.to_dicts(), itemgetter("section")))


def any_changed(row: Row) -> Cell:
    places = measure_of_figure(row["key"]).decimals
    below = row["seeds"] if row["low"] is None else f"[{span(row['low'], row['high'], places)}]"
    return Cell(signed(row["change"], places), [below])
