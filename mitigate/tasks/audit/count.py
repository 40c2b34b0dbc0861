"""How many statements about each target have which label: rows become statements, are labelled and counted, a part at a
time."""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from mitigate.load.stream import CHUNK
from mitigate.measure.tally import tally, tally_rows, total
from mitigate.runs.progress import progress
from mitigate.tasks.audit.resource import Texts
from mitigate.tasks.label import Labeller, label_masked, mask
from mitigate.tasks.labelling import Labelling
from mitigate.triples import NEUTRAL, OTHER, Parts

EVERYWHERE = ("sentiment",)  # labels what is about no target too, with texts="all"; a classifier would take days


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
    """Saves the rows' statements, masked and labelled, as parts `statements`, and returns their tally: how many about
    each target have which label, and with texts="all", as target null, how many of all texts.

    rows: parts that read_rows saved; num_rows: how many they have. given: the column of labels that the rows have
    already, in place of the labeller's. everywhere: the names of scorers that label what is about no target too. Of a
    kill only the parts that are not there are labelled again."""
    with progress("label", num_rows, "statements") as advance:
        for done, group in _together(rows, statements):
            rows_of_group = pl.concat(group.values())
            chunks = rows_of_group.iter_slices(CHUNK)
            labelled = pl.concat(label(chunk, labeller, everywhere=everywhere, given=given) for chunk in chunks)
            for number, part in group.items():
                statements.save(number, labelled.head(part.height))
                labelled = labelled.slice(part.height)
            advance(rows_of_group.height, to=done)
    return total(_tally(part, columns, everywhere if texts == "all" else None) for part in statements)


def label(
    rows: pl.DataFrame, labeller: Labeller, *, everywhere: Sequence[str] = EVERYWHERE, given: str | None = None
) -> pl.DataFrame:
    """The statements that the rows make, masked and labelled; those about no target by the scorers of `everywhere`."""
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
    """The parts of the rows that are not finished, small ones in groups of CHUNK rows or a little more, as many texts
    at once are labelled and kept sooner; and how many rows there are up to each group's end."""
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


def _tally(statements: pl.DataFrame, columns: Sequence[Labelling], everywhere: Sequence[str] | None) -> pl.DataFrame:
    """Of statements about targets; with `everywhere` also of all, by these scorers."""
    tallied = tally(statements.drop_nulls("target"), [labels.column for labels in columns])
    if everywhere is None:
        return tallied
    return total(
        [tallied, tally_rows(statements, [labels.column for labels in columns if labels.scorer in everywhere])]
    )
