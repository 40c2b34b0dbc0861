"""recipe=workspace on run folders that are made up: the page that is written here, and the view that W&B would get."""

import os
from pathlib import Path

import pytest
import wandb
from command import here
from compared_runs import make_run, seal

from mitigate import dashboards
from mitigate.recipes import workspace
from mitigate.recipes.job import record_id

ONLINE = ("tracking=none", "tracking.entity=me", "measure.resamples=200")


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Two runs that belong together, and an earlier one on other data."""
    for age, policy in ((200, "none"), (100, "both"), (300, "regard")):
        folder = make_run(tmp_path, policy, relations=("IsA",), num_targets=12)
        config = folder / "config.yaml"
        if policy == "regard":
            config.write_text(config.read_text().replace("name: made_up", "name: others"))
            seal(folder)
        manifest = folder / "manifest.json"
        os.utime(manifest, (manifest.stat().st_mtime - age,) * 2)
    return tmp_path


def test_without_a_key_the_runs_like_the_latest_are_on_one_page_here(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = (f"paths.outputs={outputs}", "tracking=none", "measure.resamples=200")
    assert here(monkeypatch, "recipe=workspace", *told) == 0
    said = capsys.readouterr().out
    assert "1 finished run is on other data or of another model than mitigate-both-" in said
    assert "no view is saved in W&B: there is no key, or tracking.mode says otherwise" in said
    (page,) = outputs.glob("compare-*/comparison.html")
    assert "both" in page.read_text()
    assert here(monkeypatch, "recipe=compare", *told, f"compare.runs=[{','.join(map(str, two(outputs)))}]") == 0
    assert list(outputs.glob("compare-*/comparison.html")) == [page]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces
@pytest.mark.parametrize("chosen", [None, 0, 1])
def test_with_a_key_they_are_a_view_in_wandb_too(
    chosen: int | None, outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the comparison's baseline pinned: the run of `none`, or the one that is chosen."""
    pytest.importorskip("wandb_workspaces", reason="needs pip install -e '.[workspace]'")
    saved = []
    monkeypatch.setattr(workspace.comparing, "run", lambda config: None)
    monkeypatch.setattr(workspace, "resolve", lambda mode: "online")
    monkeypatch.setattr(dashboards, "save", lambda view: saved.append(view) or "https://wandb.ai/me/mitigate?nw=1")
    baseline = [] if chosen is None else [f"compare.baseline={two(outputs)[chosen]}"]
    assert here(monkeypatch, "recipe=workspace", f"paths.outputs={outputs}", *ONLINE, *baseline) == 0
    assert "view in W&B https://wandb.ai/me/mitigate?nw=1" in capsys.readouterr().out
    (view,) = saved
    assert (view.entity, view.project, view.name) == ("me", "mitigate", "baseline and filtered, made_up-none_at_all")
    assert view.runset_settings.baseline_run == record_id(two(outputs)[chosen or 0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces
def test_where_wandb_does_not_answer_the_page_here_is_kept(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wandb_workspaces", reason="needs pip install -e '.[workspace]'")

    def save(view: object) -> str:
        raise wandb.errors.CommError("no route to host")

    monkeypatch.setattr(workspace, "resolve", lambda mode: "online")
    monkeypatch.setattr(dashboards, "save", save)
    assert here(monkeypatch, "recipe=workspace", f"paths.outputs={outputs}", *ONLINE) == 2
    said, faults = capsys.readouterr()
    assert ("\n" + faults).endswith("\nmitigate: W&B did not do what was asked (CommError: no route to host)\n")
    assert "Traceback" not in faults
    (page,) = outputs.glob("compare-*/comparison.html")
    assert f"comparison  {page}" in said


def test_what_is_not_installed_is_said_before_anything_is_compared(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workspace, "resolve", lambda mode: "online")
    monkeypatch.setattr(dashboards, "find_spec", lambda name: None)
    assert here(monkeypatch, "recipe=workspace", f"paths.outputs={outputs}", *ONLINE) == 2
    assert "needs wandb-workspaces: pip install -e '.[workspace]'" in capsys.readouterr().err
    assert not list(outputs.glob("compare-*"))


def test_a_damaged_run_is_left_out(
    outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = make_run(outputs, "sentiment", relations=("IsA",), num_targets=12)
    (damaged / "metrics.json").write_text("{}")
    assert here(monkeypatch, "recipe=workspace", f"paths.outputs={outputs}", "tracking=none", "dry_run=true") == 0
    said = capsys.readouterr().out
    assert f"note: a run is left out. paths.outputs: {damaged / 'metrics.json'} is damaged" in said
    assert "1 finished run is on other data or of another model than mitigate-both-" in said


def test_where_nothing_is_finished_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here(monkeypatch, "recipe=workspace", f"paths.outputs={tmp_path}", "tracking=none") == 2
    assert f"no finished run of recipe=mitigate in {tmp_path}" in capsys.readouterr().err


def two(outputs: Path) -> list[Path]:
    """The folders that belong together, baseline first."""
    return [next(outputs.glob(f"mitigate-{policy}-*")) for policy in ("none", "both")]
