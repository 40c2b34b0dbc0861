"""A file of one's own statements, `target<TAB>statement`; each fault in it is named by file and line.

What a statement says is not looked at: it stays as it is written."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.lines import OnBadLine, check, read_lines, tell
from mitigate.targets import targets

COLUMNS = ["target", "statement"]
SCHEMA = {"row": pl.UInt32, "target": pl.String, "category": pl.String, "statement": pl.String}


@dataclass(frozen=True)
class LoadedStatements:
    """Statements in the order of their lines (row, the line's number; target; category; statement), and a sentence
    for each oddity the reader met."""

    statements: pl.DataFrame
    notices: list[str] = field(default_factory=list)


def load(path: str | None, on_bad_line: OnBadLine = "error") -> LoadedStatements:
    """The statements of a file, `.gz` or plain; a first line `target<TAB>statement` is a header.

    A target is lower-cased and its underscores are spaces; one that is not among the paper's 329 is of category
    "own". Statements may repeat. Raises MitigateError for no path, for a file that is missing, unreadable or
    empty, and, unless on_bad_line is "skip", for lines that are not two filled fields in UTF-8."""
    check(on_bad_line)
    if path is None:
        raise MitigateError("data=statements needs a file: give data.path=FILE.tsv, of lines 'target<TAB>statement'")
    lines, notices = read_lines(Path(path), "target<TAB>statement")
    rows: list[tuple[int, str, str, str]] = []
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            fields = [part.strip() for part in line.decode("utf-8").split("\t")]
        except UnicodeDecodeError as error:
            faults.append(f"{path}:{number}: not UTF-8 ({error.reason} at byte {error.start})")
            continue
        if number == 1 and [part.lower() for part in fields] == COLUMNS:
            continue
        if fault := _fault(fields):
            faults.append(f"{path}:{number}: {fault}")
            continue
        target = " ".join(fields[0].replace("_", " ").lower().split())
        rows.append((number, target, targets().get(target, "own"), fields[1]))
    notices += tell(faults, on_bad_line)
    if not rows:
        raise MitigateError(f"{path} has no statements; expected lines 'target<TAB>statement'")
    return LoadedStatements(pl.DataFrame(rows, schema=SCHEMA, orient="row"), notices)


def _fault(fields: list[str]) -> str | None:
    if len(fields) != 2:
        return f"{len(fields)} columns, expected 2 separated by a tab: target, statement"
    if [part.lower() for part in fields] == COLUMNS[::-1]:
        return "the columns are statement, target; expected target, statement"
    if not all(fields):
        return "a blank field"
    return None
