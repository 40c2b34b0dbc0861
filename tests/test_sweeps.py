"""Sweeps: the files that come ready, jobs of a quick recipe one after another and two at once, what a search says, and
what is compared at the end."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from command import here
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from mitigate.recipes import labels, sweep
from mitigate.recipes.sweep import compare

OPTUNA = "hydra_plugins.hydra_optuna_sweeper"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SQLAlchemy, in the Optuna that Hydra's sweeper takes
def test_a_search_names_the_best_settings_also_where_jobs_fail(ran, tmp_path: Path, monkeypatch) -> None:
    """A stand-in for the main job, whose result is a formula: it fails for one scope."""
    pytest.importorskip(OPTUNA, reason="needs the extra [optuna]")

    def result(config) -> float:
        if config.policy.scope == "targets":
            raise ValueError("no such luck")
        return 60.0 - 10.0 * (config.policy.scope == "person_heads")

    search = ("-m", "hydra/sweeper=search", "recipe=labels", "tracking=none", "hydra.sweeper.n_trials=4")
    monkeypatch.setattr(labels, "run", result)
    status, said, faults = ran(*search, f"paths.outputs={tmp_path}", f"paths.cache={tmp_path}")
    assert status == 1
    assert "ValueError: no such luck" in faults
    best = "best: neutral_template/NRM 60.00 with policy=regard policy.template=paper policy.scope=all"
    assert best in said
    assert not list(tmp_path.glob(".sweep/*/jobs"))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of a statement, the first of which does not exist yet."""
    (tmp_path / "second.tsv").write_text("lawyer\tthe lawyer is here\n")
    return [tmp_path / "first.tsv", tmp_path / "second.tsv"]


@pytest.fixture
def label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    """Labels files; returns the exit status and what was printed, also by other processes."""

    def run(paths: list[Path], *overrides: str) -> tuple[int, str, str]:
        places = (f"paths.outputs={tmp_path}/outputs", f"paths.cache={tmp_path}/cache", "tracking=none")
        chosen = ("recipe=labels", "data=statements", "score.regard=ngram", f"data.path={','.join(map(str, paths))}")
        status = here(monkeypatch, "-m", *chosen, *places, *overrides)
        return (status, *capfd.readouterr())

    return run


def finished(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("outputs/*/manifest.json"))


def test_a_failed_job_is_named_at_the_end_and_the_others_are_done(label, files, tmp_path: Path, monkeypatch) -> None:
    """A complete job that W&B hands out is recorded all the same."""
    status, _, faults = label(files)
    assert (status, len(finished(tmp_path))) == (1, 1)
    assert faults.splitlines()[-2:] == [
        "mitigate: 1 of 2 jobs failed; run the same command to finish:",
        f"  data.path={files[0]}: no such file: {files[0]}; correct the path",
    ]
    assert [path.name for path in tmp_path.glob("outputs/.sweep/*/*")] == ["multirun.yaml"]
    files[0].write_text("nurse\tthe nurse is there now\n")
    status, said, faults = label(files)
    assert (status, faults) == (0, "")
    assert said.count("complete: nothing to do") == 1
    assert len(finished(tmp_path)) == 2
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    status, said, _ = label(files[1:])
    assert (status, said.count("cached"), len(finished(tmp_path))) == (0, 3, 2)
    assert "nothing to do" not in said


def noted(place: Path, *overrides: str, failure: str = "") -> dict:
    """The note of a finished job, whose run folder has figures, or of a failed one."""
    if failure:
        return {"overrides": list(overrides), "job": overrides[-1], "failure": failure}
    folder = place / "-".join(overrides)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text('{"fingerprint": "1a"}')
    return {"overrides": list(overrides), "job": "", "folder": str(folder)}


def test_runs_that_differ_by_more_than_seed_are_compared_as_the_sweep_was_set(tmp_path, monkeypatch) -> None:
    """The settings are those that Hydra reads in the command."""
    commands: list[list[str]] = []
    monkeypatch.setattr(sweep.subprocess, "run", lambda command, check: commands.append(command) or Mock(returncode=0))
    place = tmp_path / "it's, a [place]=here"
    tracking = {"mode": "none", "project": "mitigate", "entity": None, "statements": False}
    config = {"paths": {"outputs": str(place), "cache": "cache"}, "tracking": tracking}
    config |= {"verbose": False, "measures": ["study.shouting"]}

    def compared(*jobs: tuple[str, ...]) -> dict[str, str]:
        assert compare(DictConfig(OmegaConf.create(config)), [noted(place, *job) for job in jobs]) == 0
        overrides = OverridesParser.create().parse_overrides(commands.pop()[3:] if commands else [])
        return {override.key_or_group: str(override.value()) for override in overrides}

    settings = compared(("policy=none", "seed=1"), ("policy=both", "seed=1"))
    expected = {"recipe": "compare", "paths.outputs": str(place), "measures": "['study.shouting']"}
    expected |= {"tracking.entity": "None", "tracking.statements": "False"}
    assert expected.items() <= settings.items()
    assert settings["compare.runs"].count(str(place)) == 2
    assert compared(("policy=both", "seed=1"), ("policy=both", "seed=2")) == {}
