"""The table of stage seconds, by hand."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.stage_seconds import group, seconds_of_groups, table


def test_medians_sums_and_others(tmp_path: Path) -> None:
    spent = {"one": {"score": 60, "train": 600, "ledger": 1}, "two": {"train": 300}, "three": {"train": 330}}
    for name, stages in spent.items():
        (tmp_path / name).mkdir()
        rows = [{"stage": stage, "seconds": seconds} for stage, seconds in stages.items()]
        (tmp_path / name / "manifest.json").write_text(json.dumps({"stages": rows}))
    asked = [group(f"before={tmp_path}/one"), group(f"sweep={tmp_path}/two,{tmp_path}/three")]
    assert table(seconds_of_groups(asked)).splitlines() == [
        "| | jobs | score | train | others | a job, min | all jobs, min |",
        "|---|---|---|---|---|---|---|",
        "| before | 1 | 60 | 600 | 1 | 11.0 | 11.0 |",
        "| sweep | 2 | – | 315 | 0 | 5.2 | 10.5 |",
    ]
