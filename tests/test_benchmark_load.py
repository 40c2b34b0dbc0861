"""What the benchmark of large jobs makes up is as it says."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.load import people, statements
from mitigate.targets import targets


def test_people_are_distinct_and_no_targets_of_the_paper() -> None:
    names = people(10_000)
    assert len(set(names)) == 10_000
    assert not set(names) & set(targets())


def test_statements_are_about_targets_and_a_tenth_repeats_another() -> None:
    lines = list(statements(20_000))
    assert lines == list(statements(20_000))
    assert {line.split("\t")[0] for line in lines} == set(targets())
    assert all(line.split("\t")[1].startswith(f"the {line.split(chr(9))[0]} is ") for line in lines)
    assert 0.88 < len(set(lines)) / len(lines) < 0.91
