"""A run's baseline: the latest that is whole and differs by its policy alone."""

import json
import os
from pathlib import Path
from typing import Any

import yaml
from compared_runs import make_run, seal

from mitigate.finished import find_beside

ONE = {"relations": ("IsA",), "num_targets": 2}


def found(outputs: Path, settings: dict[str, Any], fingerprint: str) -> str | None:
    run = find_beside(outputs, settings, fingerprint).get("none")
    return run.folder.name if run else None


def test_a_baseline_differs_by_its_policy_alone_and_is_the_latest_that_is_whole(tmp_path: Path) -> None:
    baseline = make_run(tmp_path, "none", **ONE)
    baseline = baseline.rename(tmp_path / "mitigate-none-made_up-none_at_all-seed1-0123abcd")
    folder = make_run(tmp_path, "both", **ONE)
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    source = json.loads((folder / "metrics.json").read_text())["fingerprint"]
    assert found(tmp_path, settings, source) == baseline.name
    for other in ({"policy": {"name": "none"}}, {"seed": 2}, {"trainer": {"max_steps": 7}}):
        assert found(tmp_path, settings | other, source) is None
    assert found(tmp_path, settings, "of other targets") is None
    assert found(tmp_path / "elsewhere", settings, source) is None

    later = tmp_path / baseline.name.replace("0123abcd", "4567abcd")
    make_run(tmp_path, "none", **ONE).rename(later)
    os.utime(baseline / "manifest.json", (1, 1))
    assert found(tmp_path, settings, source) == later.name
    (later / "metrics.json").write_text("{}")
    assert found(tmp_path, settings, source) == baseline.name
    seal(later)
    assert found(tmp_path, settings, source) == baseline.name  # as its metrics name no fingerprint
