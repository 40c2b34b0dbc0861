"""What another system generated, as JSON lines: {"head": ..., "relation": ..., "generations": [...]}, as COMET-ATOMIC
2020 (Hwang et al. 2021) publishes its systems' outputs, or with "tails" or "tail" in its place, as kogito writes them.

Where a line has generations, its tails are the references that people wrote, and are not read. Generations that say
that there is nothing to say ("none"), and empty ones, are left out and counted."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.events import published_names
from mitigate.load.lines import LONGEST, TOO_LONG, OnBadLine, check, parsed
from mitigate.load.stream import Block, Chunk, Met, Streamed, bad, given, opened, split, text_blocks
from mitigate.load.triples_chunk import triples_chunk

GENERATED = ("generations", "tails", "tail")  # the first that a line has
EXPECTED = '{"head": ..., "relation": ..., "generations": [...]}'
NOTHING = {"none": "the generation is 'none'", "": "the generation is empty"}
SHOWN = 80  # characters of a line in a message
RAW = {"row": pl.UInt32, "head": pl.String, "relation": pl.String, "tail": pl.String}


def load(path: str | None, on_bad_line: OnBadLine = "error", top: int | None = None) -> Streamed:
    """The generations of a file as triples, of each line the first `top` (None: all), in their order; but for those
    whose relation has no phrase, which are counted. A row is the number of its line.

    Raises MitigateError for a file that cannot be read or holds something else, for fewer than one generation, and,
    unless on_bad_line is "skip", for lines that are no such objects."""
    check(on_bad_line)
    if top is not None and top < 1:
        raise MitigateError(f"data.top={top} must be at least 1, or null for all generations of a line")
    place = given(path, "generations")

    def parse(block: Block) -> Chunk:
        met = Met()
        rows = list(_rows(place, block, top, met))
        return triples_chunk(place, pl.DataFrame(rows, RAW, orient="row"), met, published_names(), blanks=True)

    return opened(Streamed(place, "triples", lambda: text_blocks(place), parse, EXPECTED, on_bad_line))


def _rows(path: Path, block: Block, top: int | None, met: Met) -> Iterator[tuple[int, str, str, str]]:
    for number, line in enumerate(split(block, met), start=block.first):
        if not line.strip():
            met["noted", "blank lines"] += 1
            continue
        try:
            head, relation, tails = _fields(line)
        except ValueError as error:
            shown = line.decode("utf-8", errors="replace")[:SHOWN]
            bad(met, [f"{path}:{number}: {error}; found {shown!r}, expected {EXPECTED}"])
            continue
        for tail in tails[:top]:
            if nothing := NOTHING.get(tail.strip().lower()):
                met["left out", nothing] += 1
            else:
                yield number, head, relation, tail


def _fields(line: bytes) -> tuple[str, str, list[str]]:
    """Head, relation and generations of a line. Raises ValueError that says what is wrong."""
    if len(line) > LONGEST:
        raise ValueError(TOO_LONG)
    try:
        record = parsed(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 ({error.reason} at byte {error.start})") from error
    if not isinstance(record, dict):
        raise ValueError("no object")
    fact = record["fact"] if isinstance(record.get("fact"), dict) else record  # GPT's outputs there have it so
    for name in ("head", "relation"):
        if not isinstance(fact.get(name), str) or not fact[name].strip():
            raise ValueError(f"no text {name!r}")
    return fact["head"], fact["relation"], _generated(record, fact)


def _generated(record: Mapping[str, Any], fact: Mapping[str, Any]) -> list[str]:
    found = next((part[name] for name in GENERATED for part in (record, fact) if name in part), None)
    tails = [found] if isinstance(found, str) else found
    if not isinstance(tails, list) or not all(isinstance(tail, str) for tail in tails):
        raise ValueError(f"no text or list of texts {' or '.join(map(repr, GENERATED))}")
    prompt = record.get("prompt")
    return [tail.removeprefix(prompt).strip() if isinstance(prompt, str) else tail for tail in tails]
