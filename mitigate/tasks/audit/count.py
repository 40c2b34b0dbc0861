"""Counts of labels for each target. Rows are turned into statements, labelled and counted, one part at a time."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from mitigate.load.stream import CHUNK
from mitigate.measure.tally import tally, tally_rows, total
from mitigate.runs.progress import progress
from mitigate.tasks.audit.resource import Texts
from mitigate.tasks.label import Labeller, label_masked, mask
from mitigate.tasks.labelled_statements import Labelling
from mitigate.triples import NEUTRAL, OTHER, Parts

EVERYWHERE = ("sentiment",)  # labels all texts, with texts="all"; a classifier would take days


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
