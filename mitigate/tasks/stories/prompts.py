"""Prompts of a user's file about chosen targets."""

import hashlib
from collections.abc import Callable

import polars as pl

from mitigate.errors import MitigateError
from mitigate.tasks.targets import Wanted, those_about
from mitigate.words.outside_text import counted
from mitigate.words.prompts import OWN, PROMPTS
from mitigate.words.targets import LISTED, as_targets, named
from mitigate.words.template_slots import fill, fits


def prompts_of_file(
    rows: pl.DataFrame, wanted: Wanted, choose: Callable[[], pl.DataFrame], *, most: int | None = None, seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts (words.prompts.PROMPTS) of a file's rows (load.prompts.PROMPTS), the targets (columns TARGETS) that
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
    about = pl.concat([of_targets, of_each], how="diagonal")
    found, left_out = _filled(about.sort("row", maintain_order=True))
    if left_out:
        notices.append(
            f"{named(left_out)}: left out of templates in which they have no grammatical place (a pronoun in place of "
            "{target}, or another word in a template of pronouns alone)"
        )
    if found.is_empty():
        raise MitigateError(f"no prompt is left: {'; '.join(notices)}. Give other targets (probe.targets) or prompts")
    if most is not None:
        kept = _drawn(found, most, seed)
        notices += [f"{counted(kept.height, 'prompt')} of {found.height:,} drawn: at most {most:,} of a target"]
        found = kept
    is_named = pl.col("target").is_in(found["target"].unique().implode())
    return found.with_columns(row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)), chosen.filter(is_named), notices


def _filled(about: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The prompts with their slots filled, and the targets left out of one of them."""
    rows, left_out = [], dict[str, None]()
    for row, target, category, template, prompt, is_template in about.select(
        "row", "target", "category", "template", "prompt", "is_template"
    ).iter_rows():
        if is_template and not fits(prompt, target):
            left_out[target] = None
            continue
        rows.append((row, target, category, OWN, template, fill(prompt, target) if is_template else prompt))
    return pl.DataFrame(rows, PROMPTS, orient="row"), list(left_out)


def _drawn(prompts: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """At most so many prompts of each target. The order of templates is the same for all targets."""
    order = pl.coalesce("template", "prompt").map_elements(
        lambda text: hashlib.sha256(f"{seed}\t{text}".encode()).hexdigest(), return_dtype=pl.String
    )
    kept = prompts.with_columns(order=order).sort("order", maintain_order=True).group_by("target", maintain_order=True)
    return kept.head(most).sort("row", maintain_order=True).select(list(PROMPTS))
