"""A file of one's own statements, `target<TAB>statement`; each fault in it is named by file and line.

What a statement says is not looked at: it stays as it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check, check_once, fields, read_lines, report_faults
from mitigate.targets import targets
from mitigate.texts import counted
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE

COLUMNS = ["target", "statement"]
SCHEMA = {"row": pl.UInt32, "target": pl.String, "category": pl.String, "statement": pl.String}
LABELS = {str(label): label for label in (PREJUDICE, NEUTRAL, FAVOURITISM, OTHER)}


@dataclass(frozen=True)
class LoadedStatements:
    """Statements in the order of their lines (row, the line's number; target; category; statement; and the labels
    that the file gives), and a sentence for each oddity the reader met."""

    statements: pl.DataFrame
    notices: list[str] = field(default_factory=list)


def load(
    path: str | None,
    on_bad_line: OnBadLine = "error",
    columns: Sequence[str] | None = None,
    label_column: str | None = None,
) -> LoadedStatements:
    """The statements of a file, `.gz` or plain.

    A first line that names the columns `target` and `statement` is a header, and may name more; without one the
    columns are `columns`, else target and statement. A target is lower-cased and its underscores are spaces; one that
    is not among the paper's 329 is of category "own". Statements may repeat. label_column: the column that labels
    them, -1, 0, 1 or 2; it keeps its name. Case does not matter in names of columns.

    Raises MitigateError for no path, for a file that is missing, unreadable, empty, or without such a column or with
    two of its name, for a label_column that is called as a column of the result, and, unless on_bad_line is "skip", for
    lines with another number of columns, blank fields, other labels, or bytes that are not UTF-8."""
    check(on_bad_line)
    if path is None:
        raise MitigateError("data=statements needs a file: give data.path=FILE.tsv, of lines 'target<TAB>statement'")
    lines, notices = read_lines(Path(path), "target<TAB>statement")
    header = _header(lines[0])
    names = [name.lower() for name in columns or header or COLUMNS]
    labels = [] if label_column is None else [label_column.lower()]
    if taken := [name for name in labels if name in SCHEMA]:
        raise MitigateError(
            f"data.label_column={taken[0]}: the column {taken[0]} holds something else here; give that of the labels "
            "another name"
        )
    if absent := [name for name in COLUMNS + labels if name not in names]:
        raise MitigateError(
            f"{path} has no column {' and no column '.join(absent)}, but {', '.join(names)}; name its columns in a "
            "first line, or with data.columns=[target,statement,...]"
        )
    check_once(path, COLUMNS + labels, names)
    rows: list[tuple] = []
    faults: list[str] = []
    first = 2 if header else 1
    for number, written in fields(lines[first - 1 :], path, "\t", faults, first):
        parts = [part.strip() for part in written]
        if fault := _fault(parts, names, labels):
            faults.append(f"{path}:{number}: {fault}")
            continue
        value = dict(zip(names, parts, strict=True))
        target = " ".join(value["target"].replace("_", " ").lower().split())
        given = [LABELS[value[name]] for name in labels]
        rows.append((number, target, targets().get(target, "own"), value["statement"], *given))
    notices += report_faults(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no statements; expected lines 'target<TAB>statement'")
    statements = pl.DataFrame(rows, schema={**SCHEMA, **dict.fromkeys(labels, pl.Int8)}, orient="row")
    return LoadedStatements(statements, notices)


def _header(line: bytes) -> list[str]:
    """The column names of a first line, or none when it is a statement."""
    names = [part.strip().lower() for part in line.decode("utf-8", errors="replace").split("\t")]
    return names if set(COLUMNS) <= set(names) else []


def _fault(parts: Sequence[str], names: Sequence[str], labels: Sequence[str]) -> str | None:
    if len(parts) != len(names):
        return f"{counted(len(parts), 'column')}, expected {len(names)} separated by a tab: {', '.join(names)}"
    value = dict(zip(names, parts, strict=True))
    if not all(value[name] for name in COLUMNS):
        return "a blank field"
    for name in labels:
        if value[name] not in LABELS:
            return f"{name} {value[name]!r}; allowed: {', '.join(LABELS)} (prejudice, neutral, favouritism, other)"
    return None
