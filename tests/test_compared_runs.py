"""Run folders read as data: what is checked, that nothing of a foreign folder is resolved or believed, and which run is
a baseline: the latest that is whole and differs by its policy alone."""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from compared_runs import edit, make_run, seal

from mitigate.errors import MitigateError
from mitigate.finished import find_beside, open_run, read_runs, recipe_of, short_names

USED = ("statements.parquet", "results.parquet")


def test_a_finished_run_is_plain_data(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path, "both", 3, lr=0.1), "mitigate", USED)
    assert (run.recipe, run.policy, run.seed, run.setting("data.name")) == ("mitigate", "both", 3, "made_up")
    assert (run.setting("data.name.of"), run.setting("nothing", 5)) == (None, 5)
    assert run.settings["trainer.lr"] == 0.1
    assert run.table("statements.parquet", ["target"]).height == 2000
    assert recipe_of(run.folder) == "mitigate"
    with pytest.raises(MitigateError, match=r"statements.parquet has no column weight; run the command that made it"):
        run.table("statements.parquet", ["target", "weight"])


def test_interpolations_of_a_foreign_folder_stay_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    folder = make_run(tmp_path)
    edit(folder, "config.yaml", lambda config: config.replace("name: made_up", "name: ${oc.env:SECRET}"))
    assert open_run(folder).setting("data.name") == "${oc.env:SECRET}"


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("config.yaml", b"recipe: \xff", "is not a run folder: it has no config.yaml that names a recipe"),
        ("config.yaml", b"a: &a [*a]", "is not a run folder"),
        ("config.yaml", b"a: !!python/object/apply:os.getcwd []", "is not a run folder"),
        ("config.yaml", b"a: " + b"[" * 5000, "is not a run folder"),
        ("config.yaml", b"recipe: {name: mitigate}", "has no value of seed and policy.name and data.name"),
        ("config.yaml", b"recipe: {name: audit}", "is a run of recipe=audit"),
        ("manifest.json", b"{", "manifest.json is damaged: it is not a JSON object"),
        ("manifest.json", b"{}", "manifest.json is damaged"),
        ("manifest.json", b'{"files": {}, "sha256": "0"}', "manifest.json is damaged: its content changed"),
        ("manifest.json", None, "is not finished (it has no manifest.json); run its command again"),
        ("metrics.json", b"[1]", "metrics.json is damaged: it is not a JSON object"),
        ("metrics.json", b"{}", "has no value of fingerprint"),
        ("metrics.json", None, "is not finished (it has no metrics.json)"),
    ],
)
def test_each_fault_of_a_folder_is_one_sentence(name: str, content: bytes | None, fault: str, tmp_path: Path) -> None:
    """Also where the manifest fits the damaged file."""
    folder = make_run(tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    if name != "manifest.json":
        seal(folder)
    with pytest.raises(MitigateError) as caught:
        read_runs([folder], "mitigate", "compare.runs", USED)
    assert str(caught.value).startswith(f"compare.runs: {folder}")
    assert fault in str(caught.value)
    assert str(caught.value).endswith(". Set it to folders of finished runs of recipe=mitigate.")


def test_all_files_of_a_folder_are_checked(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    (folder / "statements").mkdir()
    pl.DataFrame({"a": [1]}).write_parquet(folder / "statements" / "000000.parquet")
    with pytest.raises(MitigateError, match="lacks statements/: run the command"):
        open_run(folder, needs=["statements/"])
    seal(folder)
    run = open_run(folder, needs=["statements/"])
    assert run.below("statements") == ["statements/000000.parquet"]
    (folder / "statements" / "000000.parquet").write_text("other")
    with pytest.raises(MitigateError, match=r"000000.parquet is damaged: its content is not that in manifest.json"):
        open_run(folder, needs=["statements/"])


def test_runs_are_named_by_what_tells_them_apart() -> None:
    none, both, other = ({"policy": "none", "seed": 1}, {"policy": "both", "seed": 1}, {"policy": "both", "seed": 2})
    assert list(short_names({"x-aaaaaaaa": none, "x-bbbbbbbb": both})) == ["none", "both"]
    assert list(short_names({"x-aaaaaaaa": both, "x-bbbbbbbb": other})) == ["both, seed 1", "both, seed 2"]
    assert list(short_names({"x-aaaaaaaa": both, "x-bbbbbbbb": both})) == ["both, aaaaaaaa", "both, bbbbbbbb"]


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
