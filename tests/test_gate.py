"""compare.gate: the exit status of a comparison by its primary endpoints."""

import json
from pathlib import Path

import pytest
from command import UNDRAWN, here
from compared_runs import make_run

from mitigate.tasks.compare.pairs import (
    ALIKE,
    BETTER,
    EXPLORED_BETTER,
    FAILS,
    HELPS,
    HOLDS,
    KEPT,
    LOST,
    NO_EFFECT,
    OPEN,
    SAME,
    UNLEARNT,
    UNSHOWN,
    WORSENS,
    gate,
    gates,
)
from mitigate.tracking.record import Tracking


@pytest.mark.parametrize(
    ("finding", "margin", "seeds", "outcome"),
    [
        (HELPS, None, 5, HOLDS),
        (WORSENS, None, 5, FAILS),
        (NO_EFFECT, None, 8, OPEN),
        (NO_EFFECT, KEPT, 5, HOLDS),  # with a margin quality need not be better
        (WORSENS, KEPT, 5, HOLDS),  # worse, but by less than the margin
        (WORSENS, UNSHOWN, 5, OPEN),
        (WORSENS, LOST, 5, FAILS),
        (EXPLORED_BETTER, None, 4, OPEN),
        (HELPS, KEPT, 4, OPEN),
        (BETTER, None, 1, OPEN),
        (ALIKE, KEPT, 1, OPEN),
        (SAME, KEPT, 5, OPEN),
        (UNLEARNT, KEPT, 5, OPEN),
    ],
)
def test_an_endpoint_holds_fails_or_is_open(finding: str, margin: str | None, seeds: int, outcome: str) -> None:
    assert gate(finding, margin, seeds) == outcome


def test_several_endpoints_together() -> None:
    assert gates([HOLDS, HOLDS]) == HOLDS
    assert gates([HOLDS, OPEN]) == OPEN
    assert gates([OPEN, FAILS, HOLDS]) == FAILS
    assert gates([]) == OPEN


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Compares runs with the gate; returns the exit status, what comparison.json says, and what is recorded."""
    recorded: dict = {}
    monkeypatch.setattr(*UNDRAWN)
    monkeypatch.setattr(Tracking, "summarise", lambda self, metrics: recorded.update(metrics))

    def run(runs: list[Path], *more: str) -> tuple[int, str, str]:
        named = f"compare.runs=[{','.join(map(str, runs))}]"
        out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        given = ("recipe=compare", named, f"paths.outputs={out}", "tracking=none", "compare.gate=true", *more)
        status = here(monkeypatch, *given)
        found = list(out.glob("compare-*/comparison.json"))
        return status, json.loads(found[0].read_text())["gate"] if found else "", recorded.get("gate", "")

    return run


def seeds(outputs: Path, policy: str, number: int = 5, **how: float) -> list[Path]:
    return [make_run(outputs, policy, seed, **how) for seed in range(number)]


def test_planted_gains_and_losses(ends, tmp_path: Path) -> None:
    """Statements of `better` are more neutral and as plausible, `costly` loses plausibility, `worse` neutrality."""
    none = seeds(tmp_path, "none", valid=0.8, each=200)
    better, costly = (
        seeds(tmp_path, name, neutral=0.9, valid=valid, each=200) for name, valid in (("better", 0.83), ("costly", 0.6))
    )
    worse, copy = (
        seeds(tmp_path, name, neutral=n, valid=0.83, each=200) for name, n in (("worse", 0.5), ("copy", 0.7))
    )
    assert ends(none + better) == (0, HOLDS, HOLDS)
    assert ends(none + costly) == (4, FAILS, FAILS)
    assert ends(none + worse) == (4, FAILS, FAILS)
    assert ends(none + copy) == (3, OPEN, OPEN)
    assert ends(none + better + costly)[:2] == (4, FAILS)
    assert ends(none[:4] + better[:4])[:2] == (3, OPEN)
    assert ends(none + costly, "compare.primary.quality=[]")[:2] == (0, HOLDS)
    assert ends(none + better, "compare.primary.quality=[quality/swap_lift/all]")[:2] == (3, OPEN)  # not measured


def test_where_the_gate_does_not_apply(ends, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path, "none"), make_run(tmp_path, "both")]
    assert ends(runs, "dry_run=true")[0] == 3
    assert "gate        not enough evidence: exit status 3" in capsys.readouterr().out
    assert ends(runs, "compare.primary.harm=[]", "compare.primary.quality=[]")[0] == 2
    assert "names no primary endpoint" in capsys.readouterr().err
    assert ends(runs, "compare.baseline=none", "-m")[0] == 1  # of a sweep the jobs fail
    assert "compare.gate=true is for a single comparison, and this is a sweep" in capsys.readouterr().err


def test_a_gate_that_is_not_asked_for_does_not_end_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(*UNDRAWN)
    runs = f"compare.runs=[{make_run(tmp_path, 'none')},{make_run(tmp_path, 'both', neutral=0.4)}]"
    assert here(monkeypatch, "recipe=compare", runs, f"paths.outputs={tmp_path}/out", "tracking=none") == 0
    assert "exit status" not in capsys.readouterr().out
