import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from mitigate.errors import MitigateError
from mitigate.tracking import NoTracking, Tracking, open_tracking

OPTIONS = {
    "project": "mitigate",
    "entity": None,
    "name": "a-run",
    "group": "sample-comet_minilm",
    "job_type": "mitigate",
    "tags": ["policy:both"],
    "config": {"policy": {"name": "both"}},
}


def record(tracking: Tracking, folder: Path) -> None:
    tracking.log({"loss": 2.5}, step=20, stage="train")
    tracking.summarise({"NSM": 66.0, "NSM/origin": 61.5})
    tracking.table("statements", pl.DataFrame({"statement": ["x", "y"], "sentiment": [0, 1]}))
    (folder / "set.parquet").write_bytes(b"rows")
    tracking.artifact("filtered", "dataset", folder / "set.parquet", {"licence": "MIT"})
    tracking.finish()


def test_an_offline_run_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no .netrc
    tracking = open_tracking("auto", folder=tmp_path, run_id="abc123", **OPTIONS)
    assert tracking.place == f"W&B offline: {tmp_path}"
    record(tracking, tmp_path)
    (folder,) = (tmp_path / "wandb").glob("offline-run-*-abc123")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--summary", "--json", str(folder)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert found["summary"]["NSM/origin"] == 61.5
    assert found["summary"]["train/loss"] == 2.5
    assert found["summary"]["statements"]["nrows"] == 2
    assert found["config"]["policy"]["name"] == "both"
    assert found["tags"] == ["policy:both"]
    command.remove("--summary")
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    records = [json.loads(line) for line in lines]
    (run,) = (record["run"] for record in records if record["type"] == "run")
    assert (run["run_group"], run["job_type"]) == ("sample-comet_minilm", "mitigate")
    better = {record["metric"].get("name"): record["metric"].get("summary") for record in records if "metric" in record}
    assert better["neutral_template/NRM"] == {"max": True}
    assert better["quality/perplexity/all"] == better["NSV"] == {"min": True}


def test_none_records_nothing(tmp_path: Path) -> None:
    tracking = open_tracking("none", folder=tmp_path, run_id="abc123", **OPTIONS)
    assert isinstance(tracking, NoTracking)
    record(tracking, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["set.parquet"]


def test_unknown_mode() -> None:
    with pytest.raises(MitigateError, match="unknown tracking.mode 'cloud'; allowed: auto, online, offline, none"):
        open_tracking("cloud")
