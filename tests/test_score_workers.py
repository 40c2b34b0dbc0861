"""score.engine=ray: two workers of this machine say what one process says.

Ray must end with its process: `python test_score_workers.py FOLDER` writes what its workers say, as JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command import ROOT, composed

from mitigate.errors import MitigateError
from mitigate.recipes.config import plain
from mitigate.score.labels import OnWorkers, Worker, text_for, with_explanations
from mitigate.settings import deciding
from mitigate.triples import Labels

sys.path.insert(0, str(Path(__file__).parents[1]))

from mitigate.score import labels as labelling
from mitigate.score.labels import LabelStore, connected, label_column
from mitigate.score.regard import MiniLMRegard
from mitigate.triples import Scorer


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `main` finds, if this machine is not too busy to start Ray in the half minute that it waits."""
    if find_spec("ray") is None:
        pytest.skip("needs the extra [ray]")
    folder = str(tmp_path_factory.mktemp("labels"))
    line = [sys.executable, __file__, folder]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if "timed out during startup" in found.get("not started", ""):
        pytest.skip(found["not started"])
    return {**found, "folder": folder}


@pytest.mark.thorough
def test_each_of_two_workers_loads_the_scorer_once_and_labels_as_one_process(said: dict[str, Any]) -> None:
    assert len(set(said["alone"][0])) > 1
    assert said["shared"] == said["alone"]
    assert len(said["loaded"]) == len({*said["loaded"]} - {said["here"]}) == 2
    assert said["too many"] == "score.workers=3, but Ray has 2 cores; each worker takes one"


class Here:
    """A scorer whose strength is the process that it is asked in, its number scaled to below 1."""

    name = "regard"

    def __init__(self, fingerprint: str = "f" * 64) -> None:
        self.fingerprint = fingerprint

    def __call__(self, texts: Sequence[str]) -> Labels:
        return Labels(np.zeros(len(texts), np.int8), np.full(len(texts), os.getpid() / 2**23, np.float32))


class OfStatements(Here):
    """One that reads the statement itself and explains."""

    reads = "statement"

    def explain(self, texts: Sequence[str]) -> list[str]:
        return [f"because of {text}" for text in texts]


def test_what_a_scorer_reads_and_explains_is_the_same_on_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mitigate.errors.find_spec", lambda _: True)
    rows = pl.DataFrame({"statement": ["nurses lie"], "masked": ["this person lies"], "regard": [-1]})
    scorer = OnWorkers(OfStatements(), OfStatements, 2)
    assert text_for(scorer, rows).to_list() == ["nurses lie"]
    assert with_explanations(rows, scorer)["regard_why"].to_list() == ["because of nurses lie"]
    assert (hasattr(OnWorkers(Here(), Here, 2), "explain"), [*OnWorkers(Here(), Here, 2).each([])]) == (False, [])


def test_faults_of_workers_are_named_and_settings_of_them_name_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MitigateError, match="has the fingerprint eeeeeeeeeeeeeeee, expected ffffffffffffffff"):
        Worker(lambda: Here("e" * 64), "f" * 64)
    monkeypatch.setattr("mitigate.errors.find_spec", lambda _: None)
    with pytest.raises(MitigateError, match=r"score.engine=ray needs ray: pip install 'mitigate\[ray\]'"):
        OnWorkers(Here(), Here, 2)
    given = [deciding(plain(composed(*more))) for more in ((), ("score.engine=ray", "score.workers=8"))]
    assert given[0] == given[1]


TEXTS = [f"this person is able to {what} {number} times" for number in range(40) for what in ("care", "steal", "win")]


def loaded(noted: Path) -> MiniLMRegard:
    """The scorer, with a note of the process that loaded it."""
    with noted.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return MiniLMRegard()


def main(folder: Path) -> dict[str, Any]:
    """All that the tests look at, by one Ray, as it takes seconds to start."""
    try:
        connected(2)
    except MitigateError as error:
        return {"not started": str(error)}
    labelling.PIECE = 10
    scorer, load = MiniLMRegard(), partial(loaded, folder / "loaded")
    return {
        "here": os.getpid(),
        "alone": label(scorer, folder / "alone"),
        "shared": label(OnWorkers(scorer, load, 2), folder / "shared"),
        "loaded": [int(line) for line in (folder / "loaded").read_text().splitlines()],
        "too many": label(OnWorkers(scorer, load, 3), folder / "too_many"),
    }


def label(scorer: Scorer, cache: Path) -> Any:
    """Labels and strengths of TEXTS, or the message of a fault."""
    try:
        said = label_column(pl.Series(TEXTS), scorer, LabelStore(cache))
    except MitigateError as error:
        return str(error)
    return [said.label.tolist(), said.strength.tolist()]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
