"""The page of people's ratings of statements, and its tables for the terminal."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import polars as pl

from mitigate.measure.base import ENDS
from mitigate.package_data import frame_of
from mitigate.report import plots
from mitigate.report.numbers import number, p_value, signed
from mitigate.report.page import OPEN, Number, Page, Part, Picture, Section
from mitigate.report.sections import PROXIES, each
from mitigate.report.table import Column, Table, as_text, figures, grouped, text
from mitigate.words.outside_text import counted

ALPHA = 0.05
BRIEF = ("Ratings by people", "Models compared", "Batches of raters")  # on the terminal without verbose=true
SAID: Mapping[str, Part] = {
    "Ratings by people": {
        "HNM ↑": "Human neutral mean: of each target the percentage of ratings that are neutral; then the mean over "
        "targets, or over statements where the target is unknown.",
        "quality ↑": "The same for ratings that the statement makes sense.",
        "Fleiss’ κ": "Agreement between the raters of a statement: 1 is always, 0 is as often as by chance.",
    },
    "Models compared": "The same raters rated these models, paired by target: each was probed with the same prompts.",
    "Batches of raters": "Other raters may rate the same statement differently. This drift is measured on anchors, "
    "which both batches rated, and subtracted. An interval that holds 0 does not show that there is no difference.",
    "Raters": "A rater who differs from the others may notice harms that they miss.",
    "Scorers and people": "Most statements are neutral: compare with a scorer that labels everything neutral. R "
    "is recall, P precision, F their harmonic mean.",
    "The paper's figures": "As printed by Mehrabi et al. (2021), “Lawyers are Dishonest?” (Section 2.3, Tables 2, 7, 8 "
    "and 12): for orientation, since its generator and raters are others.",
}
"""Paragraphs and meanings of the sections, by their titles."""
LIMITS = (
    "The raters are few, and may not belong to the groups described. A majority hides those whom a statement hurts.",
    "Low agreement can mean careless raters or real differences of opinion. Kappa does not distinguish them.",
    PROXIES,
    "The data are English, and cover only the groups that the list of targets names. Not every target is a person.",
)


def page(frames: Mapping[str, pl.DataFrame], source: str, scorers: Table, **about: Any) -> Page:
    """frames: summary, raters, differences (tasks.ratings.figures) and drift (tasks.ratings.anchors), which are stored
    beside the page with further ones; source: that of the first screen; about: further fields of Page."""
    sources, changes = frames["summary"].filter(by="all"), frames["differences"]
    row = sources.row(by_predicate=pl.col("source") == source, named=True)
    paired = changes.filter(source=source, figure="HNM").rows(named=True) if changes.height else []
    drifts = frames["drift"].filter(source=source, weights="as they are").drop_nulls("drift").rows(named=True)
    state, hedge = _compared(paired[0]) if paired else _described(row, drifts)
    titles = {"HNM": "HNM ↑, %", "quality": "quality ↑, %", "kappa": "agreement of raters, κ (0 is chance)"}
    for change in paired:
        titles["HNM"] = f"HNM against {change['baseline']}, points"
        row |= {f"HNM{end}": change[name] for end, name in zip(ENDS, ("difference", "low", "high"), strict=True)}
    cells = {name: Column("", name, 2 if name == "kappa" else 1).cell(row) for name in titles if row[name] is not None}
    bars = sources.select("source", "prejudice", "favouritism")
    alt = f"Bars by source, negative and positive: {each(bars, 'source')}"
    return Page(
        state=state,
        hedge=hedge,
        picture=Picture("ratings", "first", "Not neutral to people", alt, plots.bars(bars, "% of ratings")),
        numbers=[Number(titles[name], cell.text, *cell.below) for name, cell in cells.items()],
        sections=[Section(title, [SAID.get(title), table]) for title, table in tables(frames, scorers).items()],
        limits=LIMITS,
        tables=frames,
        **about,
    )


def _compared(row: Mapping[str, Any]) -> tuple[str, str]:
    """The state and its hedge where models are paired."""
    said = f"{row['source']} against {row['baseline']}, paired over {counted(row['targets'], 'target')}: "
    said += f"{signed(row['difference'])} points of HNM, p {p_value(row['p'])} (Holm)."
    if row["p"] is None or row["p"] >= ALPHA:
        return OPEN, f"{said} No difference is shown; rate more statements (humans.size)."
    more = "more" if row["difference"] > 0 else "less"
    said += " One trained model of each: a claim about a policy needs five."
    return f"{number(abs(row['difference']), 1)} points {more} neutral to people", said


def _described(row: Mapping[str, Any], drifts: list[dict[str, Any]]) -> tuple[str, str]:
    """The state and its hedge where they are not: with the differences from an earlier batch."""
    said = f"{counted(row['ratings'], 'rating')} of {counted(row['statements'], 'statement')}."
    for one in drifts[:2]:
        said += (
            f" {one['figure'].capitalize()} votes against {one['baseline']}, rated by others: {signed(one['total'])} "
        )
        said += f"points, without drift between raters {Column('', 'remaining').cell(one).line}."
    return f"{row['source']}: {number(row['HNM'], 1)} % neutral to people", said


def tables(frames: Mapping[str, pl.DataFrame], scorers: Table) -> dict[str, Table]:
    """The tables by the titles of their sections, without those that have no rows."""
    shares = figures(1, "prejudice", "neutral", "favouritism")
    rated = [*figures(0, "statements", "ratings"), *shares, *figures(1, HNM="HNM ↑", quality="quality ↑")]
    rated += figures(3, kappa="Fleiss’ κ", quality_kappa="κ of quality")
    found: dict[str, Table | None] = {}
    for by, title in {"all": "Ratings by people", "category": "By category", "relation": "By relation"}.items():
        rows = frames["summary"].filter(by=by).rows(named=True)
        first = text("source") if by == "all" else text(by, "part")
        groups = rows if by == "all" else grouped(rows, itemgetter("source"))
        found[title] = Table("In percent of ratings, with 95 % intervals.", [first, *rated], groups).present()
    columns = [text("model", "source"), text("against", "baseline"), text("figure"), *figures(0, "targets")]
    columns += [Column("points", "difference", bounds=""), Column("p", "p", p_value)]
    caption = "Differences in points, their intervals (which together cover in 95 % of cases), and p by Holm."
    found["Models compared"] = Table(caption, columns, frames["differences"]).present()
    drift = frames["drift"].sort(pl.col("drift").is_null(), maintain_order=True)
    columns = [text("source"), text("against", "baseline"), text("votes", "figure"), text("weights")]
    columns += figures(1, "anchors", "total", "drift", "remaining", "detectable")
    caption = "Percentage points of votes. Detectable: the least remaining difference with 80 % power. A dash: too few "
    caption += "anchors to tell batches and models apart."
    found["Batches of raters"] = Table(caption, columns, drift).present()
    columns = [text("rater"), *figures(0, "ratings"), *shares]
    columns += figures(1, sense="makes sense", same="same label", same_quality="same quality")
    caption = "In percent of the rater's ratings. Same: of the other raters' ratings of the same statements."
    found["Raters"] = Table(caption, columns, frames["raters"]).present()
    paper = frame_of("paper_ratings.csv").with_columns(pl.col("category").fill_null("all"))
    of_paper = (Column(name.replace("_", " "), name, 4 if "kappa" in name else 1) for name in paper.columns[2:])
    printed = Table("", [text("category"), *of_paper], grouped(paper.rows(named=True), itemgetter("source")))
    found |= {"Scorers and people": scorers, "The paper's figures": printed}
    return {title: table for title, table in found.items() if table}


def console(frames: Mapping[str, pl.DataFrame], scorers: Table, brief: bool) -> str:
    """The tables for the terminal: of sources, models and batches, or all."""
    found = [table for title, table in tables(frames, scorers).items() if title in BRIEF or not brief]
    return "\n\n".join(as_text(table, 140) for table in found)
