"""Whatever is given for a setting, the command goes on or says what is wrong (the long form: overrides.py)."""

import random
from pathlib import Path

import pytest
from overrides import RECIPES, drawn, fault


@pytest.mark.parametrize("recipe", RECIPES)
def test_settings_with_any_value_are_taken_or_told(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    draw = random.Random(recipe)
    for _ in range(4):
        arguments = drawn(recipe, draw)
        assert fault(arguments, tmp_path) is None, arguments


def test_an_unhandled_error_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    monkeypatch.setattr("mitigate.recipes.mitigate.recipe.make_plan", lambda config: 1 / 0)
    assert "ZeroDivisionError" in str(fault(["policy=both"], tmp_path))
