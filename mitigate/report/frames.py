"""A run on Social Bias Frames as one HTML page that loads nothing, and in short on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.report.card import Figure, model_card
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number
from mitigate.report.table import Table, as_text, bounded, text, with_bounds
from mitigate.report.table_declarations import declared
from mitigate.words.frames import CHOICES, NAMES, TEXTS
from mitigate.words.outside_text import portable

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


def render(results: Results) -> str:
    """The page's HTML, always the same for the same results."""
    metrics = results.metrics
    return render_page(
        "frames.html.jinja",
        results,
        sentences=list(findings(results)),
        classifications=[
            _table("classification", name, [*rows, *_published(results.published.filter(figure="f1"), name)])
            for name, rows in measured(results.classified).items()
        ],
        texts=[
            _table("text", name, [*rows, *_published(results.published, name)])
            for name in TEXTS
            if (rows := results.texts.filter(variable=name).rows(named=True))
        ],
        flips=None if results.flips is None else declared("frames label changes", results.flips),
        sources=declared("frames sources", results.sources),
        categories=declared("frames categories", results.categories) if results.categories.height else None,
        examples=declared("frames examples", results.examples, cells={"annotators": _annotated}),
        counts={title: metrics[f"corpus/{name}"] for name, title in COUNTS.items()},
        skews={NAMES[name]: metrics[f"corpus/positive/{name}"] for name in CHOICES},
    )


def _published(published: pl.DataFrame, name: str) -> Iterator[dict[str, Any]]:
    """Rows of published figures of a classification or text."""
    for (system,), rows in published.filter(variable=name).group_by("system", maintain_order=True):
        yield {"system": f"published: {system}", **dict(rows.select("figure", "value").iter_rows())}


def _table(kind: str, variable: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The figures of a classification or of generated texts by system."""
    posts, positive = number(rows[0]["posts"]), number(rows[0].get("positive"), 1)
    title = NAMES[variable].capitalize()
    return declared(f"frames {kind}", rows, title=title, name=NAMES[variable], posts=posts, positive=positive)


def _annotated(row: Mapping[str, Any]) -> str:
    return f"{', '.join(row['groups'])}: {'; '.join(row['references'])}"


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
                f"{NAMES[name].capitalize()}: F1 {with_bounds(own, 'f1').line} on {own['posts']:,} test posts, against "
                f"{with_bounds(best, 'f1').line} by the best baseline ({best['system']})."
            )
    rows = results.texts.filter(variable="implied").rows(named=True)
    if pair := beside_baselines(rows, of_texts, "bleu2"):
        own, best = pair
        yield (
            f"Implied statements: BLEU-2 {with_bounds(own, 'bleu2').line}, ROUGE-L {with_bounds(own, 'rouge_l').line}, "
            f"against {with_bounds(best, 'bleu2').line} and {with_bounds(best, 'rouge_l').line} by the best baseline "
            f"({best['system']})."
        )


def beside_baselines(
    rows: Sequence[Mapping[str, Any]], system: str, figure: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The row of a system, and that of the baseline with the highest figure; None where either is missing."""
    own = next((row for row in rows if row["system"] == system), None)
    others = [row for row in rows if not row["system"].startswith("model")]
    return (own, max(others, key=lambda row: row[figure])) if own and others else None


def console(classified: pl.DataFrame, texts: pl.DataFrame) -> str:
    """The tables for the terminal."""
    groups = {NAMES[name]: rows for name, rows in measured(classified).items()}
    of_texts = {NAMES[name]: rows for name in TEXTS if (rows := texts.filter(variable=name).rows(named=True))}
    tables = [
        Table("", [text("", "system"), *(bounded(title, name) for name, title in titles.items())], rows)
        for titles, rows in ((FIGURES, groups), (TEXT_FIGURES, of_texts))
    ]
    return "\n\n".join(as_text(table) for table in tables if table.height)


STARTS = {"minilm": "sentence-transformers/all-MiniLM-L6-v2", "model": "a GPT-1 or GPT-2 given by the user"}


def render_card(results: Results, start: str, seed: int, needs: Mapping[str, str]) -> str:
    """The card of the model as Markdown with the hub's metadata. needs: of the command (arguments.inputs)."""
    rows, texts = measured(results.classified), results.texts.rows(named=True)
    content = {
        "title": "Social Bias Frames",
        "report": results,
        "metrics": results.metrics,
        "start": STARTS[start],
        "seed": seed,
        "command": portable(results.command),
        "needs": needs,
        "names": NAMES,
        "measured": rows,
        "texts": texts,
        "text_figures": TEXT_FIGURES,
        "with_bounds": with_bounds,
    }
    figures = [(row, "f1", "F1") for of_name in rows.values() for row in of_name]
    figures += [(row, key, title) for row in texts for key, title in TEXT_FIGURES.items()]
    on_hub = start == "minilm"  # the hub takes names of its models alone
    return model_card(
        "frames_card.md.jinja",
        results.name,
        "text-classification",
        [
            Figure("Social Bias Inference Corpus, test", f"{row['variable']}/{key}", _named(row, title), row[key])
            for row, key, title in figures
            if row["system"] in results.systems
        ],
        content,
        license="cc-by-4.0" if on_hub else "unknown",
        base_model=STARTS[start] if on_hub else None,
        tags=["representational-harms", "social-bias-frames"],
    )


def _named(row: Mapping[str, Any], title: str) -> str:
    return f"{NAMES[row['variable']]}: {title}, %"
