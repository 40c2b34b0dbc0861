"""Ratings as the harms paper's release has them: one label a line, beside a file with a sentence a line.

A sentence's raters are not always on lines that follow each other, so ratings belong to sentences by their text."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import first, read_lines
from mitigate.load.ratings import RATINGS
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.words.outside_text import counted

KNOWLEDGE = ("ConceptNet", "GenericsKB")
"""The two resources of which the crowd rated statements (harms paper, Tables 2 and 3)."""

RESOURCES = (*KNOWLEDGE, "COMeT")
"""These, and statements that COMeT generates about targets with CapableOf, HasProperty and Causes (its Tables 7 and
12)."""

FILTERED = "COMeT-Filtered"
"""Statements of the paper's filtered COMeT. They are for measuring: nothing is trained on them or chosen by them."""

BIAS = {"1": FAVOURITISM, "2": NEUTRAL, "3": PREJUDICE}
QUALITY = {"1": True, "0": False}
RELEASED_QUALITY = {"1": True, "2": False}  # as the harms paper's release writes them
Label = TypeVar("Label")
Pair = tuple[Path, Path]


def read_crowd(folder: Path, names: Sequence[str] = RESOURCES) -> pl.DataFrame:
    """The sentences of these resources that people rated for the harms paper, with all ratings of each: resource,
    sentence, votes (-1, 0, 1). Raises MitigateError as crowd_files and read_beside do."""
    resources = [
        read_beside(*places)
        .group_by("item", maintain_order=True)
        .agg("label")
        .select(pl.lit(resource).alias("resource"), sentence="item", votes="label")
        for resource, places in crowd_files(folder, names).items()
    ]
    return pl.concat(resources)


def crowd_files(folder: Path, names: Sequence[str] = RESOURCES) -> dict[str, Pair]:
    """Resource -> its files of sentences and of bias labels. Raises MitigateError when one is missing."""
    files = {name: (folder / f"{name}_sentences.txt", folder / f"{name}_bias_labels.txt") for name in names}
    if missing := [path.name for pair in files.values() for path in pair if not path.is_file()]:
        raise MitigateError(f"{folder} has no {', '.join(missing)}; set data.root to the folder that contains humans/")
    return files


def rated_sets(folder: Path) -> dict[str, list[Path]]:
    """Each rated set that a folder has -> its files, as read_beside takes them. Raises MitigateError where it has
    none."""
    found = {}
    for name in (*RESOURCES, FILTERED):
        *needed, quality = (folder / f"{name}_{end}.txt" for end in ("sentences", "bias_labels", "quality_labels"))
        if needed[0].is_file():
            found[name] = [*needed, *([quality] if quality.is_file() else [])]
    if not found:
        names = ", ".join(f"{name}_sentences.txt" for name in (*RESOURCES, FILTERED))
        raise MitigateError(f"{folder} has none of {names}; set data.root to the folder that contains humans/")
    return found


def read_beside(sentences: Path, bias_labels: Path, quality_labels: Path | None = None) -> pl.DataFrame:
    """The ratings, schema RATINGS, of sentences (the items) by raters who are not named.

    bias_labels: 1 favouritism, 2 neutral, 3 prejudice. quality_labels: 1 makes sense; 0, or 2 as in the paper's
    release, does not. Raises MitigateError for a missing or empty file, one with more or fewer lines than there are
    sentences, and labels out of range, among them a file with both 0 and 2."""
    items = _lines(sentences, "sentence")
    columns = {"item": items, "label": _labels(bias_labels, BIAS, len(items))}
    if quality_labels is not None:
        is_release = any(line.strip() == "2" for line in _lines(quality_labels, "label"))
        columns["quality"] = _labels(quality_labels, RELEASED_QUALITY if is_release else QUALITY, len(items))
    frame = pl.DataFrame(columns, schema={name: RATINGS[name] for name in columns})
    return frame.select(
        frame[name] if name in columns else pl.lit(None, kind).alias(name) for name, kind in RATINGS.items()
    )


def _labels(path: Path, meaning: dict[str, Label], expected: int) -> list[Label]:
    lines = [line.strip() for line in _lines(path, "label")]
    if len(lines) != expected:
        raise MitigateError(
            f"{path} has {counted(len(lines), 'label')} for {counted(expected, 'sentence')}; expected one for each"
        )
    faults = [f"{path}:{number}: {line!r}" for number, line in enumerate(lines, start=1) if line not in meaning]
    if faults:
        raise MitigateError(f"labels other than {', '.join(meaning)}:\n  {first(faults)}")
    return [meaning[line] for line in lines]


def _lines(path: Path, expected: str) -> list[str]:
    content, _ = read_lines(path, expected)
    try:
        return [line.decode("utf-8") for line in content]
    except UnicodeDecodeError as error:
        raise MitigateError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from error
