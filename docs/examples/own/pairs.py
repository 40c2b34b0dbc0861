"""Triples from lines `head = tail`, all with the relation IsA."""

from pathlib import Path

import polars as pl

import mitigate
from mitigate.load.stream import Loaded
from mitigate.triples import TRIPLES


def load(path: str) -> Loaded:
    """The triples of a file of lines `head = tail`. Raises MitigateError for another line."""
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        head, sign, tail = line.partition(" = ")
        if not sign:
            raise mitigate.MitigateError(f"{path}:{number}: {line!r}, expected 'head = tail'; correct the line")
        rows.append((number, "train", head, "IsA", tail, True))
    return Loaded(pl.DataFrame(rows, schema=TRIPLES, orient="row"), notices=[])
