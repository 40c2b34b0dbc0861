"""A few of the faults of `make faults`, for a recipe that is done in seconds, and how attempts are counted."""

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from fault_tables import LOST, SAME, TOLD, Attempt, add, by_recipe, kind_of_file, outcomes, read
from faults import KINDS, Undisturbed, undisturbed
from few_terms import use_few_terms
from killing import share_imports

ATTEMPTS = [
    Attempt("labels", "killed", "labels", SAME, ""),
    Attempt("labels", "killed", "train", SAME, ""),
    Attempt("labels", "damaged", "out/run-1/table.parquet, emptied", TOLD, "table.parquet is damaged"),
    Attempt("audit", "killed", "labels", LOST, 'said "no",\nand more'),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    share_imports()  # a user who is not root may not read the sources
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_few_terms(monkeypatch)
        place = tmp_path_factory.mktemp("faults")
        for folder in (place, *list(place.parents)[:3]):
            folder.chmod(0o755)  # so that a user who is not root reads what is in it
        yield undisturbed("labels", place)


@pytest.mark.parametrize("kind", ["killed", "damaged", "denied"])
def test_a_fault_loses_nothing(run: Undisturbed, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    if kind == "denied" and os.geteuid():
        pytest.skip("only root becomes another user")
    with capsys.disabled():  # what the processes say goes to a file
        attempts = list(islice(KINDS[kind](run, random.Random(1), 2), 4))
    assert attempts
    assert [attempt for attempt in attempts if attempt.outcome == LOST] == []


def test_attempts_are_counted_by_recipe_stage_and_file() -> None:
    assert by_recipe(ATTEMPTS).splitlines()[2:] == [
        "| labels | 2 same figures | 1 told |",
        "| audit | 1 lost |  |",
        "| all | 2 same figures, 1 lost | 1 told |",
    ]
    assert outcomes("stage", ATTEMPTS[:2] + ATTEMPTS[3:], lambda attempt: attempt.where).splitlines()[2:] == [
        "| labels | 2 | 1 | 0 | 1 |",
        "| train | 1 | 1 | 0 | 0 |",
    ]


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("out/run-1/table.parquet, emptied", "run folder, .parquet"),
        ("cache/labels/labels.sqlite-wal of a killed run, deleted", "cache, .sqlite-wal"),
        ("compared/0/LICENSE, truncated", "run that is compared, LICENSE"),
    ],
)
def test_kinds_of_files(where: str, kind: str) -> None:
    assert kind_of_file(where) == kind


def test_attempts_are_kept_and_give_way_to_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "faults.csv"
    assert read(path) == []
    add(ATTEMPTS, path)
    assert read(path) == ATTEMPTS
    again = [Attempt("labels", "killed", "train", LOST, "")]
    add(again, path)
    assert read(path) == [*ATTEMPTS[2:], *again]
