"""The results of recipe=frames for readers: the page, its tables, and the model card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.files import write
from mitigate.report.frames import Results, render, render_card
from mitigate.report.html import save
from mitigate.tasks.frames.figures import FOLDS, GIVEN, MODEL, published, unmeasured
from mitigate.words.frames import NAMES

EXAMPLES = 12


def write_report(
    metrics: Mapping[str, Any],
    posts: pl.DataFrame,
    predicted: Mapping[str, pl.DataFrame],
    tables: Mapping[str, Any],
    *,
    reading: str,
    start: str,
    seed: int,
    folder: Path,
    needs: Mapping[str, str],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the page, its tables and the card. tables: classified, texts, flips (None: not measured), sources and
    categories. Returns the values that cannot be measured on these posts."""
    lacking, has_folds = unmeasured(posts), len(predicted) > 1
    results = Results(
        metrics=metrics,
        **tables,
        published=published(),
        examples=examples(posts, list(predicted.values())[-1]),
        has_folds=has_folds,
        systems=(MODEL, (FOLDS if has_folds else MODEL) + GIVEN),
        reading=reading,
        notices=notices(posts, lacking, has_folds=has_folds),
        demonstration=False,
        **about,
    )
    write(folder / "frames.html", render(results))
    write(folder / "README.md", render_card(results, start, seed, needs))
    save(folder, {name: frame for name, frame in tables.items() if frame is not None}, latex=False)
    return {"unmeasured": lacking}


def notices(posts: pl.DataFrame, lacking: list[str], *, has_folds: bool) -> list[str]:
    """Notices of limits of the figures."""
    found = []
    if lacking:
        names = ", ".join(NAMES[name] for name in lacking)
        found.append(
            f"These posts have no values of: {names}. The model does not learn them, and they are not measured."
        )
    if has_folds:
        found.append(
            "Implied statements exist for original test posts only. They are learnt and measured in five folds of "
            "these posts, which is not the paper's split."
        )
    if posts["files"].list.contains("frames_test_posts.csv").any():
        found.append(
            "No file marks posts that target no group. Posts that are not offensive count as such, and so do "
            "offensive test posts of offensive_test.csv that no other file has."
        )
    return found


def examples(posts: pl.DataFrame, predicted: pl.DataFrame) -> pl.DataFrame:
    """Some test posts with generated texts and references: post, group, implied, groups, references. They are not
    selected by content: every n-th in the order of keys."""
    with_texts = posts.filter(pl.col("split") == "test", pl.col("implied").list.len() > 0)
    joined = with_texts.select("key", "post", "groups", references="implied").join(
        predicted.select("key", "group", "implied"), on="key", maintain_order="left"
    )
    return joined.gather_every(max(1, joined.height // EXAMPLES)).head(EXAMPLES).drop("key")
