"""ConceptNet's assertions as published (5.7, conceptnet-assertions-5.7.0.csv.gz, 34 million lines):
`edge URI<TAB>/r/Relation<TAB>/c/en/start/...<TAB>/c/en/end/...<TAB>JSON with the weight`. English ones are read, others
counted.

Nine lines of ten are in other languages: they are recognised by their bytes, and not parsed."""

import re
from pathlib import Path

import polars as pl

from mitigate.load.conceptnet_format import ONE_END, OTHER_LANGUAGE, triples_chunk
from mitigate.load.lines import LONGEST, TOO_LONG, OnBadLine, check
from mitigate.load.stream import Block, Chunk, Counts, Streamed, bad, checked, path_of, split, text_blocks
from mitigate.load.table import open_table
from mitigate.words.outside_text import counted

EXPECTED = "edge URI<TAB>/r/Relation<TAB>/c/en/start<TAB>/c/en/end<TAB>{... weight ...}"
ENGLISH = b"\t/c/en/"
ASSERTION = (
    r"^/a/[^\t]*\t/r/(?P<relation>[^\t/]+)[^\t]*\t/c/en/(?P<head>[^\t/]+)[^\t]*\t/c/en/(?P<tail>[^\t/]+)[^\t]*"
    r'\t\{.*"weight": ?[0-9.eE+-]+ ?[,}](?:.*\})?$'
)
EXPECTED_EDGES = "relation<TAB>head<TAB>tail"
COLUMNS = {"relation": 1, "head": 2, "tail": 3}
URI = r"^/c/([^/]+)/([^/]+)"


def load(path: str | None, on_bad_line: OnBadLine = "error") -> Streamed:
    """The English assertions of a file, or the edges of a file without edge URIs; underscores are spaces. The same
    words under several senses (/c/en/nurse/n, /c/en/nurse/v) are repeats, and count each.

    Raises MitigateError for a file that cannot be read or has other content."""
    check(on_bad_line)
    place = path_of(path, "conceptnet")
    if not next(text_blocks(place)).content.startswith(b"/a/"):
        return load_edges(place, on_bad_line)

    def parse(block: Block) -> Chunk:
        return _parse(place, block)

    return checked(Streamed(place, "triples", lambda: text_blocks(place), parse, EXPECTED, on_bad_line))


def _parse(path: Path, block: Block) -> Chunk:
    counts = Counts()
    lines = split(block, counts)
    ends = [line.count(ENGLISH) for line in lines]
    whole = [line.count(b"\t") == 4 and line.startswith(b"/a/") and len(line) <= LONGEST for line in lines]
    counts["left out", OTHER_LANGUAGE] += sum(good and end == 0 for good, end in zip(whole, ends, strict=True))
    counts["left out", ONE_END] += sum(good and end == 1 for good, end in zip(whole, ends, strict=True))
    wrong = [i for i, good in enumerate(whole) if not good]
    bad(counts, (f"{path}:{block.first + i}: {_fault(lines[i])}" for i in wrong))
    english = [i for i, (good, end) in enumerate(zip(whole, ends, strict=True)) if good and end == 2]
    numbers, texts = [], []
    for i in english:
        try:
            texts.append(lines[i].decode("utf-8"))
            numbers.append(block.first + i)
        except UnicodeDecodeError as error:
            bad(counts, [f"{path}:{block.first + i}: not UTF-8 ({error.reason} at byte {error.start})"])
    frame = pl.DataFrame({"row": numbers, "line": texts}, schema={"row": pl.UInt32, "line": pl.String})
    frame = frame.with_columns(pl.col("line").str.extract_groups(ASSERTION).alias("parts")).unnest("parts")
    broken = frame.filter(pl.col("head").is_null())
    bad(counts, (f"{path}:{row}: {_fault(line.encode())}" for row, line in broken.select("row", "line").iter_rows()))
    return triples_chunk(path, frame.drop("line").drop_nulls("head"), counts)


def _fault(line: bytes) -> str:
    if len(line) > LONGEST:
        return TOO_LONG
    fields = line.decode("utf-8", errors="replace").split("\t")
    if len(fields) != 5:
        return f"{counted(len(fields), 'column')}, expected 5 separated by tabs: {_short(fields[0])}"
    if not fields[0].startswith("/a/"):
        return f"{_short(fields[0])}, expected the URI of an edge, /a/..."
    if not fields[1].startswith("/r/"):
        return f"{_short(fields[1])}, expected a relation, /r/..."
    if not re.match(r"\{.*\}$", fields[4]):
        return f"truncated JSON: {_short(fields[4][-40:])}"
    return f"no weight in {_short(fields[4])}, or a head or tail without a word"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def load_edges(path: Path, on_bad_line: OnBadLine = "error") -> Streamed:
    """The English edges of a file, or all of a file with plain words. Raises MitigateError for a file that cannot be
    read or has other content."""
    table = open_table(path, COLUMNS, separator="\t", widths=(3, 4), stray_quotes=True)

    def parse(block: Block) -> Chunk:
        counts = Counts()
        return triples_chunk(path, _english(table.frame(block, counts), counts), counts)

    return checked(Streamed(path, "triples", lambda: text_blocks(path), parse, EXPECTED_EDGES, on_bad_line))


def _english(frame: pl.DataFrame, counts: Counts) -> pl.DataFrame:
    """The rows with two English ends, as words; an end without a URI counts as English."""
    english = {end: pl.col(end).str.extract(URI, 1).fill_null("en") == "en" for end in ("head", "tail")}
    counted = frame.with_columns(ends=english["head"].cast(pl.Int8) + english["tail"].cast(pl.Int8))
    counts["left out", OTHER_LANGUAGE] += counted.filter(ends=0).height
    counts["left out", ONE_END] += counted.filter(ends=1).height
    words = [pl.coalesce(pl.col(end).str.extract(URI, 2), end).alias(end) for end in ("head", "tail")]
    return counted.filter(pl.col("ends") == 2).drop("ends").with_columns(words)
