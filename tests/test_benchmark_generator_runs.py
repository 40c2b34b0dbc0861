"""The table of generators, from a made-up run folder."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.generator_runs import FIGURES, table


def test_a_line_for_each_label_with_means(tmp_path: Path) -> None:
    folders = [made(tmp_path / "one", 5.0, steps=1000), made(tmp_path / "two", 7.0, steps=3000)]
    line = table([("bart", folders)]).splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[:7] == ["bart", "2", "2.0", "40", "2,000", "1.0", "50"]
    assert cells[7:9] == ["6.00", "6.000"]


def made(folder: Path, figure: float, steps: int) -> Path:
    (folder / "model").mkdir(parents=True)
    save_file({"one": np.zeros((1000, 1500), "float32"), "two": np.zeros(500_000)}, folder / "model/model.safetensors")
    metrics = {key: figure for key, _ in FIGURES.values()} | {"filter/kept": 40}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (folder / "train.json").write_text(json.dumps({"steps": steps, "seconds": 60.0}))
    (folder / "manifest.json").write_text(json.dumps({"stages": [{"stage": "probe", "seconds": 2.0}]}))
    pl.DataFrame({"rank": range(100)}).write_parquet(folder / "statements.parquet")
    return folder
