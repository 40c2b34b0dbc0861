"""ConceptNet as a list of edges: `relation<TAB>head<TAB>tail`, a weight behind or not, as train100k and the lists that
question-answering work draws from it (`conceptnet.en.csv`) have it; or the same with URIs (`/r/IsA<TAB>/c/en/dog ...`),
of which the English ones are read."""

from pathlib import Path

import polars as pl

from mitigate.load.lines import OnBadLine
from mitigate.load.stream import Block, Chunk, Met, Streamed, opened, text_blocks
from mitigate.load.table import open_table
from mitigate.load.triples_file import ONE_END, OTHER_LANGUAGE, triples_chunk

EXPECTED = "relation<TAB>head<TAB>tail"
COLUMNS = {"relation": 1, "head": 2, "tail": 3}
URI = r"^/c/([^/]+)/([^/]+)"


def load(path: Path, on_bad_line: OnBadLine = "error") -> Streamed:
    """The edges of a file, all of them where it has plain words. Raises MitigateError for a file that cannot be read or
    holds something else."""
    table = open_table(path, COLUMNS, separator="\t", widths=(3, 4), stray_quotes=True)

    def parse(block: Block) -> Chunk:
        met = Met()
        return triples_chunk(path, _english(table.frame(block, met), met), met)

    return opened(Streamed(path, "triples", lambda: text_blocks(path), parse, EXPECTED, on_bad_line))


def _english(frame: pl.DataFrame, met: Met) -> pl.DataFrame:
    """The rows whose ends are English, URIs made words; what has no URI is taken to be."""
    english = {end: pl.col(end).str.extract(URI, 1).fill_null("en") == "en" for end in ("head", "tail")}
    counted = frame.with_columns(ends=english["head"].cast(pl.Int8) + english["tail"].cast(pl.Int8))
    met["left out", OTHER_LANGUAGE] += counted.filter(ends=0).height
    met["left out", ONE_END] += counted.filter(ends=1).height
    words = [pl.coalesce(pl.col(end).str.extract(URI, 2), end).alias(end) for end in ("head", "tail")]
    return counted.filter(pl.col("ends") == 2).drop("ends").with_columns(words)
