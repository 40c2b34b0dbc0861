"""A file of one's own triples of any size: CSV, TSV, JSON lines or Parquet, whatever its columns are called."""

from collections.abc import Mapping

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check
from mitigate.load.stream import Chunk, Met, Streamed, given, opened
from mitigate.load.table import Columns, open_table
from mitigate.load.triples_chunk import triples_chunk

NAMES = ("head", "relation", "tail")


def load(path: str | None, on_bad_line: OnBadLine = "error", columns: Columns | None = None) -> Streamed:
    """The triples of a file.

    columns: what its columns are called, {"head": "subject", ...}, or their places, from 1; what is not named is called
    head, relation and tail. Raises MitigateError for a file that cannot be read, without such columns, or that holds
    something else."""
    check(on_bad_line)
    place = given(path, "triples")
    wanted = columns_of(columns, NAMES)
    table = open_table(place, wanted)

    def parse(block: object) -> Chunk:
        met = Met()
        return triples_chunk(place, table.frame(block, met), met)

    expected = " ".join(str(name) for name in wanted.values())
    return opened(Streamed(place, "triples", table.blocks, parse, expected, on_bad_line))


def columns_of(given_names: Columns | None, names: tuple[str, ...]) -> dict[str, str | int]:
    """Where each of our columns is found. Raises MitigateError for a column that there is not."""
    found = dict(given_names) if isinstance(given_names, Mapping) else {}
    if (given_names and not found) or set(found) - set(names):
        raise MitigateError(
            f"data.columns={given_names}: give {{{', '.join(f'{name}: ...' for name in names)}}}, the names of the "
            "file's columns, or their places, from 1"
        )
    return {name: found.get(name, name) for name in names}
