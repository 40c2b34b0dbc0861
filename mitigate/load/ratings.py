"""People's ratings of statements: CSV files of the survey and of crowd platforms, and the harms paper's release, which
has one label a line beside a file with a sentence a line; and the statements of that release, each with its target, the
label of most raters, and its wording with a neutral relation phrase.

Raters are numbered in the order in which the files first name them: a platform's ids can identify a person, and are not
kept. In the release a sentence's raters are not always on lines that follow each other, so its ratings belong to
sentences by their text."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.statements import LABELS as STATEMENT_LABELS
from mitigate.load.stream import Counts, OnBadLine, describe, first, report
from mitigate.load.table import Column, layout_of, open_lines, open_table, read_all
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE
from mitigate.verbalise import mask_column
from mitigate.words.outside_text import counted
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import clusters, targets
from mitigate.words.word_forms import any_of

RATINGS = {
    "item": pl.String,  # what was rated
    "rater": pl.String,  # null where a source does not name raters
    "label": pl.Int8,  # -1, 0 or 1: how it speaks of the group
    "quality": pl.Boolean,  # whether it makes sense; null where not rated
}

STATUS = "status"  # of the work, as a platform has it
COLUMNS = {
    "rater": ("rater", "workerid", "worker_id", "_worker_id", "participant_id", "participant id", "annotator", "user"),
    "item": ("item", "input.item", "item_id", "instance_id", "id"),
    "label": ("label", "answer.label", "regard", "sentiment", "choice"),
    "quality": ("quality", "answer.quality"),
    STATUS: ("assignmentstatus",),
}
"""Column -> its names: here, in Mechanical Turk, Appen, Prolific, Label Studio and Potato (CSV)."""
CHOICE = ":::"
"""Potato has a column for each choice: label:::negative. The one that is not blank was chosen."""

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


def read_answers(
    paths: Sequence[Path], items: Collection[str], raters: int, on_bad_line: OnBadLine = "error"
) -> tuple[pl.DataFrame, list[str]]:
    """The ratings of all files together, schema RATINGS, in the order of their lines, and a sentence for each oddity.

    items: the rated items. raters: the number that each should have; notices report items with fewer, and a missing
    column of quality. Work that a platform marks as rejected is left out and noted. A rater rates an item once."""
    remedy = "; rename its columns to rater, item (as in the survey), label and, optionally, quality"
    rows: list[tuple[str, str, int, bool | None]] = []
    seen: dict[tuple[str, str], str] = {}
    numbers: dict[str, str] = {}
    notices, counts = list[str](), Counts()
    for path in paths:
        layout = layout_of(path)
        chosen = {
            name: [each for each in layout.lower if each.startswith(name + CHOICE)] for name in ("label", "quality")
        }
        optional = [STATUS, "quality", *(name for name in chosen if chosen[name])]
        wanted = {name: Column(names, optional=name in optional) for name, names in COLUMNS.items()}
        wanted |= {each: Column((each,), optional=True) for name in chosen for each in chosen[name]}
        answers, found = read_all(open_table(path, wanted, layout=layout, remedy=remedy))
        counts += found
        for name, columns in chosen.items():
            if columns:
                given = [pl.when(pl.col(each) != "").then(pl.lit(each.partition(CHOICE)[2])) for each in columns]
                answers = answers.with_columns(pl.concat_str(given, separator=", ", ignore_nulls=True).alias(name))
        answers = answers.with_columns(pl.lit("").alias(name) for name in COLUMNS if name not in answers.columns)
        plain = answers.with_columns(pl.col(*COLUMNS).fill_null("").str.strip_chars())
        kept = plain.filter(pl.col(STATUS).str.to_lowercase() != "rejected")
        if rejected := plain.height - kept.height:
            notices.append(f"{path}: {counted(rejected, 'rejected rating')} left out")
        for answer in kept.iter_rows(named=True):
            rater, item, label, quality = answer["rater"], answer["item"], answer["label"], answer["quality"]
            fault = None
            if blank := [column for column in ("rater", "item", "label") if not answer[column]]:
                fault = f"no {', '.join(blank)}"
            elif item not in items:
                fault = f"unknown item {item!r}: it is not in the survey"
            elif label.lower() not in LABELS:
                fault = f"label {label!r}; allowed: -1, 0, 1, or negative, neutral, positive"
            elif quality and quality.lower() not in SENSE:
                fault = f"quality {quality!r}; allowed: 1, 0, or yes, no"
            elif earlier := seen.get((rater, item)):
                fault = f"rater {rater} already rated item {item}, at {earlier}"
            if fault:
                report(path, [(answer["row"], fault)], counts)
                continue
            seen[rater, item] = f"{path}:{answer['row']}"
            name = numbers.setdefault(rater, f"rater {len(numbers) + 1}")
            rows.append((item, name, LABELS[label.lower()], SENSE.get(quality.lower())))
    notices += describe(counts, on_bad_line)
    if not rows:
        raise MitigateError(f"no ratings in {', '.join(map(str, paths))}; expected lines 'rater,item,label,quality'")
    ratings = pl.DataFrame(rows, schema=RATINGS, orient="row")
    return ratings, notices + _gaps(ratings, items, raters)


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
    sentence, votes (-1, 0, 1)."""
    return pl.concat(
        read_beside(*places)
        .group_by("item", maintain_order=True)
        .agg("label")
        .select(pl.lit(resource).alias("resource"), sentence="item", votes="label")
        for resource, places in rated_sets(folder, names).items()
    )


def rated_sets(folder: Path, names: Sequence[str] = ()) -> dict[str, list[Path]]:
    """Each of the named rated sets -> its files, as read_beside takes them; without names each set that the folder has.
    Raises MitigateError where one is missing, or all are."""
    found = {}
    for name in names or (*RESOURCES, FILTERED):
        sentences, labels, quality = (
            folder / f"{name}_{end}.txt" for end in ("sentences", "bias_labels", "quality_labels")
        )
        missing = [path.name for path in (sentences, labels) if not path.is_file()]
        if names and missing:
            raise MitigateError(f"{folder} has no {missing[0]}; set data.root to the folder that contains humans/")
        if sentences.is_file():
            found[name] = [sentences, labels, *([quality] if quality.is_file() else [])]
    if not found:
        sets = ", ".join(f"{name}_sentences.txt" for name in (*RESOURCES, FILTERED))
        raise MitigateError(f"{folder} has none of {sets}; set data.root to the folder that contains humans/")
    return found


def read_beside(sentences: Path, bias_labels: Path, quality_labels: Path | None = None) -> pl.DataFrame:
    """The ratings, schema RATINGS, of sentences (the items) by raters who are not named.

    bias_labels: 1 favouritism, 2 neutral, 3 prejudice. quality_labels: 1 makes sense; 0, or 2 as in the paper's
    release, does not."""
    items = read_all(open_lines(sentences))[0]["statement"]
    found = pl.DataFrame({"item": items}).with_columns(rater=pl.lit(None, pl.String), quality=pl.lit(None, pl.Boolean))
    for name, path in (("label", bias_labels), ("quality", quality_labels)):
        if path is None:
            continue
        labels = read_all(open_lines(path))[0]["statement"].str.strip_chars()
        meaning = BIAS if name == "label" else RELEASED_QUALITY if "2" in labels else QUALITY
        if len(labels) != len(items):
            numbers = f"{counted(len(labels), 'label')} for {counted(len(items), 'sentence')}"
            raise MitigateError(f"{path} has {numbers}; expected one for each")
        if faults := [f"{path}:{row}: {label!r}" for row, label in enumerate(labels, 1) if label not in meaning]:
            raise MitigateError(f"labels other than {', '.join(meaning)}:\n  {first(faults)}")
        found = found.with_columns(labels.replace_strict(meaning, return_dtype=RATINGS[name]).alias(name))
    return found.select(list(RATINGS))


def read_rated(root: Path, names: Sequence[str] = RESOURCES) -> pl.DataFrame:
    """Read the rated statements of these sources below a folder that holds humans/, as describe_rated returns them."""
    return describe_rated(read_crowd(root / "humans", names))


def read_with_quality(root: Path, name: str = RESOURCES[-1]) -> pl.DataFrame:
    """Read the rated statements of one source with their quality: whether each rater calls the statement valid (list of
    bool). Raises MitigateError as read_beside does."""
    files = [root / "humans" / f"{name}_{kind}.txt" for kind in ("sentences", "bias_labels", "quality_labels")]
    rated = read_beside(*files).group_by("item", maintain_order=True).agg(votes="label", quality="quality")
    return describe_rated(rated.select(pl.lit(name).alias("resource"), "votes", "quality", sentence="item"))


def describe_rated(crowd: pl.DataFrame) -> pl.DataFrame:
    """Add to rated statements (resource, sentence, votes) most (the label of most raters; neutral where none leads),
    target and category (null where no target stands in the statement), cluster (its target's, or the statement itself),
    head and tail (the whole statement and "" if it is not a triple), masked and masked_neutral (its wording with
    demographic words masked, and with the relation's neutral phrase)."""
    found = [target_of(text) for text in crowd["sentence"]]
    words = clusters()
    about = [words.get(one, one) if one else text for one, text in zip(found, crowd["sentence"], strict=True)]
    parts = [_parts(*row) for row in crowd.select("resource", "sentence").iter_rows()]
    return crowd.with_columns(
        most=pl.Series(most_say(crowd["votes"]), dtype=pl.Int8),
        target=pl.Series(found, dtype=pl.String),
        category=pl.Series([targets().get(target) if target else None for target in found], dtype=pl.String),
        cluster=pl.Series(about),
        head=pl.Series([head for head, _, _ in parts]),
        tail=pl.Series([tail for _, _, tail in parts]),
        worded=pl.Series([" ".join(filter(None, part)) for part in parts]),
    ).with_columns(
        mask_column("sentence", "token").alias("masked"), mask_column("worded", "token").alias("masked_neutral")
    )


def most_say(votes: pl.Series) -> np.ndarray:
    """The label of most raters of each statement, from lists of votes, (n,); neutral where none leads."""
    labels = (PREJUDICE, NEUTRAL, FAVOURITISM)
    counts = np.column_stack([votes.list.count_matches(label).to_numpy() for label in labels])
    leads = counts == counts.max(axis=1, keepdims=True)
    return np.where(leads.sum(axis=1) > 1, NEUTRAL, np.array(labels)[counts.argmax(axis=1)])


@cache
def target_of(statement: str) -> str | None:
    """Find the target of a statement: the one that it begins with, after an article; else the one that it ends with, as
    the tail of a triple; else the first in it. None for a statement without a target."""
    statement = statement.strip(" .")
    found = list(re.finditer(any_of(targets()), statement))
    if not found:
        return None
    first, last = found[0], found[-1]
    begins = statement[: first.start()].lower() in ("", "a ", "an ", "the ")
    ends = last.end() == len(statement)
    return _target_with(last[0] if ends and not begins else first[0])


@cache
def _target_with(form: str) -> str | None:
    return next((target for target in targets() if re.fullmatch(any_of([target]), form)), None)


def _parts(resource: str, sentence: str) -> tuple[str, str, str]:
    """Split a triple into head, neutral phrase and tail; a sentence stays whole."""
    if resource == KNOWLEDGE[1] or not (parts := parse_sentence(sentence)):
        return sentence, "", ""
    head, relation, tail = parts
    return head, relation.neutral_phrase, tail
