"""The sample corpus: everyday triples written for this project, in ConceptNet's formats. All recipes can be tried with
it, without data of one's own; it is far too small for claims."""

from importlib.resources import as_file, files

import polars as pl

from mitigate.load.conceptnet_format import read_triples
from mitigate.load.stream import Loaded

SPLITS = {"train.txt": "train", "dev1.txt": "dev", "dev2.txt": "dev2", "test.txt": "test"}


def load() -> Loaded:
    """The sample's four splits as one table."""
    with as_file(files("mitigate").joinpath("data/sample")) as folder:
        parts = [read_triples(folder / name, split, labelled=split != "train") for name, split in SPLITS.items()]
    return Loaded(pl.concat([part.rows for part in parts]), [n for part in parts for n in part.notices])
