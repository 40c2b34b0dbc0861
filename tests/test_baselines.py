"""A run's baseline, and generators that know nothing of a head: the first lines of the pages and of the terminal call
them worse than one that knows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from command import ROOT, SMALL, UNDRAWN, here
from compared_runs import make_run, seal

from mitigate.finished import find_beside
from mitigate.load import conceptnet

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


OF = ("echo", "constants", "known")
MORE = ["policy=none", "probe.top=2", "model=tails", "tracking=none", "probe.heads=60"]
MORE.append("probe.relations=[IsA,AtLocation,SymbolOf]")


def only(pattern: str, folder: Path) -> Path:
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a generator that has the true tails, and then of the two that are made from what that run was asked."""
    folder = tmp_path_factory.mktemp("tails")
    true = conceptnet.sample().rows.filter("valid").select("head", "relation", "tail").unique(maintain_order=True)
    true.filter(pl.col("relation").is_in(["IsA", "AtLocation"])).write_csv(folder / "known.csv")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(*UNDRAWN)
        for name in reversed(OF):
            path = folder / f"{name}.{'csv' if name == 'known' else 'tsv'}"
            given = [f"model.path={path}", f"model.name={name}", f"paths.outputs={folder / 'out'}"]
            assert here(monkeypatch, *SMALL, *MORE, *given) == 0
            if name == "known":
                run = only("out/mitigate-none-sample-known-*", folder)
                script = [sys.executable, str(ROOT / "docs" / "examples" / "baselines.py"), str(run)]
                said = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=True)
                assert "constants.tsv" in said.stdout
    return folder / "out"


def run_of(name: str, outputs: Path) -> Path:
    return only(f"mitigate-none-sample-{name}-*", outputs)


def metrics_of(name: str, outputs: Path) -> dict:
    return json.loads((run_of(name, outputs) / "metrics.json").read_text())


def test_swap_lift_tells_them_apart_and_figures_without_value_have_a_reason(outputs: Path) -> None:
    lift = {name: metrics_of(name, outputs)["quality/swap_lift/all"] for name in OF}
    assert lift["constants"] == 0
    assert lift["echo"] <= 0
    assert lift["known"] > 1
    found = metrics_of("echo", outputs)
    assert found["quality/swap_lift/all"] == pytest.approx(found["quality/swap_lift_echo/all"] / 2)  # one tail of two
    found = metrics_of("constants", outputs)
    assert found["quality/perplexity/all"] is None
    assert found["quality/triples/all"] == 300
    page = (run_of("known", outputs) / "report.html").read_text(encoding="utf-8")
    assert "Perplexity and bits per character are not measured: this generator is a file of tails" in page
    assert "The generator has no tail for 3 of 9 pairs of target and relation." in page
