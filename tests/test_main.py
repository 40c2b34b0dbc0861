"""What the command answers to those who ask it for help, or for what it cannot do."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, here
from omegaconf import OmegaConf

from mitigate.errors import MitigateError
from mitigate.recipes.job import science


def test_help_names_the_choices_and_loads_no_heavy_library() -> None:
    """Torch, and what imports it, take seconds to load."""
    line = [sys.executable, "-X", "importtime", "-m", "mitigate", "--help"]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0
    assert (
        "policy: balance, both, both_neutral, both_people, both_targets, downweight, erase, experts, frames, none"
        in found.stdout
    )
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in found.stderr.splitlines()}
    assert "mitigate" in loaded
    assert not loaded & {"torch", "pytorch_lightning", "transformers", "sklearn", "scipy", "matplotlib", "wandb"}


def test_the_configuration_can_be_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert here(monkeypatch, "policy=sentiment", "--cfg", "job") == 0
    assert "name: sentiment" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["policy=gentle"], "unknown policy 'gentle'; allowed: balance, both, both_neutral, "),
        (["policy.template=own"], "unknown policy.template 'own'; allowed: paper, neutral"),
        (["policy.scorers=[feeling]"], "unknown scorer in policy.scorers 'feeling'; allowed: sentiment, regard"),
        (["probe.relations=[Likes]"], "unknown relation 'Likes'; allowed: AtLocation, CapableOf, "),
        (["probe.targets=everyone"], "unknown probe.targets 'everyone'; allowed: all, data, "),
        (["probe.targets=absent.csv"], "there is no file absent.csv; give a CSV file with a column 'target'"),
        (["score.regard=tone"], "unknown score.regard 'tone'; allowed: "),
        (["measure.masking=some"], "unknown measure.masking 'some'; allowed: token, paper"),
        (["data=cn100k", "data.root=/absent"], "data.root=/absent: there is no such folder"),
        (["polcy=both"], "unknown setting 'polcy'; there are: seed, train, "),
        (["model=hf"], "mitigate: model.base must be given: model.base=... (pretrained model: a folder, or a name on"),
        (["recipe=compare"], "mitigate: compare.runs must be given: compare.runs=... (run folders to compare)"),
        (["probe.relations=[]"], "probe.relations names no relation; name some, or say null for all"),
        (["probe.max_length=498"], "probe.max_length=498 must be at most 497: "),
        (["probe.top=20"], "probe.top=20 must be at least 1 and at most probe.beams=10"),
        (["trainer.strategy=dp"], "unknown trainer.strategy 'dp'; allowed: auto, ddp, fsdp"),
    ],
)
def test_faults_are_named_before_anything_is_written(
    overrides: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert here(monkeypatch, *overrides, f"paths.outputs={tmp_path / 'out'}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [ZeroDivisionError, FileNotFoundError])
def test_a_bug_is_not_dressed_up_as_a_fault(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(config: object) -> None:
        raise kind

    monkeypatch.setattr("mitigate.__main__.get_method", lambda _: fail)
    with pytest.raises(kind):
        here(monkeypatch)


def test_ctrl_c_shows_how_to_go_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(config: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mitigate.__main__.get_method", lambda _: interrupt)
    assert here(monkeypatch) == 130
    assert "the same command goes on from there" in capsys.readouterr().err


def test_a_recipes_error_is_one_message(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: object) -> None:
        raise MitigateError("the file is empty; give another")

    monkeypatch.setattr("mitigate.__main__.get_method", lambda _: refuse)
    assert here(monkeypatch) == 2
    assert capsys.readouterr().err == "mitigate: the file is empty; give another\n"


def test_chosen_targets_and_places_decide_nothing_that_a_run_finds() -> None:
    config = {"seed": 1, "recipe": {"name": "mitigate", "run": "x", "shown": ["nurse"]}, "paths": {"outputs": "here"}}
    assert science(OmegaConf.create(config)) == {"seed": 1, "recipe": {"name": "mitigate"}}
