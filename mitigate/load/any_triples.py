"""A file of one's own triples of any size: CSV, TSV, JSON lines or Parquet, whatever its columns are called."""

from collections.abc import Mapping
from pathlib import Path

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check
from mitigate.load.relations_file import read_relations
from mitigate.load.stream import Chunk, Met, Streamed, given, opened
from mitigate.load.table import Columns, names_of, open_table
from mitigate.load.triples_chunk import triples_chunk

NAMES = ("head", "relation", "tail")
SPLIT, VALID = "split", "valid"


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Columns | None = None,
    relations: str | Path | None = None,
) -> Streamed:
    """The triples of a file.

    columns: what its columns are called, {"head": "subject", ...}, or their places, from 1; what is not named is called
    head, relation and tail. A column `split` (train, dev or validation, test) is read where there is one, unless it is
    named None; a column of labels, 1 for a valid triple and 0 for another, where it is named `valid`. relations: a
    file of relations that the project has no phrases for (relations_file).

    Raises MitigateError for a file that cannot be read, without such columns, or that holds something else."""
    check(on_bad_line)
    place = given(path, "triples")
    own = () if relations is None else tuple(read_relations(Path(relations)))
    wanted = _wanted(place, columns)
    table = open_table(place, wanted)

    def parse(block: object) -> Chunk:
        met = Met()
        return triples_chunk(place, table.frame(block, met), met, own=own)

    expected = " ".join(str(name) for name in wanted.values())
    resource = Streamed(place, "triples", table.blocks, parse, expected, on_bad_line, own, needs_phrases=True)
    return opened(resource)


def _wanted(path: Path, columns: Columns | None) -> dict[str, str | int]:
    """Where each column is found, with those that a file may have or not. Raises MitigateError for another column."""
    found = columns_of(columns, NAMES, (SPLIT, VALID))
    by_number = all(isinstance(place, int) for place in found.values())
    if SPLIT not in (columns or ()) and not by_number and SPLIT in names_of(path):
        found[SPLIT] = SPLIT
    return found


def columns_of(
    given_names: Columns | None, names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, str | int]:
    """Where each of our columns is found; of the optional ones those that are named. Raises MitigateError for a column
    that there is not."""
    found = dict(given_names) if isinstance(given_names, Mapping) else {}
    if (given_names and not found) or set(found) - {*names, *optional}:
        perhaps = f"; there may be {' and '.join(optional)} besides" if optional else ""
        raise MitigateError(
            f"data.columns={given_names}: give {{{', '.join(f'{name}: ...' for name in names)}}}, the names of the "
            f"file's columns, or their places, from 1{perhaps}"
        )
    wanted = {name: found.get(name) or name for name in names}
    return wanted | {name: place for name in optional if (place := found.get(name)) is not None}
