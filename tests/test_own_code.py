"""A user's own code: with a version it is reused until the version changes, without one never by another process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mitigate.errors import MitigateError
from mitigate.score.vader import Vader
from mitigate.stages import PROCESS, digest_of_values, identity_of, is_own, version_of

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
    (">= self.least", "> self.least"),
    ("FACTOR = 1", "FACTOR = 1  # a comment"),
    ("sum(rule", "max(rule"),
    ('{"sum"', '{"total"'),
    ("import json", "import csv"),
    ('"""A policy."""', '"""Another policy."""'),
    ("def count(numbers, rule=Rule())", "def count(numbers, rule=Rule(0))"),
    ("if number >= self.least", ""),
    ("FACTOR * ", ""),
    ("FACTOR = 1", "FACTOR = int(open(__file__).read().count('def '))"),
]
COMMAND = """
import sys
from pathlib import Path
import own
from mitigate.stages import Run

run = Run(Path(sys.argv[1]) / "run")
for _ in range(2):
    first = run.stage("count", own.count, [1, 2, 3], own.Rule())
    second = run.stage("next", dict, first)
    print(first.from_cache, second.from_cache)
"""


def call(place: Path) -> subprocess.CompletedProcess[str]:
    """The stages in a process of their own, twice each: what was read from the store."""
    (place / "command.py").write_text(COMMAND)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(place / "compiled"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(place / "command.py"), str(place / "outputs")]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_changes_of_code_without_a_version_are_never_reused(tmp_path: Path) -> None:
    for change in [("", ""), *CHANGES]:
        (tmp_path / "own.py").write_text(OWN.replace(*change, 1) if change[0] else OWN)
        done = call(tmp_path)
        assert done.stdout.split()[:1] == ["False"], change
        assert done.stdout.split()[2:] == ["True", "True"], change
        assert done.stderr.count("own.count has no version") == 1
        assert done.stderr.count("own.Rule has no version") == 1
        assert 'set count.version = "1"' in done.stderr
    stored = {path.name.partition("-")[0] for path in (tmp_path / "outputs" / ".stages").iterdir()}
    assert stored == {"next"}  # whose input alone counts
    assert len(list((tmp_path / "outputs" / "run" / ".own").iterdir())) == 1


def test_code_with_a_version_is_reused_until_it_changes(tmp_path: Path) -> None:
    def reused(source: str) -> bool:
        (tmp_path / "own.py").write_text(source)
        done = call(tmp_path)
        assert not done.stderr
        return done.stdout.split()[0] == "True"

    assert [reused(OWN + VERSIONS) for _ in range(2)] == [False, True]
    assert reused(OWN.replace("FACTOR = 1", "FACTOR = 2") + VERSIONS)
    assert not reused(OWN + VERSIONS.replace('"1"', '"2"'))
    assert not reused(OWN + VERSIONS.replace("count.version = ", "count.version = 3; "))
    assert not reused(OWN.replace("least: int = 1", "least: int = 2") + VERSIONS)  # a field, which is an argument


class Own(Vader):
    """A scorer derived from the project's."""


class Versioned(Own):
    version = 2


def test_a_derived_class_does_not_pass_for_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    assert is_own(Own)
    assert not is_own(Vader)
    assert (identity_of(Own), identity_of(Versioned), identity_of(Vader)) == (PROCESS, "2", None)
    assert digest_of_values(Own).startswith(PROCESS)
    assert not digest_of_values(Versioned).startswith(PROCESS)
    assert digest_of_values([digest_of_values(Own)]).startswith(PROCESS)  # so do hashes of hashes
    assert capsys.readouterr().err.count("has no version") == 1


@pytest.mark.parametrize("version", ["", True, ["1"], 1.5])
def test_a_version_is_a_text_or_a_number(version: object) -> None:
    def function() -> None: ...

    function.version = version  # type: ignore[attr-defined]
    if version == 1.5:
        assert version_of(function) == "1.5"
        return
    with pytest.raises(MitigateError, match=r"function.version=.* must be a text or a number"):
        version_of(function)
