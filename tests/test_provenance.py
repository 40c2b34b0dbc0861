"""The command that pages and manifests give: pasted, it composes the same configuration."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import here
from omegaconf import DictConfig, OmegaConf

from mitigate.recipes.job import command


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[tuple[str, dict[str, Any]]]]:
    """Runs the command with a recipe that only looks; returns of each job the command to do it again, and the
    configuration."""
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.syspath_prepend(tmp_path)

    def run(*arguments: str) -> list[tuple[str, dict[str, Any]]]:
        seen: list[tuple[str, dict[str, Any]]] = []

        def look(config: DictConfig) -> None:
            plain: Any = OmegaConf.to_container(config, resolve=True)
            seen.append((command(config), {name: part for name, part in plain.items() if name != "call"}))

        monkeypatch.setattr("mitigate.__main__._recipe", lambda name: look)
        assert here(monkeypatch, *arguments) == 0
        return seen

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for --config-dir with a space in its name: a policy, a scorer and an experiment of one's own."""
    own = tmp_path / "my conf"
    for name, content in {
        "policy/mine.yaml": "defaults: [none, _self_]\nname: mine\nscorers: [sentiment]\n",
        "experiment/mine.yaml": "# @package _global_\ndefaults: [override /policy: mine]\ntrainer: {max_steps: 7}\n",
    }.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(content)
    return own


HARD = (
    "recipe=labels",
    "data=triples",
    "data.path=/tmp/my files (1)/über & co's.csv",
    "data.columns={head: A, relation: 'B, C', tail: D}",
    "probe.targets=[café owner,'a, b',\"it's\"]",
    "texts=['Hello, world', \"it's\", ${oc.env:HOME}, {braces}, 50 %]",
    "paths.outputs='/tmp/a b'",
    "+policy.own=null",
    "seed=3",
)


@pytest.mark.parametrize("sweep", [False, True], ids=["run", "sweep"])
def test_a_command_with_all_that_is_hard_to_quote(
    sweep: bool, composed: Callable[..., list[tuple[str, dict[str, Any]]]], folder: Path, tmp_path: Path
) -> None:
    named = ("--config-dir", str(folder), "experiment=mine", *HARD, f"paths.cache={tmp_path / 'c'}")
    jobs = composed("-m", *named, "trainer.lr=0.1,0.2") if sweep else composed(*named)
    assert len(jobs) == 2 if sweep else 1
    for line, config in jobs:
        assert config["data"]["path"] == "/tmp/my files (1)/über & co's.csv"
        assert config["data"]["columns"] == {"head": "A", "relation": "B, C", "tail": "D"}
        assert config["probe"]["targets"] == ["café owner", "a, b", "it's"]
        assert config["texts"] == ["Hello, world", "it's", "${oc.env:HOME}", "{braces}", "50 %"]
        assert (config["policy"]["name"], config["trainer"]["max_steps"], config["seed"]) == ("mine", 7, 3)
        assert line.startswith("python -m mitigate --config-dir ")
        again = composed(*shlex.split(line)[3:])
        assert again == [(line, config)]
    assert len({line for line, _ in jobs}) == len(jobs)


def test_a_folder_below_the_current_one_is_named_from_there(
    composed: Callable[..., list[tuple[str, dict[str, Any]]]],
) -> None:
    ((line, _),) = composed("--config-dir", "docs/examples/own", "policy=no_rude_words", "score=study")
    assert line == "python -m mitigate --config-dir docs/examples/own policy=no_rude_words score=study"
