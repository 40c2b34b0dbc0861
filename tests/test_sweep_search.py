"""What a search says at its end."""

from pathlib import Path

import pytest
from command import here

from mitigate.errors import MitigateError
from mitigate.recipes import labels


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SQLAlchemy, in the Optuna that Hydra's sweeper takes
def test_the_best_settings_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """A stand-in for the main job, whose result is a formula: it fails for one scope."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs pip install -e '.[optuna]'")

    def result(config) -> float:
        if config.policy.scope == "targets":
            raise ValueError("no such luck")
        return 60.0 - 10.0 * (config.policy.scope == "people")

    monkeypatch.setattr(labels, "run", result)
    search = ("-m", "hydra/sweeper=search", "hydra.sweeper.n_trials=4", "recipe=labels", f"paths.cache={tmp_path}")
    status = here(monkeypatch, *search, "tracking=none")
    said, faults = capsys.readouterr()
    assert status == 1
    assert "ValueError: no such luck" in faults
    assert (
        "best of 4 jobs: neutral_template/NRM 60.00 with policy=regard policy.template=paper policy.scope=all" in said
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_search_whose_jobs_all_fail_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs pip install -e '.[optuna]'")

    def refuse(config) -> float:
        raise MitigateError("there is no such file")

    monkeypatch.setattr(labels, "run", refuse)
    search = ("-m", "hydra/sweeper=search", "hydra.sweeper.n_trials=2", "recipe=labels", f"paths.outputs={tmp_path}")
    assert here(monkeypatch, *search, "tracking=none") == 1
    told = capsys.readouterr().err
    assert "mitigate: 2 jobs failed; the same command does what is left:\n  policy" in told
    assert "No trials are completed" not in told
    assert not list(tmp_path.glob(".sweep/*/*.json"))


def test_a_search_is_not_rehearsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs pip install -e '.[optuna]'")
    search = ("-m", "hydra/sweeper=search", "dry_run=true", f"paths.outputs={tmp_path}", "tracking=none")
    assert here(monkeypatch, *search) == 2
    assert "dry_run=true cannot rehearse a search, which chooses jobs by the results" in capsys.readouterr().err
