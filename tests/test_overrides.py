"""Whatever is given for a setting, the command goes on or says what is wrong (the long form: overrides.py)."""

import random
from pathlib import Path

import pytest
from overrides import RECIPES, command_of, drawn, fault

from mitigate import __main__ as command_line

EACH = 6  # commands of a recipe


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("input")


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recipes that were called, by the function's name: those whose settings passed all checks before."""
    called: list[str] = []
    found = command_line._recipe
    monkeypatch.setattr(command_line, "_recipe", lambda name: called.append(name) or found(name))
    monkeypatch.chdir(Path(__file__).parents[1])
    return called


@pytest.mark.parametrize("recipe", RECIPES)
def test_settings_with_any_value_are_taken_or_told(
    recipe: str, place: Path, tmp_path: Path, reached: list[str]
) -> None:
    assert fault(command_of(recipe, place / recipe), tmp_path) is None
    assert len(reached) == 1
    draw = random.Random(recipe)
    for _ in range(EACH):
        arguments = drawn(recipe, draw, place / recipe)
        assert fault(arguments, tmp_path) is None, arguments
    assert len(reached) > 1, "no command came as far as its recipe"


def test_an_unhandled_error_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setattr("mitigate.recipes.mitigate.recipe.make_plan", lambda config: 1 / 0)
    assert "ZeroDivisionError" in str(fault(["policy=both"], tmp_path))
