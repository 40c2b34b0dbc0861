"""The labels regard is learnt from, BERT's of ConceptNet statements in the harms paper's release and the human ones
of Sheng et al. (2019)."""

import hashlib
from collections.abc import Collection
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError

DISTILLED = "bert_labels_conceptnet.tsv"
HUMAN = {"nlgbias_train_other.tsv": "train", "nlgbias_dev.tsv": "train", "nlgbias_test.tsv": "people"}
"""Sheng et al.'s test sentences are a part of their own: too few (30) to choose anything by."""


def read_labelled(folder: Path, kept_out: Collection[str] = ()) -> pl.DataFrame:
    """Each distinct text with its label and part: train, valid, test or people.

    A target is in one part, chosen by its name alone, so that no seed moves it; all texts of the targets of
    test are in test, of the rest all texts of the targets of valid are in valid. Hence no text is in two
    parts, and none that is tested was seen with another target. Texts in `kept_out` are in no part.
    Raises MitigateError when a file is missing."""
    missing = [name for name in (DISTILLED, *HUMAN) if not (folder / name).is_file()]
    if missing:
        raise MitigateError(f"{folder} lacks {', '.join(missing)}; data.root must name the folder that has regard/")
    distilled = read_distilled(folder)
    parts = {target: part_of(target) for target in distilled["target"].unique()}
    ranks = pl.Enum(["test", "valid", "train"])
    distilled = (
        distilled.with_columns(part=pl.col("target").replace_strict(parts, return_dtype=ranks))
        .group_by("text")
        .agg(pl.col("label").first(), pl.col("part").min())
        .with_columns(pl.col("part").cast(pl.String))
    )
    human = [
        _read(folder / name, ["label", "text"]).select(
            pl.col("text").str.replace_all("XYZ", "this person"), "label", part=pl.lit(part)
        )
        for name, part in HUMAN.items()
    ]
    labelled = pl.concat([distilled, *human]).unique("text", keep="first", maintain_order=True)
    return labelled.filter(~pl.col("text").is_in(list(kept_out))).sort("part", "text")


def read_distilled(folder: Path) -> pl.DataFrame:
    """BERT's labels: target, label, text; a text stands once for each target that it was made from."""
    return _read(folder / DISTILLED, ["target", "label", "text"])


def part_of(target: str) -> str:
    """Two targets of ten are tested, one is for choosing settings, seven are learnt from."""
    digit = int(hashlib.sha256(target.encode()).hexdigest(), 16) % 10
    return {0: "test", 1: "test", 2: "valid"}.get(digit, "train")


def _read(path: Path, columns: list[str]) -> pl.DataFrame:
    return pl.read_csv(
        path,
        separator="\t",
        has_header=False,
        quote_char=None,
        new_columns=columns,
        schema_overrides={"label": pl.Int8},
    )
