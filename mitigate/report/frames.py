"""A run on Social Bias Frames as one HTML page that loads nothing, and in short on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.metrics import bounds
from mitigate.report.html import Page, render_page
from mitigate.report.legend import number, span
from mitigate.runs import files
from mitigate.words.frames import CHOICES, NAMES, TEXTS

FIGURES = {"f1": "F1", "precision": "precision", "recall": "recall"}
TEXT_FIGURES = {"bleu2": "BLEU-2", "rouge_l": "ROUGE-L", "corpus_bleu2": "BLEU-2, all posts together"}
COUNTS = {
    "tuples": "tuples",
    "posts": "posts",
    "groups": "groups",
    "implications": "implied statements",
    "post_group": "post and group",
    "post_group_implication": "post, group and implied statement",
    "group_implication": "group and implied statement",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Page):
    """The content of the page."""

    metrics: Mapping[str, Any]
    classified: pl.DataFrame  # tasks.frames.figures.classification_table
    texts: pl.DataFrame  # tasks.frames.figures.text_table
    flips: pl.DataFrame | None
    sources: pl.DataFrame
    categories: pl.DataFrame
    published: pl.DataFrame
    examples: pl.DataFrame
    has_folds: bool
    systems: tuple[str, str]  # which ones the findings are about: of classifications, and of texts
    reading: str


def write(path: Path, results: Results) -> Path:
    """Write the page, whole or not at all."""
    return files.write(path, render(results))


def render(results: Results) -> str:
    """The page's HTML, always the same for the same results."""
    return render_page(
        "frames.html.jinja",
        results,
        sentences=list(findings(results)),
        names=NAMES,
        figures=FIGURES,
        text_figures=TEXT_FIGURES,
        measured=measured(results.classified),
        text_groups={name: results.texts.filter(variable=name).rows(named=True) for name in TEXTS},
        counts={title: results.metrics[f"corpus/{name}"] for name, title in COUNTS.items()},
        skews={NAMES[name]: results.metrics[f"corpus/positive/{name}"] for name in CHOICES},
        with_interval=with_interval,
        choices=CHOICES,
    )


def measured(classified: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The rows of each classification that could be measured, by its name."""
    known = classified.filter(pl.col("f1").is_not_null())
    return {name: rows for name in CHOICES if (rows := known.filter(variable=name).rows(named=True))}


def findings(results: Results) -> Iterator[str]:
    """The findings in words, the headline first."""
    of_choices, of_texts = results.systems
    for name, rows in measured(results.classified).items():
        if pair := beside_baselines(rows, of_choices, "f1"):
            own, best = pair
            yield (
                f"{NAMES[name].capitalize()}: F1 {with_interval(own, 'f1')} on {own['posts']:,} test posts, against "
                f"{with_interval(best, 'f1')} by the best baseline ({best['system']})."
            )
    rows = results.texts.filter(variable="implied").rows(named=True)
    if pair := beside_baselines(rows, of_texts, "bleu2"):
        own, best = pair
        yield (
            f"Implied statements: BLEU-2 {with_interval(own, 'bleu2')}, ROUGE-L {with_interval(own, 'rouge_l')}, "
            f"against {with_interval(best, 'bleu2')} and {with_interval(best, 'rouge_l')} by the best baseline "
            f"({best['system']})."
        )


def beside_baselines(
    rows: Sequence[Mapping[str, Any]], system: str, figure: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The row of a system, and that of the baseline with the highest figure; None where either is missing."""
    own = next((row for row in rows if row["system"] == system), None)
    others = [row for row in rows if not row["system"].startswith("model")]
    return (own, max(others, key=lambda row: row[figure])) if own and others else None


def with_interval(row: Mapping[str, Any], name: str, decimals: int = 1) -> str:
    """ "70.6 [69.1, 72.0]"; a dash where there is no value."""
    value, low, high = (row.get(key) for key in (name, *bounds(name)))
    return number(value, decimals) if low is None else f"{number(value, decimals)} [{span(low, high, decimals)}]"


def console(classified: pl.DataFrame, texts: pl.DataFrame) -> str:
    """The tables for the terminal."""
    lines = []
    for name, rows in measured(classified).items():
        lines.append(f"  {NAMES[name]:<34}" + "".join(f"{title:>22}" for title in FIGURES.values()))
        for row in rows:
            lines.append(
                f"    {row['system']:<32}" + "".join(f"{with_interval(row, figure):>22}" for figure in FIGURES)
            )
    for name in TEXTS:
        if rows := texts.filter(variable=name).rows(named=True):
            lines.append(f"  {NAMES[name]:<34}" + "".join(f"{title[:20]:>22}" for title in TEXT_FIGURES.values()))
            for row in rows:
                cells = "".join(f"{with_interval(row, figure):>22}" for figure in TEXT_FIGURES)
                lines.append(f"    {row['system']:<32}{cells}")
    return "\n".join(lines)
