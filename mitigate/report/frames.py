"""The page of a run on Social Bias Frames: the model beside the best baseline, and the figures of all systems."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from mitigate.report import plots
from mitigate.report.numbers import number, span
from mitigate.report.page import OPEN, Fold, Number, Page, Picture, Section
from mitigate.report.table import Column, Table, as_text, figures, text
from mitigate.words.frames import CHOICES, NAMES

FIGURES = {"f1": "F1", "precision": "precision", "recall": "recall"}
TEXT_FIGURES = {"bleu2": "BLEU-2", "rouge_l": "ROUGE-L", "corpus_bleu2": "BLEU-2, all posts together"}
Pairs = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of the model and of the best baseline (system, value, low, high) by figure."""
CLASSIFIED = (
    "The positive class on test posts, in percent. “five folds” has learnt from four folds of the test posts and is "
    "measured on the fifth; “constrained” takes the most probable consistent values. “tf-idf” is logistic regression."
)
GENERATED = (
    "Against all references of a test post with an implied statement, mean over posts, in percent. Without “given a "
    "group”, a post that the model finds aimed at no group has an empty text, which counts 0."
)
SCORED = (
    "On {posts} posts that the scorer “frames” has not learnt from, its Brier score is {brier} (of a constant "
    "{brier_constant}), its expected calibration error {calibration_error}. “crowd” learns from the same posts."
)
FLIPS = "Percent of labels that change when the target of a rated statement is swapped for another of its category."
LIMITS = (
    "A label says what annotators, 82 % of them White, might say of a post, not what its author meant. A model may "
    "find African-American English, of which there are few posts, offensive more often.",
    "Used to remove texts, it can silence people who speak of their own group, or who quote what was said to them.",
    "Generated statements are often generic stereotypes. BLEU-2 and ROUGE-L count shared words, not truth.",
    "Published figures are on all posts of the complete data. How their BLEU-2 joins posts is not known.",
)


def page(tables: Mapping[str, Any], published: pl.DataFrame, metrics: Mapping[str, Any], **about: Any) -> Page:
    """tables: classified, texts, examples, flips (None: not measured), and others to store; about: fields of Page."""
    pairs = beside_baselines(tables["classified"], tables["texts"])
    state, hedge = verdict(pairs)
    words = {name.removeprefix("scorer/"): number(value, 3) for name, value in metrics.items() if "scorer/" in name}
    flips = [text("category"), *figures(1, "statements", "pairs", flipped="changes ↓", harmful="labelled prejudice")]
    swapped = None if tables["flips"] is None else Table(FLIPS, flips, tables["flips"], kind="narrow")
    shown = [text(name, kind="sentence") for name in ("post", "generated", "annotators")]
    unseen = Table("By a model that has not learnt from them.", shown, tables["examples"], kind="tall", headed=False)
    return Page(
        state=state,
        hedge=hedge,
        picture=picture(pairs),
        numbers=[
            Number(
                f"{name} ↑",
                f"{own['value']:.1f} %",
                f"[{span(own['low'], own['high'], 1)}], baseline {best['value']:.1f}",
            )
            for name, (own, best) in [*pairs.items()][:2] + [*pairs.items()][2:][-1:]
        ],
        sections=[
            Section("Classifications", [CLASSIFIED, by_system(tables["classified"], published)]),
            Section("Groups and implied statements", [GENERATED, by_system(tables["texts"], published)]),
            Section("As a scorer", [SCORED.format(**words), swapped]),
            Section("Examples", [Fold(f"{unseen.height} test posts, evenly chosen", [unseen], warning=True)]),
        ],
        limits=LIMITS,
        tables={name: table for name, table in tables.items() if table is not None and name != "examples"},
        **about,
    )


def beside_baselines(classified: pl.DataFrame, texts: pl.DataFrame) -> Pairs:
    """F1 of the classifications on the paper's split, and BLEU-2 of implied statements."""
    wanted = [(classified, name, "model", "f1", "F1") for name in NAMES if name in CHOICES]
    found = {}
    for table, variable, system, key, title in [*wanted, (texts, "implied", ", given a group", "bleu2", "BLEU-2")]:
        rows = table.select("variable", "system", value=key, low=f"{key}_low", high=f"{key}_high").drop_nulls("value")
        rows = rows.filter(variable=variable).sort("value", descending=True, maintain_order=True)
        own = rows.filter(pl.col("system").str.ends_with(system)).sort("system")  # “five folds” first, where there are
        pair = own, rows.filter(~pl.col("system").str.starts_with("model"))
        if all(one.height for one in pair):
            found[f"{NAMES[variable]} ({title})"] = [one.row(0, named=True) for one in pair]
    return found


def verdict(pairs: Pairs) -> tuple[str, str]:
    """The state and its hedge: where the intervals of the model and of the best baseline are apart."""
    above = [name for name, (own, best) in pairs.items() if own["low"] > best["high"]]
    below = [name for name, (own, best) in pairs.items() if own["high"] < best["low"]]
    if not above + below:
        return f"{OPEN}: level with the best baseline", "The intervals overlap. Train longer (frames.epochs)."
    sides = {"Above it": above, "Below it": below}
    said = " ".join(f"{side}: {', '.join(names)}." for side, names in sides.items() if names)
    state = f"{'Beats' if above else 'Below'} the best baseline in {len(above or below)} of {len(pairs)}"
    return state, f"{said} Intervals of 95 % are over posts; there is one training."


def picture(pairs: Pairs) -> Picture | None:
    series = {"best baseline": 1, "model": 0}  # the baseline's mark is grey
    rows = [{"name": name, "series": one, **pair[at]} for name, pair in pairs.items() for one, at in series.items()]
    if not rows:
        return None
    said = "; ".join(f"{row['name']}, {row['series']} {row['value']:.1f}" for row in rows)
    drawn = plots.intervals(pl.DataFrame(rows), "% (better →)")
    return Picture("baselines", "frames", "Model and best baseline", f"In percent: {said}", drawn)


def by_system(rows: pl.DataFrame, published: pl.DataFrame) -> Table:
    """The figures of each variable by system, and the published ones."""
    titles = {name: title for name, title in {**FIGURES, **TEXT_FIGURES}.items() if name in rows.columns}
    also = published.with_columns(system=pl.format("published: {}", "system"))
    also = also.pivot("figure", index=["system", "variable"], values="value")
    known, groups = rows.drop_nulls(next(iter(titles))), {}
    for variable, name in NAMES.items():
        if found := known.filter(variable=variable).to_dicts():
            of_name = f"{name.capitalize()}: {number(found[0]['posts'])} test posts"
            groups[of_name] = found + also.filter(variable=variable).to_dicts()
    return Table("", [text("system"), *(Column(f"{title} ↑", name) for name, title in titles.items())], groups)


def console(classified: pl.DataFrame, texts: pl.DataFrame, published: pl.DataFrame, *, brief: bool) -> str:
    """The model beside the best baseline, or all systems."""
    beside = Table("", [text("system"), Column("%", "value", bounds="")], beside_baselines(classified, texts))
    shown = [beside] if brief else [by_system(table, published) for table in (classified, texts)]
    return "\n\n".join(as_text(one, 110) for one in shown if one.height)
