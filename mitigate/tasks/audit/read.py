"""Rows of a resource about targets, read, labelled and counted; and counts of what was left out.

A resource of any size is read a chunk at a time. The kept rows of a chunk are written at once, so that after a kill
only missing chunks are read; and every fault of the file is found before anything is labelled."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import CHUNK, Counts
from mitigate.measure.tally import tally, tally_rows, total
from mitigate.progress import progress
from mitigate.tasks.audit import resource as counting
from mitigate.tasks.audit.resource import ABOUT_A_TARGET, ROWS, Resource, Texts
from mitigate.tasks.label import Labeller, label_masked, mask
from mitigate.tasks.labelled_statements import Labelling
from mitigate.tasks.targets import Match, about_targets, sentences_about_targets
from mitigate.triples import NEUTRAL, OTHER, Parts
from mitigate.words.outside_text import counted as counted_noun
from mitigate.words.targets import TargetList, as_targets
from mitigate.words.targets import targets as paper_targets
from mitigate.words.word_forms import with_plurals

EVERYWHERE = ("sentiment",)  # labels all texts, with texts="all"; a classifier would take days


@dataclass(frozen=True)
class Search:
    """The targets that rows are searched for, and how."""

    targets: pl.DataFrame  # (target, category)
    match: Match = "exact"  # or "contains", for targets inside phrases
    target_list: TargetList | None = None  # the forms of own targets; None: as `targets` have them
    texts: Texts = "targets"  # "all" also keeps rows about no target


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
    resource: Resource, search: Search, *, title: str = "the resource", rows: Parts, counted: Parts
) -> pl.DataFrame:
    """Save the rows, each with its target and category (null where there is none), as parts `rows`, a part for each
    chunk. Returns counts (kind, what, count): of rows left out, by reason, of all rows, of rows about a target, and of
    statements.

    title: name of the resource in messages. counted: parts with the counts of each chunk, needed until the result is
    saved. Raises MitigateError for bad lines, unless they are to be left out, and where nothing is about a target."""
    with progress("read", 1.0, "rows") as advance:
        for number, share, chunk in resource.chunks(finished=lambda number: number in rows and number in counted):
            if chunk is None:
                advance(0, to=share)
                continue
            found, num_about = about(resource, chunk.rows, search)
            rows.save(number, found)
            sizes = Counts({ROWS: chunk.rows.height, ABOUT_A_TARGET: num_about, counting.STATEMENTS: found.height})
            counted.save(number, counting.counts_table(chunk.counts + sizes))
            advance(chunk.height, to=share)
    counts = counting.sum_counts(counted)
    if num_repeated := repeats(rows):
        counts["noted", counting.REPEATED] += num_repeated
    left_out = "; ".join(resource.loaded.describe(counts))  # raises for bad lines
    if not counts[ABOUT_A_TARGET]:
        raise _nothing_found(resource, search, counts, title, left_out)
    return counting.counts_table(counts)


def about(resource: Resource, rows: pl.DataFrame, search: Search) -> tuple[pl.DataFrame, int]:
    """A row for each row and each target it is about, with texts="all" also for rows about none; and the number of rows
    about a target."""
    if resource.kind == "statements":
        return rows, rows.drop_nulls("target")["row"].n_unique()  # their file says what they are about
    find = about_targets if resource.kind == "triples" else sentences_about_targets
    placed = rows.with_row_index("_place")  # generations of one line have one row number
    found = find(placed, search.targets, search.match, search.target_list)
    num_about = found["_place"].n_unique()
    if search.texts == "targets":
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


def _nothing_found(resource: Resource, search: Search, counts: Counts, title: str, left_out: str) -> MitigateError:
    """The error of a resource that is about no target. Its message names settings that find some, each tried here."""
    targets, search = search.targets, replace(search, texts="targets")
    taken, plurals = {*paper_targets(), *targets["target"]}, dict[str, list[str]]()
    for word in targets["target"]:  # plurals that are neither targets themselves nor those of a word before
        plurals[word] = [form for form in with_plurals(word) if form not in taken]
        taken.update(plurals[word])
    remedy = ""
    if search.match == "exact" and _first_found(resource, replace(search, match="contains")):
        remedy = "; measure.match=contains finds them inside phrases"
    inflected = as_targets(dict(targets.select("target", "category").iter_rows())).with_columns(
        forms=pl.Series(list(plurals.values()), dtype=pl.List(pl.String))
    )
    if found := _first_found(resource, replace(search, targets=inflected, target_list=None)):
        remedy += (
            "; they occur in the plural, which is not matched: recipe.targets=FILE.csv adds it, with lines such as\n  "
            f"target,forms\n  {found},{';'.join(plurals[found])}\n "
        )
    size = counted_noun(counts[ROWS], "row")
    return MitigateError(
        f"no statement in {title} ({size}) is about any of the {targets.height:,} targets{remedy}; "
        "recipe.targets=[...] sets others" + (f". Besides, {left_out}" if left_out else "")
    )


def _first_found(resource: Resource, search: Search) -> str | None:
    """The target of the first row that is about one."""
    for _, _, chunk in resource.chunks():
        if chunk is not None:
            found, _ = about(resource, chunk.rows, search)
            if found.height:
                return str(found["target"][0])
    return None


def count_statements(
    labeller: Labeller,
    columns: Sequence[Labelling],
    *,
    texts: Texts = "targets",
    everywhere: Sequence[str] = EVERYWHERE,
    given: str | None = None,
    rows: Iterable[pl.DataFrame],
    num_rows: int,
    statements: Parts,
) -> pl.DataFrame:
    """Save the rows' statements, masked and labelled, as parts `statements`, and return their tally: counts of each
    label for each target, and with texts="all" those of all texts, as target null.

    rows: parts that read_rows saved; num_rows: of all parts. given: the column of labels that the rows have already, in
    place of the labeller's. everywhere: names of the scorers that label statements about no target too. After a kill
    only missing parts are labelled."""
    with progress("label", num_rows, "statements") as advance:
        for done, group in _together(rows, statements):
            rows_of_group = pl.concat(group.values())
            chunks = rows_of_group.iter_slices(CHUNK)
            labelled = pl.concat(label(chunk, labeller, everywhere=everywhere, given=given) for chunk in chunks)
            for number, part in group.items():
                statements.save(number, labelled.head(part.height))
                labelled = labelled.slice(part.height)
            advance(rows_of_group.height, to=done)
    names = [labels.column for labels in columns]
    quick = [labels.column for labels in columns if labels.scorer in everywhere]
    return total(
        counts
        for part in statements
        for counts in (tally(part.drop_nulls("target"), names), *([tally_rows(part, quick)] if texts == "all" else []))
    )


def label(
    rows: pl.DataFrame, labeller: Labeller, *, everywhere: Sequence[str] = EVERYWHERE, given: str | None = None
) -> pl.DataFrame:
    """Return the rows as statements, masked and labelled; those about no target by the scorers of `everywhere`."""
    masked = mask(rows, labeller.masking, labeller.target_list, labeller.own_relations)
    if given:
        polarity = pl.col(given).replace({OTHER: NEUTRAL}).cast(pl.Float32)  # nothing finer is known
        return masked.with_columns(polarity.alias(f"{given}_strength"))
    about = pl.col("target").is_not_null()
    quick = [scorer for scorer in labeller.scorers if scorer.name in everywhere]
    both = [
        label_masked(masked.filter(about), labeller.scorers, cache=labeller.cache),
        label_masked(masked.filter(~about), quick, cache=labeller.cache),
    ]
    return pl.concat(both, how="diagonal").sort("row", maintain_order=True)


def _together(rows: Iterable[pl.DataFrame], finished: Parts) -> Iterator[tuple[int, dict[int, pl.DataFrame]]]:
    """Group the unfinished parts of the rows into CHUNK rows or a little more, since many texts at once are labelled
    and saved sooner. Yields the number of rows up to a group's end, and its parts."""
    group: dict[int, pl.DataFrame] = {}
    done = 0
    for number, part in enumerate(rows):
        if part.height and number not in finished:
            group[number] = part
        done += part.height
        if sum(waiting.height for waiting in group.values()) >= CHUNK:
            yield done, group
            group = {}
    if group:
        yield done, group
