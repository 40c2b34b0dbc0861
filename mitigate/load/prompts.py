"""Prompts for stories from a file: a user's own, with the targets they are about or with slots for a target, and two
published sets by their forms: BOLD (Dhamala et al. 2021), JSON files {group: {name: [prompt, ...]}} or JSON lines with
domain, category and prompts; HolisticBias (Smith et al. 2022), sentences with descriptor, axis, template and noun."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Counts, Loaded, describe, report
from mitigate.load.table import Column, layout_of, read_table, text_blocks
from mitigate.words.outside_text import counted
from mitigate.words.targets import CATEGORIES, fault_of_category, targets
from mitigate.words.template_slots import slots
from mitigate.words.word_forms import plain

PROMPTS = {
    "row": pl.UInt32,  # the line; in BOLD's files the place, from 1
    "target": pl.String,  # null: any target, in a slot
    "category": pl.String,
    "template": pl.String,  # the same for prompts that differ in their target alone; null for a prompt by itself
    "prompt": pl.String,
    "is_template": pl.Boolean,  # whether the prompt has slots
}
OWN: dict[str, str | Column] = {
    "prompt": "prompt",
    "target": Column(("target", "group"), optional=True),
    "category": Column(("category",), optional=True),
    "template": Column(("template", "id"), optional=True),
}
HOLISTIC_BIAS = {"prompt": "text", "target": "descriptor", "category": "axis", "template": "template", "noun": "noun"}
BOLD: dict[str, str | Column] = {"prompt": Column(("prompts",), lists=True), "target": "category", "category": "domain"}
NO_DESCRIPTOR = "(none)"  # HolisticBias: a noun by itself
BOLD_FILES = "*_prompt.json"
EXPECTED = (
    "expected columns prompt, target (or group), category, template (or id); BOLD's {group: {name: [prompt, ...]}}; or "
    "HolisticBias' columns text, descriptor, axis, template, noun"
)


def load(path: str | Path) -> Loaded:
    """The prompts of a file, or of a folder of BOLD's files: columns PROMPTS. Targets are in the form of lists."""
    place, notices = Path(path), list[str]()
    files = sorted(place.glob(BOLD_FILES)) if place.is_dir() else [place]
    if not files:
        raise MitigateError(f"{place} has no file {BOLD_FILES}; {EXPECTED}")
    if place.is_dir() or (place.name.endswith((".json", ".json.gz")) and _object(place) is not None):
        rows = pl.concat([_of_bold(file, _object(file)) for file in files])
    else:
        rows, notices = _of_table(place)
    if rows.is_empty():
        raise MitigateError(f"{place} has no prompts; {EXPECTED}")
    return Loaded(rows.with_columns(row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)), notices, kind="prompts")


def _of_table(path: Path) -> tuple[pl.DataFrame, list[str]]:
    names = set(layout_of(path).lower)
    spaced = pl.col("target", "category").str.replace_all("_", " ")
    if "prompts" in names:
        rows, notices = read_table(path, BOLD)
        return _checked(path, rows.explode("prompt").with_columns(spaced, template=None)), notices
    if not {"descriptor", "axis"} <= names:
        rows, notices = read_table(path, OWN, remedy=f"; {EXPECTED}")
        rows = rows.with_columns(pl.lit(None, pl.String).alias(name) for name in OWN if name not in rows.columns)
        return _checked(path, rows, has_slots=True), notices
    rows, notices = read_table(path, HOLISTIC_BIAS)
    kept = rows.filter(pl.col("target") != NO_DESCRIPTOR)
    if left_out := rows.height - kept.height:
        notices.append(f"{counted(left_out, 'prompt')} without a descriptor left out")
    first = pl.col("category").first().over("target")
    if several := kept.filter(pl.col("category") != first)["target"].n_unique():
        notices.append(f"{counted(several, 'descriptor')} of several axes counted under the first")
    template = pl.format("{}: {} ({})", "category", "template", "noun")
    kept = kept.with_columns(category=first, template=template)
    return _checked(path, kept.with_columns(spaced)), notices


def _object(path: Path) -> dict[str, Any] | None:
    """The only object of a JSON file, if it has the keys of no prompt; None for any other file."""
    try:
        found = json.loads(b"".join(block.content for block in text_blocks(path)))
    except (ValueError, RecursionError):  # lines, or a fault that is reported by the line
        return None
    return found if isinstance(found, dict) and "prompt" not in found else None


def _of_bold(path: Path, groups: Mapping[str, Any] | None) -> pl.DataFrame:
    """The prompts of one of BOLD's files, whose name is that of the domain: gender_prompt.json."""
    domain = path.name.partition(".")[0].removesuffix("_prompt").replace("_", " ")
    try:
        texts = [
            (group.replace("_", " "), text)
            for group, names in (groups or {}).items()
            for prompts in names.values()
            for text in list.copy(prompts)  # which refuses a text
        ]
        rows = [(row, group, domain, None, text.strip()) for row, (group, text) in enumerate(texts, 1)]
    except (AttributeError, TypeError):
        rows = []
    if not rows:
        raise MitigateError(f"{path} is not JSON of the form {{group: {{name: [prompt, ...]}}}}")
    return _checked(path, pl.DataFrame(rows, dict(list(PROMPTS.items())[:-1]), orient="row"))


def _checked(path: Path, rows: pl.DataFrame, has_slots: bool = False) -> pl.DataFrame:
    """The rows in the columns PROMPTS. Raises MitigateError for bad ones. has_slots: whether prompts may have slots for
    a target; the text of such a prompt is its template, where none is named."""
    counts, found = Counts(), list[tuple]()
    categories: dict[str, str] = {}
    for row, target, category, template, prompt in rows.select(list(PROMPTS)[:-1]).iter_rows():
        word, text, template = plain(target or ""), (prompt or "").strip(), (template or "").strip()
        named = (category or "").strip() or targets().get(word, "own")
        named = plain(named) if plain(named) in CATEGORIES else named
        fault, is_template = fault_of_category(named), False
        try:
            is_template = has_slots and bool(slots(text))
        except ValueError as error:
            fault = str(error)
        if not text:
            fault = "a blank prompt"
        elif not word and not is_template:
            how = "name one in a column target, or give the prompt a slot such as {target}"
            fault = fault or f"no target: {how}: {text[:60]!r}"
        elif word and categories.setdefault(word, named) != named:
            fault = f"the target {word!r} has the category {named!r}, and {categories[word]!r} above; leave one of them"
        report(path, [(row, fault)] if fault else [], counts)
        found.append((row, word or None, named, template or (text if is_template else None), text, is_template))
    describe(counts, None)
    return pl.DataFrame(found, PROMPTS, orient="row")
