"""What a search says at its end."""

from pathlib import Path

import pytest
from command import here

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
