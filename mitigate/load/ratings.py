"""People's ratings of statements: CSV files of the survey and of crowd platforms, and the harms paper's release, which
has one label a line beside a file with a sentence a line.

Raters are numbered in the order in which the files first name them: a platform's ids can identify a person, and are not
kept. In the release a sentence's raters are not always on lines that follow each other, so its ratings belong to
sentences by their text."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.statements import LABELS as STATEMENT_LABELS
from mitigate.load.stream import OnBadLine, describe, first, report_faults
from mitigate.load.table import Column, open_lines, read_all, read_table
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE
from mitigate.words.outside_text import counted

RATINGS = {
    "item": pl.String,  # what was rated
    "rater": pl.String,  # null where a source does not name raters
    "label": pl.Int8,  # -1, 0 or 1: how it speaks of the group
    "quality": pl.Boolean,  # whether it makes sense; null where not rated
}

STATUS = "status"  # of the work, as a platform has it
COLUMNS = {
    "rater": ("rater", "workerid", "worker_id", "_worker_id", "participant_id", "participant id", "annotator"),
    "item": ("item", "input.item", "item_id", "id"),
    "label": ("label", "answer.label", "regard", "sentiment", "choice"),
    "quality": ("quality", "answer.quality"),
    STATUS: ("assignmentstatus",),
}
"""Column -> its names: here, in Mechanical Turk, Appen, Prolific and Label Studio (CSV)."""

LABELS = {word: label for word, label in STATEMENT_LABELS.items() if label != OTHER}
SENSE = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
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


def read_answers(
    paths: Sequence[Path], items: Collection[str], raters: int, on_bad_line: OnBadLine = "error"
) -> tuple[pl.DataFrame, list[str]]:
    """The ratings of all files together, schema RATINGS, in the order of their lines, and a sentence for each oddity.

    items: the rated items. raters: the number that each should have; notices report items with fewer, and a missing
    column of quality. Work that a platform marks as rejected is left out and noted. Raises MitigateError for a file
    that is missing, without the columns or without ratings, and, unless on_bad_line is "skip", for an unknown item, a
    label out of range, a blank, or a rater who rated an item twice."""
    rows: list[tuple[str, str, int, bool | None]] = []
    faults: list[str] = []
    notices: list[str] = []
    seen: dict[tuple[str, str], str] = {}
    numbers: dict[str, str] = {}
    for path in paths:
        answers, more = _table(path, on_bad_line)
        notices += more
        kept = [answer for answer in answers if answer[STATUS].lower() != "rejected"]
        if rejected := len(answers) - len(kept):
            notices.append(f"{path}: {counted(rejected, 'rejected rating')} left out")
        for answer in kept:
            place, given = f"{path}:{answer['row']}", (answer["rater"], answer["item"])
            if fault := _fault(answer, items, seen.get(given)):
                faults.append(f"{place}: {fault}")
                continue
            seen[given] = place
            rater = numbers.setdefault(answer["rater"], f"rater {len(numbers) + 1}")
            rows.append((answer["item"], rater, LABELS[answer["label"].lower()], SENSE.get(answer["quality"].lower())))
    notices += report_faults(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"no ratings in {', '.join(map(str, paths))}; expected lines 'rater,item,label,quality'")
    ratings = pl.DataFrame(rows, schema=RATINGS, orient="row")
    return ratings, notices + _gaps(ratings, items, raters)


def _table(path: Path, on_bad_line: OnBadLine) -> tuple[list[dict[str, Any]], list[str]]:
    """Each row: row, the line's number, rater, item, label, quality and status ("" where there is no such column)."""
    wanted = {name: Column(spelt, optional=name in ("quality", STATUS)) for name, spelt in COLUMNS.items()}
    remedy = "; rename its columns to rater, item (as in the survey), label and, optionally, quality"
    rows, notices = read_table(path, wanted, on_bad_line, remedy=remedy)
    absent = [pl.lit("").alias(name) for name in COLUMNS if name not in rows.columns]
    return rows.with_columns(absent).with_columns(pl.col(*COLUMNS).fill_null("").str.strip_chars()).to_dicts(), notices


def _fault(answer: Mapping[str, str], items: Collection[str], earlier: str | None) -> str | None:
    if blank := [column for column in ("rater", "item", "label") if not answer[column]]:
        return f"no {', '.join(blank)}"
    if answer["item"] not in items:
        return f"unknown item {answer['item']!r}: it is not in the survey"
    if answer["label"].lower() not in LABELS:
        return f"label {answer['label']!r}; allowed: -1, 0, 1, or negative, neutral, positive"
    if answer["quality"] and answer["quality"].lower() not in SENSE:
        return f"quality {answer['quality']!r}; allowed: 1, 0, or yes, no"
    return f"rater {answer['rater']} already rated item {answer['item']}, at {earlier}" if earlier else None


def _gaps(ratings: pl.DataFrame, items: Collection[str], raters: int) -> list[str]:
    """The missing ratings, in words."""
    counts = dict(ratings["item"].value_counts().iter_rows())
    none = sorted(item for item in items if item not in counts)
    few = sorted(item for item, count in counts.items() if count < raters)
    unknown = ratings["quality"].null_count()
    found = [f"{len(none):,} of {len(items):,} items have no rating: {first(none, ', ')}"] if none else []
    if few:
        has = "has" if len(few) == 1 else "have"
        found.append(f"{counted(len(few), 'item')} {has} fewer than {raters} ratings: {first(few, ', ')}")
    if unknown:
        does = "does" if unknown == 1 else "do"
        found.append(f"{counted(unknown, 'rating')} {does} not say whether the statement makes sense")
    return found


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
    rows, counts = read_all(open_lines(path))
    describe(counts, None)
    return rows["statement"].to_list()
