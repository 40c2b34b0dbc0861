"""Mutation testing: break the source in places drawn by seed, and count how many the tests catch.

    python benchmarks/mutations.py trace    # runs the tests once and notes which test reaches which place
    python benchmarks/mutations.py break --table mutants.csv

A mutant is one change of one line: a comparison or an arithmetic operator replaced, a condition negated, `and` for
`or`, an integer raised by one, a call statement removed, two arguments swapped. Only tests that reach the changed
statement, in their own or in another process, are run; where all of them pass, the whole files in which they stand,
since a run that several tests share is computed by the first of them alone. Of a statement that no test reaches (it is
executed when its module is imported), and of all where nothing has been traced, files that import the module are run,
those first that are named like it. A mutant that runs for longer than the limit counts as caught."""

import argparse
import ast
import csv
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ("mitigate", "models")
MOST_TESTS = 30  # of one mutant, drawn by its place: thousands reach a statement of a module that all tests need
MOST_FILES = 3
LIMIT = 300  # seconds of one run of tests
NOT_COPIED = shutil.ignore_patterns(".venv*", ".git", "__pycache__", "outputs", ".coverage*", ".mypy_cache")
NOTES = """
import os

seen = set()


def note(place):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if test and (test, place) not in seen:
        seen.add((test, place))
        with open(os.environ["MUTANTS"], "a") as file:
            file.write(f"{place}\\t{test}\\n")
"""
NOTED = """
try:
    import mutant_notes
    mutant_notes.note({place!r})
except ImportError:
    pass
"""
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


class Marked(ast.NodeTransformer):
    """Puts NOTED before the innermost statements that hold the places of mutants."""

    def __init__(self, numbers: Mapping[Mutant, int]) -> None:
        self.numbers = dict(numbers)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)  # inner statements first
        for field, body in ast.iter_fields(node):
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                setattr(node, field, [part for statement in body for part in self._noted(statement)])
        return node

    def _noted(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        held = [mutant for mutant in self.numbers if statement.lineno <= mutant.line <= (statement.end_lineno or 0)]
        for mutant in held:
            yield from ast.parse(NOTED.format(place=self.numbers.pop(mutant))).body
        yield statement


def trace(mutants: list[Mutant], notes: Path, jobs: int) -> None:
    """Run the tests once in a copy with notes, which go to a file of lines: place, tab, test."""
    notes.unlink(missing_ok=True)
    with copied() as copy:
        (copy / "mutant_notes.py").write_text(NOTES, encoding="utf-8")
        for path in sorted({mutant.path for mutant in mutants}):
            marked = Marked({mutant: number for number, mutant in enumerate(mutants) if mutant.path == path})
            tree = marked.visit(ast.parse((copy / path).read_text(encoding="utf-8")))
            (copy / path).write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
        environment = environment_of(copy) | {"MUTANTS": str(notes.resolve())}
        subprocess.run([*PYTEST, "-n", str(jobs), "--dist", "worksteal"], cwd=copy, env=environment, check=False)


def outcome(number: int, mutant: Mutant, reached: list[str]) -> dict[str, object]:
    """Whether the tests catch a mutant, and which of them does. reached: the tests that reach it."""
    tests = random.Random(mutant.start).sample(reached, min(MOST_TESTS, len(reached)))
    caught, by = run(tests, mutant) if tests else ("no", "")
    if caught == "no":
        files = sorted({name.split("::")[0] for name in tests}) or importing(mutant.path)
        caught, by = run(files[:MOST_FILES], mutant) if files else ("not reached", "")
    print(f"{number} {mutant.path}:{mutant.line} {mutant.kind}: {caught} {by}", flush=True)
    place = {"number": number, "path": mutant.path, "line": mutant.line, "kind": mutant.kind, "change": mutant.text}
    return {**place, "tests": len(reached), "caught": caught, "by": by}


def importing(path: str) -> list[str]:
    """The files of tests that import the module of a path or are named like it; those named like it or its folder come
    first, then small ones."""
    module = Path("mitigate", Path(path).relative_to("mitigate") if path.startswith("mitigate/") else path)
    package, folder, name = ".".join(module.parent.parts), module.parent.name, module.stem
    imports = re.compile(rf"from {package}\.{name} import|from {package} import .*\b{name}\b")
    files = [
        file
        for file in (ROOT / "tests").glob("test_*.py")
        if name in file.stem or imports.search(file.read_text(encoding="utf-8"))
    ]
    files.sort(key=lambda file: (name not in file.stem, folder not in file.stem, file.stat().st_size))
    return [f"tests/{file.name}" for file in files]


def run(names: list[str], mutant: Mutant) -> tuple[str, str]:
    """Run tests in a broken copy of the tree until one fails that passes in this tree: ("yes" | "no" | "too slow", the
    test that fails)."""
    passing: list[str] = []
    with copied() as copy:
        path = copy / mutant.path
        text = path.read_text(encoding="utf-8")
        path.write_text(text[: mutant.start] + mutant.text + text[mutant.end :], encoding="utf-8")
        while True:
            caught, by = _run(names, copy, passing)
            if caught != "yes" or _run([by] if by else names, ROOT, [])[0] == "no":
                return caught, by
            if not by:
                raise SystemExit(f"pytest cannot run these tests in {ROOT}: {' '.join(names)}")
            passing.append(by)


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the tree."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, "checkout")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=NOT_COPIED)  # mitigate/models is a link to models/
        (copy / "outputs").mkdir()
        if (ROOT.parent / "shared").is_dir():  # data and cases, which tests look for beside the checkout
            (copy.parent / "shared").symlink_to(ROOT.parent / "shared")
        yield copy


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not thorough"]


def environment_of(folder: Path) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    environment.setdefault("MITIGATE_DATA", str(ROOT.parent / "shared" / "data"))
    return environment


def _run(names: list[str], folder: Path, without: list[str]) -> tuple[str, str]:
    line = [*PYTEST, "-x", *(f"--deselect={name}" for name in without), *names]
    how = {"cwd": folder, "env": environment_of(folder), "capture_output": True, "text": True}
    try:
        ended = subprocess.run(line, timeout=LIMIT, **how)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        return "too slow", ""
    marks = ("FAILED ", "ERROR ")
    failed = [line.split(" ", 1)[1].split(" - ")[0] for line in ended.stdout.splitlines() if line.startswith(marks)]
    return ("no" if ended.returncode in (0, 5) else "yes"), next(iter(failed), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["trace", "break"])
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--notes", type=Path, default=Path("mutants.tsv"))
    parser.add_argument("--only", type=int, nargs="*", help="with break: numbers of mutants")
    parser.add_argument("--table", type=Path, default=Path("mutants.csv"))
    given = parser.parse_args()
    mutants = draw(given.number, given.seed)
    if given.action == "trace":
        trace(mutants, given.notes, given.jobs)
        return
    reached: dict[int, set[str]] = {number: set() for number in range(len(mutants))}
    for line in given.notes.read_text(encoding="utf-8").splitlines() if given.notes.is_file() else ():
        place, test = line.split("\t", 1)
        reached[int(place)].add(test)
    numbers = given.only if given.only is not None else list(reached)
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(lambda number: outcome(number, mutants[number], sorted(reached[number])), numbers))
    with given.table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    print(f"{sum(row['caught'] in ('yes', 'too slow') for row in rows)} of {len(rows)} caught: {given.table}")


if __name__ == "__main__":
    main()
