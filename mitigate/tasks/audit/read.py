"""Rows of a resource about targets, read, labelled and counted; and counts of what was left out.

A resource of any size is read a chunk at a time. The kept rows of a chunk are written at once, so that after a kill
only missing chunks are read; and every fault of the file is found before anything is labelled."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import get_args

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import CHUNK, Counts
from mitigate.load.targets import SENSES, Match, about_targets, sentences_about_targets
from mitigate.measure.harms import tally, tally_rows, total
from mitigate.measure.statements import Labelling
from mitigate.progress import progress
from mitigate.score.labeller import Labeller, label_masked, mask
from mitigate.tasks.audit import resource as counting
from mitigate.tasks.audit.resource import ABOUT_A_TARGET, ROWS, Resource, Texts
from mitigate.triples import NEUTRAL, OTHER, Parts
from mitigate.words.identity_terms import read_further_terms, read_terms
from mitigate.words.outside_text import counted as counted_noun
from mitigate.words.targets import TargetList, as_targets, list_of

FINDERS = {"triples": about_targets, "sentences": sentences_about_targets}
UNLISTED, NAMED = "not a target", 5
EVERYWHERE = ("sentiment",)  # labels all texts, with texts="all"; a classifier would take days


@dataclass(frozen=True)
class Search:
    """The targets that rows are searched for, and how."""

    targets: pl.DataFrame  # (target, category)
    match: Match = "exact"
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
            others = unlisted(resource, chunk.rows, search)
            counted.save(number, counting.counts_table(chunk.counts + sizes + others))
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
    about a target. Capitals of sentences, which tell polish from Polish, are folded afterwards, as in the paper's
    release."""
    if resource.kind == "statements":
        return rows, rows.drop_nulls("target")["row"].n_unique()  # their file says what they are about
    find = FINDERS[resource.kind]
    placed = rows.with_row_index("_place")  # generations of one line have one row number
    found = find(placed, search.targets, search.match, search.target_list)
    num_about = found["_place"].n_unique()
    if search.texts == "all":
        others = placed.join(found.select("_place"), on="_place", how="anti", maintain_order="left")
        found = pl.concat([found, others], how="diagonal").sort("_place", maintain_order=True)
    if resource.kind == "sentences":
        found = found.with_columns(pl.col("statement").str.to_lowercase())
    return found.drop("_place", *SENSES, strict=False), num_about


def unlisted(resource: Resource, rows: pl.DataFrame, search: Search) -> Counts:
    """The number of rows about each group of people that is not among the targets (identity_terms)."""
    if resource.kind == "statements" or search.match == "paper":
        return Counts()
    listed = search.target_list or list_of(search.targets)
    others = _others(frozenset(listed.every_form))
    found = FINDERS[resource.kind](rows, others, search.match, list_of(others))
    return Counts({(UNLISTED, word): count for word, count in found["target"].value_counts().iter_rows()})


@cache
def _others(listed: frozenset[str]) -> pl.DataFrame:
    """The groups of identity_terms that have no form in the list, as targets."""
    terms = pl.concat([read_terms().select("term", "plural"), read_further_terms().select("term", "plural")])
    forms = dict(terms.unique("term", maintain_order=True).iter_rows())
    others = {term: [plural] for term, plural in forms.items() if listed.isdisjoint((term, plural))}
    return as_targets(dict.fromkeys(others, "own")).with_columns(
        forms=pl.Series(list(others.values()), dtype=pl.List(pl.String))
    )


def notice_of_unlisted(counts: Counts) -> list[str]:
    """A sentence with the groups that are most often spoken of and are not among the targets."""
    most = [(word, count) for (kind, word), count in counts.most_common() if kind == UNLISTED][:NAMED]
    if not most:
        return []
    named = ", ".join(f"{word} {count:,}" for word, count in most)
    wanted = ",".join(word for word, _ in most)
    return [
        f"Groups that are not among the targets, with their rows: {named}. recipe.targets=[all,{wanted}] adds them."
    ]


def repeats(rows: Iterable[pl.DataFrame]) -> int:
    """Count the rows about a target that repeat an earlier one word for word."""
    hashes = pl.Series([], dtype=pl.UInt64)
    for part in rows:
        texts = part.drop_nulls("target").select(pl.exclude("row", "split", "valid", "category", "term"))
        hashes.append(texts.hash_rows())
    return len(hashes) - hashes.n_unique()


def _nothing_found(resource: Resource, search: Search, counts: Counts, title: str, left_out: str) -> MitigateError:
    """The error of a resource that is about no target. Its message names settings that find some, each tried here."""
    remedies: dict[Match, str] = {"exact": "finds them in the plural", "contains": "finds them inside phrases"}
    found = (
        f"; measure.match={match} {what}"
        for match, what in remedies.items()
        if match != search.match and _found(resource, replace(search, match=match, texts="targets"))
    )
    size = counted_noun(counts[ROWS], "row")
    return MitigateError(
        f"no statement in {title} ({size}) is about any of the {search.targets.height:,} targets{next(found, '')}; "
        "recipe.targets=[...] sets others" + (f". Besides, {left_out}" if left_out else "")
    )


def _found(resource: Resource, search: Search) -> bool:
    """Return whether a row is about a target."""
    chunks = (chunk for _, _, chunk in resource.chunks() if chunk is not None)
    return any(about(resource, chunk.rows, search)[1] for chunk in chunks)


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
