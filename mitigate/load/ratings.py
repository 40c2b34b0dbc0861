"""People's ratings of statements: CSV files of the survey and of crowd platforms, and the harms paper's release, which
has one label a line beside a file with a sentence a line; and the statements of that release with their targets. Raters
are numbered in the order in which the files first name them: a platform's ids can identify a person."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError, counted
from mitigate.load.statements import LABELS as STATEMENT_LABELS
from mitigate.load.statements import WHOLE_NUMBER
from mitigate.load.stream import Counts, OnBadLine, describe, first, report
from mitigate.load.table import Column, layout_of, open_lines, open_table
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, majority_labels
from mitigate.verbalise import mask_column
from mitigate.words.relations import parse_sentence
from mitigate.words.targets import clusters, target_of, targets

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
CHOICE = ":::"  # Potato has a column for each choice: label:::negative; the one that is not blank was chosen

LABELS = {word: label for word, label in STATEMENT_LABELS.items() if label != OTHER}
SENSE = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
KNOWLEDGE = ("ConceptNet", "GenericsKB")  # resources of which people rated statements (Tables 2 and 3)
RESOURCES = (*KNOWLEDGE, "COMeT")  # and statements that COMeT generates about targets (Tables 7 and 12)
FILTERED = "COMeT-Filtered"  # of the paper's filtered COMeT: nothing is trained on them or chosen by them
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
    rows, counts = list[tuple[str, str, int, bool | None]](), Counts()
    seen, numbers = dict[tuple[str, str], str](), dict[str, str]()
    for path in paths:
        layout = layout_of(path)
        wanted = {name: Column(names, optional=name in (STATUS, "quality")) for name, names in COLUMNS.items()}
        for name in ("label", "quality"):
            chosen = [each for each in layout.lower if each.startswith(name + CHOICE)]
            wanted[name] = replace(wanted[name], optional=wanted[name].optional or bool(chosen))
            wanted |= {each: Column((each,), optional=True) for each in chosen}
        answers, file_counts = open_table(path, wanted, layout=layout, remedy=remedy).read()
        counts += file_counts
        answers = answers.with_columns(pl.col("^(label|quality)$").str.replace(WHOLE_NUMBER, "$1"))
        for answer in answers.iter_rows(named=True):
            given = {name: (value or "").strip() for name, value in answer.items() if name != "row"}
            for name in ("label", "quality"):
                chosen = [each.partition(CHOICE)[2] for each in given if each.startswith(name + CHOICE) and given[each]]
                given.setdefault(name, ", ".join(chosen))
            rater, item, label, quality = (given[name] for name in ("rater", "item", "label", "quality"))
            if given.get(STATUS, "").lower() == "rejected":
                counts["left out", "rejected on the platform"] += 1
                continue
            blank, earlier = [name for name in ("rater", "item", "label") if not given[name]], seen.get((rater, item))
            faults = {
                f"no {', '.join(blank)}": bool(blank),
                f"unknown item {item!r}: it is not in the survey": item not in items,
                f"label {label!r}; allowed: -1, 0, 1, or negative, neutral, positive": label.lower() not in LABELS,
                f"quality {quality!r}; allowed: 1, 0, or yes, no": quality.lower() not in SENSE and quality != "",
                f"rater {rater} already rated item {item}, at {earlier}": earlier is not None,
            }
            if fault := next((fault for fault, is_there in faults.items() if is_there), None):
                report(path, [(answer["row"], fault)], counts)
                continue
            seen[rater, item] = f"{path}:{answer['row']}"
            name = numbers.setdefault(rater, f"rater {len(numbers) + 1}")
            rows.append((item, name, LABELS[label.lower()], SENSE.get(quality.lower())))
    notices = describe(counts, on_bad_line)
    if not rows:
        raise MitigateError(f"no ratings in {', '.join(map(str, paths))}; expected lines 'rater,item,label,quality'")
    ratings = pl.DataFrame(rows, schema=RATINGS, orient="row")
    rated = dict(ratings["item"].value_counts().iter_rows())
    if none := sorted(item for item in items if item not in rated):
        notices.append(f"{len(none):,} of {len(items):,} items without a rating: {first(none, ', ')}")
    if few := sorted(item for item, count in rated.items() if count < raters):
        notices.append(f"{counted(len(few), 'item')} with fewer than {raters} ratings: {first(few, ', ')}")
    if unknown := ratings["quality"].null_count():
        notices.append(f"{counted(unknown, 'rating')} without a word on whether the statement makes sense")
    return ratings, notices


def rated_sets(folder: Path, names: Sequence[str] = ()) -> dict[str, list[Path]]:
    """Each of the named rated sets -> its files, as read_beside takes them; without names each that the folder has."""
    found = {}
    for name in names or (*RESOURCES, FILTERED):
        files = [folder / f"{name}_{end}.txt" for end in ("sentences", "bias_labels", "quality_labels")]
        there = [path for path in files if path.is_file()]
        if there[:2] == files[:2]:
            found[name] = there
        elif names or there:
            lacks = next(path for path in files if path not in there)
            raise MitigateError(f"{folder} has no {lacks.name}; set data.root to the folder that contains humans/")
    if not found:
        raise MitigateError(f"{folder} has no {RESOURCES[0]}_sentences.txt and no other rated set; set data.root")
    return found


def read_beside(sentences: Path, bias_labels: Path, quality_labels: Path | None = None) -> pl.DataFrame:
    """The ratings, schema RATINGS, of sentences (the items) by raters who are not named.

    bias_labels: 1 favouritism, 2 neutral, 3 prejudice. quality_labels: 1 makes sense; 0, or 2 as in the paper's
    release, does not."""
    items = open_lines(sentences).read()[0]["statement"]
    found = pl.DataFrame({"item": items}).with_columns(rater=pl.lit(None, pl.String), quality=pl.lit(None, pl.Boolean))
    for name, path in (("label", bias_labels), *([("quality", quality_labels)] if quality_labels else [])):
        labels = open_lines(path).read()[0]["statement"].str.strip_chars()
        meaning = BIAS if name == "label" else RELEASED_QUALITY if "2" in labels else QUALITY
        if len(labels) != len(items):
            raise MitigateError(f"{path} has {counted(len(labels), 'label')}; expected one for each of {len(items):,}")
        if faults := [f"{path}:{row}: {label!r}" for row, label in enumerate(labels, 1) if label not in meaning]:
            raise MitigateError(f"labels other than {', '.join(meaning)}:\n  {first(faults)}")
        found = found.with_columns(labels.replace_strict(meaning, return_dtype=RATINGS[name]).alias(name))
    return found.select(list(RATINGS))


def read_crowd(folder: Path, names: Sequence[str] = RESOURCES) -> pl.DataFrame:
    """The sentences of these resources that people rated for the harms paper, with all ratings of each: resource,
    sentence, votes (-1, 0, 1), quality (whether each rater calls it valid; null where not rated)."""
    return pl.concat(
        read_beside(*places)
        .group_by("item", maintain_order=True)
        .agg(votes="label", quality="quality")
        .select(pl.lit(resource).alias("resource"), pl.col("item").alias("sentence"), "votes", "quality")
        for resource, places in rated_sets(folder, names).items()
    )


def read_rated(root: Path, names: Sequence[str] = RESOURCES) -> pl.DataFrame:
    """Read the rated statements of these sources below a folder that holds humans/, as describe_rated returns them."""
    return describe_rated(read_crowd(root / "humans", names))


def describe_rated(crowd: pl.DataFrame) -> pl.DataFrame:
    """Add to rated statements (resource, sentence, votes) most (the label of most raters), target and category (null
    where there is none), cluster (its target's, or the statement), head and tail (the statement and "" for a sentence),
    masked and masked_neutral (demographic words masked; the latter with the relation's neutral phrase)."""
    found, words, rows = [target_of(text) for text in crowd["sentence"]], clusters(), list[tuple]()
    for target, resource, text in zip(found, crowd["resource"], crowd["sentence"], strict=True):
        parts = None if resource == KNOWLEDGE[1] else parse_sentence(text)  # of GenericsKB are whole sentences
        head, tail = (parts[0], parts[2]) if parts else (text, "")
        worded = f"{head} {parts[1].neutral_phrase} {tail}" if parts else text
        rows.append((target, targets().get(target or ""), words.get(target or "", target or text), head, tail, worded))
    names = ("target", "category", "cluster", "head", "tail", "worded")
    about = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
    most = pl.Series("most", majority_labels(crowd["votes"]), pl.Int8)
    return pl.concat([crowd.with_columns(most), about], how="horizontal").with_columns(
        mask_column("sentence", "token").alias("masked"), mask_column("worded", "token").alias("masked_neutral")
    )
