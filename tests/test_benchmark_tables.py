"""Tables and figures of benchmarks/, from numbers that are given, and the inputs that benchmarks make up."""

import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import save_file
from transformers import GPT2Config, OpenAIGPTConfig

from benchmarks import results, serve_kills, serve_load, simulate
from benchmarks.footprint import GPUS, Footprint, footprint, hours_table, main, memory_table, seconds_a_step
from benchmarks.generator_runs import FIGURES
from benchmarks.generator_runs import table as table_of_generators
from benchmarks.load import people, statements
from benchmarks.results import machine, processor, write_section
from benchmarks.scale import assertions, described
from benchmarks.serve_load import Service, percentile
from benchmarks.stage_seconds import group, seconds_of_groups
from benchmarks.stage_seconds import table as table_of_stages
from mitigate.load.assertions import load
from mitigate.load.stream import Met
from mitigate.match import about_targets
from mitigate.measure.change import Change
from mitigate.serve.client import Client
from mitigate.targets import choose_targets, targets

PAGE = Path(__file__).parents[1] / "docs" / "models.md"


@pytest.mark.parametrize("kind", [GPT2Config, OpenAIGPTConfig])
def test_bytes_of_a_small_model(kind: type) -> None:
    """Words 10 x 4, positions 8 x 4; a layer's four products with their biases and two norms; GPT-2 has a last norm."""
    found = footprint(kind(vocab_size=10, n_positions=8, n_embd=4, n_layer=1, n_head=1))
    layer = (4 * 12 + 12) + (4 * 4 + 4) + (4 * 16 + 16) + (16 * 4 + 4) + 2 * 8
    assert found.parameters == 40 + 32 + layer + (8 if kind is GPT2Config else 0)
    assert found.adapters == 8 * (4 + 12 + 4 + 4 + 4 + 16 + 16 + 4)


def test_memory_of_training_and_seconds_of_a_step() -> None:
    """Weight, gradient and AdamW's two moments are 16 bytes of each parameter that is trained, and 4 of any other."""
    found = Footprint(parameters=100, adapters=10)
    assert (found.probed, found.trained, found.adapted) == (400, 1600, 560)
    assert seconds_a_step(309e12) == 0.015  # the products alone would take 10 ms at a tenth of the peak
    assert seconds_a_step(30.9e12) == pytest.approx(0.1)
    assert "| RTX 3090 | 71 | 44 | 1.2 |" in hours_table()
    assert list(GPUS)[-1] == "H100 SXM"


def test_the_page_and_the_command_have_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert memory_table() in page
    assert hours_table() in page
    assert re.search(r"measured .* together \d+\.\d", page, re.DOTALL)
    assert main([]) == f"{memory_table()}\n\n{hours_table()}"
    assert "bytes each" not in capsys.readouterr().out


def test_tables_of_generators_and_of_kills_by_stage_and_victim(tmp_path: Path) -> None:
    folders = [made(tmp_path / "one", 5.0, steps=1000), made(tmp_path / "two", 7.0, steps=3000)]
    line = table_of_generators([("bart", folders)]).splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:8] == ["bart", "2", "2.0", "40", "2,000", "1.0", "50", "3.0"]
    assert cells[8:11] == ["6.00", "6.000", "–"]  # one of the runs has no such figure
    text = serve_kills.written([killed("train", "job"), killed("train", "job", False, 1), killed("probe", "server")])
    assert "| train | not tried | not tried | 1 / 2 | not tried |" in text
    assert "| probe | 1 / 1 | not tried | not tried | not tried |" in text
    assert (
        "3 attempts, 2 survived; 1 with other figures; 1 of the jobs that waited were lost; "
        "1 of 6 processes of jobs began beside another one."
    ) in text


def made(folder: Path, figure: float, steps: int) -> Path:
    (folder / "model").mkdir(parents=True)
    save_file({"one": np.zeros((1000, 1500), "float32"), "two": np.zeros(500_000)}, folder / "model/model.safetensors")
    metrics = {key: figure for key, _ in FIGURES.values()} | {"filter/kept": 40}
    if folder.name == "two":
        del metrics["quality/about_bits_per_char/all"]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "train.json").write_text(json.dumps({"steps": steps, "seconds": 60.0}))
    probe = {"stage": "probe", "seconds": 2.0, "peak_memory": 3 * 2**30}
    (folder / "manifest.json").write_text(json.dumps({"stages": [probe]}))
    pl.DataFrame({"rank": range(100)}).write_parquet(folder / "statements.parquet")
    return folder


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "RESULTS.md"
    monkeypatch.setattr(results, "RESULTS", path)
    return path


def test_sections_are_replaced_and_stay_beside_those_of_other_processors(file: Path) -> None:
    write_section("one", "## One\n\n1")
    write_section("two", "## Two\n\n2")
    write_section("one", "## One\n\n\\1 anew")
    assert file.read_text() == (
        "# What was measured\n\n"
        "<!-- one -->\n## One\n\n\\1 anew\n<!-- end of one -->\n\n"
        "<!-- two -->\n## Two\n\n2\n<!-- end of two -->\n"
    )
    name, instructions = processor().rsplit(", ", 1)
    assert machine().startswith(f"{name}, ")
    assert f"threads, {instructions}" in machine()
    assert machine().endswith(f", torch {torch.__version__}")


def test_what_another_processor_had_stays_beside_it(file: Path) -> None:
    write_section("speed", "## Speed\n\n10\n\n## More", "CPU A, AVX2")
    write_section("speed up", "## Other", "CPU A, AVX2")
    write_section("speed", "## Speed\n\n20", "CPU (B), AVX512")
    write_section("speed", "## Speed\n\n30", "CPU A, AVX2")
    headings = [line for line in file.read_text().splitlines() if line.startswith("## ") or line.isdigit()]
    assert headings == ["## Speed (CPU A, AVX2)", "30", "## Speed (CPU (B), AVX512)", "20", "## Other (CPU A, AVX2)"]


def test_the_truth_of_simulations_and_intervals_that_miss_it() -> None:
    """5 % polarised on average, times what policy, seed and both together do: exp of half their variances."""
    polarised = 5 * math.exp((simulate.POLICY**2 + simulate.TRAINING**2 + simulate.INTERACTION**2) / 2)
    truth = simulate.of_all_words("skewed", 0.5)
    assert truth.difference == pytest.approx(polarised / 2, rel=0.05)
    assert truth.ratio == pytest.approx(0.25, rel=0.15)
    assert simulate.of_all_words("skewed", 1.0).ratio == pytest.approx(1, rel=0.15)
    known, unknown = Change(50.0, 53.0, "difference", 1.0, 10), Change(50.0, 53.0)
    assert simulate.excludes(known, 0)
    assert not simulate.excludes(known, 1)
    assert not simulate.excludes(unknown, 0)


def test_every_part_writes_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "TARGETS", (12, 40))
    monkeypatch.setattr(simulate, "SEEDS", (2,))
    monkeypatch.setattr(simulate, "SHAPES", {"tied": simulate.SHAPES["tied"]})
    monkeypatch.setattr(simulate, "ENOUGH", 40)
    parts = (simulate.one_run, simulate.two_models, simulate.policies, simulate.copies)
    text = "\n\n".join(piece for part in parts for piece in part(3))
    rows = [line for line in text.splitlines() if line.startswith("| tied")]
    assert len(rows) == 1 + 1 + 4 * 2 + 1
    shares = [float(share) for row in rows for share in row.replace("→", "|").split("|")[2:] if share.strip()]
    assert np.all((np.array(shares) >= 0) & (np.array(shares) <= 100))


def test_medians_sums_and_others(tmp_path: Path) -> None:
    spent = {"one": {"score": 60, "train": 600, "ledger": 1}, "two": {"train": 300}, "three": {"train": 330}}
    for name, stages in spent.items():
        (tmp_path / name).mkdir()
        rows = [{"stage": stage, "seconds": seconds} for stage, seconds in stages.items()]
        (tmp_path / name / "manifest.json").write_text(json.dumps({"stages": rows}))
    asked = [group(f"before={tmp_path}/one"), group(f"sweep={tmp_path}/two,{tmp_path}/three")]
    assert table_of_stages(seconds_of_groups(asked)).splitlines() == [
        "| | jobs | score | train | others | a job, min | all jobs, min |",
        "|---|---|---|---|---|---|---|",
        "| before | 1 | 60 | 600 | 1 | 11.0 | 11.0 |",
        "| sweep | 2 | – | 315 | 0 | 5.2 | 10.5 |",
    ]


def test_people_and_statements_of_the_large_job() -> None:
    names = people(10_000)
    assert len(set(names)) == 10_000
    assert not set(names) & set(targets())
    lines = list(statements(20_000))
    assert lines == list(statements(20_000))
    assert {line.split("\t")[0] for line in lines} == set(targets())
    assert all(line.split("\t")[1].startswith(f"the {line.split(chr(9))[0]} is ") for line in lines)
    assert 0.88 < len(set(lines)) / len(lines) < 0.91


ROWS = 20_000


def test_the_assertions_are_as_described(tmp_path: Path) -> None:
    path = assertions(tmp_path, ROWS, packed=True)
    (_, _, first), *rest = load(str(path)).chunks()
    chunks = [first, *(chunk for _, _, chunk in rest)]
    met = sum((chunk.met for chunk in chunks), Met())
    about = sum(about_targets(chunk.rows, choose_targets("all")).height for chunk in chunks)
    assert {kind for kind, _ in met} == {"left out"}  # neither a bad line nor an unknown relation
    assert sum(met.values()) / ROWS == pytest.approx(0.9, abs=0.01)
    assert about / ROWS == pytest.approx(0.003, abs=0.001)
    english, distinct = (float(share) for share in _percentages(described(path)))
    assert english == pytest.approx(10, abs=1)
    assert distinct > 80


def _percentages(said: str) -> list[str]:
    return [word.removesuffix("%") for word in said.split() if word.endswith("%")]


def killed(stage: str, victim: str, survived: bool = True, at_once: int = 0) -> dict[str, object]:
    facts = {"survived": survived, "same": survived, "lost": not survived, "begun": 2, "at_once": at_once}
    return {"stage": stage, "victim": victim, **facts}


def test_what_is_inside_a_job_notices_another_one(tmp_path: Path) -> None:
    service = serve_kills.Service(tmp_path)
    inside = (tmp_path / "inside" / "sitecustomize.py").read_text()
    before, sys.orig_argv = sys.orig_argv, ["python", "-m", "mitigate", "policy=both"]
    held: list[dict[str, int]] = [{}, {}]
    try:
        for names in held:
            exec(inside, names)
    finally:
        sys.orig_argv = before
        for names in held:
            os.close(names["lock"])
    assert [line.split()[2:] for line in service.began()] == [["alone"], ["beside", "another"]]


@pytest.mark.parametrize(("share", "time"), [(0.5, 2.0), (0.99, 4.0), (0.25, 1.0), (0.26, 2.0)])
def test_a_percentile_is_a_time_that_was_met(share: float, time: float) -> None:
    assert percentile([4.0, 2.0, 1.0, 3.0], share) == time


def test_the_load_is_compared_turn_by_turn() -> None:
    together, alone = (Service(Client(), os.getpid(), "run", memory=100.0) for _ in range(2))
    together.times = {"/generate": [[1.0] * 6, [1.0] * 8], "/label": [[0.5] * 4, [0.5] * 4]}
    alone.times = {"/generate": [[2.0] * 3, [2.0] * 2], "/label": [[0.5] * 4, [1.5] * 2]}
    alone.errors.append("the service answered 503")
    text = serve_load.written({"together": together, "one by one": alone}, 50, 10.0)
    assert "| /generate | together | 1.4 | 1.00 | 1.00 | 14 | 0 | 3.00 (2.00 to 4.00) |" in text
    assert "| /generate | one by one | 0.5 | 2.00 | 2.00 | 5 | 1 |  |" in text
    assert "| /label | one by one | 0.6 | 0.50 | 1.50 | 6 | 1 |  |" in text
    assert "50 clients" in text
