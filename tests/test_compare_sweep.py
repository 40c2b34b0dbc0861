"""What a sweep has compared at its end, by the command that it runs."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from mitigate.recipes import notes, sweep
from mitigate.recipes.failures import Failures
from mitigate.recipes.sweep import MOST_RUNS, SideBySide, comparable, compare


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ends a sweep of runs (policy, seed), "unfinished" among them; returns the settings of the comparison, as Hydra
    reads them, or None where there was none."""
    commands: list[list[str]] = []
    monkeypatch.setattr(sweep.subprocess, "run", lambda command, check: commands.append(command) or Mock(returncode=0))
    place = tmp_path / "it's, a [place]=here"
    config = {
        "paths": {"outputs": str(place), "cache": "cache"},
        "tracking": {"mode": "none", "project": "mitigate", "entity": None, "statements": False},
    }

    def end(*runs: tuple[str, int], unfinished: int = 0, recipe: str = "mitigate") -> dict[str, Any] | None:
        found = {}
        for number, (policy, seed) in enumerate(runs):
            folder = place / f"{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "config.yaml").write_text(f"recipe: {{name: {recipe}}}\n")
            if number >= unfinished:
                (folder / "manifest.json").touch()
            found[folder] = {"policy": policy, "seed": seed}
        if runs_to_compare := comparable(found):
            compare(DictConfig(OmegaConf.create(config)), runs_to_compare)
        if not commands:
            return None
        python, *module = commands[-1][:3]
        assert (python, module) == (sys.executable, ["-m", "mitigate"])
        overrides = OverridesParser.create().parse_overrides(commands[-1][3:])
        return {override.key_or_group: override.value() for override in overrides}

    end.place = place  # type: ignore[attr-defined]
    return end


def test_policies_are_compared_with_none_as_the_sweep_was_set(asked) -> None:
    settings = asked(("none", 1), ("both", 1))
    assert settings["recipe"] == "compare"
    assert [Path(run) for run in map(str, settings["compare.runs"])] == [asked.place / "0", asked.place / "1"]
    assert str(settings["compare.baseline"]) == "none"
    assert str(settings["paths.outputs"]) == str(asked.place)
    assert settings["tracking.entity"] is None
    assert not [name for name in settings if name.startswith("measure.")]  # which a comparison does not read
    assert settings["tracking.statements"] is False


@pytest.mark.parametrize("policy", ["both", "none"])
def test_of_a_single_policy_the_first_run_is_the_baseline(asked, policy: str) -> None:
    assert str(asked((policy, 1), (policy, 2))["compare.baseline"]) == str(asked.place / "0")


def test_without_none_the_first_policy_is_the_baseline_with_all_its_seeds(asked) -> None:
    settings = asked(("sentiment", 1), ("sentiment", 2), ("both", 1), ("both", 2))
    assert str(settings["compare.baseline"]) == "sentiment"
    assert len(settings["compare.runs"]) == 4


def test_a_sweep_of_neither_policy_nor_seed_is_not_compared(asked) -> None:
    assert asked(("both", 1), ("both", 1)) is None


def test_story_generators_of_policies_are_not_compared(asked) -> None:
    """Of recipe=compare, which takes runs of the main job alone."""
    assert asked(("none", 1), ("both", 1), recipe="stories") is None


def test_what_is_not_finished_is_left_out(asked) -> None:
    assert asked(("none", 1), ("both", 1), unfinished=1) is None


def test_a_long_search_is_told_the_command(asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(*(("both", seed) for seed in range(MOST_RUNS + 1))) is None
    assert f"{MOST_RUNS + 1} runs are too many for one page" in capsys.readouterr().out


def test_a_table_of_all_runs_stands_where_the_comparison_has_no_line_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two policies with a seed each are two lines of the comparison, with two seeds they are means."""
    monkeypatch.setattr(sweep, "compare", lambda config, runs: sweep.say(f"comparison of {len(runs)}") or 0)
    monkeypatch.setattr(sweep, "_beside", lambda config, runs: f"table of {len(runs)}")
    said = []
    for seeds in (1, 2):
        folders = {tmp_path / f"{seeds}{policy}{seed}": policy for policy in "ab" for seed in range(seeds)}
        for number, (folder, policy) in enumerate(folders.items()):
            folder.mkdir()
            (folder / "config.yaml").write_text("recipe: {name: mitigate}\n")
            (folder / "metrics.json").write_text(json.dumps({"policy": policy, "seed": number}))
            (folder / "manifest.json").touch()
        monkeypatch.setattr(sweep.notes, "runs", lambda _, folders=folders: list(folders))
        SideBySide().on_multirun_end(OmegaConf.create({"verbose": False}))
        said.append(capsys.readouterr().out)
    assert said[0] == "comparison of 2\n"
    assert "table of 4" in said[1]
    assert said[1].endswith("comparison of 4\n")


@pytest.mark.parametrize(("status", "ends"), [(0, False), (2, True)])
def test_a_comparison_that_fails_ends_the_sweep_with_status_1(
    status: int, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = OmegaConf.create({"verbose": False, "hydra": {"sweep": {"dir": str(tmp_path / "sweep")}, "sweeper": {}}})
    monkeypatch.setenv(notes.SWEEP, "one")
    monkeypatch.setattr(sweep.notes, "runs", lambda _: [])
    monkeypatch.setattr(sweep, "comparable", lambda _: {tmp_path: {}})
    monkeypatch.setattr(sweep, "compare", lambda config, runs: status)
    SideBySide().on_multirun_end(config)
    with pytest.raises(SystemExit, match="1") if ends else nullcontext():
        Failures().on_multirun_end(config)
    assert ("their comparison failed" in capsys.readouterr().err) is ends
    assert not (tmp_path / "sweep" / "one").exists()
