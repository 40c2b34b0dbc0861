"""Prompts for stories from a file: a user's own, with the targets they are about or with slots for a target, and two
published sets by their forms: BOLD (Dhamala et al. 2021), JSON files {group: {name: [prompt, ...]}} or JSON lines with
domain, category and prompts; HolisticBias (Smith et al. 2022), sentences with descriptor, axis, template and noun."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stream import Counts, Loaded, describe, report
from mitigate.load.table import Column, layout_of, read_table, text_blocks
from mitigate.load.targets import Wanted, those_about
from mitigate.words import prompts as asked
from mitigate.words.outside_text import counted
from mitigate.words.targets import CATEGORIES, LISTED, as_targets, fault_of_category, named, targets
from mitigate.words.template_slots import fill, fits, slots
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


def prompts_of_file(
    rows: pl.DataFrame, wanted: Wanted, choose: Callable[[], pl.DataFrame], *, most: int | None = None, seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts (words.prompts.PROMPTS) of a file's rows (PROMPTS), the targets (columns TARGETS) that
    they are about, and notices.

    wanted: the setting of targets; "all" and "data" are those of the rows. choose: returns the wanted targets, for
    rows that name none, which are about each of them. most: prompts of a target; the same templates are drawn for all
    targets. Raises MitigateError where no row is about a wanted target."""
    of_targets, open_rows = rows.drop_nulls("target"), rows.filter(pl.col("target").is_null())
    in_file = as_targets(
        dict(of_targets.select("target", "category").unique("target", maintain_order=True).iter_rows())
    )
    is_chosen = wanted is not None and wanted not in LISTED
    chosen = choose() if is_chosen or open_rows.height else as_targets([])
    categories = dict(in_file.select("target", "category").iter_rows())
    of_file = pl.col("target").replace_strict(categories, default="own", return_dtype=pl.String)
    chosen = chosen.with_columns(category=pl.when(category="own").then(of_file).otherwise("category"))
    notices: list[str] = []
    if is_chosen and of_targets.height:
        of_targets, notices = those_about(of_targets, chosen)
    elif not is_chosen:
        chosen = pl.concat([in_file, chosen]).unique("target", keep="first", maintain_order=True)
    of_each = open_rows.drop("target", "category").join(chosen.select("target", "category"), how="cross")
    about = pl.concat([of_targets, of_each], how="diagonal").sort("row", maintain_order=True)
    found, left_out = list[tuple](), dict[str, None]()
    columns = ("row", "target", "category", "template", "prompt", "is_template")
    for row, target, category, template, prompt, is_template in about.select(columns).iter_rows():
        if is_template and not fits(prompt, target):
            left_out[target] = None
        else:
            found.append((row, target, category, asked.OWN, template, fill(prompt, target) if is_template else prompt))
    if left_out:
        notices.append(
            f"{named(list(left_out))}: left out of templates in which they have no grammatical place (a pronoun in "
            "place of {target}, or another word in a template of pronouns alone)"
        )
    if not found:
        raise MitigateError(f"no prompt is left: {'; '.join(notices)}. Give other targets (probe.targets) or prompts")
    kept = pl.DataFrame(found, asked.PROMPTS, orient="row")
    if most is not None:
        kept = _drawn(kept, most, seed)
        notices += [f"{counted(kept.height, 'prompt')} of {len(found):,} drawn: at most {most:,} of a target"]
    is_named = pl.col("target").is_in(kept["target"].unique().implode())
    return kept.with_columns(row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)), chosen.filter(is_named), notices


def _drawn(prompts: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """At most so many prompts of each target. The order of templates is the same for all targets."""
    order = pl.coalesce("template", "prompt").map_elements(
        lambda text: hashlib.sha256(f"{seed}\t{text}".encode()).hexdigest(), return_dtype=pl.String
    )
    kept = prompts.with_columns(order=order).sort("order", maintain_order=True).group_by("target", maintain_order=True)
    return kept.head(most).sort("row", maintain_order=True).select(list(asked.PROMPTS))
