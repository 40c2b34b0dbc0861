"""A user's own code: with a version it is reused until the version changes, without one never by another process."""

import os
import subprocess
import sys
from pathlib import Path

OWN = '''
import json
from dataclasses import dataclass
from functools import partial

FACTOR = 1

@dataclass(frozen=True)
class Rule:
    """A policy."""
    least: int = 1

    def of(self, numbers):
        return [number for number in numbers if number >= self.least]

def count(numbers, rule=Rule()):
    return {"sum": FACTOR * sum(rule.of(numbers))}
'''
VERSIONS = '\ncount.version = Rule.version = "1"\n'
CHANGES = [
    ("FACTOR = 1", "FACTOR = 2"),
    ("least: int = 1", "least: int = 0"),
    ("FACTOR = 1", "FACTOR = int(open(__file__).read().count('def '))"),
]
COMMAND = """
import importlib, sys
from pathlib import Path
from mitigate.stages import Run

run = Run(Path(sys.argv[1]) / "run")
for path in sorted(Path(__file__).parent.glob("own_*.py")):
    own = importlib.import_module(path.stem)
    found = []
    for _ in range(2):
        first = run.stage(path.stem, own.count, [1, 2, 3], own.Rule())
        found += [first, run.stage(f"next_{path.stem}", dict, first)]
    print(*[int(result.from_cache) for result in found])
"""


def call(place: Path, sources: list[str]) -> tuple[list[str], str]:
    """The stages of each source, twice, in a process of its own: which were read from the store; and what it said."""
    (place / "command.py").write_text(COMMAND)
    for number, source in enumerate(sources):
        (place / f"own_{number:02}.py").write_text(source)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(place / "compiled"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(place / "command.py"), str(place / "outputs")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines(), done.stderr


def test_changes_of_code_without_a_version_are_never_reused(tmp_path: Path) -> None:
    """Slow: three processes."""
    changed = [OWN.replace(*change, 1) for change in CHANGES]
    assert OWN not in changed
    for sources in ([OWN] * len(CHANGES), changed, changed):
        found, said = call(tmp_path, sources)
        assert {(line[0], line[4:]) for line in found} == {("0", "1 1")}
        assert said.count("has no version") == len(CHANGES)  # a line for each module
        assert 'set count.version = "1"' in said
    stored = {path.name.partition("_")[0] for path in (tmp_path / "outputs" / ".stages").iterdir()}
    assert stored == {"next"}  # whose input alone counts


def test_code_with_a_version_is_reused_until_it_changes(tmp_path: Path) -> None:
    """Slow: two processes."""
    changes = [("", ""), CHANGES[0], ('"1"', '"2"'), ('Rule.version = "1"', "Rule.version = 2"), CHANGES[1]]
    for number in range(2):
        sources = [(OWN + VERSIONS).replace(*change) if number and change[0] else OWN + VERSIONS for change in changes]
        found, said = call(tmp_path, sources)
        assert not said
    assert [line[0] for line in found] == ["1", "1", "0", "0", "0"]  # the last changes an argument
