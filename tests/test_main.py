"""What the command answers by itself: its version, help, lists of what a group offers, the command of a job (pasted, it
composes the same configuration), and what it does with errors of a recipe."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import ROOT, here, recipe_is

from mitigate import __version__
from mitigate.cli import FIRST, answer
from mitigate.errors import MitigateError
from mitigate.recipes.config import Config, plain
from mitigate.settings import settings

CONF = [ROOT / "conf"]
RECIPES = sorted(path.stem for path in (CONF[0] / "recipe").glob("*.yaml"))


def test_help_names_five_recipes_and_loads_no_heavy_library() -> None:
    """Torch, and what imports it, take seconds to load."""
    line = [sys.executable, "-X", "importtime", "-m", "mitigate", "--help"]
    found = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0
    assert len(FIRST) == 5
    assert all(f"\n  {name} " in found.stdout for name in FIRST)
    assert "more: --list recipe" in found.stdout
    loaded = {line.split("|")[-1].strip().split(".")[0] for line in found.stderr.splitlines()}
    assert "mitigate" in loaded
    assert not loaded & {"torch", "polars", "transformers", "sklearn", "scipy", "matplotlib", "wandb"}


def test_the_version_and_the_configuration(ran) -> None:
    assert ran("--version") == (0, f"mitigate {__version__}\n", "")
    assert "name: sentiment" in ran("policy=sentiment", "--cfg", "job").done
    assert "\n  paper       The paper's configuration, with its filter" in ran("--list", "experiment").done


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_have_an_example_and_settings_that_are_described(name: str) -> None:
    said = answer([f"recipe={name}", "--help"]) or ""
    assert said.splitlines()[0] == f"recipe={name}"
    for key in re.findall(r"^  ([a-z_.]+)=", said, re.MULTILINE):
        assert key not in settings() or "".join(settings()[key].meaning.split()) in "".join(said.split())


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command with a recipe that ends with this error; its status and standard error."""

    def run(error: BaseException) -> tuple[int, str]:
        def fail(config: object) -> None:
            raise error

        recipe_is(monkeypatch, fail)
        return here(monkeypatch), capsys.readouterr().err

    return run


def test_an_error_for_users_and_ctrl_c_are_a_message_and_a_bug_is_neither(ending) -> None:
    assert ending(MitigateError("no '\x1b[31mred'\n  in it")) == (2, "mitigate: no '\\x1b[31mred'\n  in it\n")
    status, said = ending(KeyboardInterrupt())
    assert status == 130
    assert "run the same command to resume" in said
    status, said = ending(OSError(28, "No space left on device", "outputs/page.html"))
    assert (status, said.partition(";")[0]) == (2, "mitigate: outputs/page.html: No space left on device")
    for bug in (ZeroDivisionError(), FileNotFoundError()):
        with pytest.raises(type(bug)):
            ending(bug)


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[tuple[str, dict[str, Any]]]]:
    """Runs the command with a recipe that only looks; returns the command and the configuration of each job."""
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.syspath_prepend(tmp_path)

    def run(*arguments: str) -> list[tuple[str, dict[str, Any]]]:
        seen: list[tuple[str, dict[str, Any]]] = []

        def look(config: Config) -> None:
            line = shlex.join(["python", "-m", "mitigate", *config.call["arguments"]])
            seen.append((line, {name: part for name, part in plain(config).items() if name != "call"}))

        recipe_is(monkeypatch, look)
        assert here(monkeypatch, *arguments) == 0
        return seen

    return run


HARD = (
    *("recipe=labels", "data=triples", "data.path=/tmp/my files (1)/über & co's.csv"),
    "data.columns={head: A, relation: 'B, C', tail: D}",
    "probe.targets=[café owner,'a, b',\"it's\"]",
    "texts=['Hello, world', \"it's\", ${oc.env:HOME},{braces},50 %]",
    *("paths.outputs='/tmp/a b'", "policy.control=true", "seed=3"),
)


@pytest.mark.parametrize("sweep", [False, True], ids=["run", "sweep"])
def test_a_command_with_all_that_is_hard_to_quote(sweep: bool, composed, tmp_path: Path) -> None:
    """With a policy and an experiment of one's own in a folder whose name has a space."""
    own = tmp_path / "my conf"
    for name, content in {
        "policy": "defaults: [both, _self_]\nname: mine\nscorers: [sentiment]\n",
        "experiment": "# @package _global_\ndefaults: [override /policy: mine]\ntrainer: {max_steps: 7}\n",
    }.items():
        (own / name).mkdir(parents=True)
        (own / name / "mine.yaml").write_text(content)
    named = ("--config-dir", str(own), "experiment=mine", *HARD, f"paths.cache={tmp_path / 'c'}")
    named += (f"hydra.sweep.dir={tmp_path}/sweep",) * sweep
    jobs = composed("-m", *named, "trainer.lr=0.1,0.2") if sweep else composed(*named)
    assert len(jobs) == 2 if sweep else 1
    for line, config in jobs:
        assert config["data"]["path"] == "/tmp/my files (1)/über & co's.csv"
        assert config["data"]["columns"] == {"head": "A", "relation": "B, C", "tail": "D"}
        assert config["probe"]["targets"] == ["café owner", "a, b", "it's"]
        assert config["texts"] == ["Hello, world", "it's", "${oc.env:HOME}", "{braces}", "50 %"]
        assert (config["policy"]["name"], config["trainer"]["max_steps"], config["seed"]) == ("mine-control", 7, 3)
        assert line.startswith("python -m mitigate --config-dir ")
        assert composed(*shlex.split(line)[3:]) == [(line, config)]
    assert len({line for line, _ in jobs}) == len(jobs)
