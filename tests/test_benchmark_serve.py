"""What the benchmarks of the service write, from attempts and times that are given."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import serve_kills, serve_load
from benchmarks.serve_load import Service, percentile
from mitigate.serve.client import Client


def killed(stage: str, victim: str, survived: bool = True, at_once: int = 0) -> dict[str, object]:
    facts = {"survived": survived, "same": survived, "lost": not survived, "begun": 2, "at_once": at_once}
    return {"stage": stage, "victim": victim, **facts}


def test_kills_are_counted_by_stage_and_victim() -> None:
    text = serve_kills.written([killed("train", "job"), killed("train", "job", False, 1), killed("probe", "server")])
    assert "| train | not tried | not tried | 1 / 2 | not tried |" in text
    assert "| probe | 1 / 1 | not tried | not tried | not tried |" in text
    assert (
        "3 attempts, 2 survived; 1 with other figures; 1 of the jobs that waited were lost; "
        "1 of 6 processes of jobs began beside another one."
    ) in text


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
