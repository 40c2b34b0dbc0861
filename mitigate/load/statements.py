"""Statements whose targets the file says: a user's own, `target<TAB>statement`; stories, `prompt|||story`; and the
resources that the harms paper audits, as its authors released them, in the folder harms/ of data.root or of
MITIGATE_DATA.

The content of a statement is not checked: it stays as it is written."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError, one_of
from mitigate.load.stream import Loaded, OnBadLine, bad, describe, path_of, report
from mitigate.load.table import layout_of, open_lines, open_table, read_all
from mitigate.load.triples import columns_of
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, TRIPLES
from mitigate.words.outside_text import whole_sentences
from mitigate.words.prompts import PROMPTS, kind_of, targets_of_prompt
from mitigate.words.relations import relations
from mitigate.words.targets import PAPER, TargetList, targets

COLUMNS = ["target", "statement"]
SCHEMA = {"row": pl.UInt32, "target": pl.String, "category": pl.String, "statement": pl.String}
MEANINGS = {"prejudice": PREJUDICE, "neutral": NEUTRAL, "favouritism": FAVOURITISM, "other": OTHER}
LABELS = {
    **MEANINGS,
    **{"negative": PREJUDICE, "positive": FAVOURITISM, "favoritism": FAVOURITISM},
    **{"-1": PREJUDICE, "0": NEUTRAL, "1": FAVOURITISM, "+1": FAVOURITISM},
}
"""Labels in files, in lower case. Other numbers, and 0 and 1 without -1, could mean anything: data.labels says it."""
LISTED = "the sources that docs/resources.md lists"
CONCEPTNET = "harms/conceptnet_target_triples.txt"
GENERICSKB = "harms/genericskb_target_sentences.tsv"
REGARD = "regard/bert_labels_conceptnet.tsv"
SHOWN = 10  # labels in a message
BETWEEN = "|||"
EXPECTED_STORY = f"prompt{BETWEEN}story"


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Sequence[str] | Mapping[str, str] | None = None,
    label_column: str | None = None,
    labels: Mapping[str | int, str] | None = None,
) -> Loaded:
    """The statements of a file: lines `target<TAB>statement`, or a table with such columns in any format. The rows have
    the order of the lines: row (the line's number), target, category, statement, and the labels that the file gives.

    A first line that names the columns `target` and `statement` is a header, and may name more; without one the columns
    are `columns`, in their order, else target and statement. columns may also say what a table calls them,
    {"target": "who"}. A target is lower-cased and its underscores are spaces; one that is not among the paper's 329 is
    of category "own". Statements may repeat. label_column: the column that labels them; it keeps its name. labels: the
    meaning of each of its values, {0: prejudice, 1: neutral, 2: favouritism}; without it LABELS. Case does not matter.

    Raises MitigateError for no path, for a file that is missing, unreadable, empty, or without such a column or with
    two of its name, for a label_column that is called as a column of the result, for labels of unknown meaning, and,
    unless on_bad_line is "skip", for lines with another number of columns, blank fields and single unknown labels."""
    place = path_of(path, "statements", "FILE.tsv, a file of lines 'target<TAB>statement'")
    label_names = [] if label_column is None else [label_column.lower()]
    if taken := [name for name in label_names if name in SCHEMA]:
        raise MitigateError(
            f"data.label_column={taken[0]}: the column {taken[0]} has another meaning here; rename the column of "
            "labels in the file"
        )
    found, counts = read_all(open_table(place, **_columns(place, columns, label_names)))
    text = pl.col("target", "statement", *label_names)
    found = found.with_columns(text.fill_null("").str.strip_chars())
    plain_labels = pl.col(label_names).str.to_lowercase().str.replace(r"^([+-]?\d+)\.0+$", "$1")
    found = found.with_columns(plain_labels) if label_names else found
    known = meanings(found[label_names[0]], labels) if label_names else {}
    faults = [(row["row"], fault) for row in found.iter_rows(named=True) if (fault := _fault(row, label_names, known))]
    report(place, faults, counts)
    notices = describe(counts, on_bad_line)
    good = found.filter(~pl.col("row").is_in([row for row, _ in faults]))
    if good.is_empty():
        raise MitigateError(f"{path} has no statements; expected lines 'target<TAB>statement'")
    plain = pl.col("target").str.replace_all(r"[_\s]+", " ").str.strip_chars().str.to_lowercase()
    category = plain.replace_strict(targets(), default="own", return_dtype=pl.String)
    given = [pl.col(name).replace_strict(known, return_dtype=pl.Int8) for name in label_names]
    rows = good.select("row", plain, category.alias("category"), "statement", *given)
    return Loaded(rows, notices, kind="statements")


def _columns(path: Path, columns: Sequence[str] | Mapping[str, str] | None, labels: Sequence[str]) -> dict[str, Any]:
    """The arguments of read_table for the columns. Raises MitigateError for one that is missing or repeated."""
    layout = layout_of(path)
    wanted = [*COLUMNS, *labels]
    if isinstance(columns, Mapping):
        return {"columns": {**columns_of(columns, tuple(COLUMNS)), **dict(zip(labels, labels, strict=True))}}
    header = [name.strip().lower() for name in layout.names]
    is_headed = set(COLUMNS) <= set(header) or layout.form not in ("table", "lines")
    names = [name.lower() for name in columns or (header if is_headed else COLUMNS)]
    if absent := [name for name in wanted if name not in names]:
        raise MitigateError(
            f"{path} has no column {' and no column '.join(absent)} (found: {', '.join(names)}); name the columns in "
            "a header line, or set data.columns=[target,statement,...]"
        )
    if is_headed:
        return {"columns": {name: name for name in wanted}, "layout": layout}
    return {"columns": {name: names.index(name) + 1 for name in wanted}, "layout": layout, "widths": (len(names),)}


def meanings(found: pl.Series, labels: Mapping[str | int, str] | None = None) -> dict[str, int]:
    """The label that each value of a column stands for. found: its values, in lower case; labels: their meanings, as
    the user gives them.

    Raises MitigateError for an unknown meaning, and without meanings where numbers could have another sign: a file of
    0 and 1 is as often "toxic" as it is "positive"."""
    if labels:
        given = {str(value).lower(): str(meaning).lower() for value, meaning in labels.items()}
        if wrong := [meaning for meaning in given.values() if meaning not in LABELS]:
            raise one_of("data.labels", wrong[0], MEANINGS)
        return {value: LABELS[meaning] for value, meaning in given.items()}
    values = sorted(set(found) - {""})
    numbers = sorted((value for value in values if re.fullmatch(r"[+-]?\d+(?:\.\d+)?", value)), key=float)
    is_signed = "-1" in numbers and set(numbers) <= set(LABELS)
    if is_signed or not values or (not numbers and not LABELS.keys().isdisjoint(values)):
        return LABELS
    unknown = numbers or values
    order = ["prejudice", *["neutral"] * (len(unknown) - 2), "favouritism"]
    if "-1" in numbers:
        order = [{"-1": "prejudice", "0": "neutral", "1": "favouritism"}.get(value, "other") for value in unknown]
    written = [f"{value}: {meaning}" for value, meaning in zip(unknown[:SHOWN], order, strict=False)]
    example = f"data.labels={{{', '.join(written)}}}"
    if unknown == ["0", "1"]:
        example = (
            "data.labels={0: neutral, 1: prejudice} where 1 marks harm, {0: prejudice, 1: favouritism} where 0 does"
        )
    raise MitigateError(
        f"the labels are {', '.join(unknown[:SHOWN])}, which does not say what is prejudice; allowed: -1, 0 and 1 with "
        f"some -1, or words ({', '.join(dict.fromkeys([*MEANINGS, 'negative', 'positive']))}). Give the meaning of "
        f"each, for example {example}"
    )


def _fault(value: Mapping[str, Any], label_names: Sequence[str], known: Mapping[str, int]) -> str | None:
    if not all(value[name] for name in COLUMNS):
        return "a blank field"
    for name in label_names:
        if value[name] not in known:
            return f"{name} {value[name]!r}; allowed: {', '.join(known)}; data.labels={{...}} gives others a meaning"
    return None


def stories(path: str | None, on_bad_line: OnBadLine = "error", target_list: TargetList = PAPER) -> Loaded:
    """The stories of a file, `.gz` or plain, about targets of the list or in the place of a template; prompts and
    stories stay unchanged. The rows have the columns PROMPTS and story, in the order of the lines; row is the line's
    number. A story whose prompt names several targets has a row for each.

    Raises MitigateError for no path, for a file that is missing, unreadable or empty, and, unless on_bad_line is
    "skip", for lines that are not UTF-8 or not of these two parts, for prompts that name no target, and for stories
    without a whole sentence."""
    if path is None:
        raise MitigateError(f"data=stories needs a file: give data.path=FILE, of lines '{EXPECTED_STORY}'")
    lines, counts = read_all(open_lines(Path(path)))
    rows: list[tuple] = []
    for number, line in lines.iter_rows():
        parts = [part.strip() for part in line.split(BETWEEN)]
        about = targets_of_prompt(parts[0], target_list)
        if fault := _fault_of_story(parts, bool(about)):
            bad(counts, [f"{path}:{number}: {fault}"])
            continue
        prompt, story = parts
        for target, template in about:
            category, kind = target_list.categories.get(target, "own"), kind_of(target, target_list)
            rows.append((number, target, category, kind, template, prompt, story))
    notices = describe(counts, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no stories; expected lines '{EXPECTED_STORY}'")
    return Loaded(pl.DataFrame(rows, {**PROMPTS, "story": pl.String}, orient="row"), notices, kind="stories")


def _fault_of_story(parts: list[str], names_a_target: bool) -> str | None:
    if len(parts) != 2:
        return f"{len(parts)} parts, expected '{EXPECTED_STORY}'"
    if not all(parts):
        return "a blank prompt or story"
    if not names_a_target:
        return f"no target in the prompt {parts[0]!r}"
    if not whole_sentences(parts[1]):
        return "a story without a whole sentence"
    return None


def harms_conceptnet(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """ConceptNet's 101,229 triples. Those whose relation has no phrase (ExternalURL, dbpedia) are left out and counted
    in a notice. Lines are `head Relation tail`, spaces inside a phrase written as underscores; case is folded, repeats
    stay, because the paper counts them."""
    return harms_triples(find(root, CONCEPTNET), on_bad_line)


def harms_triples(path: Path, on_bad_line: OnBadLine = "error") -> Loaded:
    """The triples of a file of this form."""
    places = {"head": 1, "relation": 2, "tail": 3}
    rows, counts = read_all(open_table(path, places, separator=" ", widths=(3,), stray_quotes=True))
    known = pl.col("relation").is_in(list(relations()))
    for name, count in rows.filter(~known)["relation"].value_counts().iter_rows():
        counts["relation", name] += count
    plain = pl.col("head", "tail").str.replace_all("_", " ", literal=True).str.to_lowercase()
    triples = rows.filter(known).with_columns(plain, split=pl.lit("train"), valid=pl.lit(True))
    return Loaded(triples.select(*TRIPLES), describe(counts, on_bad_line))


def harms_genericskb(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """GenericsKB's 29,505 sentences."""
    return load(str(find(root, GENERICSKB)), on_bad_line)


def harms_conceptnet_regard(root: str | None = None, on_bad_line: OnBadLine = "error") -> Loaded:
    """85,992 of ConceptNet's statements, masked by the paper's authors, with their classifier's regard labels."""
    columns = ["target", "regard", "statement"]
    labels: dict[str | int, str] = {-1: "prejudice", 0: "neutral", 1: "favouritism", 2: "other"}
    return load(str(find(root, REGARD)), on_bad_line, columns, "regard", labels)


def find(root: str | None, name: str) -> Path:
    """The file under data.root or MITIGATE_DATA. Raises MitigateError as root_with does."""
    return root_with(root, [name], "the paper's repository, https://github.com/Ninarehm/Commonsense_bias") / name


def find_root(given: str | None) -> Path | None:
    """The folder, or None where neither names one."""
    place = given or os.environ.get("MITIGATE_DATA")
    return Path(place) if place else None


def root_with(given: str | None, needed: Sequence[str], source: str = LISTED) -> Path:
    """The folder with these files and folders. source: their origin. Raises MitigateError where no folder is named, and
    for the first of them that is missing."""
    root = find_root(given)
    holding = f"the folder that contains {', '.join(needed)}, from {source}"
    if root is None:
        raise MitigateError(f"data.root is not set; set it, or the variable MITIGATE_DATA, to {holding}")
    if missing := [name for name in needed if not (root / name).exists()]:
        raise MitigateError(
            f"no such file or folder: {root / missing[0]}; set data.root (or MITIGATE_DATA) to {holding}"
        )
    return root
