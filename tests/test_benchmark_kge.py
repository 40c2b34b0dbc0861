"""Benchmarks of knowledge-graph embeddings: contestants beside PyKEEN, trainings of published figures, tables."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
import pytest
from kge_graphs import planted

from benchmarks import kge_runs
from benchmarks.kge import Contestant, Work, chosen, ours, table
from benchmarks.kge_runs import Run
from benchmarks.kge_tables import again, sections
from mitigate.load.graph.own import split_at_random
from mitigate.load.graph.table import build
from mitigate.tasks.kge.question import find_question
from mitigate.train.kge_settings import Settings

PROCESS = cast(ProcessPoolExecutor, None)


def work(model: str) -> Work:
    """A line of 30 entities, of which two thirds are trained on in a turn."""
    triples = np.array([(place, 0, place + 1) for place in range(29)])
    return Work(model, triples, 30, 1, 20)


@pytest.mark.parametrize("model", ["complex", "complex_n3"])
def test_our_contestant_trains_a_part_and_gives_the_seconds_of_an_epoch(model):
    assert 0 < ours(work(model))(1) < 60


def test_parts_are_distinct_triples_and_medians_are_compared():
    drawn = chosen(work("complex"), 1)
    assert len({tuple(triple) for triple in drawn.tolist()}) == 20
    heads = chosen(work("complex_n3"), 1)[:, 0]
    assert heads.tolist() == list(range(heads[0], heads[0] + 20))
    ours_ = Contestant("complex", "mitigate, shared", PROCESS, [10.0, 12.0, 11.0], peak=1.0)
    theirs = Contestant("complex", "PyKEEN", PROCESS, [110.0, 100.0, 120.0], peak=2.5)
    assert table([ours_, theirs]).splitlines()[2:] == [
        "| `complex` | mitigate, shared | 11 | 10 12 11 |  | 1.00 |",
        "| `complex` | PyKEEN | 110 | 110 100 120 | 10.0 times as fast | 2.50 |",
    ]


NAMES = {f"q_{name}": name for name in ("male", "female", "smith", "miner", "pilot", "nurse", "nanny", "midwife")}


@pytest.fixture
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up graph, trainings of a second, and files elsewhere."""
    graph = build(split_at_random(planted(), 1), NAMES, {})
    settings = Settings(max_epochs=4, evaluate_every=2, batch_size=200, chunk_size=200, negatives=32)
    shape = {"kind": "transe", "dimension": 8, "deviation": 0.01}
    question = find_question(graph, "r_gender", ["male", "female"], "r_job", 20)
    monkeypatch.setattr(kge_runs, "RUNS", tmp_path / "runs.csv")
    monkeypatch.setattr(kge_runs, "PROFESSIONS", tmp_path / "professions.csv")
    monkeypatch.setattr(kge_runs, "graph_of", lambda data, root: graph)
    monkeypatch.setattr(kge_runs, "questions_of", lambda data, graph: {"gender": question})
    monkeypatch.setattr(kge_runs, "model_of", lambda run: (shape, replace(settings, seed=run.seed)))


def test_trainings_are_planned_once_and_professions_of_the_paper_are_found_again() -> None:
    runs = kge_runs.planned()
    assert len(set(runs)) == len(runs)
    for model in ("transe", "complex"):
        numbers = [run.seed for run in runs if run[:3] == ("fb15k237", model, "permuted")]
        assert numbers == list(range(1, 21))
        assert [run.seed for run in runs if run[:3] == ("codex_m", model, "as_published")] == [1, 2, 3, 4, 5]
    professions = pl.DataFrame({"profession": ["rabbi", "Editor", "smith"]})
    paper = pl.DataFrame(
        {"question": ["ethnicity"] * 3, "towards": ["Jewish people"] * 3, "profession": ["rabbi", "editor", "poet"]}
    )
    found = pl.DataFrame({"changes": ["0.2 -0.1 0.3", "0.4 -0.3 0.1"]})
    assert again(professions, found, paper, "ethnicity", 0) == "1 of 2 (of all 67 %): rabbi"


@pytest.mark.usefixtures("_small")
def test_processes_share_the_work(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(share: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kge_runs.py", "list", "--share", share])
        kge_runs.main()
        return capsys.readouterr().out.splitlines()

    parts = [listed(f"{number}/3") for number in (1, 2, 3)]
    assert sorted(line for part in parts for line in part) == sorted(listed("1/1"))
    for wrong in ("0/2", "3/2", "half"):
        with pytest.raises(SystemExit):
            listed(wrong)
        assert f"--share: invalid share value: '{wrong}'" in capsys.readouterr().err


@pytest.mark.usefixtures("_small")
def test_finished_trainings_are_not_repeated_and_tables_are_drawn_from_them(tmp_path, monkeypatch) -> None:
    wanted = [Run("fb15k237", "transe", "as_published", seed) for seed in (1, 2)]
    wanted += [Run("fb15k237", "transe", "downsampled", 1)]
    wanted += [Run("fb15k237", "transe", "permuted", number) for number in (1, 2, 3, 4)]
    for run in wanted:
        assert not kge_runs.is_done(run)
        kge_runs.do(run, None, tmp_path / "work")
        assert kge_runs.is_done(run)
    assert not kge_runs.is_done(Run("fb15k237", "transe", "as_published", 3))
    assert list((tmp_path / "work").iterdir()) == []
    runs, professions = pl.read_csv(kge_runs.RUNS), pl.read_csv(kge_runs.PROFESSIONS)
    assert runs["graph"].to_list() == ["as_published", "projected"] * 2 + ["downsampled"] + ["permuted"] * 4
    assert {len(line.split()) for line in runs["changes"].drop_nulls()} == {6} == {professions.height}
    text = dict(sections(runs, professions))
    assert list(text) == ["kge quality", "kge gender", "kge mitigation"]  # none of CoDEx-M was trained
    assert "| fb15k237 | `transe` | 2 | 0." in text["kge quality"]
    assert " of 4 | " in text["kge gender"]
    assert "| `transe` | as trained (2) | downsampled (1) | projected (2) |" in text["kge mitigation"]
    # Other settings make it another training, which is to be done; of both the last counts.
    shape, settings = kge_runs.model_of(wanted[0])
    monkeypatch.setattr(kge_runs, "model_of", lambda run: (shape, replace(settings, max_epochs=2, seed=run.seed)))
    assert not kge_runs.is_done(wanted[0])
    kge_runs.do(wanted[0], None, tmp_path / "work")
    assert pl.read_csv(kge_runs.RUNS).height == runs.height + 2
    assert "| fb15k237 | `transe` | 2 | 0." in dict(sections(pl.read_csv(kge_runs.RUNS), professions))["kge quality"]
