"""Sweeps: the files that come ready, jobs of a quick recipe one after another and two at once, what a search says, and
what is compared at the end."""

from itertools import chain
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from command import here
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from joblib.externals.loky import get_reusable_executor
from omegaconf import DictConfig, OmegaConf

from mitigate.cli import CONF
from mitigate.policies import Drop
from mitigate.recipes import labels, sweep
from mitigate.recipes.sweep import MOST_RUNS, Sweep, compare
from mitigate.tracking.headlines import headline
from mitigate.triples import TEMPLATES

OPTUNA = "hydra_plugins.hydra_optuna_sweeper"


def composed(*overrides: str):
    with initialize_config_dir(config_dir=str(CONF), version_base=None):
        return compose("config", overrides=list(overrides), return_hydra_config=True)


def test_each_job_that_wandb_hands_out_is_a_command_of_ours() -> None:
    """As `wandb agent` makes the command of the sweep's file and a job's parameters."""
    from wandb.sdk.launch.sweeps import utils

    ready = yaml.safe_load((CONF / "sweep" / "wandb.yaml").read_text())
    assert (ready["method"], ready["metric"]["goal"]) == ("grid", "maximize")
    assert ready["metric"]["name"] == headline(composed().optimized_metric).name
    values = {name: parameter["values"] for name, parameter in ready["parameters"].items()}
    one = {"args": {name: {"value": choices[-1]} for name, choices in values.items()}}
    filled = utils.create_sweep_command_args(one)
    filled |= {"env": ["/usr/bin/env"], "interpreter": ["python"], "program": [ready["program"]]}
    parts = [filled.get(part[2:-1], [part]) for part in utils.create_sweep_command(ready["command"])]
    assert " ".join(chain(*parts)) == "/usr/bin/env python -m mitigate policy=both seed=3"
    assert all((CONF / "policy" / f"{policy}.yaml").is_file() for policy in values["policy"])


def test_the_search_asks_for_policies_that_there_are() -> None:
    pytest.importorskip(OPTUNA, reason="needs the extra [optuna]")
    sweeper = composed("hydra/sweeper=search").hydra.sweeper
    assert (sweeper.direction, sweeper.storage, sweeper.sampler.seed) == ("maximize", None, 1)
    choices = {name: choice[len("choice(") : -1].split(", ") for name, choice in sweeper.params.items()}
    for policy in choices.pop("policy"):
        assert (CONF / "policy" / f"{policy}.yaml").is_file()
    assert set(choices["policy.template"]) <= set(TEMPLATES)
    assert all(Drop("mine", scope=scope) for scope in choices["policy.scope"])


def test_a_job_on_slurm_that_runs_out_of_time_is_queued_again() -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra [slurm]")
    launcher = composed("hydra/launcher=slurm").hydra.launcher
    assert launcher._target_.endswith("SlurmLauncher")
    assert launcher.max_num_timeout == 2


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
    best = "best of 4 jobs: neutral_template/NRM 60.00 with policy=regard policy.template=paper policy.scope=all"
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
        "mitigate: 1 job failed; the others are done; run the same command to finish:",
        f"  data.path={files[0]}: no such file: {files[0]}; correct the path",
    ]
    assert [path.name for path in tmp_path.glob("outputs/.sweep/*/*")] == ["multirun.yaml"]
    files[0].write_text("nurse\tthe nurse is there now\n")
    status, said, faults = label(files)
    assert (status, faults) == (0, "")
    assert said.count("complete: nothing to do") == 1
    assert len(finished(tmp_path)) == 2
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    status, said, _ = label(files[1:], "verbose=true")  # which lists the stages of a sweep's jobs too
    assert (status, said.count("cached"), len(finished(tmp_path))) == (0, 3, 2)
    assert "nothing to do" not in said


def test_so_it_is_with_two_jobs_at_once(label, files, tmp_path: Path) -> None:
    """Slow: joblib starts two processes, which import what a job needs."""
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs the extra [joblib]")
    label(files[1:])
    (tmp_path / "third.tsv").write_text("nurse\tthe nurse is here\n")
    status, said, faults = label([*files, tmp_path / "third.tsv"], "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    get_reusable_executor().shutdown()
    assert status == 1
    assert said.count("complete: nothing to do") == 1
    assert len(finished(tmp_path)) == 2
    assert "mitigate: 1 job failed; the others are done" in faults


def test_a_sweep_needs_no_cache_that_can_be_written_to(label, files, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")  # a file, so that nothing can be written below it
    files[0].write_text("nurse\tthe nurse is there now\n")
    status, said, _ = label(files)
    assert (status, len(finished(tmp_path))) == (0, 2)
    assert said.count("cannot be used (Not a directory)") == 1


def noted(place: Path, *overrides: str, failure: str = "") -> dict:
    """The note of a finished job, whose run folder has figures, or of a failed one."""
    if failure:
        return {"overrides": list(overrides), "job": overrides[-1], "failure": failure}
    folder = place / "-".join(overrides)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text('{"fingerprint": "1a"}')
    return {"overrides": list(overrides), "job": "", "folder": str(folder)}


def test_runs_that_differ_by_more_than_seed_are_compared_as_the_sweep_was_set(tmp_path, monkeypatch, capsys) -> None:
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
    assert "too many" not in capsys.readouterr().out
    assert compared(*((f"policy=p{number}", "seed=1") for number in range(MOST_RUNS + 1))) == {}
    assert f"{MOST_RUNS + 1} runs are too many for one page" in capsys.readouterr().out


def test_a_sweep_ends_with_a_comparison_and_with_status_1_where_it_or_jobs_fail(tmp_path, monkeypatch, capsys) -> None:
    config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}, "sweeper": {}}})

    def end(notes: list[dict], status: int = 0) -> tuple[int, str]:
        monkeypatch.setattr(sweep, "read_notes", lambda config: notes)
        monkeypatch.setattr(sweep, "compare", lambda config, found: status if found == notes else 9)
        code = 0
        try:
            Sweep().on_multirun_end(config)
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr().err

    done = [noted(tmp_path, "policy=a"), noted(tmp_path, "policy=b")]
    assert end(done) == (0, "")
    status, faults = end(done, status=2)
    assert (status, "the runs are finished, but their comparison failed" in faults) == (1, True)
    failed = [noted(tmp_path, f"seed={number}", failure="no") for number in range(2)]
    rest = "run the same command to finish:\n  seed=0: no\n"
    assert end([*done, failed[0]]) == (1, f"mitigate: 1 job failed; the others are done; {rest}")
    assert end(failed) == (1, f"mitigate: 2 jobs failed; {rest}  seed=1: no\n")
