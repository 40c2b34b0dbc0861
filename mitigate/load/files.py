"""A file of a user's own statements, `target<TAB>statement`; each fault in it is named by file and line.

The content of a statement is not checked: it stays as it is written."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.any_triples import columns_of
from mitigate.load.file_format import layout_of
from mitigate.load.lines import OnBadLine, check, check_once, report_faults
from mitigate.load.stream import Loaded, path_of
from mitigate.load.table import read_table
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE
from mitigate.words.targets import targets

COLUMNS = ["target", "statement"]
SCHEMA = {"row": pl.UInt32, "target": pl.String, "category": pl.String, "statement": pl.String}
LABELS = {str(label): label for label in (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)}
LISTED = "the sources that docs/resources.md lists"


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Sequence[str] | Mapping[str, str] | None = None,
    label_column: str | None = None,
) -> Loaded:
    """The statements of a file: lines `target<TAB>statement`, or a table with such columns in any format. The rows have
    the order of the lines: row (the line's number), target, category, statement, and the labels that the file gives.

    A first line that names the columns `target` and `statement` is a header, and may name more; without one the columns
    are `columns`, in their order, else target and statement. columns may also say what a table calls them,
    {"target": "who"}. A target is lower-cased and its underscores are spaces; one that is not among the paper's 329 is
    of category "own". Statements may repeat. label_column: the column that labels them, -1, 0, 1 or 2; it keeps its
    name. Case does not matter in names of columns.

    Raises MitigateError for no path, for a file that is missing, unreadable, empty, or without such a column or with
    two of its name, for a label_column that is called as a column of the result, and, unless on_bad_line is "skip", for
    lines with another number of columns, blank fields, other labels, or bytes that are not UTF-8."""
    check(on_bad_line)
    place = path_of(path, "statements", "FILE.tsv, a file of lines 'target<TAB>statement'")
    labels = [] if label_column is None else [label_column.lower()]
    if taken := [name for name in labels if name in SCHEMA]:
        raise MitigateError(
            f"data.label_column={taken[0]}: the column {taken[0]} has another meaning here; rename the column of "
            "labels in the file"
        )
    found, notices = read_table(place, **_columns(place, columns, labels), on_bad_line=on_bad_line)
    text = pl.col("target", "statement", *labels)
    found = found.with_columns(text.fill_null("").str.strip_chars())
    faults = [(row["row"], fault) for row in found.iter_rows(named=True) if (fault := _fault(row, labels))]
    notices += report_faults([f"{path}:{row}: {fault}" for row, fault in faults], on_bad_line)
    good = found.filter(~pl.col("row").is_in([row for row, _ in faults]))
    if good.is_empty():
        raise MitigateError(f"{path} has no statements; expected lines 'target<TAB>statement'")
    plain = pl.col("target").str.replace_all(r"[_\s]+", " ").str.strip_chars().str.to_lowercase()
    category = plain.replace_strict(targets(), default="own", return_dtype=pl.String)
    given = [pl.col(name).replace_strict(LABELS, return_dtype=pl.Int8) for name in labels]
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
    check_once(path, wanted, names)
    if is_headed:
        return {"columns": {name: name for name in wanted}, "layout": layout}
    separator = layout.separator if layout.form == "table" else "\t"
    return {"columns": {name: names.index(name) + 1 for name in wanted}, "separator": separator, "width": len(names)}


def _fault(value: Mapping[str, Any], labels: Sequence[str]) -> str | None:
    if not all(value[name] for name in COLUMNS):
        return "a blank field"
    for name in labels:
        if value[name] not in LABELS:
            return f"{name} {value[name]!r}; allowed: {', '.join(LABELS)} (prejudice, neutral, favouritism, other)"
    return None


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
