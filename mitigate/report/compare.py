"""The finding of each comparison of two groups of runs, in words, and the page of all."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import polars as pl
from markupsafe import Markup
from scipy import special

from mitigate.measure import compare
from mitigate.measure.base import bounds, key_of, measure_of
from mitigate.measure.compare import Endpoints
from mitigate.measure.quality import LIFT, PEOPLE_VALID, PERPLEXITY, PLAUSIBLE
from mitigate.report import plots, sections
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section
from mitigate.report.table import Cell, Column, Table, grouped, number, p_value, signed, span, text

Row = Mapping[str, Any]
SHOWN = 6  # headlines of a recipe that measures neither harm nor quality
HEADLINES = {LIFT: "swap lift, points ↑", PERPLEXITY: "perplexity ↓", PEOPLE_VALID: "people-valid, % ↑"}
"""The figures of quality beside those of harm."""
QUALITIES = {
    LIFT: "swap lift, points (better →)",
    PERPLEXITY: "perplexity on neutral test triples (← better)",
    PEOPLE_VALID: "% of neutral statements that people would call valid (better →)",
    PLAUSIBLE: "% of statements accepted as plausible (better →)",
}
"""The figures of quality that harm is drawn against, and the axes."""
LIMITS = (
    "A claim may rest on the primary endpoints alone, which must be chosen before anyone looks at the runs. It needs "
    "five seeds or more of each policy, and the same comparison with the policy's control. All other results are "
    "exploratory, and their 95 % intervals and p-values are not corrected.",
    "Where the same classifier filters and measures, the results favour the policy. Held-out scorers are better "
    "evidence, and ratings by people are the best.",
    "More neutral does not mean more true or fairer. A model whose statements say nothing is neutral too: compare "
    "harms with quality. A difference that is not shown may still exist.",
)
SAID_OF_MARGIN = {
    compare.LOST: "Quality is worse than its margin allows.",
    compare.UNSHOWN: "Quality is not shown to be within its margin.",
    compare.KEPT: "Quality is within its margin.",
}


@dataclass(frozen=True, eq=False)
class Finding:
    """A policy, or a single model, against another: the figures, what they show, and the outcome of the gate."""

    name: str
    against: str
    seeds: tuple[int, int]  # of the baseline, of the other
    is_same: bool  # whether both have the same numbers
    filtered_by: Sequence[str]  # the scorers of the policy
    rows: pl.DataFrame  # measure.compare.DIFFERENCES
    primary: list[Row]  # measure.compare.PRIMARY, with `verdict`
    headlines: Mapping[str, Row]  # the rows that come first, by their titles
    state: str  # the finding on harm in at most eight words
    hedge: str  # the two sides, and the certainty of the state
    quality_kept: str | None  # the finding on the margin of quality
    gate: str  # the outcome of the primary endpoints

    @property
    def sides(self) -> tuple[str, str]:
        """Both names, and the number of seeds of each: "2 seeds each", "2 and 3 seeds"."""
        first, second = self.seeds
        each = "one seed each" if first == 1 else f"{first} seeds each"
        return f"{self.name} against {self.against}", each if first == second else f"{first} and {second} seeds"

    @property
    def sentence(self) -> str:
        return f"{self.state}. {self.hedge}"


def finding(
    *,
    seeds: tuple[int, int],
    is_same: bool,
    rows: pl.DataFrame,
    primary: pl.DataFrame,
    endpoints: Endpoints,
    scorers: Sequence[str],
    unlearnt: str,
    trained: bool = True,
    **about: Any,
) -> Finding:
    """Decide what a comparison shows. scorers: those of the roles, that in regard's place last; unlearnt: the sentence
    in place of a verdict where a generator cannot be said to have learnt; trained: False for audits of resources;
    about: the other fields of Finding."""
    fewest, said = min(seeds), list[Row]()
    outcomes = dict.fromkeys(endpoints.declared, compare.OPEN)  # a declared kind that not all runs have stays open
    for row in primary.to_dicts():
        # Worse quality of a generator that has learnt nothing is a finding; its statements show nothing about harm.
        is_void = unlearnt and row["endpoint"] != compare.QUALITY
        verdict = compare.UNLEARNT if is_void else compare.verdict(row, fewest, is_same)
        outcome = compare.gate(verdict, row["kept"], fewest)
        outcomes[row["endpoint"]] = compare.OPEN if unlearnt and outcome == compare.HOLDS else outcome
        said.append(row | {"verdict": verdict})
    kept = next((row["kept"] for row in said if row["endpoint"] == compare.QUALITY), None)
    kept = None if unlearnt and kept == compare.KEPT else kept
    made = Finding(
        seeds=seeds,
        is_same=is_same,
        rows=rows,
        primary=said,
        headlines=_headlines(rows, scorers),
        state=OPEN if unlearnt else _state(said, is_same, rows.height),
        hedge="",
        quality_kept=kept,
        gate=compare.gates(list(outcomes.values())),
        **about,
    )
    if unlearnt:
        hedge = f"{unlearnt.partition(': ')[2]} Train longer (trainer.max_steps), or on more triples."
        return replace(made, hedge=hedge)
    hedge = f"“{made.name}” against “{made.against}”" + (f", {made.sides[1]}." if trained else ".")
    if trained and fewest == 1:
        hedge += " Another training with another seed could differ as much."
    elif trained and fewest < compare.FEWEST_TO_CLAIM:
        hedge += f" Variation between trainings could explain it; a claim needs {compare.FEWEST_TO_CLAIM} seeds each."
    return replace(made, hedge=hedge if is_same or kept is None else f"{hedge} {SAID_OF_MARGIN[kept]}")


def _headlines(table: pl.DataFrame, scorers: Sequence[str]) -> dict[str, Row]:
    """Each scorer's neutral mean over all targets, that in regard's place first, under the neutral template where that
    was measured, and quality; of a recipe without these the figures that are declared to come first."""
    later = pl.col("scorer") != next(reversed(scorers), ""), pl.col("template") == "paper"
    means = table.filter(measure="neutral_mean", by="all").sort(*later, maintain_order=True)
    harms = means.unique("scorer", keep="first", maintain_order=True).to_dicts()
    rows = {row["figure"]: row for row in table.to_dicts()}
    found: dict[str, Row] = {f"neutral by {row['scorer']} ↑": row for row in harms}
    found |= {title: rows[key] for key, title in HEADLINES.items() if key in rows}
    if not found:
        declared = {key: measure_of(row["measure"], row["scorer"]) for key, row in rows.items()}
        shown = [key for key, of in declared.items() if of.headline and rows[key]["group"] == of.headline_group]
        found = {f"{rows[key]['title']} {declared[key].arrow}".rstrip(): rows[key] for key in shown[:SHOWN]}
    return found


def _state(said: Sequence[Row], is_same: bool, compared: int) -> str:
    """The finding on the primary endpoint of harm. compared: the number of all figures."""
    if is_same:
        return "The numbers are the same: nothing to compare"
    row = next((row for row in said if row["endpoint"] == compare.HARM), None)
    if row is None:
        return f"Exploratory: {compared} results compared"
    if row["verdict"] == compare.UNKNOWN:
        return "Which does less harm cannot be determined"
    if row["verdict"] == compare.ALIKE:
        return "Not shown to be more or less neutral"
    shown = "Shown" if row["verdict"] in compare.SHOWN else "Exploratory"
    metric = measure_of(row["measure"], row["scorer"])
    more = "more" if row["value"] > row["baseline"] else "less"
    if metric.name == "neutral_mean":
        return f"{shown}: {number(abs(row['change']), 1)} points {more} neutral by {metric.scorer}"
    return f"{shown}: {more} {metric.title}"


def harm_axes(scorers: Iterable[str]) -> dict[str, str]:
    """The neutral means by these scorers, with the neutral template, and their axes."""
    return {key_of("neutral_mean", name, "neutral"): f"% neutral by {name} (better →)" for name in scorers if name}


def page(findings: Sequence[Finding], models: pl.DataFrame, links: Mapping[str, str], **about: Any) -> Page:
    """The page of a comparison. models: a row for each run, with policy, seed, run, and its figures by their keys in
    metrics.json; links: by run, the way from this page to its own; about: further fields of Page."""
    one, scorers = findings[0], [row["scorer"] for row in findings[0].headlines.values()]
    drawn = pictures(models, harm_axes(scorers)) or _intervals(one)
    is_single = len({each.name for each in findings}) == 1
    said = [{"name": each.sides[0], "state": each.state, "evidence": each.hedge} for each in findings]
    shown = [text("comparison", "name"), text("finding", "state"), text("evidence", kind="sentence")]

    def linked(row: Row) -> str:
        place = links.get(row["run"])
        return Markup('<a href="{}">{}</a>').format(place, row["run"]) if place else row["run"]

    return Page(
        state=_joint_state(findings),
        hedge=one.hedge if is_single else "See each comparison below.",
        picture=next(iter(drawn), None),
        numbers=_numbers(findings),
        summary=[Table("", shown, said) if len(findings) > 1 else None, headline_table(findings)],
        sections=[
            Section("Primary endpoints", [endpoints(findings)]),
            Section("Harm against quality", [drawn[1:] or None]),
            Section("Differences", [Fold(each.sides[0], [_differences(each)]) for each in findings]),
            Section("Runs", [Table("", [Column("run", linked, kind="text"), text("policy"), text("seed")], models)]),
        ],
        limits=[*LIMITS, sections.EQUAL_WEIGHT],
        **about,
    )


def _joint_state(findings: Sequence[Finding]) -> str:
    """The state of all policies, each against the baseline, which comes before the comparison with its control."""
    policies = {one.name: one for one in reversed(findings)}
    states = {one.state for one in policies.values()}
    if len(states) == 1:
        return states.pop()
    verdicts = [row["verdict"] for one in policies.values() for row in one.primary if row["endpoint"] == compare.HARM]
    if not verdicts:
        return f"Exploratory: {len(policies)} policies compared"
    return f"{verdicts.count(compare.BETTER)} of {len(policies)} policies shown to do less harm"


def pictures(models: pl.DataFrame, harms: Mapping[str, str]) -> list[Picture]:
    """Each harm against each quality that all models have: small marks are models, large ones means of policies."""
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
    """The mean of a policy's models and its 95 % interval: Student's of several models, the run's of a single one."""
    values = models[key].to_numpy()
    low, high = (models[bound][0] if bound in models.columns else None for bound in bounds(key))
    if len(values) > 1:
        reach = float(special.stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
        low, high = values.mean() - reach, values.mean() + reach
    return {axis: float(values.mean()), f"{axis}_low": low, f"{axis}_high": high}


def _intervals(one: Finding) -> list[Picture]:
    """The differences of the headlines that have the unit of the first."""
    rows = [row for row in one.headlines.values() if row["change"] is not None]
    if not (alike := [row for row in rows if row["unit"] == rows[0]["unit"]]):
        return []
    frame = pl.DataFrame(alike, infer_schema_length=None).select("low", "high", name="title", value="change")
    alt = "; ".join(f"{row['title']} {signed(row['change'])}" for row in alike)
    drawn = plots.intervals(frame, f"difference, {alike[0]['unit']}", 0.0)
    return [Picture("differences", "first", f"{one.name} − {one.against}", alt, drawn)]


def _numbers(findings: Sequence[Finding]) -> list[Number]:
    """The changes of harm of the first comparisons, with corrected intervals, and of quality of the first one."""
    quality = [(f"change: {title}", row) for title, row in findings[0].headlines.items() if row["figure"] in HEADLINES]
    harms, most = [], 3 if len(findings) == 1 else 1
    for one in findings:
        others = [(title, row) for title, row in one.headlines.items() if row["figure"] not in HEADLINES]
        for row in one.primary:
            if row["endpoint"] == compare.HARM:
                is_mean = row["measure"] == "neutral_mean"
                others = [(f"neutral by {row['scorer']} ↑" if is_mean else row["title"], row)]
        harms += [(f"{one.name} − {one.against}: {title}", row) for title, row in others[:most]]
    chosen = [*harms[: 2 if quality else 3], *quality][:3]
    cells = [(title, changed(row, "_corrected" if "low_corrected" in row else "")) for title, row in chosen]
    return [Number(title, cell.text, " ".join(cell.below)) for title, cell in cells]


def headline_table(findings: Sequence[Finding]) -> Table:
    """Harm by each scorer and quality: the values of each policy, and the differences of each comparison."""
    lines: dict[str, dict[str, Any]] = {}
    differences = []
    for one in findings:
        for name, side in ((one.against, "baseline"), (one.name, "value")):
            cells = {key: Cell(number(row[side], _decimals(row))) for key, row in one.headlines.items()}
            lines.setdefault(name, {"policy": name, **cells})
        changes = {key: changed(row) for key, row in one.headlines.items()}
        differences.append({"policy": f"{one.name} − {one.against}", **changes})
    every = [*lines.values(), *differences]
    names = dict.fromkeys(name for line in every for name in line if name != "policy")
    caption = (
        "Means over seeds, and differences with the 95 % interval of each alone. The difference from the control shows "
        "how much it matters which triples or tails the policy acts on."
    )
    return Table(caption, [text("policy"), *(Column(name, name) for name in names)], every)


def changed(row: Row, end: str = "") -> Cell:
    """A change with its interval, from the bounds low{end} and high{end}: "+2.10"."""
    if row["change"] is None:
        return Cell("–")
    low, high = row[f"low{end}"], row[f"high{end}"]
    places = _decimals(row)
    return Cell(signed(row["change"], places), [] if low is None else [f"[{span(low, high, places)}]"])


def _decimals(row: Row) -> int:
    """One decimal of percentages and points, else those of the measure."""
    measure = measure_of(row["measure"], row["scorer"])
    return 1 if measure.unit in ("%", "points") else measure.decimals


def _side(title: str, side: str) -> Column:
    """The column of a side's values."""
    return Column(title, lambda row: number(row[side], measure_of(row["measure"], row["scorer"]).decimals))


def endpoints(findings: Sequence[Finding]) -> Table | None:
    """The figures that a claim may rest on."""
    rows = [{**row, "name": Cell(one.sides[0], [one.sides[1]])} for one in findings for row in one.primary]
    columns = [Column("comparison", "name", kind="text"), text("endpoint"), text("figure", "title")]
    columns += [_side("baseline", "baseline"), _side("policy", "value")]
    columns.append(Column("change", lambda row: changed(row, "_corrected")))
    columns += [Column("p, Holm", "p_holm", p_value), text("finding", "verdict")]
    levels = ", ".join(sorted({f"{row['level']:.4g}" for row in rows}))
    caption = "Primary endpoints, corrected over all comparisons of this page: p-values by Holm's method, intervals "
    caption += f"({levels} % each, together 95 %) by Bonferroni's. Quality has a margin: compare.margins."
    return Table(caption, columns, rows).present()


def _differences(one: Finding) -> Table | None:
    """All figures but those of single categories and relations."""
    rows = one.rows.filter(pl.col("by").is_in(["all", "subset", "row"]))
    columns = [text("figure", "title"), _side(one.against, "baseline"), _side(one.name, "value")]
    columns += [Column("change", changed), Column("p", "p", p_value)]
    columns.append(text("interval over", lambda row: row["drawn"] if row["low"] is not None else "–"))
    by = f" It filters by {' and '.join(one.filtered_by)}." if one.filtered_by else ""
    caption = f"{', '.join(one.sides)}.{by} By category and relation: tables/differences.csv."
    return Table(caption, columns, grouped(rows.to_dicts(), lambda row: row["section"])).present()
