"""What the command answers by itself: its version, lists of what a group offers, and the help of each recipe."""

from pathlib import Path

import pytest
from command import ROOT, here

from mitigate import __version__
from mitigate.errors import MitigateError
from mitigate.recipes import helping
from mitigate.settings import settings

CONF = [ROOT / "conf"]
RECIPES = sorted(path.stem for path in (ROOT / "conf" / "recipe").glob("*.yaml"))


def test_the_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert here(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"mitigate {__version__}\n"


def test_a_recipes_help_has_an_example_and_its_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(monkeypatch, "recipe=ask", "--help") == 0
    said = capsys.readouterr().out
    assert said.startswith("recipe=ask\n  A finished run of the main job asked about a head and a relation")
    assert "\n    python -m mitigate recipe=ask ask.run=DIR head=lawyer relation=CapableOf\n" in said
    assert "\n  ask.run=???       run folder that is asked\n" in said
    assert "trainer" not in said


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_has_an_example_and_settings_that_are_described(recipe: str) -> None:
    said = helping.help_of(recipe, CONF)
    assert f"recipe={recipe}" in said.splitlines()[0]
    assert recipe == "mitigate" or f"python -m mitigate recipe={recipe}" in said
    assert max(map(len, said.splitlines())) <= 200
    own = dict(helping._own_settings(CONF[0] / "recipe" / f"{recipe}.yaml"))
    for key in own:
        assert key in settings(), key
        assert "".join(settings()[key].meaning.split()) in "".join(said.split())


def test_lists_of_policies_data_and_models(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert here(monkeypatch, "--list") == 0
    said = capsys.readouterr().out
    for group in ("policy", "data", "model"):
        assert f"{group}=NAME\n" in said
        for path in (ROOT / "conf" / group).glob("*.yaml"):
            assert f"\n  {path.stem} " in said
    assert "  none                 Keeps every triple: the baseline of comparisons\n" in said
    assert here(monkeypatch, "--list", "trainer") == 0
    assert capsys.readouterr().out.startswith("trainer=NAME\n  cpu ")


def test_a_folder_of_ones_own_is_listed_too() -> None:
    assert "  study " in helping.listed("score", [ROOT / "docs/examples/own", *CONF])
    assert "recipe=toy" in helping.help_of("toy", [ROOT / "docs/examples/conf", *CONF])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--list", "polcy"], "unknown group 'polcy'; allowed: data, experiment, "),
        (["--list", "hydra"], "unknown group 'hydra'; allowed: data, experiment, "),
        (["recipe=asq", "--help"], "; did you mean ask?"),
    ],
)
def test_what_there_is_not_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(MitigateError) as told:
        helping.answer(arguments, CONF)
    assert message in str(told.value)


def test_other_commands_are_left_to_hydra() -> None:
    for arguments in (["--help"], ["policy=both"], ["recipe=ask", "ask.run=DIR"], ["--cfg", "job"]):
        assert helping.answer(arguments, [*CONF, Path("absent")]) is None
