"""People's ratings of statements, from CSV files of the survey and of crowd platforms.

Raters are numbered in the order in which the files first name them: a platform's ids can identify a person, and are not
kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.columns import Column
from mitigate.load.lines import OnBadLine, check, first, report_faults
from mitigate.load.table import read_table
from mitigate.triples import FAVOURITISM, NEUTRAL, PREJUDICE
from mitigate.words.outside_text import counted

RATINGS = {
    "item": pl.String,  # what was rated
    "rater": pl.String,  # null where a source does not name raters
    "label": pl.Int8,  # -1, 0 or 1: how it speaks of the group
    "quality": pl.Boolean,  # whether it makes sense; null where not rated
}

STATUS = "status"  # of the work, as a platform has it
COLUMNS = {
    "rater": ("rater", "workerid", "worker_id", "_worker_id", "participant_id", "participant id"),
    "item": ("item", "input.item"),
    "label": ("label", "answer.label"),
    "quality": ("quality", "answer.quality"),
    STATUS: ("assignmentstatus",),
}
"""Column -> its names: here, in Mechanical Turk, Appen and Prolific."""

LABELS = {
    **{"-1": PREJUDICE, "negative": PREJUDICE, "prejudice": PREJUDICE},
    **{"0": NEUTRAL, "neutral": NEUTRAL},
    **{"1": FAVOURITISM, "+1": FAVOURITISM, "positive": FAVOURITISM, "favouritism": FAVOURITISM},
}
SENSE = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}


@dataclass(frozen=True)
class LoadedRatings:
    """Ratings, schema RATINGS, in the order of their lines, and a sentence for each oddity."""

    ratings: pl.DataFrame
    notices: list[str] = field(default_factory=list)


def read_answers(
    paths: Sequence[Path], items: Collection[str], raters: int, on_bad_line: OnBadLine = "error"
) -> LoadedRatings:
    """The ratings of all files together.

    items: the rated items. raters: the number that each should have; notices report items with fewer, and a missing
    column of quality. Work that a platform marks as rejected is left out and noted. Raises MitigateError for a file
    that is missing, without the columns or without ratings, and, unless on_bad_line is "skip", for an unknown item, a
    label out of range, a blank, or a rater who rated an item twice."""
    check(on_bad_line)
    rows: list[tuple[str, str, int, bool | None]] = []
    faults: list[str] = []
    notices: list[str] = []
    seen: dict[tuple[str, str], str] = {}
    numbers: dict[str, str] = {}
    for path in paths:
        answers, more = _table(path, on_bad_line)
        notices += more
        rejected = sum(answer["rejected"] for _, answer in answers)
        notices += [f"{path}: {counted(rejected, 'rejected rating')} left out"] if rejected else []
        for line, answer in answers:
            if answer["rejected"]:
                continue
            place, given = f"{path}:{line}", (answer["rater"], answer["item"])
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
    return LoadedRatings(ratings, notices + _gaps(ratings, items, raters))


def _table(path: Path, on_bad_line: OnBadLine) -> tuple[list[tuple[int, dict[str, Any]]], list[str]]:
    """Each row with its line's number: rater, item, label, quality ("" where there is no such column), rejected; and a
    sentence for each oddity."""
    optional = {"quality", STATUS}
    wanted = {name: Column(spelt, optional=name in optional, numbers=True) for name, spelt in COLUMNS.items()}
    remedy = "; its first line must name the columns rater, item, label and, optionally, quality"
    rows, notices = read_table(path, wanted, on_bad_line, remedy=remedy)
    answers: list[tuple[int, dict[str, Any]]] = []
    for row in rows.iter_rows(named=True):
        answer: dict[str, Any] = {name: (row.get(name) or "").strip() for name in COLUMNS}
        answers.append((row["row"], answer | {"rejected": answer[STATUS].lower() == "rejected"}))
    return answers, notices


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
