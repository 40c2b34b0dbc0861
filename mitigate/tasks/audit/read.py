"""Rows of a resource about targets, and counts of what was left out.

A resource of any size is read a chunk at a time. The kept rows of a chunk are written at once, so that after a kill
only missing chunks are read; and every fault of the file is found before anything is labelled."""

from collections.abc import Iterable
from typing import get_args

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Met
from mitigate.runs.progress import progress
from mitigate.tasks.audit import resource as counting
from mitigate.tasks.audit.resource import ABOUT_A_TARGET, ROWS, Resource, Texts
from mitigate.tasks.targets import Match, about_targets, sentences_about_targets
from mitigate.triples import Parts
from mitigate.words.outside_text import counted as counted_noun
from mitigate.words.targets import TargetList, as_targets
from mitigate.words.targets import targets as paper_targets
from mitigate.words.word_forms import with_plurals


def check(texts: str, resource: Resource) -> None:
    """Raise MitigateError for a setting of texts that does not suit the resource."""
    if texts not in get_args(Texts):
        raise one_of("measure.texts", texts, get_args(Texts))
    if texts == "all" and resource.kind == "statements":
        raise MitigateError(
            "measure.texts=all adds texts about no target, and each statement of this file is about one; leave "
            "measure.texts out"
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
    """Save the rows, each with its target and category (null where there is none), as parts `rows`, a part for each
    chunk. Returns counts (kind, what, count): of rows left out, by reason, of all rows, of rows about a target, and of
    statements.

    match: "exact", or "contains" for targets inside phrases. target_list: the forms of own targets; None: as `targets`
    have them. texts: "all" also keeps rows about no target. title: name of the resource in messages. counted: parts
    with the counts of each chunk, needed until the result is saved.

    Raises MitigateError for bad lines, unless they are to be left out, and where nothing is about a target."""
    with progress("read", 1.0, "rows") as advance:
        for number, share, chunk in resource.chunks(finished=lambda number: number in rows and number in counted):
            if chunk is None:
                advance(0, to=share)
                continue
            found, num_about = about(resource, chunk.rows, targets, match, texts, target_list)
            rows.save(number, found)
            sizes = Met({ROWS: chunk.rows.height, ABOUT_A_TARGET: num_about, counting.STATEMENTS: found.height})
            counted.save(number, counting.counts_table(chunk.met + sizes))
            advance(chunk.height, to=share)
    total = counting.sum_counts(counted)
    total["noted", counting.REPEATED] += repeats(rows)
    left_out = "; ".join(resource.loaded.describe(total))  # raises for bad lines
    if not total[ABOUT_A_TARGET]:
        raise _nothing_found(resource, targets, total, match, target_list, title, left_out)
    return counting.counts_table(total)


def about(
    resource: Resource,
    rows: pl.DataFrame,
    targets: pl.DataFrame,
    match: Match,
    texts: Texts,
    target_list: TargetList | None = None,
) -> tuple[pl.DataFrame, int]:
    """A row for each row and each target it is about, with texts="all" also for rows about none; and the number of rows
    about a target."""
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
    """Count the rows about a target that repeat an earlier one word for word."""
    hashes = pl.Series([], dtype=pl.UInt64)
    for part in rows:
        texts = part.drop_nulls("target").select(pl.exclude("row", "split", "valid", "category", "term"))
        hashes.append(texts.hash_rows())
    return len(hashes) - hashes.n_unique()


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
    taken, plurals = {*paper_targets(), *targets["target"]}, dict[str, list[str]]()
    for word in targets["target"]:  # plurals that are neither targets themselves nor those of a word before
        plurals[word] = [form for form in with_plurals(word) if form not in taken]
        taken.update(plurals[word])
    remedy = ""
    if match == "exact" and _first_found(resource, targets, "contains", target_list):
        remedy = "; measure.match=contains finds them inside phrases"
    inflected = as_targets(dict(targets.select("target", "category").iter_rows())).with_columns(
        forms=pl.Series(list(plurals.values()), dtype=pl.List(pl.String))
    )
    if found := _first_found(resource, inflected, match, None):
        remedy += (
            "; they occur in the plural, which is not matched: recipe.targets=FILE.csv adds it, with lines such as\n  "
            f"target,forms\n  {found},{';'.join(plurals[found])}\n "
        )
    size = counted_noun(counts[ROWS], "row")
    return MitigateError(
        f"no statement in {title} ({size}) is about any of the {targets.height:,} targets{remedy}; "
        "recipe.targets=[...] sets others" + (f". Besides, {left_out}" if left_out else "")
    )


def _first_found(resource: Resource, targets: pl.DataFrame, match: Match, target_list: TargetList | None) -> str | None:
    """The target of the first row that is about one."""
    for _, _, chunk in resource.chunks():
        if chunk is not None:
            found, _ = about(resource, chunk.rows, targets, match, "targets", target_list)
            if found.height:
                return str(found["target"][0])
    return None
