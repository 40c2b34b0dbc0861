"""Prompts for stories from a user's file: each names the target that it is about, or has a slot for any target."""

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Counts, Loaded, describe, report
from mitigate.load.table import Column, read_table
from mitigate.load.targets import Wanted, those_about
from mitigate.words import prompts as asked
from mitigate.words.targets import CATEGORIES, LISTED, as_targets, targets
from mitigate.words.word_forms import article, plain

PROMPTS = {
    "row": pl.UInt32,  # the line
    "target": pl.String,  # null: any target, in a slot
    "category": pl.String,
    "template": pl.String,  # the same for prompts that differ in their target alone; null for a prompt by itself
    "prompt": pl.String,
}
COLUMNS: dict[str, str | Column] = {
    "prompt": "prompt",
    "target": Column(("target", "group"), optional=True),
    "category": Column(("category",), optional=True),
    "template": Column(("template", "id"), optional=True),
}
EXPECTED = "expected columns prompt, target (or group), category, template (or id)"
SLOT = re.compile(r"\{(a )?target\}", re.IGNORECASE)


def load(path: str | Path) -> Loaded:
    """The prompts of a file: columns PROMPTS. Targets are in the form of lists; a prompt with slots is its own
    template, where none is named."""
    place, counts, found, categories = Path(path), Counts(), list[tuple](), dict[str, str]()
    rows, notices = read_table(place, COLUMNS, remedy=f"; {EXPECTED}")
    rows = rows.with_columns(pl.lit(None, pl.String).alias(name) for name in COLUMNS if name not in rows.columns)
    for row, target, category, template, prompt in rows.select(list(PROMPTS)).iter_rows():
        word, text, template = plain(target or ""), (prompt or "").strip(), (template or "").strip()
        named = (category or "").strip() or targets().get(word, "own")
        named = plain(named) if plain(named) in CATEGORIES else named
        fault = None if text else "a blank prompt"
        if other := re.search(r"\{[^{}]*\}", SLOT.sub("", text)):
            fault = f"unknown slot {other[0]!r}; allowed: {{target}}, {{a target}}"
        elif text and not word and not SLOT.search(text):
            how = "name one in a column target, or give the prompt a slot such as {target}"
            fault = f"no target: {how}: {text[:60]!r}"
        elif word and categories.setdefault(word, named) != named:
            fault = f"the target {word!r} has the category {named!r}, and {categories[word]!r} above; leave one of them"
        report(place, [(row, fault)] if fault else [], counts)
        found.append((row, word or None, named, template or (text if SLOT.search(text) else None), text))
    describe(counts, None)
    if not found:
        raise MitigateError(f"{place} has no prompts; {EXPECTED}")
    return Loaded(pl.DataFrame(found, PROMPTS, orient="row"), notices, kind="prompts")


def fill(template: str, target: str) -> str:
    """The template about a target: {target}, {a target} with its article; {Target} and {A target} with a capital."""

    def word(slot: re.Match[str]) -> str:
        filled = f"{article(target)} {target}" if slot[1] else target
        return filled[:1].upper() + filled[1:] if slot[0][1].isupper() else filled

    return SLOT.sub(word, template)


def prompts_of_file(
    rows: pl.DataFrame, wanted: Wanted, choose: Callable[[], pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts (words.prompts.PROMPTS) of a file's rows (PROMPTS), the targets (columns TARGETS) that they are
    about, and notices.

    wanted: the setting of targets; "all" and "data" are those of the rows. choose: returns the wanted targets, for
    rows that name none, which are about each of them. Raises MitigateError where no row is about a wanted target."""
    of_targets, of_all = rows.drop_nulls("target"), rows.filter(pl.col("target").is_null())
    categories = dict(of_targets.select("target", "category").iter_rows())
    is_chosen, notices = wanted is not None and wanted not in LISTED, list[str]()
    chosen = choose() if is_chosen or of_all.height else as_targets([])
    of_file = pl.col("target").replace_strict(categories, default="own", return_dtype=pl.String)
    chosen = chosen.with_columns(category=pl.when(category="own").then(of_file).otherwise("category"))
    if is_chosen and of_targets.height:
        of_targets, notices = those_about(of_targets, chosen)
    elif not is_chosen:
        chosen = pl.concat([as_targets(categories), chosen]).unique("target", keep="first", maintain_order=True)
    of_each = of_all.drop("target", "category").join(chosen.select("target", "category"), how="cross")
    about = pl.concat([of_targets, of_each], how="diagonal").sort("row", maintain_order=True)
    filled = [fill(*row) for row in about.select("prompt", "target").iter_rows()]
    number = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)
    found = about.with_columns(pl.Series("prompt", filled, pl.String), kind=pl.lit(asked.OWN), row=number)
    is_named = pl.col("target").is_in(found["target"].unique().implode())
    return found.select(list(asked.PROMPTS)), chosen.filter(is_named), notices
