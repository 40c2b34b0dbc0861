"""Which rows of a resource are about which target, and what was left out on the way.

A resource of any size is read a chunk at a time. What is kept of each is written at once, so that after a kill only
the chunks that are not there are read; and every fault of the file is found before anything is labelled."""

from collections.abc import Callable, Iterable, Sequence
from typing import get_args

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Met
from mitigate.match import Match, about_targets, sentences_about_targets
from mitigate.runs.progress import progress
from mitigate.tasks.audit.resource import (
    ABOUT_A_TARGET,
    REPEATED,
    ROWS,
    Resource,
    Texts,
    as_frame,
    as_met,
    counts_of,
)
from mitigate.triples import Parts
from mitigate.words.target_list import TargetList
from mitigate.words.targets import as_targets
from mitigate.words.targets import targets as paper_targets
from mitigate.words.texts import counted as number_of
from mitigate.words.word_forms import with_plurals


def check(texts: str, resource: Resource) -> None:
    """Raises MitigateError for texts that the resource cannot be asked for."""
    if texts not in get_args(Texts):
        raise one_of("measure.texts", texts, get_args(Texts))
    if texts == "all" and resource.kind == "statements":
        raise MitigateError(
            "measure.texts=all scores what is about no target too, and each statement of this file is about one; leave "
            "it out"
        )


def read_rows(
    resource: Resource,
    targets: pl.DataFrame,
    *,
    match: Match = "exact",
    target_list: TargetList | None = None,
    texts: Texts = "targets",
    title: str = "the resource",
    rows: Parts,
    counted: Parts,
) -> pl.DataFrame:
    """Saves the rows, each with its target and category (null where there is none), as parts `rows`, a part for each
    chunk. Returns counts (kind, what, count): what was left out, how many rows there were, how many of them are about
    a target, and how many statements they make.

    match: "exact", or "contains" for targets inside phrases. target_list: the forms of own targets; None: as `targets`
    have them. texts: "all" keeps what is about no target too. title: what messages call the resource. counted: parts
    with the counts of each chunk, needed until the result is kept.

    Raises MitigateError for bad lines, unless they are to be left out, and where nothing is about a target."""
    with progress("read", 1.0, "rows") as advance:
        for number, share, chunk in resource.chunks(finished=_in_both(rows, counted)):
            if chunk is None:
                advance(0, to=share)
                continue
            found, num_about = about(resource, chunk.rows, targets, match, texts, target_list)
            rows.save(number, found)
            counted.save(number, as_frame(chunk.met + counts_of(chunk.rows, found, num_about)))
            advance(chunk.height, to=share)
    total = as_met(counted)
    total["noted", REPEATED] += repeats(rows)
    left_out = "; ".join(resource.loaded.describe(total))  # raises for bad lines
    if not total[ABOUT_A_TARGET]:
        raise _nothing_found(resource, targets, total, match, target_list, title, left_out)
    return as_frame(total)


def about(
    resource: Resource,
    rows: pl.DataFrame,
    targets: pl.DataFrame,
    match: Match,
    texts: Texts,
    target_list: TargetList | None = None,
) -> tuple[pl.DataFrame, int]:
    """A row for each row and each target it is about, with texts="all" also for those that are about none; and how many
    rows are about a target."""
    if resource.kind == "statements":
        return rows, rows.drop_nulls("target")["row"].n_unique()  # their file says what they are about
    find = about_targets if resource.kind == "triples" else sentences_about_targets
    placed = rows.with_row_index("_place")  # generations of one line have one row number
    found = find(placed, targets, match, target_list)
    num_about = found["_place"].n_unique()
    if texts == "targets":
        return found.drop("_place"), num_about
    others = placed.join(found.select("_place"), on="_place", how="anti", maintain_order="left")
    every = pl.concat([found, others], how="diagonal").sort("_place", maintain_order=True)
    return every.drop("_place"), num_about


def repeats(rows: Iterable[pl.DataFrame]) -> int:
    """How many rows about a target say of it what an earlier one says, word for word."""
    said = [
        part.drop_nulls("target").select(pl.exclude("row", "split", "valid", "category", "term")).hash_rows()
        for part in rows
    ]
    hashes = pl.concat(said) if said else pl.Series([], dtype=pl.UInt64)
    return len(hashes) - hashes.n_unique()


def _in_both(rows: Parts, counted: Parts) -> Callable[[int], bool]:
    """Whether a chunk is finished: a part that was lost or damaged is made again."""
    return lambda number: number in rows and number in counted


def _nothing_found(
    resource: Resource,
    targets: pl.DataFrame,
    counts: Met,
    match: Match,
    target_list: TargetList | None,
    title: str,
    left_out: str,
) -> MitigateError:
    """The error of a resource that is about no target. Its message names settings that find some, each tried here."""
    plurals = _plurals(targets["target"].to_list())
    helping = ""
    if match == "exact" and _first_found(resource, targets, "contains", target_list):
        helping = "; measure.match=contains finds them inside phrases"
    inflected = as_targets(dict(targets.select("target", "category").iter_rows())).with_columns(
        forms=pl.Series(list(plurals.values()), dtype=pl.List(pl.String))
    )
    if found := _first_found(resource, inflected, match, None):
        helping += (
            "; they stand there in the plural, which is not looked for: recipe.targets=FILE.csv finds them, with lines "
            f"such as\n  target,forms\n  {found},{';'.join(plurals[found])}\n "
        )
    size = number_of(counts[ROWS], "row")
    return MitigateError(
        f"nothing in {title} ({size}) is about any of the {targets.height:,} targets{helping}; "
        "recipe.targets=[...] names others" + (f". Besides, {left_out}" if left_out else "")
    )


def _plurals(words: Sequence[str]) -> dict[str, list[str]]:
    """The plurals of each word that are neither targets themselves nor those of a word before it."""
    taken, found = {*paper_targets(), *words}, {}
    for word in words:
        found[word] = [form for form in with_plurals(word) if form not in taken]
        taken.update(found[word])
    return found


def _first_found(resource: Resource, targets: pl.DataFrame, match: Match, target_list: TargetList | None) -> str | None:
    """The target of the first row that is about one."""
    for _, _, chunk in resource.chunks():
        if chunk is not None:
            found, _ = about(resource, chunk.rows, targets, match, "targets", target_list)
            if found.height:
                return str(found["target"][0])
    return None
