"""A run on Social Bias Frames as one HTML page that loads nothing, and in short on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mitigate.report.card import Figure, model_card
from mitigate.report.html import Page, render_page
from mitigate.report.metric_display import number
from mitigate.report.table import Table, as_text, bounded, text, with_bounds
from mitigate.report.table_declarations import Cells, declared
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
EXAMPLE_CELLS: Cells = {"annotators": lambda row: f"{', '.join(row['groups'])}: {'; '.join(row['references'])}"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Results(Page):
    metrics: Mapping[str, Any]
    classified: pl.DataFrame  # tasks.frames.figures.classification_table
    texts: pl.DataFrame  # tasks.frames.figures.text_table
    flips: pl.DataFrame | None
    sources: pl.DataFrame
    categories: pl.DataFrame
    published: pl.DataFrame
    examples: pl.DataFrame
    has_folds: bool
    systems: tuple[str, str]  # those of the findings: of classifications, and of texts
    reading: str


def render(results: Results) -> str:
    metrics, published = results.metrics, results.published
    texts = {name: results.texts.filter(variable=name).rows(named=True) for name in TEXTS}
    return render_page(
        "frames.html.jinja",
        results,
        sentences=list(findings(results)),
        classifications=[
            _table("classification", name, rows, published.filter(figure="f1"))
            for name, rows in measured(results.classified).items()
        ],
        texts=[_table("text", name, rows, published) for name, rows in texts.items() if rows],
        flips=None if results.flips is None else declared("frames label changes", results.flips),
        sources=declared("frames sources", results.sources),
        categories=declared("frames categories", results.categories) if results.categories.height else None,
        examples=declared("frames examples", results.examples, cells=EXAMPLE_CELLS),
        counts={title: metrics[f"corpus/{name}"] for name, title in COUNTS.items()},
        skews={NAMES[name]: metrics[f"corpus/positive/{name}"] for name in CHOICES},
    )


def _table(kind: str, variable: str, rows: Sequence[Mapping[str, Any]], published: pl.DataFrame) -> Table:
    """The figures of a classification or of generated texts by system, and the published ones."""
    by_system = published.filter(variable=variable).group_by("system", maintain_order=True)
    stated = [
        {"system": f"published: {system}", **dict(found.select("figure", "value").iter_rows())}
        for (system,), found in by_system
    ]
    posts, positive = number(rows[0]["posts"]), number(rows[0].get("positive"), 1)
    words: dict[str, Any] = {"name": NAMES[variable], "title": NAMES[variable].capitalize(), "posts": posts}
    return declared(f"frames {kind}", [*rows, *stated], positive=positive, **words)


def measured(classified: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The rows of each classification that could be measured, by its name."""
    known = classified.filter(pl.col("f1").is_not_null())
    return {name: rows for name in CHOICES if (rows := known.filter(variable=name).rows(named=True))}


def findings(results: Results) -> Iterator[str]:
    of_choices, of_texts = results.systems
    for name, rows in measured(results.classified).items():
        if pair := beside_baselines(rows, of_choices, "f1"):
            own, best = (with_bounds(row, "f1").line for row in pair)
            yield (
                f"{NAMES[name].capitalize()}: F1 {own} on {pair[0]['posts']:,} test posts, against {best} by the best "
                f"baseline ({pair[1]['system']})."
            )
    if pair := beside_baselines(results.texts.filter(variable="implied").rows(named=True), of_texts, "bleu2"):
        (bleu, best_bleu), (rouge, best_rouge) = (
            [with_bounds(row, figure).line for row in pair] for figure in ("bleu2", "rouge_l")
        )
        yield (
            f"Implied statements: BLEU-2 {bleu}, ROUGE-L {rouge}, against {best_bleu} and {best_rouge} by the best "
            f"baseline ({pair[1]['system']})."
        )


def beside_baselines(
    rows: Sequence[Mapping[str, Any]], system: str, figure: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """The row of a system, and that of the baseline with the highest figure; None where either is missing."""
    own = next((row for row in rows if row["system"] == system), None)
    others = [row for row in rows if not row["system"].startswith("model")]
    return (own, max(others, key=lambda row: row[figure])) if own and others else None


def console(classified: pl.DataFrame, texts: pl.DataFrame) -> str:
    groups = {NAMES[name]: rows for name, rows in measured(classified).items()}
    of_texts = {NAMES[name]: rows for name in TEXTS if (rows := texts.filter(variable=name).rows(named=True))}
    tables = [
        Table("", [text("", "system"), *(bounded(title, name) for name, title in titles.items())], rows)
        for titles, rows in ((FIGURES, groups), (TEXT_FIGURES, of_texts))
    ]
    return "\n\n".join(as_text(table) for table in tables if table.height)


STARTS = {"minilm": "sentence-transformers/all-MiniLM-L6-v2", "model": "a GPT-1 or GPT-2 given by the user"}


def render_card(results: Results, start: str, seed: int, needs: Mapping[str, str]) -> str:
    """The card of the model as Markdown with the hub's metadata. needs: of the command (recipes.job.inputs)."""
    rows, texts = measured(results.classified), results.texts.rows(named=True)
    content = {
        "report": results,
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
    corpus = "Social Bias Inference Corpus, test"
    return model_card(
        "frames_card.md.jinja",
        results.name,
        "text-classification",
        [
            Figure(corpus, f"{row['variable']}/{key}", f"{NAMES[row['variable']]}: {title}, %", row[key])
            for row, key, title in figures
            if row["system"] in results.systems
        ],
        content,
        license="cc-by-4.0" if on_hub else "unknown",
        base_model=STARTS[start] if on_hub else None,
        tags=["representational-harms", "social-bias-frames"],
    )
