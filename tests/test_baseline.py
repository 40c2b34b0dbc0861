"""Which finished run is a run's baseline."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from compared_runs import make_run, seal

from mitigate.tasks.baseline import find_baseline


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    make_run(tmp_path, "none", relations=("IsA",), num_targets=2)
    (run,) = tmp_path.glob("mitigate-none-*")
    run.rename(tmp_path / "mitigate-none-made_up-none_at_all-seed1-0123abcd")
    return tmp_path


def found(outputs: Path, settings: dict[str, Any], metrics: dict[str, Any]) -> str | None:
    run = find_baseline(outputs, settings, metrics)
    return run.folder.name if run else None


def both(outputs: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    folder = make_run(outputs, "both", relations=("IsA",), num_targets=2)
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    return folder, settings, json.loads((folder / "metrics.json").read_text())


def test_it_is_of_policy_none_and_differs_by_the_policy_alone(outputs: Path) -> None:
    _, settings, metrics = both(outputs)
    (baseline,) = outputs.glob("mitigate-none-*")
    assert found(outputs, settings, metrics) == baseline.name
    assert found(outputs, settings | {"policy": {"name": "none"}}, metrics) is None
    assert found(outputs, settings | {"seed": 2}, metrics) is None
    assert found(outputs, settings | {"trainer": {"max_steps": 7}}, metrics) is None
    assert found(outputs, settings, metrics | {"fingerprint": "of other targets"}) is None
    assert found(outputs / "elsewhere", settings, metrics) is None


def test_it_is_the_latest_and_not_damaged(outputs: Path) -> None:
    _, settings, metrics = both(outputs)
    (baseline,) = outputs.glob("mitigate-none-*")
    later = outputs / baseline.name.replace("0123abcd", "4567abcd")
    make_run(outputs, "none", relations=("IsA",), num_targets=2).rename(later)
    os.utime(baseline / "manifest.json", (1, 1))
    assert found(outputs, settings, metrics) == later.name
    (later / "metrics.json").write_text("{}")
    assert found(outputs, settings, metrics) == baseline.name
    seal(later)
    assert found(outputs, settings, metrics) == baseline.name  # as its metrics name no fingerprint
