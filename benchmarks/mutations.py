"""Mutation testing: break the source in places drawn by seed, and count how many the tests catch.

    python benchmarks/mutations.py cover    # runs the tests once and records which test executes which line
    python benchmarks/mutations.py break --number 60 --seed 1 --table mutants.csv

A mutant is one change of one line: a comparison or an arithmetic operator replaced, a condition negated, `and` for
`or`, an integer raised by one, a call statement removed, two arguments swapped. Only tests that execute the changed
line are run; where all of them pass, the whole files in which they stand, since a run that several tests share is
computed by the first of them alone. A mutant that runs for longer than the limit counts as caught."""

import argparse
import ast
import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import coverage

ROOT = Path(__file__).parents[1]
SOURCES = ("mitigate", "models")
COVERAGE = ROOT / ".coverage"
MOST_TESTS = 60  # of one mutant, drawn by its place: thousands execute a line of a module that all tests need
MOST_FILES = 3
LIMIT = 300  # seconds of one run of tests
NOT_COPIED = shutil.ignore_patterns(".venv*", ".git", "__pycache__", "outputs", ".coverage*", ".mypy_cache")
OPPOSITE = {
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in")},
    **{ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and")},
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "/")},
}


class Mutant(NamedTuple):
    """A change of one place: `start` to `end` are offsets in the file's text, `line` counts from 1."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Source:
    """A file with the offsets of its lines."""

    path: Path
    text: str

    def offset(self, line: int, column: int) -> int:
        """The offset of a position that ast gives: lines from 1, columns in UTF-8 bytes."""
        lines = self.text.splitlines(keepends=True)
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def mutants(self) -> Iterator[Mutant]:
        """All changes of this file."""
        for node in ast.walk(ast.parse(self.text)):
            for kind, start, end, text in self._changes(node):
                line = self.text.count("\n", 0, start) + 1
                yield Mutant(self.path.relative_to(ROOT).as_posix(), line, kind, start, end, text)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        if isinstance(node, ast.Compare):
            yield from self._operators("comparison", [node.left, *node.comparators], node.ops)
        elif isinstance(node, ast.BoolOp):
            yield from self._operators("and/or", node.values, [node.op] * (len(node.values) - 1))
        elif isinstance(node, ast.BinOp):
            yield from self._operators("arithmetic", [node.left, node.right], [node.op])
        elif isinstance(node, ast.If | ast.IfExp):
            start, end = self.span(node.test)
            yield "condition", start, end, f"(not ({self.text[start:end]}))"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield "bound", *self.span(node), str(node.value + 1)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield "missing call", *self.span(node), "pass"
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            first, second = node.args[:2]
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                (start, middle), (after, end) = self.span(first), self.span(second)
                swapped = self.text[after:end] + self.text[middle:after] + self.text[start:middle]
                yield "swapped arguments", start, end, swapped

    def _operators(self, kind: str, operands: list[ast.expr], operators: list) -> Iterator[tuple[str, int, int, str]]:
        for left, right, operator in zip(operands, operands[1:], operators, strict=False):
            old, new = OPPOSITE.get(type(operator), ("", ""))
            begin, stop = self.span(left)[1], self.span(right)[0]
            found = self.text.find(old, begin, stop) if old else -1
            if found >= 0:
                yield kind, found, found + len(old), new


def draw(number: int, seed: int) -> list[Mutant]:
    """`number` mutants: first a kind, then one of its places, each with equal chance."""
    kinds: dict[str, list[Mutant]] = {}
    for path in sorted(path for name in SOURCES for path in (ROOT / name).rglob("*.py")):
        for mutant in Source(path, path.read_text(encoding="utf-8")).mutants():
            kinds.setdefault(mutant.kind, []).append(mutant)
    chance = random.Random(seed)
    drawn: list[Mutant] = []
    while len(drawn) < number:
        mutant = chance.choice(kinds[chance.choice(sorted(kinds))])
        if mutant not in drawn:
            drawn.append(mutant)
    return drawn


def tests_of(data: coverage.CoverageData, mutant: Mutant) -> list[str]:
    """The tests that execute the line, at most MOST_TESTS of them. A line within a statement of several lines counts
    as the nearest executed one above it."""
    file = next((file for file in data.measured_files() if file.endswith(f"/{mutant.path}")), "")
    lines = data.contexts_by_lineno(file) if file else {}
    contexts = next((lines[line] for line in range(mutant.line, mutant.line - 6, -1) if line in lines), [])
    names = sorted({context.rsplit("|", 1)[0] for context in contexts if "::" in context})
    return random.Random(mutant.start).sample(names, min(MOST_TESTS, len(names)))


def outcome(mutant: Mutant, data: coverage.CoverageData) -> dict[str, object]:
    """Whether the tests catch a mutant, and which of them does."""
    tests = tests_of(data, mutant)
    row: dict[str, object] = {
        **{"path": mutant.path, "line": mutant.line, "kind": mutant.kind, "change": mutant.text, "tests": len(tests)},
        **{"caught": "not executed", "by": ""},
    }
    if not tests:
        return row
    caught, by = run(tests, mutant)
    if caught == "no":
        caught, by = run(sorted({name.split("::")[0] for name in tests})[:MOST_FILES], mutant)
    print(f"{mutant.path}:{mutant.line} {mutant.kind}: {caught} {by}", flush=True)
    return row | {"caught": caught, "by": by}


def run(names: list[str], mutant: Mutant) -> tuple[str, str]:
    """Run tests in a broken copy of the tree until one fails that passes in this tree: ("yes" |
    "no" | "too slow", the test that fails)."""
    passing: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "checkout")
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        (copy / "outputs").mkdir()
        path = copy / mutant.path
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: mutant.start] + mutant.text + text[mutant.end :], encoding="utf-8")
        while True:
            caught, by = _run(names, copy, passing)
            if caught != "yes" or _run([by], ROOT, [])[0] == "no":
                return caught, by
            passing.append(by)


def _run(names: list[str], folder: Path, without: list[str]) -> tuple[str, str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    environment.setdefault("MITIGATE_DATA", str(ROOT.parent / "shared" / "data"))
    line = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not thorough"]
    line += [f"--deselect={name}" for name in without] + names
    try:
        ended = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "too slow", ""
    marks = ("FAILED ", "ERROR ")
    failed = [line.split(" ", 1)[1].split(" - ")[0] for line in ended.stdout.splitlines() if line.startswith(marks)]
    return ("no" if ended.returncode in (0, 5) else "yes"), next(iter(failed), "")


def cover() -> None:
    """The tests with a context for each, so that COVERAGE says which test executes which line."""
    line = [sys.executable, "-m", "pytest", "-m", "not thorough", "-n", "auto", "--dist", "worksteal", "-q"]
    measured = [f"--cov={name}" for name in SOURCES]
    subprocess.run([*line, *measured, "--cov-branch", "--cov-context=test", "--cov-report=term"], cwd=ROOT, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["cover", "break"])
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=Path, default=Path("mutants.csv"))
    given = parser.parse_args()
    if given.action == "cover":
        cover()
        return
    data = coverage.CoverageData(str(COVERAGE))
    data.read()
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(partial(outcome, data=data), draw(given.number, given.seed)))
    with given.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    print(f"{sum(row['caught'] in ('yes', 'too slow') for row in rows)} of {len(rows)} caught: {given.table}")


if __name__ == "__main__":
    main()
