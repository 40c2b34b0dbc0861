"""recipe=workspace on run folders that are made up: the page that is written here, and the view that W&B would get."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wandb
from compared_runs import edit, make_run

from mitigate.recipes import compare_latest
from mitigate.recipes.job import record_id
from mitigate.tracking import dashboards


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Two runs that belong together, and an earlier one on other data."""
    for age, policy in ((200, "none"), (100, "both"), (300, "regard")):
        folder = make_run(tmp_path, policy, relations=("IsA",), num_targets=12)
        if policy == "regard":
            edit(folder, "config.yaml", lambda config: config.replace("name: made_up", "name: others"))
        manifest = folder / "manifest.json"
        os.utime(manifest, (manifest.stat().st_mtime - age,) * 2)
    return tmp_path


def test_without_a_key_the_runs_like_the_latest_are_on_one_page_here(outputs: Path, ran) -> None:
    where = (f"paths.outputs={outputs}", "tracking=none", "measure.resamples=200")
    said = ran("recipe=workspace", *where).done
    assert "1 finished run is on other data or of another model than mitigate-both-" in said
    assert "no view is saved in W&B: there is no key, or tracking.mode says otherwise" in said
    (page,) = outputs.glob("compare-*/comparison.html")
    assert "both" in page.read_text()
    assert ran("recipe=compare", *where, f"compare.runs=[{','.join(map(str, two(outputs)))}]").returncode == 0
    assert list(outputs.glob("compare-*/comparison.html")) == [page]


@pytest.fixture
def online(outputs: Path, ran, monkeypatch: pytest.MonkeyPatch):
    """Runs the recipe with a key of W&B, whose `save` is the function that is given."""

    def run(save: Callable[[object], str], *more: str):
        monkeypatch.setattr(compare_latest, "resolve", lambda mode: "online")
        monkeypatch.setattr(dashboards, "save", save)
        where = (f"paths.outputs={outputs}", "tracking=none", "tracking.entity=me", "measure.resamples=200")
        return ran("recipe=workspace", *where, *more)

    return run


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces
def test_with_a_key_they_are_a_view_in_wandb_too(outputs: Path, online, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the comparison's baseline pinned: the run of `none`, or the one that is chosen."""
    pytest.importorskip("wandb_workspaces", reason="needs the extra [workspace]")
    monkeypatch.setattr(compare_latest.comparing, "run", lambda config: None)
    saved: list[Any] = []
    for chosen in (None, 0, 1):
        baseline = [] if chosen is None else [f"compare.baseline={two(outputs)[chosen]}"]
        said = online(lambda view: saved.append(view) or "https://wandb.ai/me/mitigate?nw=1", *baseline).done
        assert "view in W&B https://wandb.ai/me/mitigate?nw=1" in said
        view = saved.pop()
        assert (view.entity, view.project, view.name) == (
            "me",
            "mitigate",
            "baseline and filtered, made_up-none_at_all",
        )
        assert view.runset_settings.baseline_run == record_id(two(outputs)[chosen or 0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pydantic, in wandb_workspaces
def test_where_wandb_does_not_answer_the_page_here_is_kept(outputs: Path, online) -> None:
    pytest.importorskip("wandb_workspaces", reason="needs the extra [workspace]")

    def save(view: object) -> str:
        raise wandb.errors.CommError("no route to host")

    status, said, faults = online(save)
    assert status == 2
    assert ("\n" + faults).endswith("\nmitigate: the request to W&B failed (CommError: no route to host)\n")
    assert "Traceback" not in faults
    (page,) = outputs.glob("compare-*/comparison.html")
    assert f"comparison  {page}" in said


def test_what_is_not_installed_is_said_before_anything_is_compared(outputs: Path, online, monkeypatch) -> None:
    monkeypatch.setattr("mitigate.errors.find_spec", lambda name: None)
    faults = online(str).refused
    assert "needs wandb_workspaces: pip install 'mitigate[workspace]'" in faults
    assert not list(outputs.glob("compare-*"))


def test_a_damaged_run_is_left_out_and_an_empty_folder_is_said(outputs: Path, ran) -> None:
    damaged = make_run(outputs, "sentiment", relations=("IsA",), num_targets=12)
    (damaged / "metrics.json").write_text("{}")
    said = ran("recipe=workspace", f"paths.outputs={outputs}", "tracking=none", "dry_run=true").done
    assert f"note: a run is left out. paths.outputs: {damaged / 'metrics.json'} is damaged" in said
    assert "1 finished run is on other data or of another model than mitigate-both-" in said
    faults = ran("recipe=workspace", f"paths.outputs={damaged}", "tracking=none").refused
    assert f"no finished run of recipe=mitigate in {damaged}" in faults


def two(outputs: Path) -> list[Path]:
    """The folders that belong together, baseline first."""
    return [next(outputs.glob(f"mitigate-{policy}-*")) for policy in ("none", "both")]
