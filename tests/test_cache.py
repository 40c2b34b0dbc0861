"""What the label cache does with files that are damaged and with places that cannot be written to."""

import random
import resource
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from shown_steps import shown

from mitigate.score import labels
from mitigate.score.labels import LabelStore
from mitigate.stages import PROCESS
from mitigate.triples import Labels

SCORER = "f" * 64
TEXTS = [f"text number {number}" for number in range(300)]
LABELS = Labels(np.arange(300).astype(np.int8) % 3 - 1, (np.arange(300) / 300).astype(np.float32))


@pytest.fixture(autouse=True)
def _nothing_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_announced", set())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of 300 stored labels."""
    LabelStore(tmp_path).put(SCORER, TEXTS, LABELS)
    (file,) = tmp_path.glob("*.sqlite")
    return file


def use(folder: Path) -> int:
    """The number of labels that are stored at first, which are right; then the others are stored."""
    store = LabelStore(folder)
    known, found = store.get(SCORER, TEXTS)
    assert found.label[known].tolist() == LABELS.label[known].tolist()
    assert found.strength[known].tolist() == LABELS.strength[known].tolist()
    missing = [text for text, is_known in zip(TEXTS, known, strict=True) if not is_known]
    store.put(SCORER, missing, Labels(LABELS.label[~known], LABELS.strength[~known]))
    return int(known.sum())


def test_a_file_that_is_no_database_costs_its_labels_and_one_line(file: Path) -> None:
    file.write_bytes(b"no database" * 1000)
    with shown() as page:
        assert [use(file.parent), use(file.parent)] == [0, 0]
    (said,) = page.notices
    assert f"the label cache {file} cannot be used (file is not a database): texts are labelled again" in said
    assert "delete the file if it is damaged, or choose another place with paths.cache=DIR" in said


def test_a_changed_label_is_not_used_and_stored_again(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE labels SET label = 1 - label WHERE text = 'text number 0'")
    assert [use(file.parent), use(file.parent)] == [299, 300]


def test_whatever_bytes_are_damaged_no_wrong_label_is_used(file: Path) -> None:
    content, draw = file.read_bytes(), random.Random(1)
    for number in range(60):
        damaged = bytearray(content)
        at = number if number < 30 else draw.randrange(len(content))  # the first bytes are the header
        for place in range(at, min(at + draw.choice([1, 40]), len(content))):
            damaged[place] = draw.randrange(256)
        for old in file.parent.glob("*.sqlite*"):
            old.unlink()
        file.write_bytes(damaged)
        use(file.parent)


def _use_often(folder: Path) -> list[int]:
    return [use(folder) for _ in range(20)]


def test_processes_may_store_the_same_labels_at_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        known = list(pool.map(_use_often, [tmp_path, tmp_path]))
    assert [counts[-1] for counts in known] == [300, 300]


def test_labels_of_code_without_a_version_stay_in_memory(tmp_path: Path) -> None:
    store = LabelStore(tmp_path)
    store.put(f"{PROCESS}-1", TEXTS, LABELS)
    assert store.get(f"{PROCESS}-1", TEXTS)[0].all()
    assert not any(tmp_path.iterdir())


@pytest.fixture
def _small_files() -> Iterator[None]:
    """No file may grow beyond 40,000 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("_small_files")
def test_a_full_place_keeps_what_it_has(file: Path) -> None:
    many = [f"{'long ' * 20}{number}" for number in range(3000)]
    store = LabelStore(file.parent)
    with shown() as page:
        store.put(SCORER, many, Labels(np.ones(3000, np.int8), np.ones(3000, np.float32)))
    assert store.get(SCORER, many + TEXTS)[0].all()
    assert LabelStore(file.parent).get(SCORER, many + TEXTS)[0].sum() == 300
    assert [notice.count("cannot be used") for notice in page.notices] == [1]
